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
from tests.publishing.test_people_over_time import COLUMNS, Night, Row, Shown, drawn, shares
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
            "source": "people", "target": "out", "person": "person", "order": "day",
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
    rows, nights, last = list[Row](), list[Night](), 0
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
        nights.append(([*register, *rows], shown_since(con, last)))
        everybody = "SELECT person FROM out UNION ALL SELECT person FROM shown_register"
        (last,) = con.execute(f"SELECT max(person) FROM ({everybody})").fetchone()
    return nights


@pytest.mark.slow
@search(8, draw=draws)
def test_no_value_of_a_night_is_likelier_than_promised_whatever_all_nights_show(draw: random.Random) -> None:
    with duckdb.connect() as con:
        policy = {**POLICY, "algorithm": draw.choice(["topdown", "mondrian", "peel"])}
        nights = nights_of(con, draw, policy)
        if nights:
            assert all(share <= Fraction(1, 2) for (*_, value), share in shares(nights, True).items() if value)
            assert ldiv_db.check(con, policy=policy).holds
