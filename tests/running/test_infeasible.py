"""What cannot be done is refused with one clear error, and the database stays as it was."""

import re

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db.algorithms.base import Plan
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.infeasible import HINT
from ldiv_db.database.errors import AuditError, InfeasibleError, PolicyError
from ldiv_db.running.preview import describe_plan

COLUMNS = {"name": "VARCHAR", "age": "INTEGER", "secret": "VARCHAR"}
ROWS = [(f"n{i}", 20 + i, "abc"[i % 3]) for i in range(9)]


def policy(**changes):
    base = {
        "source": "t", "target": "released", "identifiers": ["name"], "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": ["secret"], "require": [{"distinct": 3}], "algorithm": "bsgi",
    }  # fmt: skip
    return base | changes


def town(**taxonomy):
    return {"quasi_identifiers": {"age": {"taxonomy": taxonomy}}}


CASES = {
    "too large an l": (ROWS, {"require": [{"distinct": 4}]}, InfeasibleError, "largest l of this algorithm is 3"),
    "k above the distinct values": (ROWS, {"require": [{"k": 5}]}, InfeasibleError, "3 different values"),
    "one value too frequent": (
        [*ROWS, *[("z", 1, "a")] * 6], {"require": [{"frequency": 2}]}, InfeasibleError,
        "9 of 15 rows, more than 1/2.*reaches no whole l above 1",
    ),
    "no rows": ([], {}, InfeasibleError, "empty"),
    "one sensitive value": ([(n, a, "a") for n, a, _ in ROWS], {"require": [{"distinct": 2}]}, InfeasibleError, "single value"),  # noqa: E501
    "unknown source": (ROWS, {"source": "tt"}, PolicyError, "no table or view tt"),
    "values missing in a taxonomy": (
        ROWS, town(file="ages.yml"), PolicyError, r"no leaf for 2 values of the source \(nullif.*--show-values .*\)$"),
    "target is the source": (ROWS, {"target": {"table": "T", "if_exists": "replace"}}, PolicyError, "source itself"),
    "target is the source by its full name": (
        ROWS, {"target": {"table": "main.t", "if_exists": "replace"}}, PolicyError, "source itself"),
    "target exists": (ROWS, {"target": "taken"}, PolicyError, "taken exists"),
    "target in the catalog": (ROWS, {"target": "ldiv.run"}, PolicyError, "catalog's own"),
    "target in the catalog, other case": (ROWS, {"target": "LDIV.run"}, PolicyError, "catalog's own"),
    "a name that is none": (ROWS, {"source": "t; DROP TABLE t"}, PolicyError, "source"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refused_and_nothing_changed(case, con, table, tmp_path, snapshot):
    rows, changes, error, message = CASES[case]
    table("t", COLUMNS, rows)
    table("taken", {"x": "INTEGER"}, [(1,)])
    (tmp_path / "ages.yml").write_text(f"Any: {[str(age) for age in range(20, 27)]}")
    before = snapshot(con)
    with pytest.raises(error, match=f"(?s){message}"):
        ldiv_db.run(con, policy(**changes), folder=tmp_path)
    assert snapshot(con) == before


def test_values_that_a_taxonomy_lacks_are_named_where_that_is_asked_for_and_nowhere_else(con, table, tmp_path):
    """Up to ten of them, by everything that holds the source to a taxonomy; all else counts them."""
    table("t", {"name": "VARCHAR", "place": "VARCHAR", "secret": "VARCHAR"},
          [(f"n{i}", f"village {i:02d}", "abc"[i % 3]) for i in range(12)])  # fmt: skip
    (tmp_path / "places.yml").write_text("{Any: [here, there]}")
    asked = policy(quasi_identifiers={"place": {"taxonomy": {"file": "places.yml"}}})
    series = asked | {"identifiers": [], "key": "name", "target": {"prefix": "series"}, "algorithm": "bsgi"}
    ways = {
        "run": lambda **shown: ldiv_db.run(con, asked, tmp_path, **shown),
        "plan": lambda **shown: ldiv_db.plan(con, asked, tmp_path, **shown),
        "measure": lambda **shown: ldiv_db.measure(con, "t", asked, folder=tmp_path, **shown),
        "release": lambda **shown: ldiv_db.run(con, series, tmp_path, **shown),
    }
    for name, way in ways.items():
        with pytest.raises(
            PolicyError, match=r"no leaf for 12 values of the source \(nullif.*--show-values"
        ) as counted:
            way()
        assert "village" not in str(counted.value), name
        with pytest.raises(PolicyError, match=r"no leaf for 'village 00', .*, 'village 09' and 2 more \(nullif"):
            way(show_values=True)


@pytest.mark.parametrize("algorithm", some(["cuts", "incognito", "tds", "annealing"], 1))
def test_options_are_called_as_they_are_written(algorithm, con, table):
    """The class column is `class`, whatever it is called within."""
    table("t", COLUMNS, ROWS)
    for written, hint in (("label", "known: .*class"), ("clas", "did you mean 'class'")):
        said = f"algorithm.{written}: {algorithm} has no such option.*{hint}"
        with pytest.raises(PolicyError, match=said) as refused:
            ldiv_db.plan(con, policy(algorithm={"name": algorithm, written: "age"}))
        assert "label" not in str(refused.value).replace("algorithm.label", "")
    asked = policy(algorithm={"name": algorithm}, quasi_identifiers=TREES, require=[{"frequency": 2}])
    assert "class" in describe_plan(ldiv_db.plan(con, asked))["options"]


NEAREST = {
    # sensitive values, l asked for, what the message says, what a run accepts
    "both are named": (
        "aaaaaaaaabbbccc", 3, "This algorithm reaches no whole l above 1$",
        [("algorithm: auto", 0), ("algorithm: {name: bsgi, residue: suppress}", 6)],
    ),
    "less is feasible, and suppression": (
        "aaaaabbbccd", 3, "The largest l of this algorithm is 2$",
        [("algorithm: auto", 0), ("require: [{distinct: 2}]", 0), ("algorithm: {name: bsgi, residue: suppress}", 2)],
    ),
    "beyond the values": (
        "aaaaabbbccd", 5, "The largest l of this algorithm is 2$",
        [
            ("require: [{distinct: 4}]; algorithm: auto", 0),
            ("require: [{distinct: 4}]; algorithm: {name: bsgi, residue: suppress}", 7),
        ],
    ),
    "beyond the values, which are equally frequent": (
        "aabbcc", 4, "The largest l of this algorithm is 3$", [("require: [{distinct: 3}]", 0)]),
    "a single value": ("aaaa", 2, "a single value in 4 rows. This algorithm reaches no whole l above 1$", []),
}  # fmt: skip


@pytest.mark.parametrize("case", NEAREST)
def test_what_is_infeasible_names_what_is_nearest(case, con, table):
    values, l, message, accepted = NEAREST[case]
    table("t", COLUMNS, [(f"n{i}", i, value) for i, value in enumerate(values)])
    with pytest.raises(InfeasibleError, match=f"(?m){message}") as refused:
        ldiv_db.plan(con, policy(require=[{"distinct": l}]))
    assert [(str(r).partition(" (")[0], r.rows) for r in refused.value.remedies] == accepted
    assert ("a run accepts" in str(refused.value)) == bool(accepted)


WEIGHED = {
    # what is asked for over HIV 9, Flu 3, Cold 2, Cancer 1; what is nearest, and as it is written
    "alpha alone": ({"l": 2, "alpha": 7}, "is l: 2, alpha: 5.5", {"l": 2, "alpha": 5.5}),
    "entropy alone": ({"l": 3, "alpha": 5}, "is over the categories l: 2.347, alpha: 5", {"l": 2.347, "alpha": 5}),
    "both": ({"l": 3, "alpha": 7}, "is over the categories l: 2.347, alpha: 5.5", {"l": 2.347, "alpha": 5.5}),
    "recursive, alpha alone": (
        {"c": 2, "l": 2, "alpha": 7}, "is c: 2, l: 2, alpha: 5.5", {"c": 2, "l": 2, "alpha": 5.5}),
    "recursive alone": (
        {"c": 1.5, "l": 2, "alpha": 1}, "is over the categories l: 2, c above 1.5, alpha: 1",
        {"c": 1.6, "l": 2, "alpha": 1}),
    "too few categories": (
        {"c": 2, "l": 4, "alpha": 1}, "is over the categories l: 3, c above 9, alpha: 1",
        {"c": 9.1, "l": 3, "alpha": 1}),
}  # fmt: skip


@pytest.mark.parametrize("algorithm", some(["topdown", "tds"], 1))
@pytest.mark.parametrize("case", some(WEIGHED, 1))
def test_of_categories_and_weights_what_fails_is_named_and_the_nearest_is_met(case, algorithm, con, table):
    asked, message, nearest = WEIGHED[case]
    name = "recursive_alpha" if "c" in asked else "entropy_alpha"
    values = ["HIV"] * 9 + ["Flu"] * 3 + ["Cold"] * 2 + ["Cancer"]
    table("t", COLUMNS, [(f"n{i}", i, value) for i, value in enumerate(values)])
    base = policy(
        quasi_identifiers=TREES, algorithm=algorithm,
        sensitive={"secret": {"categories": [["HIV"], ["Cancer"], ["Flu", "Cold"]]}},
    )  # fmt: skip
    with pytest.raises(InfeasibleError, match=f"(?m){message}$"):
        ldiv_db.plan(con, base | {"require": [{name: asked}]})
    ldiv_db.plan(con, base | {"require": [{name: nearest}]})


TREES = {"age": {"taxonomy": {"ranges": [20], "origin": 0}}}
TOO_FREQUENT = {
    # algorithm, requirement, the lines that name the values
    "bsgi": ({"unique_distinct": 3}, ["l = 3: 'ab' (6 of 12 rows, at most 4)"]),
    "tp": ({"frequency": 3}, ["frequency l=3: 'ab' (6 of 12 rows, at most 4)"]),
    "tp_plus": ({"alpha_k": {"alpha": 0.4, "k": 2}}, ["alpha_k alpha=0.4, k=2: 'ab' (6 of 12 rows, at most 4)"]),
    "hilbert": ({"distinct": 3}, ["l = 3: 'ab' (6 of 12 rows, at most 4)"]),
    "topdown": ({"threshold": {"default": 0.4, "cd": 0.1}}, [
        "'ab' (6 of 12 rows, at most 4; smallest threshold 0.5), 'cd' (3 of 12 rows, at most 1; smallest threshold 0.25)",  # noqa: E501
    ]),
    "mondrian": ({"recursive": {"c": 1, "l": 2}}, ["recursive c=1, l=2: 'ab' (6 of 12 rows, at most 5)"]),
    "peel": ({"entropy": 4}, ["entropy l=4: 'ab' (6 of 12 rows, at most 3)"]),
    "auto": ({"frequency": 3.7}, ["frequency l=3.7: 'ab' (6 of 12 rows, at most 3)"]),
    "cuts": ({"threshold": {"default": 0.2, "ab": 0.5}}, [
        "default=0.2, own_thresholds=1: 'cd' (3 of 12 rows, at most 2; smallest threshold 0.25)",
    ]),
    "incognito": ({"threshold": 0.2}, ["'ab' (6 of 12 rows, at most 2; smallest threshold 0.5), 'cd' (3 of 12 rows"]),
    "tds": ({"frequency": 3}, ["'ab' (6 of 12 rows, at most 4)"]),
}  # fmt: skip


@pytest.mark.parametrize("algorithm", some(TOO_FREQUENT, 2))
def test_values_that_are_too_frequent_are_named_on_request_alone(algorithm, con, table):
    require, named = TOO_FREQUENT[algorithm]
    table("t", COLUMNS, [(f"n{i}", i, value) for i, value in enumerate(["ab"] * 6 + ["cd"] * 3 + ["ef", "gh", None])])
    options = {"name": algorithm} | ({"scheme": "none"} if algorithm == "cuts" else {})
    asked = policy(quasi_identifiers=TREES, require=[require], algorithm=options, nulls_sensitive="value")
    with pytest.raises(InfeasibleError) as refused:
        ldiv_db.run(con, asked)
    assert refused.value.message.endswith(HINT)
    assert not any(value in re.findall(r"\w+", str(refused.value)) for value in ("ab", "cd", "ef", "gh"))
    with pytest.raises(InfeasibleError) as refused:
        ldiv_db.plan(con, asked, show_values=True)
    assert "too frequent in secret for " in str(refused.value) and HINT not in str(refused.value)
    assert all(line in str(refused.value) for line in named)
    assert not any(value in re.findall(r"\w+", str(refused.value)) for value in ("ef", "gh"))


def test_what_no_value_is_to_blame_for_has_no_hint(con, table):
    table("t", COLUMNS, ROWS)
    for algorithm in ("topdown", "bsgi"):
        with pytest.raises(InfeasibleError) as refused:
            ldiv_db.run(con, policy(require=[{"distinct": 4}], algorithm=algorithm), show_values=True)
        assert "too frequent" not in str(refused.value) and "show" not in str(refused.value)


def test_too_frequent_a_value_can_be_suppressed(con, table):
    table("t", COLUMNS, [*ROWS, *[("z", 1, "a")] * 20])
    result = ldiv_db.run(con, policy(require=[{"distinct": 2}], algorithm={"name": "bsgi", "residue": "suppress"}))
    assert result.loss.classes == 6 and result.loss.rows_suppressed == 29 - 12
    assert any("more than half" in note for note in result.notes)


def one_row_a_class(self, task):
    assigned = task.engine.load("bad", {"row_id": "BIGINT", "class_id": "BIGINT"}, [(i, i) for i in range(1, 10)])
    return Plan(assigned, 2)


def test_a_release_that_fails_its_audit_is_not_published(con, table, snapshot, monkeypatch):
    table("t", COLUMNS, ROWS)
    before = snapshot(con)
    monkeypatch.setattr(Bsgi, "run", one_row_a_class)
    with pytest.raises(AuditError, match=r"distinct l=3 on secret: 9 of 9 classes violate it \(9 rows\)"):
        ldiv_db.run(con, policy())
    assert snapshot(con) == before


def test_large_whole_numbers_keep_apart_from_null(con, table):
    """Numbers past 2^53, where doubles have gaps."""
    big = 2**53
    ages = [big + 3, big + 3, big + 5, big + 5, None, None]
    table("t", COLUMNS | {"age": "BIGINT"}, [("n", age, "ab"[i % 2]) for i, age in enumerate(ages)])
    ldiv_db.run(con, policy(require=[{"unique_distinct": 2}]))
    found = sorted(str(row[0]) for row in con.execute("SELECT age FROM released").fetchall())
    assert found == sorted(map(str, ages))


@pytest.mark.parametrize("algorithm", some([{}, {"algorithm": "fast"}, {"algorithm": "bsgi"}], 1))
def test_what_keeps_individuals_apart_cannot_promise_is_said_of_them(con, algorithm):
    con.execute("CREATE TABLE stays AS SELECT i % 11 AS age, i // 2 AS person, i * 13 % 40 AS cost FROM range(40) r(i)")
    policy = {
        "source": "stays", "target": "out", "quasi_identifiers": ["age"], "sensitive": ["cost"],
        "individual": "person", "require": [{"range": {"k": 2, "e": 3}}],
    }  # fmt: skip
    for call in (ldiv_db.run, ldiv_db.plan):
        with pytest.raises(ldiv_db.PolicyError, match=r"^individual: rows of one individual.*range k=2, e=3") as error:
            call(con, policy | algorithm)
        assert "bsgi" not in str(error.value)


@pytest.mark.parametrize("rows", some(["together", "apart", "aligned"], 2))
@pytest.mark.parametrize(
    ("whose", "values", "require"),
    some(
        [
            ((1, 1, 1, 1), "abcd", {"frequency": 2}),
            ((1, 1, 1, 1), "abcd", {"k": 2}),
            ((1, 1, 1, 1), "abcd", {"distinct": 2}),
            ((1, 1, 2, 2, 3, 3), "vavbvc", {"frequency": 2}),
            ((1, 1, 1, 2, 2), "abcde", {"k": 3}),
        ],
        1,
    ),
)
def test_a_plan_refuses_too_few_people_as_a_run_does(rows, whose, values, require):
    """Their rows alone would do: of one person, of people who all have a value, of two."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE visits (who INT, day INT, age INT, dx VARCHAR)")
    listed = [(who, day, 20 + day, value) for day, (who, value) in enumerate(zip(whose, values, strict=True))]
    con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", listed)
    policy = {
        "source": "visits", "target": "release", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["dx"],
        "identifiers": ["day"],
        "individual": {"column": "who", "rows": rows, **({"order": "day"} if rows == "aligned" else {})},
        "require": [require], "algorithm": "topdown",
    }  # fmt: skip
    if rows != "together" and len(set(whose)) == 3:
        return  # a row of each with another value makes a good class, if it is drawn
    with pytest.raises(InfeasibleError) as planned:
        ldiv_db.plan(con, policy)
    with pytest.raises(InfeasibleError) as run:
        ldiv_db.run(con, policy)
    assert str(planned.value) == str(run.value)
    assert not any("meets the policy as it stands" in str(remedy) for remedy in run.value.remedies)
