"""Addresses of databases: a file, or a text that DuckDB attaches, as `postgres:service=clinic` or `sqlite:crm.db`.

An address may hold a password. It is shown by its kind alone, and what is said where it cannot be opened is ours. A
release is a place in a database, for callers who read it afterwards.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from ldiv_db.database.connections import ClientRelation, connect, relation_of
from ldiv_db.database.data_files import FileRelation, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.names import Relation, literal
from ldiv_db.database.snapshot import BY_TYPE, DUCKDB, POSTGRES, Kind

MEMORY = ":memory:"
#: The kinds by the word before the colon.
KINDS = {word: kind for kind in BY_TYPE.values() for word in kind.words}
_WORD = re.compile(rf"({'|'.join(KINDS)}):(.*)", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"\$\{(\w*)\}")
#: Options of a connection to PostgreSQL, unless it gives others: a server that is silent or a table that
#: somebody holds is waited for so long, and a table of which row level security hides rows is refused.
#: To its administrator it is known by our name, unless the address, its service or PGAPPNAME give another.
_WAITS = {
    "connect_timeout": "15",
    "options": "-c lock_timeout=60s -c row_security=off",
    "fallback_application_name": "ldiv_db",
}


@dataclass(frozen=True)
class Address:
    """A database by its kind, and the text with which DuckDB attaches it, which may hold a secret."""

    kind: Kind
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text if self._is_file else f"the {self.kind.name} database"

    @property
    def _is_file(self) -> bool:
        return self.kind.is_file and not is_attached(self.text)

    @property
    def path(self) -> Path | None:
        """The file, None if there is none of its own."""
        return Path(self.text) if self._is_file and self.text != MEMORY else None

    @property
    def is_data(self) -> bool:
        """True of a data file, which is opened as a database in memory that has it under its name."""
        return self.kind is DUCKDB and FileRelation.of(self.text) is not None

    @property
    def table(self) -> str | None:
        """The name of the one table of a data file; None of a database."""
        return Path(self.text).name.partition(".")[0] if self.is_data else None

    @property
    def is_memory(self) -> bool:
        """True if what is written there ends with the connection."""
        return self.text == MEMORY or self.is_data

    @property
    def attached(self) -> str:
        """The text that ATTACH takes."""
        return f"{self.kind.prefix}{self.text}"

    def waiting(self) -> Address:
        """The same, by which a server is not waited for without end, unless it says itself how long."""
        if self.kind is not POSTGRES:
            return self
        missing = {key: value for key, value in _WAITS.items() if not re.search(rf"\b{key}\s*=", self.text)}
        if "://" not in self.text:
            return replace(self, text=" ".join([self.text, *(f"{key}='{value}'" for key, value in missing.items())]))
        words = "&".join(f"{key}={value.replace(' ', '%20').replace('=', '%3D')}" for key, value in missing.items())
        return replace(self, text=f"{self.text}{'&' if '?' in self.text else '?'}{words}") if words else self

    def in_folder(self, folder: Path) -> Address:
        """The same address, with a relative path read from the folder."""
        path = self.path
        return self if path is None else replace(self, text=str(folder / path))


def address_of(text: str, key: str = "database") -> Address:
    """The database that a text names, with its `${VARIABLES}`; raises PolicyError for one that is not set."""
    match = _WORD.fullmatch(text)
    if match is None:
        return Address(DUCKDB, text)
    word, rest = match.groups()
    kind = KINDS[word.lower()]
    if kind is POSTGRES and rest.startswith("//"):
        rest = f"postgresql:{rest}"
    if missing := [name for name in _VARIABLE.findall(rest) if name not in os.environ]:
        what = f"there is no environment variable {missing[0]}"
        raise refused(key, what, f"set {missing[0]} before the command")
    return Address(kind, _VARIABLE.sub(lambda variable: os.environ[variable[1]], rest))


def address_beside(connection: Any) -> Address:
    """The address of PostgreSQL as this connection of psycopg2 has it, its password and its role with it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('role')")
        ((role,),) = cursor.fetchall()
    connection.commit()
    said = {key: value for key, value in connection.get_dsn_parameters().items() if value}
    said["options"] = _WAITS["options"] + ("" if role == "none" else f" -c role={role}")
    make_dsn = import_module("psycopg2.extensions").make_dsn
    return Address(POSTGRES, make_dsn(**said, password=connection.info.password))


def is_attached(text: str) -> bool:
    """True if the text names a database that is no DuckDB file, as that of a DuckLake's catalog may."""
    return _WORD.fullmatch(text) is not None


#: The name under which a file of DuckDB's is attached to be read.
_FILE = "release"


class TablePlace:
    """Tables on a connection, which is its owner's: it is not kept open for them, unless nobody else has it.

    A copy is the same place, and what is pickled is a place that is gone.
    """

    def __init__(self, connection: Any, tables: Mapping[str, Relation]):
        try:
            self._connection = (lambda: None) if connection is None else weakref.ref(connection)
        except TypeError:  # one that cannot be watched is held
            self._connection = lambda: connection
        self._kept: Any = None
        self.tables = tables

    def keep_open(self) -> None:
        """Keep the connection open while the context lives."""
        self._kept = self._connection()

    def read(self, name: str) -> ClientRelation:
        connection, table = self._connection(), self.tables[name]
        if connection is None:
            raise DatabaseError(f"{table} cannot be read here: its connection is gone, open the database again")
        return relation_of(connection, table)

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        return type(self), (None, self.tables)


class FilePlace:
    """Files, each of which is read on a connection of its own; of a DuckDB file its tables."""

    def __init__(self, path: Path, tables: Tables):
        self.path = path
        self.tables = tables

    def read(self, name: str) -> ClientRelation:
        connection, table = connect(MEMORY), self.tables[name]
        if isinstance(table, FileRelation):
            return relation_of(connection, table)
        Engine(connection).execute(f"ATTACH {literal(str(self.path))} AS {_FILE} (TYPE duckdb, READ_ONLY)")
        return relation_of(connection, Relation((_FILE, *table.parts)))


#: The place of a release.
Place = TablePlace | FilePlace
