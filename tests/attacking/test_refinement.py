"""Refinement: against all tables that a publisher who goes from fine labels to coarse ones publishes alike."""

import itertools
import random
import sys
from collections import Counter, defaultdict

import duckdb
import pytest
from refusals import refuses
from strategies import numbers, search, seeds, some

import ldiv_db
from ldiv_db.attacking.refinement import conclude, tree_of
from ldiv_db.database.errors import PolicyError
from ldiv_db.taxonomies.taxonomy import number, tree_of_paths

#: Taxonomies as ways from a value to the root, of two levels and of one.
PAIRS = [("a", "ab", "*"), ("b", "ab", "*"), ("c", "cd", "*"), ("d", "cd", "*")]
THREES = [("x", "*"), ("y", "*"), ("z", "*")]
UNEVEN = [("p", "pqr", "*"), ("q", "pqr", "*"), ("r", "pqr", "*"), ("s", "s*", "*"), ("t", "s*", "*")]


# -- the publisher, and all tables that they publish alike -----------------------------------------------


def publish(rows, k, states):
    """The label of each row: of the states in their order each publishes the classes of k rows that are left."""
    labels, left = {}, dict(enumerate(rows))
    for state in states:
        classes = defaultdict(list)
        for place, row in left.items():
            classes[tuple(way[level] for way, level in zip(row, state, strict=True))].append(place)
        for label, members in classes.items():
            if len(members) >= k:
                labels |= dict.fromkeys(members, label)
                for place in members:
                    del left[place]
    return labels | dict.fromkeys(left, ("*",) * len(states[0]))


def states_of(axes, draw):
    """The combinations of levels by a loss that grows with each level."""
    losses = [list(itertools.accumulate(draw.uniform(0.1, 1) for _ in ways[0])) for ways in axes]
    states = itertools.product(*(range(len(ways[0])) for ways in axes))
    return sorted(states, key=lambda state: sum(loss[level] for loss, level in zip(losses, state, strict=True)))


def releases_of(axes, n, k, states):
    """By release (labels with their rows) the members of its classes, in each table of n rows that gives it."""
    found = defaultdict(list)
    for rows in itertools.combinations_with_replacement(list(itertools.product(*axes)), n):
        labels, members = publish(rows, k, states), defaultdict(list)
        for row, label in sorted(labels.items()):
            members[label].append(rows[row])
        found[tuple(sorted(Counter(labels.values()).items()))].append(members)
    return found


def trees_of(axes, release):
    """The taxonomies, and those of them that the attacker goes into."""
    taxonomies = [number(tree_of_paths(way[::-1] for way in ways), "test") for ways in axes]
    nodes = [{node.label: node.node for node in taxonomy.nodes} for taxonomy in taxonomies]
    boxes = [(tuple(of[one] for of, one in zip(nodes, label, strict=True)), rows) for label, rows in release]
    published = zip(*(box for box, _ in boxes), strict=True)
    return boxes, nodes, [tree_of(one, found) for one, found in zip(taxonomies, published, strict=True)]


def value_of(way, tree, nodes, label):
    """The place of a value among those of the label."""
    places = [span for node, span in tree[nodes[label]] if node in {nodes[one] for one in way}]
    low, _ = min(places, key=lambda span: span[1] - span[0])
    return low


def counts_in(members, axis, tree, nodes, label):
    return Counter(value_of(row[axis], tree, nodes, label) for row in members)


def held_against_worlds(axes, k, release, worlds):
    """By class and axis what the attack concludes, with the least and the most rows of each value in all worlds."""
    boxes, nodes, trees = trees_of(axes, release)
    concluded = {box: counts for box, _, counts in conclude(boxes, trees, k, 10**9)}
    assert len(concluded) == len(release)
    for (label, _), (box, _) in zip(release, boxes, strict=True):
        for axis, ends in enumerate(concluded[box]):
            in_worlds = [counts_in(world[label], axis, trees[axis], nodes[axis], label[axis]) for world in worlds]
            true = [(min(w[v] for w in in_worlds), max(w[v] for w in in_worlds)) for v in range(len(ends))]
            yield ends, true


@search(2, seed=seeds)
def test_conclusions_hold_in_all_tables_that_are_published_so(seed):
    draw = random.Random(seed)
    axes, n, k = draw.choice([([PAIRS, THREES], 4, 2), ([PAIRS, PAIRS], 3, 2), ([UNEVEN, THREES], 4, 3)])
    narrowed = 0
    for release, worlds in releases_of(axes, n, k, states_of(axes, draw)).items():
        for ends, true in held_against_worlds(axes, k, release, worlds):
            assert all(low <= least and most <= high for (low, high), (least, most) in zip(ends, true, strict=True))
            narrowed += any(high == 0 for _, high in ends)
    assert narrowed


@pytest.mark.parametrize(
    ("ways", "n", "k"), some([(PAIRS, 7, 3), (UNEVEN, 6, 2), (UNEVEN, 7, 4), (THREES, 6, 3), (PAIRS, 7, 2)], 2)
)
def test_of_one_column_all_is_concluded_that_follows(ways, n, k):
    values, exact = {way[0] for way in ways}, 0
    for release, worlds in releases_of([ways], n, k, [(level,) for level in range(len(ways[0]))]).items():
        if values.isdisjoint(label for (label,), _ in release):
            continue  # single values may not have been allowed
        for ends, true in held_against_worlds([ways], k, release, worlds):
            assert ends == true
            exact += len(ends) > 1
    assert exact


# -- as a caller asks -------------------------------------------------------------------------------------


@pytest.fixture
def asked(tmp_path):
    """A function that attacks labels, given as a list of rows, under a policy of these axes."""

    def ask(rows, k=2, require=None, sensitive=(), columns=None, individual=None, **axes):
        for name, ways in axes.items():
            (tmp_path / f"{name}.csv").write_text("".join(";".join(way) + "\n" for way in ways))
        columns = {name: {"taxonomy": {"file": f"{name}.csv"}} for name in axes} | (columns or {})
        policy = {"source": "people", "target": "published", "quasi_identifiers": columns, "sensitive": list(sensitive)}
        policy |= {"require": require or [{"k": k}], "algorithm": "topdown"} | (
            {"individual": individual} if individual else {}
        )
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE published ({', '.join(f'{name} VARCHAR' for name in [*columns, *sensitive])})")
            if rows:
                con.executemany(f"INSERT INTO published VALUES ({', '.join('?' * len(rows[0]))})", rows)
            found = ldiv_db.attack(con, "published", policy=policy, refine=True, folder=tmp_path, budget=10**5)
        (attack,) = [one for one in found.attacks if one.name == "refinement"]
        return attack

    return ask


def gains(attack):
    return [gain.gain for gain in attack.gains]


def test_shares_are_those_of_what_is_concluded(asked):
    told = []
    for seed in numbers(2):
        draw = random.Random(seed)
        axes, n, k = [PAIRS, THREES], 5, 2
        releases = releases_of(axes, n, k, states_of(axes, draw))
        for release in draw.sample([one for one in releases if len(one) > 1], 3):
            ends_of = held_against_worlds(axes, k, release, releases[release])
            coarse = [
                (rows, ends)
                for (_, rows), (ends, _) in zip(((one for one in release for _ in axes)), ends_of, strict=True)
                if len(ends) > 1
            ]
            possible = [(rows, sum(high > 0 for _, high in ends), len(ends)) for rows, ends in coarse]
            narrowed = sum(rows for rows, left, values in possible if left < values)
            counted = sum(rows for rows, ends in coarse if all(low == high for low, high in ends))
            found = asked([label for label, rows in release for _ in range(rows)], first=PAIRS, second=THREES)
            assert gains(found) == [narrowed / 10, counted / 10] and found.holds is None
            cells = sum(rows for rows, _ in coarse)
            means = [sum(rows * one[i] for rows, *one in possible) / cells if cells else None for i in (1, 0)]
            assert found.figures == dict(zip(found.figures, [0, cells, *means], strict=True))
            told.append(narrowed)
    assert any(told)


def test_who_went_before_is_in_no_coarser_class(asked):
    """Two rows at a, so none of the two at ab: both are at b, where they would have been published."""
    assert gains(asked([("a",)] * 3 + [("ab",)] * 2, k=3, first=PAIRS)) == [0.4, 0.4]
    contradicted = asked([("a",)] * 2 + [("ab",)] * 2, first=PAIRS)
    assert contradicted.figures["rows_contradicted"] == 2 and gains(contradicted) == [0, 0]


def test_a_level_that_nobody_has_may_not_have_been_allowed(asked):
    assert asked([("ab",)] * 3 + [("*",)] * 3, k=4, first=PAIRS).figures["values"] == 2
    assert asked([("a",)] + [("*",)] * 3, k=4, first=PAIRS).figures["values"] == 4


def test_a_star_is_the_root_whatever_its_name(asked):
    ways = [(value, "any") for value in "xyz"]
    assert gains(asked([("x",)] * 2 + [("*",)] * 2, first=ways)) == gains(
        asked([("x",)] * 2 + [("any",)] * 2, first=ways)
    )


@pytest.mark.parametrize(
    ("asking", "note"),
    [
        ({"columns": {"age": {"numeric": True}}}, "no taxonomy tells the finer labels of age"),
        ({"require": [{"k": 2}, {"distinct": 2}], "sensitive": ["ill"]}, "nothing follows unless k, of rows, is all"),
        ({"require": [{"k": 1}]}, "nothing follows unless k, of rows, is all"),
        ({"individual": {"column": "person", "rows": "together"}}, "nothing follows unless k, of rows, is all"),
        ({"rows": []}, "there are no rows"),
    ],
)
def test_where_nothing_follows_it_says_why(asked, asking, note):
    given = {"rows": [("ab",)] * 3, "first": PAIRS} | asking
    more = len(given.get("columns", ())) + len(given.get("sensitive", ()))
    found = asked([row + ("1",) * more for row in given.pop("rows")], **given)
    assert note in found.figures["note"] and gains(found) == [None, None]


def test_labels_of_no_node_are_refused(asked):
    with pytest.raises(PolicyError, match="first: has labels that are not in its taxonomy"):
        asked([("ab",), ("elsewhere",)], first=PAIRS)
    with refuses("quasi_identifiers"):
        asked([("ab",), (None,)], first=PAIRS)


def test_classes_beyond_the_budget_are_untried(asked):
    many = [(f"{group}{value:02}", f"g{group}", "*") for group in range(5) for value in range(20)]
    rows = [("g0", "a")] * 3 + [("000", "a")] * 4 + [("*", "*")] * 2
    found = asked(rows, k=4, first=many, second=PAIRS)
    assert (found.untried.tried, found.untried.whole) == (7, 9)


def test_without_the_solver_it_says_what_to_install(asked, monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(PolicyError, match=r"refine: needs highspy.*ldiv-db\[refine\]"):
        asked([("ab",)] * 2, first=PAIRS)


def test_the_solver_prints_nothing(asked, capfd):
    asked([("a",)] * 3 + [("ab",)] * 3, first=PAIRS, k=3)
    assert capfd.readouterr() == ("", "")
