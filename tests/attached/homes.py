"""The table of patients, a policy that it meets, and how databases that DuckDB attaches are asked without DuckDB."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import beds
import duckdb
from beds import COUNTRIES as TREE
from beds import PATIENTS

from ldiv_db.database.connections import load_extension

__all__ = ["COLUMNS", "EXTENSIONS", "HOMES", "PATIENTS", "SQL", "TREE", "Sql", "policy_document"]
#: Databases that are read and written.
HOMES = ["sqlite", "ducklake", "postgres"]
#: The extensions by what needs them.
EXTENSIONS = {
    "sqlite": "sqlite_scanner", "ducklake": "ducklake", "postgres": "postgres_scanner", "mysql": "mysql_scanner",
    "delta": "delta", "iceberg": "iceberg",
}  # fmt: skip
COLUMNS = "name varchar, age integer, country varchar, disease varchar, ward varchar"
#: Runs a statement as the database itself does, and returns its rows.
Sql = Callable[[str], list[tuple[Any, ...]]]


def policy_document(**changes: Any) -> dict[str, Any]:
    """A policy that `patients` meets, with other values for some keys (None takes a key out)."""
    return beds.policy_document(**{"source": "patients", "target": {"table": "released"}, **changes})


def _sqlite(address: str) -> Sql:
    def sql(text: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(address.partition(":")[2])
        with connection:
            rows = connection.execute(text).fetchall()
        connection.close()
        return rows

    return sql


def _ducklake(address: str) -> Sql:
    def sql(text: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            load_extension(connection, "ducklake", "the test")
            connection.execute(f"ATTACH '{address}' AS lake; USE lake")
            return connection.execute(text).fetchall()

    return sql


def _postgres(address: str) -> Sql:
    import psycopg  # noqa: PLC0415

    def sql(text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(address.partition(":")[2], autocommit=True) as connection:
            found = connection.execute(text)
            return list(found.fetchall()) if found.description else []

    return sql


SQL: dict[str, Callable[[str], Sql]] = {"sqlite": _sqlite, "ducklake": _ducklake, "postgres": _postgres}
