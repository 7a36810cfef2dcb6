"""Nights of several tables, by brute force: a register and rows of the people in it, of which each night has more.

The row of the register counts as the first of its person: it has a place in the order, and no sensitive value.
"""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from tables import fill

import ldiv_db
from ldiv_db.database.context import working_engine
from ldiv_db.publishing.earlier_releases import check_series
from tests.publishing.test_people_over_time import COLUMNS, Night, Row, Shown, drawn, given_up, shares
from tests.strategies import draws, search

pytestmark = pytest.mark.usefixtures("no_remedies")

REGISTER = {"person": "VARCHAR", "ward": "INTEGER"}
POLICY: dict[str, Any] = {
    "tables": {
        "register": {
            "source": "register", "target": "shown_register", "person": "person",
            "quasi_identifiers": {"ward": {"taxonomy": {"flat": True}}},
        },
        "stays": {
            "source": {"query": "SELECT *, -1 - id AS nr FROM people"}, "keep": ["nr"],
            "target": "out", "person": "person", "order": "day",
            "quasi_identifiers": {"age": {"taxonomy": {"ranges": [10, 20]}}}, "sensitive": ["s"],
            "identifiers": ["id", "day"],
        },
    },
    "individual": "person", "key": "id", "nights": "apart", "over_time": "independent",
    "require": [{"frequency": 2}], "algorithm": "topdown",
}  # fmt: skip


def rows_of_register(rows: list[Row]) -> list[Row]:
    """The rows of a register, each the first of its person, with a ward in place of the age."""
    return [(-int(person[1:]) - 1, person, -1, int(person[1:]) % 2, "") for person in sorted({row[1] for row in rows})]


def shown_since(con: Any, last: int) -> list[Shown]:
    """What the pseudonyms after the last one show: their row of the register, then the others in their order."""
    found = con.execute(
        "SELECT person, ward, '', 0 FROM shown_register UNION ALL SELECT person, age, s, position FROM out"
    ).fetchall()
    whose = defaultdict(list)
    for person, label, value, _ in sorted(found, key=lambda row: row[3]):
        if person > last:
            whose[person].append((label, value))
    return [tuple(rows) for rows in whose.values()]


def nights_of(con: Any, draw: random.Random, policy: dict[str, Any]) -> list[Night]:
    """The rows of each night, and what its pseudonyms show."""
    rows, nights, last, before = list[Row](), list[Night](), 0, set[int]()
    for night in range(2):
        rows = [row for row in rows if draw.random() > 0.1] + drawn(draw, night, draw.randrange(2, 6))
        fill(con, "people", COLUMNS, rows)
        register = rows_of_register(rows)
        fill(con, "register", REGISTER, [(row[1], row[3]) for row in register])
        try:
            ldiv_db.run(con, policy)
        except ldiv_db.InfeasibleError:
            assert not nights, "only a first night cannot do without classes"
            continue
        shown = {key for (key,) in con.execute(f"SELECT -1 - nr FROM out WHERE person > {last}").fetchall()}
        nights.append(([*register, *rows], shown_since(con, last), given_up(rows, shown, before)))
        before |= shown
        everybody = "SELECT person FROM out UNION ALL SELECT person FROM shown_register"
        (last,) = con.execute(f"SELECT max(person) FROM ({everybody})").fetchone()
    return nights


@pytest.mark.slow
@search(8, draw=draws)
def test_no_value_of_a_night_is_likelier_than_promised_whatever_all_nights_show(draw: random.Random) -> None:
    with duckdb.connect(config={"threads": 1}) as con:
        policy = {**POLICY, "algorithm": draw.choice(["topdown", "mondrian", "peel"])}
        nights = nights_of(con, draw, policy)
        if nights:
            assert all(share <= Fraction(1, 2) for (*_, value), share in shares(nights, True).items() if value)
            assert ldiv_db.check(con, policy=policy).holds


def test_each_night_has_numbers_of_its_own_and_no_row_of_a_parent_that_is_published(con: Any) -> None:
    drugs = {"source": "drugs", "target": "shown_drugs", "parent": {"id": "stays"}, "key": "drug", "rows": "together"}
    stays = {**POLICY["tables"]["stays"], "key": "id", "identifiers": ["day"]}
    tables = {"stays": stays, "drugs": {**drugs, "sensitive": ["name"]}}
    policy = {key: value for key, value in POLICY.items() if key != "key"} | {"tables": tables}

    def publish(people: int, drugs: int) -> dict[str, Any]:
        rows = [(n, f"P{n}", n, n, "abcd"[n % 4]) for n in range(people)]
        fill(con, "people", COLUMNS, rows)
        taken = [(n, n % people if n < people else n - people, "pqrs"[n % 4]) for n in range(drugs)]
        fill(con, "drugs", {"drug": "INTEGER", "id": "INTEGER", "name": "VARCHAR"}, taken)
        return ldiv_db.run(con, policy).figures

    assert publish(8, 8)["rows_first_published"] == 16
    again = publish(8, 10)
    assert (again["rows_first_published"], again["rows_left_out"]) == (0, 2), "their stays were published without them"
    assert publish(12, 12)["rows_first_published"] == 8
    numbers = "SELECT count(DISTINCT person), max(person), (SELECT count(*) FROM shown_drugs) FROM out"
    assert con.execute(numbers).fetchone() == (12, 12, 12)
    assert con.execute("SELECT count(*) FROM out JOIN shown_drugs USING (id)").fetchone() == (12,)
    con.execute("UPDATE shown_drugs SET name = 'p'")
    with working_engine(con) as engine:
        assert not check_series(engine, "out").holds
    with pytest.raises(ldiv_db.AuditError, match="earlier nights"):
        publish(16, 16)


def test_classes_of_two_nights_are_not_judged_as_one(con: Any) -> None:
    policy = {**POLICY, "require": [{"frequency": "auto"}]}
    for people in (4, 8):
        rows = [(n, f"P{n}", n, 5, "ab"[n % 2]) for n in range(people)]
        fill(con, "people", COLUMNS, rows)
        fill(con, "register", REGISTER, [(row[1], 0) for row in rows])
        ldiv_db.run(con, policy)
    assert ldiv_db.check(con, policy=policy).holds
    assert ldiv_db.attack(con, policy=policy).holds
    con.execute("UPDATE out SET s = CASE WHEN person <= 4 THEN 'a' ELSE 'b' END")
    assert not ldiv_db.check(con, policy=policy).holds, "together half of the eight have each value"
    assert not ldiv_db.attack(con, policy=policy).holds
    con.execute("DROP SCHEMA ldiv CASCADE")
    with pytest.raises(ldiv_db.PolicyError, match="nights: the ledger has none"):
        ldiv_db.check(con, policy={**POLICY, "require": [{"frequency": 2}]})


def test_files_take_the_next_night_of_rows_with_a_parent(con: Any, tmp_path: Any) -> None:
    stays = {**POLICY["tables"]["stays"], "key": "id", "identifiers": ["day"], "target": {"file": "to/stays.parquet"}}
    drugs = {"source": "drugs", "target": {"file": "to/drugs.parquet"}, "parent": {"id": "stays"}, "key": "drug"}
    tables = {"stays": stays, "drugs": {**drugs, "rows": "together", "sensitive": ["name"]}}
    policy = {key: value for key, value in POLICY.items() if key != "key"} | {"tables": tables}
    for people in (4, 8):
        fill(con, "people", COLUMNS, [(n, f"P{n}", n, 5, "ab"[n % 2]) for n in range(people)])
        taken = [(n, n, "pq"[n % 2]) for n in range(people)]
        fill(con, "drugs", {"drug": "INTEGER", "id": "INTEGER", "name": "VARCHAR"}, taken)
        ldiv_db.run(con, policy, folder=tmp_path)
    assert ldiv_db.check(con, policy=policy, folder=tmp_path).holds
    joined = f"FROM '{tmp_path}/to/stays.parquet' JOIN '{tmp_path}/to/drugs.parquet' USING (id)"
    assert con.execute(f"SELECT count(*), max(person) {joined}").fetchone() == (8, 8)
