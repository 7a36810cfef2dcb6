"""What an audit of people finds wrong between the plan and the table: nothing is published."""

from __future__ import annotations

from typing import Any

import pytest
from tables import fill

import ldiv_db
from ldiv_db.publishing import draft
from ldiv_db.recoding.units import with_numbers

#: Four people with two rows each, on two days.
ROWS = [(i // 2, i % 2, 30 + 10 * (i // 4), "abcd"[(i + i // 2) % 4]) for i in range(8)]
POLICY: dict[str, Any] = {
    "source": "visits", "target": "released", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["dx"],
    "require": [{"distinct": 2}], "algorithm": "topdown", "seed": 1,
}  # fmt: skip
APART = POLICY | {"individual": "person", "identifiers": ["day"]}
ALIGNED = POLICY | {
    "individual": {"column": "person", "rows": "aligned", "order": "day"}, "identifiers": ["day"],
    "output": {"person": "who", "position": "turn"},
}  # fmt: skip


@pytest.fixture
def visits(con: Any) -> None:
    fill(con, "visits", {"person": "INTEGER", "day": "INTEGER", "age": "INTEGER", "dx": "VARCHAR"}, ROWS)


def refused(con: Any, policy: dict[str, Any]) -> str:
    with pytest.raises(ldiv_db.AuditError) as error:
        ldiv_db.run(con, policy)
    tables = con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'released'").fetchone()
    assert tables == (0,)
    return str(error.value)


def test_a_table_that_is_not_the_plan_is_refused(visits: None, con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write = draft.write_rows

    def changed(engine: Any, where: Any, *args: Any) -> str:
        told = write(engine, where, *args)
        engine.execute(f"UPDATE {where.sql()} SET dx = 'a' WHERE dx = 'b'")
        return told

    monkeypatch.setattr(draft, "write_rows", changed)
    assert "what was written is not what people were counted in" in refused(con, APART)


def test_a_number_of_two_people_is_refused(visits: None, con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def numbered(engine: Any, tables: Any, secret: str) -> Any:
        found = with_numbers(engine, tables, secret)
        number = found[0].kept[0].alias.sql()
        engine.execute(f"UPDATE {found[0].rows.sql()} SET {number} = 1 WHERE {number} = 2")
        return found

    monkeypatch.setattr("ldiv_db.running.run.with_numbers", numbered)
    assert "of people, or of their rows, are not theirs alone" in refused(con, ALIGNED)
