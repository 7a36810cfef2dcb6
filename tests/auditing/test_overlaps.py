"""Labels of rows that have values in common, by every way in which labels are made, are refused."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.errors import AuditError

NUMBERS, OPEN = {"numeric": True}, {}
PREFIXES, FLAT = {"taxonomy": {"prefix": [5, 3, 1]}}, {"taxonomy": {"flat": True}}
DATES, WEEKS = {"taxonomy": {"dates": ["day", "month", "quarter", "year", "decade"]}}, {"taxonomy": {"dates": ["week"]}}
TREE = {"taxonomy": {"file": "place.csv"}}


def checked(con: Any, folder: Any, setting: dict[str, Any], labels: list[str | None]) -> bool:
    """Whether four people, who have a row of each label, may be published so."""
    con.execute("CREATE SCHEMA published; CREATE TABLE published.visits (who INT, place VARCHAR, illness VARCHAR)")
    rows = [(who, label, f"{who} {label}") for who in range(4) for label in (*labels, labels[0])]
    con.executemany("INSERT INTO published.visits VALUES (?, ?, ?)", rows)
    own = {"person": "who", "quasi_identifiers": {"place": setting}, "sensitive": ["illness"]}
    visits = {"source": "visits", "target": "published.visits", **own}
    policy = {"individual": "who", "known": 1, "tables": {"visits": visits}, "require": [{"frequency": 2}]}
    try:
        return bool(ldiv_db.check(con, policy=policy, folder=folder).holds)
    except AuditError:
        return False


@pytest.mark.parametrize(
    ("setting", "labels"),
    some(
        [
            (NUMBERS, ["[1 .. 3)", "[3 .. 6]", "7"]),
            (NUMBERS, [f"[{2**53} .. {2**53 + 1}]", f"[{2**53 + 2} .. {2**63 - 2}]", f"{2**63 - 1}"]),
            (NUMBERS, ["<1", "[1 .. 6]", ">6"]),
            (OPEN, ["a", "b", None]),
            (FLAT, ["{a, c}", "b", '{d, "e, f"}']),
            (PREFIXES, ["816**", "8171*", "81722", "9****"]),
            (FLAT, ["12**", "*34"]),
            (DATES, ["2024-01", "2024-02-01", "2024-Q3", "2025", "2030s"]),
            (WEEKS, ["2024-W01", "2024-W02", "2020-W53"]),
            (TREE, ["Berlin", "Munich", "France"]),
            (NUMBERS, ["[1 .. 3]", "[4 .. 6]", None]),
            (NUMBERS, ["[1.5 .. 2.25]", "[2.5 .. 3]"]),
            (NUMBERS, ["[2024-01-01 .. 2024-01-31]", "[2024-02-01 .. 2024-02-01]"]),
            (OPEN, ["[1 .. 3]", "[4 .. 6]"]),
            (FLAT, ["a", "b", "[1 .. 3]", "[2 .. 4]"]),
            (PREFIXES, ["816*", "81722", "9*"]),
            (FLAT, ["12*", "*3"]),
        ],
        10,
    ),
)
def test_labels_that_have_no_value_in_common_may_be_published(
    con: Any, tmp_path: Any, setting: Any, labels: Any
) -> None:
    (tmp_path / "place.csv").write_text("Berlin;Germany;*\nMunich;Germany;*\nParis;France;*\n", encoding="utf-8")
    assert checked(con, tmp_path, setting, labels)


@pytest.mark.parametrize(
    ("setting", "labels"),
    [
        (NUMBERS, ["[1 .. 3]", "[3 .. 6]"]),
        (NUMBERS, ["(1 .. 3)", "(1 .. 3]"]),
        (NUMBERS, ["[9007199254740992 .. 9007199254740993]", "[9007199254740993 .. 9223372036854775807]"]),
        (NUMBERS, ["[1 .. 3.5]", "[3.2 .. 5]"]),
        (NUMBERS, ["[1 .. 3)", "(2 .. 6]"]),
        (NUMBERS, ["[1 .. 3]", "*"]),
        (NUMBERS, ["[1 .. 3]", ">2"]),
        (NUMBERS, ["[1 .. 3]", "soon"]),
        (NUMBERS, ["[2024-01-01 .. 2024-02-01]", "[2024-02-01 .. 2024-02-01]"]),
        (OPEN, ["[1 .. 3]", "[2 .. 6]"]),
        (OPEN, ["a", "*"]),
        (FLAT, ["{a, c}", "c"]),
        (FLAT, ["{a, NULL}", None]),
        (PREFIXES, ["816**", "8161*"]),
        (PREFIXES, ["8****", "81612"]),
        (PREFIXES, ["8*", "816*"]),
        (PREFIXES, ["8***", "81*"]),
        (FLAT, ["A1*", "**16"]),
        (FLAT, ["1*", "*1"]),
        (FLAT, ["12*", "*23"]),
        (DATES, ["2024-01", "2024-01-31"]),
        (DATES, ["2024-Q1", "2024-03"]),
        (DATES, ["2020s", "2024-Q4"]),
        (TREE, ["Berlin", "Germany"]),
        (TREE, ["Berlin", "*"]),
        (TREE, ["Berlin", "London"]),
    ],
)
def test_labels_that_have_a_value_in_common_are_refused(con: Any, tmp_path: Any, setting: Any, labels: Any) -> None:
    (tmp_path / "place.csv").write_text("Berlin;Germany;*\nMunich;Germany;*\nParis;France;*\n", encoding="utf-8")
    assert not checked(con, tmp_path, setting, labels)
