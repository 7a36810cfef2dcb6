"""Tables in parts: what is published of them is what the oracle says, and the same however the work is done."""

import random

import duckdb
import oracle
import pytest
import tables
from people_in_parts import COLUMNS, people, policy_of
from strategies import search, seeded, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.solving import divide as positions


def released(policy, rows, workers=1, threads=1):
    """The result and the release, in its order."""
    with duckdb.connect(config={"threads": threads}) as con:
        fill(con, "source", COLUMNS, rows)
        result = ldiv_db.run(con, policy, workers=workers)
        return result, con.execute("SELECT * FROM out").fetchall()


def assert_good(policy, rows, result, release):
    """Every row is published once, with its own values, in classes that the oracle finds good."""
    own = {row[0]: row for row in rows}
    assert sorted(row[-1 - 1] for row in release) == sorted(own)
    members = [((row[0],), row[-3]) for row in release]
    for row in release:
        assert (row[-3], row[-1]) == (own[row[-2]][4], own[row[-2]][5])
    for spec in policy["require"]:
        ((name, argument),) = ((n, a) for n, a in spec.items() if n != "sensitive")
        assert not oracle.violations(members, name, argument), name
    assert all(audit.holds for audit in result.audits)


@pytest.mark.parametrize("select", some(["bisect", "refine"]))
@search(1, draw=seeded)
def test_classes_of_different_values_are_as_many_as_there_can_be(con, tmp_path, select, draw):
    case = tables.random_case(draw, select, largest=40)
    case.policy |= {"part_rows": 9}
    case.place(con, tmp_path)
    result = ldiv_db.run(con, case.policy, folder=tmp_path)
    tables.verify(case, result, tables.published(con, case))


@pytest.mark.parametrize(
    ("residue", "rows"),
    some([pytest.param(residue, rows) for rows in (103, 100) for residue in ("incorporate", "suppress")]),
)
def test_rows_beyond_classes_are_in_the_last_part(residue, rows):
    policy = policy_of({"name": "bsgi", "select": "bisect", "residue": residue}, [{"unique_distinct": 4}], 40)
    source = [(rid, rid % 7, "1001", 0.5 * rid, "abcde"[rid % 5], "x") for rid in range(rows)]
    result, release = released(policy, source)
    assert result.loss.classes_made == 25 and result.search["parts"] > 2
    assert len(release) == (100 if residue == "suppress" else rows)
    assert result.search["residue_rows"] == rows - 100
    assert result.search["residue_suppressed"] == rows - len(release)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(["mondrian", "topdown", "bsgi", "auto", "fast", "peel", "stratified"]))
@pytest.mark.parametrize(
    ("count", "l", "part_rows"), some([pytest.param(*n) for n in ((12, 3, 2), (12, 12, 2), (150, 40, 120))])
)
def test_what_cannot_be_divided_is_solved_whole(algorithm, count, l, part_rows):
    rows = [(rid, rid * 7 % 11, "1001", None, f"d{rid % 50}", "x") for rid in range(count)]
    policies = [policy_of(algorithm, [{"distinct": l}], n) for n in (part_rows, 1000)]
    (result, release), (_, whole) = (released(policy, rows) for policy in policies)
    assert_good(policies[0], rows, result, release)
    if "parts" not in result.search and algorithm != "auto":  # which polishes what was not divided
        assert release == whole


@pytest.mark.parametrize("grains", some([4, 1024]))
@search(1, seed=seeds)
def test_mondrian_in_parts_is_mondrian(grains, seed):
    rows, require = people(24, seed), [{"distinct": 2}, {"k": 3}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "GRAINS", grains)
        whole, divided = (released(policy_of("mondrian", require, n), rows) for n in (1000, 12))
    assert divided[1] == whole[1]
    assert divided[0].search["parts"] > 1 and "parts" not in whole[0].search
    assert_good(policy_of("mondrian", require, 12), rows, *divided)


REQUIRED = [
    [{"k": 3}], [{"entropy": 2}], [{"recursive": {"c": 3, "l": 2}}], [{"t_closeness": 0.5}],
    [{"threshold": {"base": 0.9}}], [{"frequency": 2}, {"distinct": 2}],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(["topdown", "peel"]))
@pytest.mark.parametrize("require", some(reversed(REQUIRED)), ids=lambda found: next(iter(found[0])))
def test_parts_meet_every_requirement(algorithm, require):
    rows = people(50)
    policy = policy_of(algorithm, require, 30)
    result, release = released(policy, rows)
    assert len({row[-2] for row in release}) == len(release) == len(rows)
    assert all(audit.holds for audit in result.audits)
    assert result.search["parts"] > 1


@pytest.mark.slow
def test_a_part_knows_the_other_sensitive_attributes():
    policy = policy_of("mondrian", [{"distinct": 2, "others_known": True}, {"distinct": 2, "sensitive": "u"}], 40)
    result, release = released(policy | {"sensitive": ["s", "u"], "keep": ["rid"]}, people(80))
    assert result.search["parts"] > 1 and len(release) == 80
    assert all(audit.holds for audit in result.audits)


@pytest.mark.slow
def test_a_requirement_that_is_not_monotone_is_kept():
    rows = people(60)
    columns = {"sensitive": ["age"], "quasi_identifiers": ["zip", "pay"], "keep": ["rid", "s", "u"]}
    require = [{"proximity": {"epsilon": 1, "m": 2}}]
    result, release = released(policy_of("mondrian", require, 40, nulls_sensitive="suppress", **columns), rows)
    assert all(audit.holds for audit in result.audits) and len(release) == sum(row[1] is not None for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [{"name": "bsgi", "select": "bisect"}, "mondrian"], ids=str)
def test_the_release_is_the_same_for_any_workers_threads_and_order(algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows, require = people(80), [{"unique_distinct": 2} if isinstance(algorithm, dict) else {"distinct": 2}]
    policy = policy_of(algorithm, require, 30)
    shuffled = random.Random(2).sample(rows, len(rows))
    first, *others = [
        released(policy, source, workers, threads)[1]
        for source, workers, threads in ((rows, 1, 1), (shuffled, 1, 2), (rows, 2, 2), (shuffled, 3, 1))
    ]
    assert all(other == first for other in others)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some([{"name": "bsgi", "select": "bisect"}, "mondrian"]), ids=str)
def test_up_to_part_rows_nothing_is_other(algorithm):
    rows, require = people(20), [{"k": 2}] if algorithm == "mondrian" else [{"unique_distinct": 2}]
    policy = policy_of(algorithm, require, 20)
    del policy["part_rows"]
    assert released(policy, rows)[1] == released(policy | {"part_rows": 20}, rows)[1]


def test_half_of_the_rows_have_one_sensitive_value():
    rows = [(*row[:4], "flu" if rid % 2 else str(rid % 9), "x") for rid, row in enumerate(people(32))]
    result, release = released(policy_of({"name": "bsgi", "select": "bisect"}, [{"unique_distinct": 2}], 12), rows)
    assert len(release) == 32 and result.loss.classes_made == 16 and result.search["parts"] >= 3


def test_a_table_of_which_nothing_can_be_split_off_is_one_part():
    rows = [(rid, 30, "1001", 1.0, "ab"[rid % 2], "x") for rid in range(40)]
    result, release = released(policy_of("mondrian", [{"distinct": 2}], 10), rows)
    assert len({row[0] for row in release}) == 1
    assert "all 40 rows are one part: no good part of them can be split off" in result.notes


@pytest.mark.slow
def test_many_different_values_are_counted_in_grains(monkeypatch):
    monkeypatch.setattr(positions, "GRAINS", 16)
    rows = [(rid, rid % 50, "1001", 1.5 * rid * rid, "abcd"[rid % 4], "x") for rid in range(1_200)]
    counted = []
    with duckdb.connect(config={"threads": 1}) as con:
        fill(con, "source", COLUMNS, rows)
        listener = ldiv_db.Listener(on_step=lambda step: counted.append(step.rows) if step.name == "counts" else None)
        policy = policy_of({"name": "bsgi", "select": "bisect"}, [{"unique_distinct": 4}], 400)
        result = ldiv_db.run(con, policy, listener=listener)
    assert result.loss.classes_made == 300 and result.search["parts"] >= 3
    assert max(counted[:2]) <= 2 * 3 * 4 * 19  # nodes, quasi-identifiers, sensitive values, grains


WHOLE = {
    "tp": ({"name": "tp"}, [{"frequency": 2}], "tp plans on all rows together"),
    "greedy": ({"name": "bsgi", "select": "greedy"}, [{"unique_distinct": 2}], "greedy selection chooses"),
    "suppress": ({"name": "peel", "residue": "suppress"}, [{"t_closeness": 0.5}], "classes are compared with all rows"),
}


@pytest.mark.parametrize("case", some(WHOLE))
def test_what_is_not_divided_says_why(case):
    algorithm, require, why = WHOLE[case]
    result, _ = released(policy_of(algorithm, require, 10, quasi_identifiers=["age", "zip"], output={},
                                   identifiers=["pay"]), people(30))  # fmt: skip
    assert [note for note in result.notes if note.startswith(f"all 30 rows are one part: {why}")]
    assert "parts" not in result.search


@pytest.mark.slow
def test_auto_exchanges_rows_inside_parts(monkeypatch):
    policy = policy_of("auto", [{"distinct": 2}], 40)
    result, release = released(policy, people(80))
    assert result.search["parts"] > 1 and result.search["polish"]
    assert len(release) == 80 and result.algorithm == "topdown"


def test_a_plan_says_into_how_many_parts(con):
    fill(con, "source", COLUMNS, people(25))
    policy = policy_of({"name": "bsgi", "select": "bisect"}, [{"unique_distinct": 2}], 10)
    ready = ldiv_db.plan(con, policy, rehearse=True)
    assert "25 rows are divided into 3 parts or more, of at most 10 rows if they can be" in ready.reasons
