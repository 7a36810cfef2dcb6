"""The databases of a connection by their kinds, its settings, and where it looks up names: read by one statement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: The settings of which something depends.
_SETTINGS = (
    "default_collation",
    "disable_timestamptz_casts",
    "disabled_optimizers",
    "lock_configuration",
    "max_temp_directory_size",
    "memory_limit",
    "preserve_identifier_case",
    "temp_directory",
    "threads",
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
class Kind:
    """A kind of database: what it is called, DuckDB's type and extension for it, and what it does differently."""

    name: str
    type: str
    extension: str | None = None
    #: Whether it is a local file; the path of others may hold a password.
    is_file: bool = False
    #: Whether DuckDB may make a table in it and take that back: MySQL commits every CREATE by itself.
    takes_back: bool = True
    #: The words of which one stands before the colon of an address.
    words: tuple[str, ...] = ()
    #: The text that ATTACH puts before the address, in place of a type.
    prefix: str = ""
    #: The schema that is meant where none is named, and whether there are others.
    schema: str = "main"
    has_schemas: bool = True
    #: Whether tables may have keys.
    has_keys: bool = True
    #: Where all that a transaction writes is a snapshot with a number, what ends those of the database `{0}`.
    history: str = ""


DUCKDB = Kind("DuckDB", "duckdb", is_file=True)
POSTGRES = Kind("PostgreSQL", "postgres", "postgres_scanner", schema="public", words=("postgres", "postgresql"))
SQLITE = Kind("SQLite", "sqlite", "sqlite_scanner", is_file=True, has_schemas=False, words=("sqlite",))
DUCKLAKE = Kind(
    "DuckLake",
    "ducklake",
    "ducklake",
    is_file=True,
    words=("ducklake",),
    prefix="ducklake:",
    has_keys=False,
    history="CALL ducklake_expire_snapshots('{0}', older_than => now());"
    " CALL ducklake_cleanup_old_files('{0}', cleanup_all => true)",
)
MYSQL = Kind("MySQL", "mysql", "mysql_scanner", takes_back=False, words=("mysql",))
MOTHERDUCK = Kind("MotherDuck", "motherduck", "motherduck", prefix="md:", words=("md", "motherduck"))
#: The kinds by DuckDB's type.
BY_TYPE = {kind.type: kind for kind in (DUCKDB, POSTGRES, SQLITE, DUCKLAKE, MYSQL, MOTHERDUCK)}


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
        return self.path if self.kind in BY_TYPE and BY_TYPE[self.kind].is_file else None


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

    def __getitem__(self, database: str) -> Database:
        """The database of that name, one of DuckDB's in memory if none is attached."""
        return self.databases.get(database.lower()) or Database(database, DUCKDB.type, None, False, False)

    def kind(self, database: str) -> str:
        """The type of a database; duckdb if none of that name is attached."""
        return self[database].kind

    def traits(self, database: str) -> Kind:
        """What a database does as others of its kind."""
        return BY_TYPE.get(self.kind(database), DUCKDB)

    def is_in_memory(self, database: str) -> bool:
        """True if a database of DuckDB's is in no file, and ends with the connection."""
        return database.lower() in self.databases and self[database].kind == "duckdb" and self[database].path is None

    @property
    def open_files(self) -> list[str]:
        """The files of all databases that are attached."""
        return [found.file for found in self.databases.values() if found.file and not found.is_internal]

    def of_kind(self, kind: str) -> list[str]:
        """The names of the attached databases of that type."""
        return [database.name for database in self.databases.values() if database.kind == kind]

    @property
    def memory_limit(self) -> int:
        """The bytes of memory that the database may use."""
        return _bytes(self.settings["memory_limit"]) or 0

    @property
    def temp_directory(self) -> str:
        """Where it puts what does not fit into memory; an empty text where that is nowhere."""
        return self.settings["temp_directory"] or ""

    @property
    def temp_limit(self) -> int | None:
        """The bytes that it may put there; None for all that are free."""
        return _bytes(self.settings["max_temp_directory_size"])

    @property
    def threads(self) -> int:
        return int(self.settings["threads"])

    @property
    def others(self) -> bool:
        """True if a database is attached that is not DuckDB's own."""
        return any(database.kind != "duckdb" and not database.is_internal for database in self.databases.values())


def _bytes(text: str) -> int | None:
    """The number of bytes in a setting such as `18.8 GiB`; None for a share of what is free."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) (bytes?|[KMGTPE]iB)", text)
    return None if match is None else int(float(match[1]) * 1024 ** "bKMGTPE".index(match[2][0]))


def read_snapshot(execute: Callable[[str], list[tuple[Any, ...]]]) -> Snapshot:
    """The snapshot that a connection's answer gives."""
    rows = execute(f"{_ASKED} FROM duckdb_databases()")
    current, schema, schemas, *values = rows[0][5:]
    databases = {row[0].lower(): Database(*row[:5]) for row in rows}
    settings = dict(zip(_SETTINGS, values, strict=True))
    return Snapshot(databases, current, schema, tuple(schemas) or (schema,), settings)
