"""Several sensitive attributes, and several rows of an individual: rows of a class differ on every key."""

import itertools
import random
import re
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import oracle
import pytest
import tables
from refusals import refuses
from strategies import search, seeds, some
from test_selection import coded_axes, encoded_task, sequential

import ldiv_db
from ldiv_db.algorithms.base import Plan
from ldiv_db.algorithms.bsgi import repair, selection
from ldiv_db.algorithms.bsgi import selection as residue
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import AuditError, InfeasibleError
from ldiv_db.policy.quasi_identifiers import column_problems
from ldiv_db.policy.reading import parse_policy
from ldiv_db.requirements.guarantees import most_classes

WAYS = ("bisect", "refine", "greedy")
TREE = {"*": {"A": {"a1": {}, "a2": {}, "a3": {}}, "B": {"b1": {}, "b2": {}}}}
COLUMNS = {
    "number": "INTEGER", "town": "VARCHAR", "person": "VARCHAR",
    "s1": "VARCHAR", "s2": "INTEGER", "s3": "VARCHAR", "rid": "INTEGER",
}  # fmt: skip


def several_case(draw, select, n, l, sensitive, people):
    """A case whose keys lean on the quasi-identifiers; `people` is how many individuals there are, None for no key."""
    towns = ["a1", "a2", "a3", "b1", "b2", None]
    rows = []
    for i in range(n):
        number, town = draw.choice([None, *range(30)]), draw.choice(towns)
        person = None if draw.random() < 0.1 else f"p{draw.randrange(people or 1)}"
        lean = (number or 0) // 6 if draw.random() < 0.5 else draw.randrange(7)
        rows.append((number, town, person, f"x{lean}", draw.randrange(5), f"z{towns.index(town)}", i))
    policy = {
        "source": "source", "target": {"table": "out.released", "if_exists": "replace"},
        "quasi_identifiers": {"number": {"numeric": True}, "town": {"taxonomy": {"file": "town.json"}, "weight": 2}},
        "sensitive": sensitive, "identifiers": [name for name in ("s1", "s2", "s3") if name not in sensitive],
        "keep": ["rid"], "require": [{"unique_distinct": l}],
        "algorithm": {"name": "bsgi", "select": select, "residue": draw.choice(["incorporate", "suppress"])},
        "seed": draw.randrange(99),
    }  # fmt: skip
    if people is None:
        policy["identifiers"].append("person")
    else:
        policy["individual"] = "person"
    return tables.Case(COLUMNS, rows, policy, trees={"town": TREE})


def keys_of(case):
    """Per row id the values on which rows of a class differ."""
    names = [*case.policy["sensitive"], *(["person"] if "individual" in case.policy else [])]
    places = [list(COLUMNS).index(name) for name in names]
    return {row[-1]: tuple(row[place] for place in places) for row in case.rows}


def classes_of(release):
    classes = defaultdict(list)
    for row in release:
        classes[row["class_id"]].append(row["rid"])
    return dict(classes)


def verify(case, result, release, l):
    """Assert all that must be true of a release."""
    keys, classes = keys_of(case), classes_of(release)
    for members in classes.values():
        assert len(members) >= l
        assert all(oracle.differ(keys[a], keys[b]) for a, b in itertools.combinations(members, 2))
    rids = [row["rid"] for row in release]
    assert len(set(rids)) == len(rids) and set(rids) <= set(keys)
    left = len(case.rows) - len(rids)
    assert left == result.loss.rows_suppressed == result.search["residue_suppressed"], "the report counts what is lost"
    assert result.search["residue_rows"] == len(case.rows) - l * len(classes)
    assert result.loss.classes == len(classes)
    assert any(f"{left:,} of {len(case.rows):,} rows found no class" in note for note in result.notes) == (left > 0)
    assert all(verdict["holds"] for verdict in result.requirements)
    assert "person" not in release[0]
    bound = min(most_classes(counts_of(column), l) for column in zip(*keys.values(), strict=True))
    assert len(classes) <= bound
    original = {row[-1]: row for row in case.rows}
    for row in release:
        assert row["s1"] == original[row["rid"]][3]
    if case.policy["algorithm"]["residue"] == "suppress":
        assert {len(members) for members in classes.values()} == {l}
        return
    for rid in set(keys) - set(rids):  # what is left out finds no class
        assert not any(all(oracle.differ(keys[rid], keys[m]) for m in members) for members in classes.values())


def counts_of(column):
    known = Counter(value for value in column if value is not None)
    return sorted(known.values(), reverse=True) + [1] * sum(value is None for value in column)


def publish(case, threads=2, order=None):
    with duckdb.connect(config={"threads": threads}) as con, tempfile.TemporaryDirectory() as folder:
        case.place(con, Path(folder), order)
        result = ldiv_db.run(con, case.policy, folder=folder)
        return result, tables.published(con, case)


KEYS = [(["s1"], 9), (["s1"], 40), (["s1", "s2"], None), (["s2", "s1", "s3"], None), (["s1", "s2"], 30)]


EACH = [
    ("bisect", *KEYS[0]),
    ("refine", *KEYS[4]),
    ("greedy", *KEYS[3]),
    *((way, *keys) for way in WAYS for keys in KEYS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("select", "sensitive", "people"), some([pytest.param(*each) for each in EACH], 2))
@search(1, seed=seeds)
def test_rows_of_a_class_differ_on_every_key(select, sensitive, people, seed):
    draw = random.Random(f"{seed} {sensitive} {people}")
    l = draw.choice([2, 3])
    case = several_case(draw, select, draw.choice([20, 60]), l, sensitive, people)
    try:
        result, release = publish(case)
    except InfeasibleError as error:
        assert "more than 1/" in str(error) and case.policy["algorithm"]["residue"] == "incorporate"
        case.policy["algorithm"]["residue"] = "suppress"
        result, release = publish(case)
    verify(case, result, release, l)


@pytest.mark.parametrize("select", some(WAYS))
@search(1, seed=seeds)
def test_never_more_classes_than_the_optimum(select, seed):
    """On a dozen rows, against all ways to make classes: with two keys and three, the optimum is reached or nearly."""
    draw, l = random.Random(seed), 2 + seed % 2
    case = several_case(draw, select, 12, l, ["s1", "s2"], 5 if seed % 3 else None)
    case.policy["algorithm"]["residue"] = "suppress"
    most = oracle.most_differing_classes(list(keys_of(case).values()), l)
    try:
        result, release = publish(case)
    except InfeasibleError as error:
        assert most == 0 or (most < 3 and "were found" in str(error))
        return
    verify(case, result, release, l)
    assert max(1, most - 2) <= result.loss.classes <= most


@pytest.mark.parametrize(("batch", "ranked"), some([pytest.param(*n) for n in ((5, 2), (None, None), (1, 1))]))
@search(1, seed=seeds)
def test_greedy_is_the_sequential_procedure(con, tmp_path, batch, ranked, seed):
    """Side by side or one class at a time: the same rows, the same classes give up."""
    draw = random.Random(seed)
    case = several_case(draw, "greedy", draw.choice([25, 60]), 3, ["s1", "s2"], draw.choice([None, 12]))
    task = encoded_task(con, case, tmp_path)
    classes = most_classes(task.encoded.sensitive[0].distribution.counts, 3)
    with pytest.MonkeyPatch.context() as patch:
        if batch is not None:
            patch.setattr(selection, "BATCH", batch)
            patch.setattr(selection, "RANKED", ranked)
        selected = selection.select(task, 3, classes, task.encoded.keys[1:])
    found = con.execute(f"SELECT row_id, class_id FROM {selected.sql()}").fetchall()
    assert dict(found) == sequential(con, task, 3, classes)
    assert len(found) % 3 == 0 and len(found) < 3 * classes + 1


@pytest.mark.parametrize("people", some([15, None]))
def test_residual_rows_join_the_class_of_least_loss(people, con, tmp_path):
    """Against Figure 3 row by row; rows that choose the same class choose in turns, the others after them."""
    case = several_case(random.Random(0), "bisect", 70, 3, ["s1"], people)
    task = encoded_task(con, case, tmp_path)
    encoded = task.encoded
    names = ", ".join(column.code.sql() for column in [*encoded.axes, *encoded.keys])
    found = con.execute(f"SELECT row_id, {names} FROM {encoded.rows.sql()} ORDER BY row_id").fetchall()
    codes = {row[0]: row[1 : 1 + len(encoded.axes)] for row in found}
    keys = {row[0]: row[1 + len(encoded.axes) :] for row in found}
    made, classes = Bsgi({"residue": "suppress"}).run(task), defaultdict(list)
    kept = con.execute(f"SELECT row_id, class_id FROM {made.assigned.sql()} WHERE class_id % 3 > 0").fetchall()
    for row_id, class_id in kept:
        classes[class_id].append(row_id)
    assigned = task.engine.load("kept", {"row_id": "BIGINT", "class_id": "BIGINT"}, kept)
    residue.incorporate(task, assigned, encoded.keys, max(classes))
    joined = dict(con.execute(f"SELECT row_id, class_id FROM {assigned.sql()}").fetchall())
    waiting, turns, axes = sorted(set(codes) - set(dict(kept))), [], coded_axes(encoded)
    while waiting:  # the order in which rows choose
        grown = oracle.incorporate(codes, keys, axes, classes, turns)
        now = {m: list(members) for m, members in classes.items()}
        for row, class_id in grown.items():
            now[class_id].append(row)
        choices = {row: oracle.incorporate(codes, keys, axes, now, [row]).get(row) for row in waiting}
        first = {class_id: min(row for row in waiting if choices[row] == class_id) for class_id in choices.values()}
        first.pop(None, None)
        turns += sorted(first.values())
        waiting = [row for row in waiting if choices[row] is not None and row not in first.values()]
    expected = oracle.incorporate(codes, keys, axes, classes, turns)
    assert len(expected) > 15 and joined == dict(kept) | expected


def test_classes_in_conflict_are_repaired():
    """Two values in three quarters of neighbours: no class of neighbours is good as it is."""
    rows = [(i, "a1", None, f"x{i % 4}", i // 5 % 6, "z", i) for i in range(60)]
    case = several_case(random.Random(0), "bisect", 1, 2, ["s1", "s2"], None)
    case.rows = rows
    case.policy["algorithm"]["residue"] = "suppress"
    result, release = publish(case)
    assert sum(result.search["repairs"]) > 0
    assert result.loss.rows_suppressed == 0 and result.loss.classes == 30
    verify(case, result, release, 2)


@pytest.mark.slow
def test_classes_that_are_not_repaired_are_given_up(monkeypatch):
    """Without exchanges: what is in conflict becomes residue, of which other classes are made."""
    monkeypatch.setattr(repair, "ROUNDS", 0)
    case = several_case(random.Random(0), "refine", 60, 3, ["s1", "s2"], 20)
    case.policy["algorithm"]["residue"] = "suppress"
    result, release = publish(case)
    verify(case, result, release, 3)
    assert result.search["repairs"] == []


def test_one_row_of_an_individual_a_class():
    """Two rows of everybody, alike but for the sensitive value, which alone would make the best classes."""
    case = several_case(random.Random(0), "bisect", 1, 2, ["s1"], 1)
    case.rows = [(i // 2, "a1", f"p{i // 2}", f"x{i % 2}", 0, "z", i) for i in range(20)]
    result, release = publish(case)
    verify(case, result, release, 2)
    (verdict,) = [found for found in result.requirements if found["name"] == "individuals"]
    assert verdict["sensitive"] == "person" and verdict["holds"] and verdict["violating_classes"] == 0


def test_rows_of_nobody_known_may_share_a_class():
    case = several_case(random.Random(0), "bisect", 1, 2, ["s1"], 1)
    case.rows = [(i, "a1", None, f"x{i % 2}", 0, "z", i) for i in range(10)]
    result, release = publish(case)
    assert len(release) == 10 and result.loss.classes == 5


def test_an_individual_twice_in_a_class_is_not_published(monkeypatch):
    case = several_case(random.Random(0), "bisect", 1, 2, ["s1"], 1)
    case.rows = [(i, "a1", f"p{i // 2}", f"x{i % 2}", 0, "z", i) for i in range(10)]

    def neighbours(self, task):
        pairs = [(i, (i + 1) // 2) for i in range(1, 11)]
        return Plan(task.engine.load("bad", {"row_id": "BIGINT", "class_id": "BIGINT"}, pairs), 2)

    monkeypatch.setattr(Bsgi, "run", neighbours)
    with pytest.raises(AuditError, match=r"one row of an individual on person: 5 of 5 classes violate it \(10 rows\)"):
        publish(case)


INFEASIBLE = {
    "an individual with too many rows": (
        ["s1"], [("p0", "x0", 0), ("p0", "x1", 0), ("p0", "x2", 0), ("p1", "x3", 0), ("p2", "x4", 0)], 3,
        "individual with the most rows holds 3 of 5 rows, more than 1/3. This algorithm reaches no whole l above 1\n"
        ".*residue: suppress.*2 of 5 rows are left out",
    ),
    "too few individuals": (
        ["s1"], [(f"p{i % 2}", f"x{i}", 0) for i in range(6)], 3,
        "individuals are impossible: there are 2 individuals in 6 rows. The largest l of this algorithm is 2\n"
        ".*1. require: .{unique_distinct: 2}. .promises less",
    ),
    "too few values of the second attribute": (
        ["s1", "s2"], [(f"p{i}", f"x{i}", i % 2) for i in range(6)], 3,
        "attribute s2 has 2 different values in 6 rows. The largest l of this algorithm is 2\n"
        ".*1. require: .{unique_distinct: 2}. .promises less",
    ),
    "too frequent a value of the second attribute": (
        ["s1", "s2"], [(f"p{i}", f"x{i}", max(0, i - 2)) for i in range(6)], 3,
        "most frequent sensitive value of s2 holds 3 of 6 rows, more than 1/3. The largest l of this algorithm is 2\n"
        ".*unique_distinct: 2.*residue: suppress.*3 of 6 rows are left out",
    ),
    "rows that never differ on both": (
        ["s1", "s2"], [("p0", "x0", 0), ("p1", "x0", 1), ("p2", "x1", 0)], 2,
        "most frequent sensitive value of s1 holds 2 of 3 rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", some(INFEASIBLE, 2))
def test_what_is_infeasible_is_said_with_its_numbers(case):
    sensitive, rows, l, message = INFEASIBLE[case]
    wanted = several_case(random.Random(0), "bisect", 1, l, sensitive, 1)
    wanted.rows = [(i, "a1", person, s1, s2, "z", i) for i, (person, s1, s2) in enumerate(rows)]
    wanted.policy["algorithm"]["residue"] = "incorporate"
    with pytest.raises(InfeasibleError, match=f"(?s){message}"):
        publish(wanted)


@pytest.mark.usefixtures("no_remedies")
@pytest.mark.parametrize("select", some(WAYS))
def test_no_class_at_all_is_refused(select):
    """Each attribute alone allows a class of three, both together allow none."""
    case = several_case(random.Random(0), select, 1, 3, ["s1", "s2"], None)
    pairs = [("x0", 0), ("x0", 1), ("x0", 2), ("x1", 0), ("x2", 0)]
    case.rows = [(i, "a1", None, s1, s2, "z", i) for i, (s1, s2) in enumerate(pairs)]
    case.policy["algorithm"]["residue"] = "suppress"
    assert oracle.most_differing_classes(pairs, 3) == 0
    with pytest.raises(InfeasibleError, match="no 3 rows were found that differ in each of s1, s2"):
        publish(case)


def test_auto_is_what_every_key_allows():
    case = several_case(random.Random(0), "bisect", 1, 2, ["s1", "s2"], 1)
    case.rows = [(i, "a1", f"p{i % 3}", f"x{i % 6}", i % 4, "z", i) for i in range(24)]
    case.policy["require"] = [{"unique_distinct": "auto"}]
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
        case.place(con, Path(folder))
        assert ldiv_db.plan(con, case.policy, folder=folder).feasibility.l == 3


POLICY = {
    "source": "t", "target": "released", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["disease"],
    "individual": "person", "require": [{"distinct": 2}],
}  # fmt: skip


def test_an_individual_is_classified_and_needs_class_ids():
    policy = parse_policy(POLICY)
    assert ("individual", "person") in policy.roles() and policy.publishes_class_id
    columns = [Column(name, "INTEGER") for name in ("age", "disease", "person")]
    assert column_problems(policy, columns) == []
    named = parse_policy(POLICY | {"identifiers": ["PERSON"]})
    assert [name for _, name in named.roles()] == ["PERSON", "age", "disease"]
    assert column_problems(named, columns) == []


def test_an_individual_is_never_published():
    for changes, code in (
        ({"keep": ["Person"]}, "keep.Person"),
        ({"sensitive": ["disease", "person"]}, "individual.person"),
        ({"output": {"class_id": False}}, "output"),
    ):
        with refuses(code):
            parse_policy(POLICY | changes)


def test_an_individual_that_the_source_lacks_is_named():
    columns = [Column(name, "INTEGER") for name in ("age", "disease", "persons")]
    (problem,) = (p for p in column_problems(parse_policy(POLICY), columns) if p.key == "individual.person")
    assert re.search(r"individual\.person: the source has no such column.*'persons'", str(problem))
