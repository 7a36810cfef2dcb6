"""Global recodings of people against brute force over all cuts: what they cost, and what each row is published as."""

import json
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import cut_oracle
import oracle
import pytest
from hypothesis import reject
from strategies import search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db import InfeasibleError

pytestmark = pytest.mark.usefixtures("no_remedies")

TREES = [
    {"*": {"L": {"a": {}, "b": {}}, "R": {"c": {}, "d": {}}}},
    {"*": {"a": {}, "M": {"N": {"b": {}, "c": {}}, "d": {}}}},
    {"T": {"U": {"a": {}, "b": {}}, "c": {}}},
]
REQUIREMENTS = some([{"k": 2}, {"frequency": 2}, {"distinct": 2}, {"entropy": "1.6"}])
#: The population that a class must cover two people of, by the values of each.
PEOPLE = [("a", "a"), ("a", "c"), ("b", "a"), ("c", "b"), ("c", "c"), ("d", "a"), ("d", "c")]


def people(draw, trees, most):
    """Rows by person, each (values, sensitive value); with `most` 0 everybody has two."""
    leaves = [cut_oracle.leaves(tree) for tree in trees]
    found = {}
    for who in range(draw.randint(6, 20)):
        own = tuple(map(draw.choice, leaves))
        count = 2 if most == 0 else draw.randint(1, most)
        rows = [tuple(draw.choice(leaf) if draw.random() < 0.4 else v for v, leaf in zip(own, leaves, strict=True))]
        rows += [own] * (count - 1)
        found[who] = [(values, draw.choice("stu")) for values in rows]
    return found


def ancestor(tree, values):
    """The lowest common ancestor, as the leaves below it."""
    ways = dict(cut_oracle.ways(tree))
    return min((node for way in ways.values() for node in way if set(values) <= set(node)), key=len)


def together(trees, cut, rows):
    """What somebody is published as: of each quasi-identifier leaves."""
    shown = []
    for place, (tree, one) in enumerate(zip(trees, cut, strict=True)):
        own = {values[place] for values, _ in rows}
        groups = {one[value][1] for value in own}
        shown.append(groups.pop() if len(groups) == 1 else ancestor(tree, own))
    return tuple(shown)


def loss(tree, node):
    return Fraction(len(node) - 1, max(len(cut_oracle.leaves(tree)) - 1, 1))


def cost_of(trees):
    return lambda label: sum(map(loss, trees, label))


def is_good(members, found, require):
    ((name, argument),) = require.items()
    return oracle.people_are_good([(who, value) for who in members for _, value in found[who]], name, argument)


def least(found, require, cuts, shown, cost, also=lambda label: True):
    """The least cost of all cuts whose classes are good, None if none is."""
    costs = []
    for cut in product(*cuts):
        classes = defaultdict(list)
        for who, rows in found.items():
            classes[shown(cut, rows)].append(who)
        if all(is_good(members, found, require) and also(label) for label, members in classes.items()):
            costs.append(sum(cost(label) * len(members) for label, members in classes.items()))
    return min(costs, default=None)


def run(con, folder, trees, found, require, rows, told=False, **changes):
    """The result, or the policy if it is to be told."""
    con.execute("DROP SCHEMA IF EXISTS out CASCADE")
    names = [f"q{place}" for place in range(len(trees))]
    listed = [(who, day, *values, s) for who, own in found.items() for day, (values, s) in enumerate(own)]
    types = {"who": "INTEGER", "day": "INTEGER", **dict.fromkeys([*names, "s"], "VARCHAR")}
    fill(con, "source", types, listed)
    for name, tree in zip(names, trees, strict=True):
        (folder / f"{name}.json").write_text(json.dumps(tree))
    keys = {name: {"taxonomy": {"file": f"{name}.json"}} for name in names}
    policy = {
        "source": "source", "target": "out.released", "quasi_identifiers": keys, "sensitive": ["s"], "seed": 1,
        "individual": {"column": "who", "rows": rows} | ({"order": "day"} if rows == "aligned" else {}),
        "require": require, "keep": [] if rows == "aligned" else ["day"], "output": {"person": "nr"}, **changes,
    }  # fmt: skip
    result = ldiv_db.run(con, policy, folder=folder)
    assert ldiv_db.check(con, "out.released", policy=policy, folder=folder).holds
    return policy if told else result


def nodes(tree):
    """All nodes, as the leaves below them."""
    return {node for _, way in cut_oracle.ways(tree) for node in way}


def labels_of(tree, node):
    """The labels that nodes of these leaves have."""
    ((label, below),) = tree.items()
    own = [label] if set(cut_oracle.leaves(tree)) == set(node) else []
    return own + [found for child, deeper in below.items() for found in labels_of({child: deeper}, node)]


def cut_of(tree, labels):
    return next(cut for cut in cut_oracle.cuts(tree) if {label for label, _ in cut.values()} == set(labels))


@pytest.mark.parametrize("require", REQUIREMENTS, ids=str)
@search(2, draw=seeded)
def test_a_cut_of_people_together_costs_least(con, tmp_path, require, draw):
    trees = [draw.choice(TREES) for _ in range(draw.choice([1, 2]))]
    found = people(draw, trees, 3)
    best = least(
        found, require, [list(cut_oracle.cuts(t)) for t in trees], lambda c, r: together(trees, c, r), cost_of(trees)
    )
    algorithm = {"name": "cuts", "scheme": "none"}
    if best is None:
        with pytest.raises(InfeasibleError):
            run(con, tmp_path, trees, found, [require], "together", algorithm=algorithm)
        return
    result = run(con, tmp_path, trees, found, [require], "together", algorithm=algorithm)
    assert result.search["cost"] == pytest.approx(float(best))
    cut = [cut_of(tree, labels) for tree, labels in zip(trees, result.search["cut"].values(), strict=True)]
    names = ", ".join(f"q{place}" for place in range(len(trees)))
    published = con.execute(f"SELECT nr, {names}, s FROM out.released").fetchall()
    by_person = defaultdict(list)
    for nr, *labels, s in published:
        by_person[nr].append((tuple(labels), s))
    assert all(len({labels for labels, _ in rows}) == 1 for rows in by_person.values())
    shown = Counter(
        (tuple(labels_of(tree, node)[-1] for tree, node in zip(trees, together(trees, cut, rows), strict=True)),
         tuple(sorted(s for _, s in rows)))
        for rows in found.values()
    )  # fmt: skip
    assert shown == Counter((rows[0][0], tuple(sorted(s for _, s in rows))) for rows in by_person.values())


def positions(trees, found):
    """Of people with two rows each the quasi-identifiers, those that vary at both positions."""
    return [
        (place, turn)
        for place in range(len(trees))
        for turn in range(1 + any(one[0][place] != other[0][place] for one, other in found.values()))
    ]


def least_aligned(trees, found, require, cuts_of, also=lambda label: True):
    """The least cost of all cuts at all positions whose classes are good, None if none is."""
    places = positions(trees, found)

    def shown(cut, rows):
        return tuple(one[rows[turn][0][place]][1] for one, (place, turn) in zip(cut, places, strict=True))

    def cost(label):
        return sum(loss(trees[place], node) for node, (place, _) in zip(label, places, strict=True))

    cuts = [list(cuts_of(trees[place])) for place, _ in places]
    return least(found, require, cuts, shown, cost, lambda label: also(zip(label, places, strict=True)))


@pytest.mark.parametrize("require", REQUIREMENTS, ids=str)
@search(2, draw=seeded)
def test_a_cut_of_aligned_rows_costs_least(con, tmp_path, require, draw):
    """Of people with two rows each: a quasi-identifier that varies has a cut at each position."""
    trees = [draw.choice(TREES) for _ in range(draw.choice([1, 2]))]
    found = people(draw, trees, 0)
    if len(positions(trees, found)) > 3:
        reject()
    best = least_aligned(trees, found, require, cut_oracle.cuts)
    algorithm = {"name": "cuts", "scheme": "none"}
    if best is None:
        with pytest.raises(InfeasibleError):
            run(con, tmp_path, trees, found, [require], "aligned", algorithm=algorithm)
        return
    result = run(con, tmp_path, trees, found, [require], "aligned", algorithm=algorithm)
    (level,) = result.search["levels"]
    assert level["cost"] == pytest.approx(float(best))


@search(1, draw=seeded)
def test_people_of_a_population_are_those_whom_all_labels_of_a_sequence_cover(con, tmp_path, draw):
    trees = [draw.choice(TREES[:2]), TREES[2]]
    found = people(draw, trees, 0)
    fill(con, "pop", {"q0": "VARCHAR", "q1": "VARCHAR"}, PEOPLE)

    def covers(label):
        asked = list(label)
        return sum(all(own[place] in node for node, (place, _) in asked) for own in PEOPLE) >= 2

    best = least_aligned(trees, found, {"k": 2}, cut_oracle.full_domains, covers)
    asked = [{"k": 2}, {"k_map": {"k": 2, "population": "pop"}}]
    if best is None:
        with pytest.raises(InfeasibleError):
            run(con, tmp_path, trees, found, asked, "aligned", algorithm="incognito")
        return
    result = run(con, tmp_path, trees, found, asked, "aligned", algorithm="incognito")
    (level,) = result.search["levels"]
    assert level["cost"] == pytest.approx(float(best))
    policy = run(con, tmp_path, trees, found, [{"k": 2}], "aligned", algorithm="topdown", told=True)
    audit = ldiv_db.check(con, "out.released", policy=policy | {"require": asked[1:]}, folder=tmp_path)
    shown = defaultdict(list)
    for nr, *labels in con.execute("SELECT nr, q0, q1 FROM out.released ORDER BY position").fetchall():
        shown[nr].append(labels)
    fits = [{label: node for node in nodes(tree) for label in labels_of(tree, node)} for tree in trees]
    counts = [
        sum(all(v in fit[one] for row in rows for v, fit, one in zip(own, fits, row, strict=True)) for own in PEOPLE)
        for rows in shown.values()
    ]
    assert (audit[0].verdicts[0].worst or 0) == min(counts)


@pytest.mark.parametrize("algorithm", some(["tds", "incognito", "annealing"]))
@pytest.mark.parametrize("rows", some(["aligned", "together"]))
@search(1, draw=seeded)
def test_other_recodings_of_people_hold(con, tmp_path, algorithm, rows, draw):
    trees = [draw.choice(TREES) for _ in range(2)]
    found = people(draw, trees, 3)
    run(con, tmp_path, trees, found, [{"k": 2}], rows, algorithm=algorithm)


@search(1, draw=seeded)
def test_people_of_a_population_are_counted_by_all_labels_that_cover_them(con, tmp_path, draw):
    """Whoever has several values has a label of their own, which covers people of others too."""
    trees, require = [draw.choice(TREES[:2]), TREES[2]], {"k": 1}
    found = people(draw, trees, 3)
    fill(con, "pop", {"q0": "VARCHAR", "q1": "VARCHAR"}, PEOPLE)

    def covers(label):
        return sum(all(value in node for value, node in zip(own, label, strict=True)) for own in PEOPLE) >= 2

    levels = [list(cut_oracle.full_domains(tree)) for tree in trees]
    best = least(found, require, levels, lambda c, r: together(trees, c, r), cost_of(trees), covers)
    asked = [require, {"k_map": {"k": 2, "population": "pop"}}]
    result = run(con, tmp_path, trees, found, asked, "together", algorithm="incognito")
    assert result.search["cost"] == pytest.approx(float(best))
    run(con, tmp_path, trees, found, asked, "together", algorithm="tds")


def test_a_plan_refuses_people_whose_sets_at_all_positions_cover_too_few(con, tmp_path):
    """The table as one class has the sets of its positions, which nobody of the population may have in common."""
    found = {who: [(("a",), "s"), (("c",), "t")] for who in range(4)}
    fill(con, "pop", {"q0": "VARCHAR"}, [(value,) for value in "abcd"])
    asked = [{"k": 2}, {"k_map": {"k": 1, "population": "pop"}}]
    with pytest.raises(InfeasibleError, match="k_map"):
        run(con, tmp_path, TREES[:1], found, asked, "aligned", algorithm="tds", recode="set")
    run(con, tmp_path, TREES[:1], found, asked, "aligned", algorithm="tds")
