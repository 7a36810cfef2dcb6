"""What columns that one table keeps tell of sensitive values in another, in plan, run and check."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db

CLINIC = """
    CREATE TABLE patients AS SELECT i AS who, i % 5 AS age, chr(CAST(110 + i % 8 AS INT)) AS hue FROM range(60) t(i);
    CREATE TABLE stays AS SELECT i AS stay, i AS who, i AS day, chr(CAST(97 + i % 8 AS INT)) AS dx FROM range(60) t(i);
    CREATE TABLE labs AS
    SELECT i AS stay, 'l' || i % 8 AS memo, (i * 7 + i // 9) % 3 AS plain, 'v' || i AS value FROM range(60) t(i);
"""
TABLES: dict[str, Any] = {
    "patients": {"person": "who", "quasi_identifiers": {"age": {"numeric": True}}, "keep": ["hue"]},
    "stays": {"person": "who", "key": "stay", "order": "day", "identifiers": ["day"], "sensitive": ["dx"]},
    "labs": {"parent": {"stay": "stays"}, "keep": ["memo", "plain"], "sensitive": ["value"]},
}


@pytest.mark.parametrize("known", some(["all", 1]))
def test_a_kept_column_that_gives_a_value_of_another_table_away_is_told(known: Any) -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute(CLINIC)
    tables = {name: {**table, "source": name, "target": f"shown_{name}"} for name, table in TABLES.items()}
    policy = {"individual": "who", "known": known, "tables": tables, "require": [{"frequency": 2}], "seed": 3}
    if known == 1:
        del tables["stays"]["order"]
    else:
        policy["algorithm"] = "topdown"
    planned, said = ldiv_db.plan(con, policy).notes, ldiv_db.run(con, policy).said
    checked = [line for audit in ldiv_db.check(con, policy=policy) for line in audit.warnings]
    for found in (planned, said, checked):
        told = sorted(line.partition(" in ")[0] for line in found if " is kept as it is: stays.dx" in line)
        follows = "is kept as it is: stays.dx follows from it"
        assert told == [f"labs: memo {follows}", f"patients: hue {follows}"]
