"""`suppression`: no more rows are left out than the policy's budget, and each that is left out lowers the loss."""

import random
from fractions import Fraction
from itertools import permutations

import duckdb
import oracle
import pytest
import tables
from strategies import some
from towns import frequent

import ldiv_db
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.running.preview import describe_plan
from ldiv_db.running.run import plan

NEW = {"table": "out", "if_exists": "replace"}
LOCAL = ["mondrian", "topdown", "peel", "stratified", "auto"]
#: Those whose classes often have more rows than they need, so that some row may leave.
SPACIOUS = ["mondrian", "topdown"]


#: What classes of three different values leave out of these rows: six classes take six rows of the twelve.
BEYOND = 24 - 3 * oracle.most_classes([12, 4, 4, 4], 3)


def published(con):
    found = con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'out'").fetchone()
    return found != (0,)


@pytest.mark.parametrize("name", some(["fast", "auto", "bsgi"]))
def test_a_budget_permits_to_leave_out_what_a_requirement_needs(con, name):
    policy = frequent(con, {"frequency": 3}, algorithm=name, suppression=0.25)
    assert BEYOND == 6
    document = describe_plan(plan(con, policy))
    assert (document["rows_suppressed"], document["most_suppressed"]) == (6, 6)
    result = ldiv_db.run(con, policy)
    assert result.algorithm == "bsgi" and result.loss.rows_suppressed == 6
    assert any("leaves out" in note or "left out" in note for note in result.notes)
    values = con.execute("SELECT age, list(s) FROM out GROUP BY age").fetchall()
    assert all(oracle.class_is_good(found, "frequency", 3) for _, found in values)


@pytest.mark.parametrize("call", some([plan, ldiv_db.run]))
@pytest.mark.parametrize("name", some(["bsgi", "auto", "fast", {"name": "bsgi", "residue": "suppress"}]))
def test_beyond_the_budget_is_refused_with_its_numbers_and_the_nearest_that_will_do(con, name, call):
    policy = frequent(con, {"frequency": 3}, algorithm=name, suppression=0.24)
    with pytest.raises(InfeasibleError) as caught:
        call(con, policy)
    assert "6 of 24 rows (25.00 %) would be left out; suppression: 0.24 allows 5" in caught.value.message
    assert not published(con)
    told = [remedy for remedy in caught.value.remedies if remedy.change]  # of others a value would be named
    (larger,) = [remedy for remedy in told if "suppression" in remedy.change]
    assert larger.change == {"suppression": 0.25} and larger.rows == 6
    assert ldiv_db.run(con, policy | larger.change).loss.rows_suppressed == 6


def test_residue_that_is_said_is_kept(con):
    with pytest.raises(InfeasibleError):
        ldiv_db.run(
            con, frequent(con, {"frequency": 3}, algorithm={"name": "bsgi", "residue": "incorporate"}, suppression=0.5)
        )


@pytest.mark.parametrize(
    ("share", "rows", "most"),
    some([pytest.param(*n) for n in ((0.29, 100, 29), (0.07, 100, 7), (0.999, 10, 9), (0, 7, 0))]),
)
def test_the_budget_is_the_share_as_it_is_written_rounded_down(con, share, rows, most):
    policy = frequent(con, {"k": 2}, suppression=share)
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, [(i, "ab"[i % 2]) for i in range(rows)])
    assert describe_plan(plan(con, policy))["most_suppressed"] == most
    assert describe_plan(plan(con, {k: v for k, v in policy.items() if k != "suppression"}))["most_suppressed"] is None


@pytest.mark.slow
def test_rows_that_a_null_takes_out_are_beside_the_budget(con):
    policy = frequent(con, {"frequency": 3}, suppression=0.25, nulls_sensitive="suppress")
    con.execute("INSERT INTO t SELECT 50, NULL FROM range(40)")
    document = describe_plan(plan(con, policy))
    assert (document["rows_in"], document["rows_suppressed"], document["most_suppressed"]) == (64, 46, 46)
    assert ldiv_db.run(con, policy).loss.rows_suppressed == 46
    with pytest.raises(InfeasibleError, match="6 of 24 rows"):
        ldiv_db.run(con, policy | {"suppression": 0.2})


@pytest.mark.parametrize(
    "algorithm",
    some([
        {"name": "cuts", "scheme": "vioRec"},
        {"name": "cuts", "scheme": "allRec"},
        {"name": "peel", "residue": "suppress"},
    ]),
)  # fmt: skip
def test_what_only_a_run_can_tell_is_refused_before_anything_is_published(con, algorithm):
    """Some of these rows are far from all others, and no class of their own would do."""
    rows = [(i % 10, "abc"[i % 3]) for i in range(30)] + [(90 + i, "a") for i in range(4)]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {
        "source": "t", "target": NEW, "quasi_identifiers": {"age": {"taxonomy": {"ranges": [10, 50, 100]}}},
        "sensitive": ["s"], "require": [{"frequency": 2}], "algorithm": algorithm, "seed": 0,
    }  # fmt: skip
    left_out = ldiv_db.run(con, policy).loss.rows_suppressed
    assert left_out > 1
    con.execute("DROP TABLE out")
    with pytest.raises(InfeasibleError, match=f"{left_out} of 34 rows") as caught:
        ldiv_db.run(con, policy | {"suppression": (left_out - 1) / 34 + 0.001})
    assert not published(con)
    changes = [remedy.change for remedy in caught.value.remedies]
    (larger,) = [change["suppression"] for change in changes if change and "suppression" in change]
    assert left_out <= larger * 34 < left_out + 1


# Outliers: the costs of these tables are whole millionths, so that an oracle in fractions decides as the product does.


def drawn(draw):
    """Ages of a domain of 100 years, of which some are far from the others; a sex, and a disease."""
    count = draw.randint(16, 28)
    values = draw.sample(("aabbc" * count)[:count], count)
    rows = [(0, "f", values[0]), (100, "m", values[1])]
    for value in values[2:]:
        far = draw.random() < 0.15
        rows.append((draw.randint(0, 100) if far else draw.randint(30, 45), draw.choice("fm"), value))
    return rows


def outlying(con, rows, algorithm, require, share, **more):
    tables.fill(con, "t", {"age": "INTEGER", "sex": "VARCHAR", "s": "VARCHAR"}, rows)
    return {
        "source": "t", "target": NEW, "sensitive": ["s"], "require": require, "algorithm": algorithm,
        "quasi_identifiers": {"age": {"numeric": True}, "sex": {"taxonomy": {"flat": True}, "weight": 0.5}},
        "output": {"class_id": True, "bounds": True}, "suppression": share, "seed": 0,
    } | more  # fmt: skip


def cost(members):
    """What all of these rows lose by weights, of 1.5 each."""
    if not members:
        return Fraction(0)
    ages = [age for age, _, _ in members]
    one = Fraction(max(ages) - min(ages), 100) + (Fraction(1, 2) if len({sex for _, sex, _ in members}) > 1 else 0)
    return len(members) * one


def is_good(members, require):
    values = [value for _, _, value in members]
    return bool(values) and all(oracle.class_is_good(values, *next(iter(r.items()))) for r in require)


def gains(members, require):
    """Of each row of a class that may leave it: what that gains, and the row."""
    for i, row in enumerate(members):
        rest = members[:i] + members[i + 1 :]
        if is_good(rest, require):
            yield cost(members) - cost(rest) - Fraction(3, 2), row


def classes_of(con, rows):
    """The members of each published class, known again by their age, sex and value, and the rows in none.

    Rows are told apart by a copy of the age that is kept.
    """
    found = con.execute("SELECT class_id, list((age0, sex0, s)) FROM out GROUP BY class_id").fetchall()
    classes = [sorted(map(tuple, members)) for _, members in found]
    left = list(rows)
    for members in classes:
        for row in members:
            left.remove(row)
    return classes, left


def released(con, rows, algorithm, require, share, **more):
    policy = outlying(con, rows, algorithm, require, share, **more)
    con.execute("ALTER TABLE t ADD COLUMN age0 INTEGER; ALTER TABLE t ADD COLUMN sex0 VARCHAR")
    con.execute("UPDATE t SET age0 = age, sex0 = sex")
    return ldiv_db.run(con, policy | {"keep": ["age0", "sex0"]})


REQUIRE = [
    [{"k": 3}], [{"k": 6}], [{"distinct": 2}], [{"frequency": 2}], [{"entropy": 2}],
    [{"k": 2}, {"recursive": {"c": 2, "l": 2}}],
]  # fmt: skip


@pytest.mark.parametrize(("seed", "algorithm"), some([(seed, algorithm) for seed in range(2) for algorithm in LOCAL]))
def test_each_row_that_is_left_out_gains_and_none_that_would_is_left(con, seed, algorithm):
    """Against brute force over all rows of all classes; every class keeps the rows that it has without a budget."""
    draw = random.Random(seed)
    rows, require, share = drawn(draw), draw.choice(REQUIRE), draw.choice([0.05, 0.1, 0.2, 0.5])
    plain = released(con, rows, algorithm, require, None)
    before, none = classes_of(con, rows)
    result = released(con, rows, algorithm, require, share)
    after, left = classes_of(con, rows)
    most = int(Fraction(str(share)) * len(rows))
    assert "outliers" not in plain.search and not none
    assert len(left) == result.loss.rows_suppressed == sum(result.search["outliers"]) <= most
    assert len(after) == len(before) and all(is_good(members, require) for members in after)
    weights = {"age": 1, "sex": 0.5}
    lost, lost_before = (
        sum(weights[name] * lm for name, lm in found.loss.lm_by_column.items()) for found in (result, plain)
    )
    assert lost < lost_before if left else lost == lost_before
    assert ordered(before, after, left, require)
    if len(left) < most:
        assert all(gain <= 0 for members in after for gain, _ in gains(members, require))
    assert left or (seed, algorithm) != (0, "mondrian")


def ordered(before, after, left, require):
    """Whether each class came to its rows by steps that gain, from some class that there was, each used once."""
    unused = list(before)
    for members in after:
        for candidate in unused:
            gone = [row for row in candidate if candidate.count(row) > members.count(row)]
            if sorted(members + gone) == candidate and any(
                steps(candidate, way, require) for way in permutations(gone)
            ):
                unused.remove(candidate)
                left = [row for row in left if row not in gone]
                break
        else:
            return False
    return not left


def steps(members, way, require):
    """Whether leaving out these rows in this order gains with each."""
    for row in way:
        if not any(gain > 0 and other == row for gain, other in gains(members, require)):
            return False
        members = list(members)
        members.remove(row)
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "algorithm"), some([(seed, algorithm) for seed in (50, 51) for algorithm in SPACIOUS])
)
def test_a_budget_of_one_row_goes_where_it_gains_most(con, seed, algorithm):
    draw = random.Random(seed)
    rows, require = drawn(draw), draw.choice(REQUIRE)
    released(con, rows, algorithm, require, None)
    before, _ = classes_of(con, rows)
    found = [one for members in before for one in gains(members, require)]
    best = max((gain for gain, _ in found), default=Fraction(0))
    result = released(con, rows, algorithm, require, 1.5 / len(rows))
    _, left = classes_of(con, rows)
    assert result.search["outliers"] == ([1] if best > 0 else [])
    assert [(best, row) in found for row in left] == [True] * (best > 0)
    assert left or (seed, algorithm) != (50, "mondrian")


@pytest.mark.slow
@pytest.mark.parametrize(
    "require", ([[{"t_closeness": 0.6}], [{"beta_likeness": 4}], [{"delta_disclosure": 3}]]), ids=str
)
def test_what_compares_with_the_published_table_is_left_alone(con, require):
    rows = drawn(random.Random(3))
    released(con, rows, "topdown", require, None)
    before = con.execute("FROM out ORDER BY ALL").fetchall()
    assert "outliers" not in released(con, rows, "topdown", require, 0.5).search
    assert con.execute("FROM out ORDER BY ALL").fetchall() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "require"), [("topdown", {"k": 7}), ("mondrian", {"k": 7}), ("bsgi", {"frequency": 2})]
)
def test_parts_spend_no_more_than_the_whole_budget_whoever_solves_them(tmp_path, algorithm, require):
    draw = random.Random(3)
    rows = [row for _ in range(6) for row in drawn(draw)]
    found, left = set(), set()
    for workers in (1, 2):
        with duckdb.connect(tmp_path / f"{workers}.duckdb") as con:
            policy = outlying(con, rows, algorithm, [require], 0.1, part_rows=40)
            result = ldiv_db.run(con, policy, workers=workers)
            assert result.search["parts"] > 1 and all(audit.holds for audit in result.audits)
            found.add(tuple(con.execute("FROM out").fetchall()))
            left.add(result.loss.rows_suppressed)
    assert len(found) == len(left) == 1 and max(left) <= len(rows) // 10
    assert max(left) or algorithm not in SPACIOUS
