"""Runs under every requirement, and what is said of those that cannot be met."""

import pytest
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.errors import InfeasibleError

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {"age": "INTEGER", "disease": "VARCHAR"}
VALUES = ["HIV", "Cancer", "Hepatitis", "Flu", "Cold", "Asthma"]
CATEGORIES = [["HIV"], ["Cancer"], ["Hepatitis", "Asthma"], ["Flu", "Cold"]]


def policy(*require, **changes):
    base = {
        "source": "t", "target": "released", "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": {"disease": {"categories": CATEGORIES}}, "require": list(require),
        "algorithm": {"name": "bsgi", "select": "bisect"},
    }  # fmt: skip
    return base | changes


@pytest.mark.parametrize(
    "require",
    some([
        {"recursive_alpha": {"c": 2, "l": 2, "alpha": 1}}, {"recursive": {"c": 1, "l": "auto"}},
        {"distinct": {"l": 3, "sensitive": "disease"}}, {"distinct": 3, "others_known": True},
        {"entropy": 3}, {"recursive": {"c": 2, "l": 3}}, {"alpha_k": {"alpha": 0.4, "k": 4}},
        {"p_sensitive": {"p": 2, "k": 5}}, {"distinct_alpha": {"l": 3, "alpha": 1}},
        {"entropy_alpha": {"l": 2, "alpha": 1}}, {"distinct": 3, "sensitive": "disease"},
    ], 2),
)  # fmt: skip
def test_a_run_meets_it(con, table, require):
    table("t", COLUMNS, [(20 + i % 50, VALUES[i * 7 % 6]) for i in range(60)])
    if "recursive" in require and require["recursive"]["l"] == "auto":
        with pytest.raises(InfeasibleError, match=r"fails even in the whole table as one class; .* l: 6, c above 1"):
            ldiv_db.run(con, policy(require))
        return
    result = ldiv_db.run(con, policy(require))
    assert result.loss.rows_published == 60 and all(found["holds"] for found in result.requirements)
    stored = con.execute("SELECT requirement, parameters FROM ldiv.run_requirement").fetchall()
    assert len(stored) == 1 and not any(value in stored[0][1] for value in VALUES)


@pytest.mark.parametrize("rows", some(["apart", "aligned", "together"], 2))
def test_auto_is_what_people_and_rows_can_meet_and_the_ledger_tells_it(con, table, rows):
    """Who has many rows makes their value frequent among rows, who have few make theirs frequent among people."""
    people = [(who, 20 + who, who * 7 % 6, n) for who in range(20) for n in range(9 if who == 3 else 1 + who % 2)]
    table("t", {"who": "INTEGER", "age": "INTEGER", "disease": "VARCHAR", "n": "INTEGER"},
          [(who, age, VALUES[(value + n) % 6], n) for who, age, value, n in people])  # fmt: skip
    whose = {"column": "who", "rows": rows} | ({"order": "n"} if rows == "aligned" else {})
    asked = policy({"frequency": "auto"}, individual=whose, algorithm="topdown")
    asked |= {"identifiers": [] if rows == "aligned" else ["n"], "output": {} if rows == "apart" else {"person": "nr"}}
    (audit,) = ldiv_db.run(con, asked).audits
    number = audit.verdicts[0].requirement.l
    values = {who: {VALUES[(value + n) % 6] for of, _, value, n in people if of == who} for who in range(20)}
    most = max(sum(name in own for own in values.values()) for name in VALUES)
    most_rows = max(sum(VALUES[(value + n) % 6] == name for *_, value, n in people) for name in VALUES)
    assert number == (min(20 // most, len(people) // most_rows) if rows == "apart" else 20 // most)
    found = ldiv_db.check(con, "released", policy=asked)
    assert [one.requirement.l for audit in found for one in audit.verdicts] == [number] and found.holds is not False
    con.execute("DELETE FROM ldiv.run")
    with refuses("require"):
        ldiv_db.check(con, "released", policy=asked)


REASONS = {
    "k": ({"k": 200}, "k=200 on disease fails even in the whole table as one class; the nearest it meets is k: 120"),
    "distinct": ({"distinct": 7}, "the nearest it meets is l: 6"),
    "entropy": ({"entropy": 6.5}, "the nearest it meets is l: 6$"),
    "entropy of few": ({"entropy": 5.9}, None),
    "recursive": ({"recursive": {"c": 0.1, "l": 2}}, "nearest it meets is l: 2, c above 0.2$"),
    "recursive without a tail": ({"recursive": {"c": 1, "l": 8}}, "nearest it meets is l: 6, c above 1$"),
    "frequency": ({"frequency": 6.5}, "nearest it meets is l: 6$"),
    "threshold": ({"threshold": {"default": 1, "Flu": 0.1}}, "thresholds 1.667 times as high"),
    "alpha_k": ({"alpha_k": {"alpha": 0.1, "k": 2}}, "alpha: 0.166666667, k: 2"),
    "p_sensitive": ({"p_sensitive": {"p": 9, "k": 2}}, "p: 6, k: 2"),
    "distinct_alpha": ({"distinct_alpha": {"l": 2, "alpha": 100}}, "l: 2, alpha: 73.3"),
    "entropy_alpha": ({"entropy_alpha": {"l": 5, "alpha": 1}}, "over the categories l: 3.779"),
    "recursive_alpha": ({"recursive_alpha": {"c": 0.4, "l": 2, "alpha": 1}}, "over the categories l: 2, c above 0.5"),
}


@pytest.mark.parametrize("case", some(REASONS, 3))
def test_the_requirement_to_blame_is_named_with_the_nearest_that_is_feasible(con, table, case):
    table("t", COLUMNS, [(20 + i % 50, VALUES[i % 6]) for i in range(120)])
    require, reason = REASONS[case]
    if reason is None:
        ldiv_db.plan(con, policy(require))
        return
    with pytest.raises(InfeasibleError) as caught:
        ldiv_db.plan(con, policy({"k": 2}, require))
    first, *rest = caught.value.message.splitlines()
    assert reason.removesuffix("$") in first and (not reason.endswith("$") or first.endswith(reason[:-1]))
    assert not any("k k=2" in line for line in rest), "what can be met is not blamed"


def test_classes_of_the_feasible_size_are_what_is_offered(con, table):
    table("t", COLUMNS, [(20 + i, VALUES[min(i % 9, 5)]) for i in range(90)])
    with pytest.raises(InfeasibleError, match=r"entropy l=4 on disease asks for classes of 4 .*classes of 2 meet l: 2"):
        ldiv_db.plan(con, policy({"entropy": 4}))
    for require, nearest in (
        ({"alpha_k": {"alpha": "0.45", "k": 2}}, "alpha: 0.5, k: 2"),
        ({"recursive": {"c": 2, "l": 3}}, "l: 2, c: 2"),
        ({"p_sensitive": {"p": 3, "k": 2}}, "p: 2, k: 2"),
        ({"distinct_alpha": {"l": 3, "alpha": 1}}, "l: 2, alpha: 0"),
    ):
        with pytest.raises(InfeasibleError, match=f"classes of 2 meet {nearest}"):
            ldiv_db.plan(con, policy(require))


def test_bsgi_refuses_what_it_cannot_promise(con, table):
    table("t", COLUMNS, [(20 + i, VALUES[i % 6]) for i in range(60)])
    with refuses("require"):
        ldiv_db.plan(con, policy({"t_closeness": 0.2}))


def test_values_that_no_category_lists_are_refused_before_any_work(con, table, snapshot):
    table("t", COLUMNS, [(20 + i, [*VALUES, "Secret"][i % 7]) for i in range(70)])
    before = snapshot(con)
    with refuses("sensitive.categories") as caught:
        ldiv_db.run(con, policy({"distinct_alpha": {"l": 2, "alpha": 1}}))
    assert "Secret" not in str(caught.value) and snapshot(con) == before


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"sensitive": {"disease": {"categories": [["HIV"]]}}}, "sensitive.categories"),
        ({"sensitive": {"disease": {"weights": "uniform"}}}, "sensitive.weights"),
        ({"sensitive": {"disease": {"categorys": 1}}}, "sensitive.categorys"),
        ({"sensitive": {"disease": {"taxonomy": {"prefix": [1]}}}}, "sensitive.taxonomy"),
        ({"sensitive": {"disease": {"taxonomy": "nothing"}}}, "sensitive.taxonomy"),
        ({"sensitive": ["disease"]}, "require.0.distinct_alpha"),
        ({"require": [{"distinct": 2, "sensitive": "diseas"}]}, "require.0.sensitive"),
        ({"require": [{"distinct": 2, "others_known": 1}]}, "require.0"),
        ({"require": [{"distinct": 2, "k": 3}]}, "require.0"),
    ],
)
def test_what_is_wrong_is_named(con, table, changes, code):
    table("t", COLUMNS, [(20 + i, VALUES[i % 6]) for i in range(60)])
    with refuses(code):
        ldiv_db.plan(con, policy({"distinct_alpha": {"l": 2, "alpha": 1}}, **changes))


@pytest.mark.parametrize(("rows", "says"), some([(60, True), (3, False)]))
def test_a_release_that_says_nothing_is_warned_of(con, rows, says):
    con.execute("CREATE TABLE people AS SELECT i % 7 AS age, i % 2 = 0 AS smokes, i % 5 AS s FROM range(60) AS r(i)")
    columns = {"quasi_identifiers": ["age", "smokes"], "sensitive": ["s"]}
    asked = {"source": "people", "target": "released", "require": [{"k": rows}], "algorithm": "mondrian", "seed": 1}
    result = ldiv_db.run(con, {**columns, **asked})
    assert any("fully generalised" in note for note in result.notes) == says == (result.loss.lm_mean == 1)
