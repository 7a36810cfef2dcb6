"""People with several rows: what every algorithm publishes, held against an independent count of people."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any

import duckdb
import oracle
import pytest
from strategies import some

import ldiv_db
from ldiv_db import AuditError, PolicyError
from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.auditing.audit import require_together
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.names import Relation
from ldiv_db.policy.sources import CHOOSING, KEEPS_APART
from ldiv_db.solving.auto import Chooser

#: Requirements of all kinds: on how many people have a value, and on shares in which everybody weighs one.
REQUIREMENTS: list[dict[str, Any]] = [
    {"k": 3},
    {"distinct": 2},
    {"frequency": 2},
    {"alpha_k": {"alpha": 0.6, "k": 3}},
    {"p_sensitive": {"p": 2, "k": 3}},
    {"threshold": {"default": 0.7, "a": 0.5, "absent": "allow"}},
    {"entropy": 1.5},
    {"recursive": {"c": 3, "l": 2}},
    {"t_closeness": {"t": 0.4, "distance": "equal"}},
    {"beta_likeness": 3},
]


def visits(rng: random.Random, people: int) -> list[tuple[Any, ...]]:
    """Rows (row_no, person, age, zone, value): most people have one, some several, and nobody is known of a few."""
    rows: list[tuple[Any, ...]] = []
    for person in range(people):
        age, zone = rng.randrange(20, 60), rng.choice(["n1", "n2", "s1", "s2"])
        for _ in range(rng.choice([1, 1, 1, 2, 2, 4])):
            moved = rng.choice(["n1", "s2"]) if rng.random() < 0.2 else zone
            who = None if rng.random() < 0.05 else person
            rows.append((len(rows), who, age + rng.randrange(2), moved, rng.choice("aabbccddef")))
    rng.shuffle(rows)
    return rows


def fill_visits(con: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    con.execute("CREATE OR REPLACE TABLE visits (row_no INT, person INT, age INT, zone VARCHAR, value VARCHAR)")
    con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", rows)


#: What policies of these rows say in common.
KEYS: dict[str, Any] = {
    "source": "visits", "target": "release", "quasi_identifiers": {"age": {"numeric": True}, "zone": {}},
    "sensitive": ["value"], "identifiers": ["row_no"], "output": {"person": "who"}, "algorithm": "topdown",
}  # fmt: skip


def published(
    con: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], mode: str, require: dict[str, Any], algorithm: Any
) -> list[tuple[Any, ...]]:
    """The release as rows (the class, value, person): the number of a row is kept, which tells whose it is."""
    fill_visits(con, rows)
    policy = {
        "source": "visits", "target": {"table": "release", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [5, 10, 20]}}, "zone": {"taxonomy": {"prefix": [2, 1]}}},
        "sensitive": ["value"], "keep": ["row_no"], "individual": {"column": "person", "rows": mode},
        "require": [require], "algorithm": algorithm, "over_time": "independent", "seed": 11,
    }  # fmt: skip
    ldiv_db.run(con, policy)
    columns = [name for name, *_ in con.execute("DESCRIBE release").fetchall() if name not in ("row_no", "value")]
    labels = ", ".join(f'"{name}"' for name in columns)
    found = con.execute(f"SELECT row_no, {labels}, value FROM release").fetchall()
    truth = {row[0]: (row[1], row[4]) for row in rows}
    assert sorted(number for number, *_ in found) == sorted(truth)
    assert all(truth[number][1] == value for number, *_, value in found)
    return [(*shown, value, truth[number][0]) for number, *shown, value in found]


def argument_of(require: dict[str, Any]) -> tuple[str, Any]:
    """The name of a requirement and what it asks for, as the oracle takes them."""
    return next(iter(require.items()))


@pytest.mark.parametrize("require", some([{"frequency": 2}, {"unique_distinct": 2}], 1), ids=str)
def test_unique_values_and_bsgi_keep_the_rows_of_a_person_apart(require: dict[str, Any]) -> None:
    con, rng = duckdb.connect(config={"threads": 1}), random.Random(3)
    release = published(con, visits(rng, 20), "apart", require, {"name": "bsgi", "select": "bisect"})
    for pairs in oracle.people_of(release).values():
        known = [person for person, _ in pairs if person is not None]
        assert len(known) == len(set(known))


def test_a_check_counts_people_where_a_column_says_whose_rows_are() -> None:
    con, rng = duckdb.connect(config={"threads": 1}), random.Random(1)
    rows = visits(rng, 30)
    fill_visits(con, rows)
    table = [(row[3], row[4], row[1]) for row in rows]
    asked = [require for require in REQUIREMENTS if argument_of(require)[0] != "t_closeness"]
    (audit,) = ldiv_db.check(con, "visits", "zone", "value", asked, individual="person")
    assert audit.of_people
    for require, verdict in zip(asked, audit.verdicts, strict=True):
        violating = oracle.people_violations(table, *argument_of(require))
        assert verdict.violating_classes == len(violating)
        assert verdict.violating_rows == sum(violating.values())  # of people


def test_rows_do_not_judge_the_release_of_a_policy_that_counts_people() -> None:
    """Rows may look good where people are not: the verdict is left open until a column identifies the person."""
    con = duckdb.connect(config={"threads": 1})
    con.execute(
        "CREATE TABLE released AS SELECT '*' AS age, 'd' || i AS value, i // 3 AS who, 1 AS class_id FROM range(6) r(i)"
    )
    policy: dict[str, Any] = {
        "source": "visits", "target": "released", "quasi_identifiers": ["age"], "sensitive": ["value"],
        "individual": "person", "require": [{"k": 3}], "algorithm": "topdown",
    }  # fmt: skip
    apart = policy | {"require": [{"frequency": 3}], "algorithm": "bsgi"}
    (audit,) = ldiv_db.check(con, "released", policy=apart)  # who keeps people apart promises as much of rows
    assert audit.holds and "name the column that identifies the person" in audit.warnings[0]
    found = ldiv_db.check(con, "released", policy=policy)
    (audit,) = found
    assert (
        found.holds is None and audit.as_dict()["holds"] is None and audit.as_dict()["requirements"][0]["holds"] is None
    )
    assert "nothing is judged" in repr(found) and "`--individual COLUMN`" in str(found) and " yes " not in str(found)
    with pytest.raises(PolicyError, match="the policy counts people, and no column identifies"):
        ldiv_db.check_sql("released", policy=policy)
    assert ldiv_db.check(con, "released", policy=policy, individual="who").holds is False
    linked = policy | {"individual": {"column": "person", "rows": "together"}, "output": {"person": "who"}}
    assert ldiv_db.check(con, "released", policy=linked).holds is False  # the pseudonym says whose a row is
    con.execute("UPDATE released SET who = who * 10 + rowid")
    assert ldiv_db.check(con, "released", policy=linked).holds
    con.execute("ALTER TABLE released DROP who")
    with pytest.raises(PolicyError, match="no column 'who'"):
        ldiv_db.check(con, "released", policy=linked)


@pytest.mark.slow
def test_every_command_says_whether_it_counts_people_or_rows() -> None:
    con, rng = duckdb.connect(config={"threads": 1}), random.Random(9)
    fill_visits(con, visits(rng, 60))
    people = con.execute("SELECT count(DISTINCT person) + count(*) - count(person) FROM visits").fetchall()[0][0]
    together = {"individual": {"column": "person", "rows": "together"}}
    policy = {**KEYS, **together, "require": [{"k": 3}], "seed": 3}
    plan = ldiv_db.plan(con, policy)
    assert f"of {people} people; requirements count people" in str(plan) and f"reach k: {people}" in str(plan)
    apart = str(ldiv_db.plan(con, policy | {"individual": "person", "output": {}}))
    assert f"of {people} people" in apart and "as one class reach" not in apart  # units are no people
    result = ldiv_db.run(con, policy)
    classes = con.execute("SELECT count(DISTINCT who) FROM release GROUP BY age, zone").fetchall()
    assert result.audits[0].least_people == min(classes)[0]
    assert f"each of at least {min(classes)[0]} people" in str(result) and f"{min(classes)[0]} (people)" in str(result)
    assert "rows of a class" in str(result) and "rows of a class" in str(ldiv_db.measure(con, "release", policy=policy))
    explored = ldiv_db.explore(con, policy, vary=["columns"], workers=1)
    assert "risks are of rows; requirements count people" in str(explored)
    assert {one.status for one in explored.outcomes} == {"done"}  # whichever column is left out
    assert "people if person identifies people" in str(ldiv_db.profile(con, "visits"))


def test_who_chooses_and_who_keeps_apart_are_known_by_name() -> None:
    choosing = {name for name in ALGORITHMS if issubclass(algorithm_of(name), Chooser)}
    assert choosing == set(CHOOSING) and set(KEEPS_APART) <= set(ALGORITHMS)


@pytest.mark.parametrize("dialect", some(["duckdb", "sqlite", "postgres"], 1))
def test_the_audit_of_people_is_a_statement(dialect: str) -> None:
    con, rng = duckdb.connect(config={"threads": 1}), random.Random(2)
    rows = visits(rng, 30)
    fill_visits(con, rows)
    text = ldiv_db.check_sql("visits", "zone", "value", ["k:20", "frequency:3"], dialect=dialect, individual="person")
    if dialect == "duckdb":
        table = [(row[3], row[4], row[1]) for row in rows]
        expected = sum(len(oracle.people_violations(table, *one)) for one in (("k", 20), ("frequency", 3)))
        assert len(con.execute(text).fetchall()) == expected
    with pytest.raises(PolicyError, match="shares of people"):
        ldiv_db.check_sql("visits", "zone", "value", "entropy:2", dialect=dialect, individual="person")


@pytest.mark.parametrize(("label", "parted"), [("30-40", ""), ("*", "rows of 1 person stand in several classes")])
def test_rows_of_a_person_in_several_classes_are_not_together(con: Any, engine: Any, label: str, parted: str) -> None:
    con.execute("CREATE TABLE judged (age VARCHAR, value VARCHAR, person INT)")
    rows = [("30-40", "flu", 1), (label, "HIV", 1), ("30-40", "flu", None), ("*", "flu", None), ("*", "cold", 2)]
    con.executemany("INSERT INTO judged VALUES (?, ?, ?)", rows)
    judged = Subject(Relation(("judged",)), ["age"], person="person")
    with pytest.raises(AuditError, match=parted) if parted else nullcontext():
        require_together(engine, judged)


@pytest.mark.parametrize("change", some(["rows", "policy"], 1))
def test_a_pseudonym_means_nothing_in_another_release_of_the_same_seed(change: str) -> None:
    """People who are in both have numbers in another order, so that nobody can be followed from one to the other."""
    con, orders = duckdb.connect(config={"threads": 1}), []
    for number in (0, 1):
        rows = [(f"P{n:02}", 20 + n // 2, "abcde"[n % 5]) for n in range(12 + number * (change == "rows"))]
        con.execute("CREATE OR REPLACE TABLE stays (person VARCHAR, age INT, value VARCHAR)")
        con.executemany("INSERT INTO stays VALUES (?, ?, ?)", rows)
        policy = {
            "source": "stays", "target": {"table": "release", "if_exists": "replace"},
            "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["value"], "keep": ["person"],
            "individual": {"column": "id", "rows": "together"}, "output": {"person": "number"},
            "require": [{"k": 2 + number * (change == "policy")}], "algorithm": "topdown", "over_time": "independent",
            "seed": 3,
        }  # fmt: skip
        con.execute("ALTER TABLE stays ADD COLUMN id VARCHAR; UPDATE stays SET id = person")
        ldiv_db.run(con, policy)
        orders.append([p for (p,) in con.execute("SELECT person FROM release ORDER BY number").fetchall() if p < "P12"])
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]
