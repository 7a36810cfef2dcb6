"""The doctor in databases that DuckDB attaches: what it tries is rolled back."""

from __future__ import annotations

from typing import Any

TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "ducklake": "SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake'",
    "postgres": "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname !~ '^(pg|sql)_'",
}


def test_a_database_is_well_and_as_it_was(home: Any) -> None:
    visit = home.json("doctor")
    assert visit["holds"], visit["checks"]
    assert visit["service"] == {"sqlite": "SQLite", "ducklake": "DuckLake", "postgres": "PostgreSQL"}[home.kind]
    assert sorted(home.sql(TABLES[home.kind])) == [("others",), ("patients",)]


def test_rights_that_lack_are_told(postgres: Any) -> None:
    postgres.sql("DROP ROLE IF EXISTS nobody_yet; CREATE ROLE nobody_yet LOGIN")
    try:
        postgres.address = postgres.address.replace("user=postgres", "user=nobody_yet")
        ends = postgres.call("doctor", postgres.address)
        assert ends.exit_code == 1 and "permission denied for database" in ends.output
    finally:
        postgres.sql("DROP ROLE nobody_yet")
