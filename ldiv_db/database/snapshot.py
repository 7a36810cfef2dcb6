"""The databases of a connection, its settings, and the place in which it looks up names, read by one statement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: The types of databases that are a file; the path of others may hold a password.
_FILES = ("duckdb", "sqlite", "ducklake")
#: The settings of which something depends.
_SETTINGS = (
    "default_collation",
    "disable_timestamptz_casts",
    "lock_configuration",
    "max_temp_directory_size",
    "memory_limit",
    "preserve_identifier_case",
    "temp_directory",
)
_ASKED = ", ".join(
    [
        "SELECT database_name, type, path, readonly, internal, current_database(), current_schema()",
        "current_schemas(false)",
        *(f"current_setting('{name}')" for name in _SETTINGS),
    ]
)
#: How statements begin after which it has to be read again.
CHANGES = re.compile(r"\s*(ATTACH|DETACH|USE|SET|RESET|ROLLBACK)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Database:
    """A database that is attached; `kind` is its type as DuckDB calls it: duckdb, postgres, sqlite, ducklake, mysql."""

    name: str
    kind: str
    path: str | None
    is_read_only: bool
    is_internal: bool

    @property
    def file(self) -> str | None:
        """Its file; None if it is in memory or on a server."""
        return self.path if self.kind in _FILES else None


@dataclass(frozen=True)
class Snapshot:
    """The databases that are attached, by their names in lower case, and the ones in which names are looked up.

    `schemas` is the search path of the `current` database, `schema` the first of them; `settings` are by name.
    """

    databases: dict[str, Database]
    current: str
    schema: str
    schemas: tuple[str, ...]
    settings: dict[str, Any]

    def kind(self, database: str) -> str:
        """The type of a database; duckdb if none of that name is attached."""
        found = self.databases.get(database.lower())
        return found.kind if found else "duckdb"

    def has(self, kind: str) -> bool:
        """True if a database of that type is attached."""
        return any(database.kind == kind for database in self.databases.values())

    @property
    def others(self) -> bool:
        """True if a database is attached that is not DuckDB's own."""
        return any(database.kind != "duckdb" and not database.is_internal for database in self.databases.values())


def read_snapshot(execute: Callable[[str], list[tuple[Any, ...]]]) -> Snapshot:
    """The snapshot that a connection's answer gives."""
    rows = execute(f"{_ASKED} FROM duckdb_databases()")
    current, schema, schemas, *values = rows[0][5:]
    databases = {row[0].lower(): Database(*row[:5]) for row in rows}
    settings = dict(zip(_SETTINGS, values, strict=True))
    return Snapshot(databases, current, schema, tuple(schemas) or (schema,), settings)
