"""Where a release is, for callers who read it afterwards."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.engine import ClientRelation, Engine, connect, relation_of
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.templates import FileRelation, Relation, literal

#: The name under which a file of DuckDB's is attached to be read.
_FILE = "release"


class Place(Protocol):
    """Where a release is."""

    def read(self) -> ClientRelation:
        """The release as a relation; raises DatabaseError if it cannot be read from here."""


class TablePlace:
    """A table on a connection, which is its owner's: it is not kept open for the table, unless nobody else has it.

    A copy is the same place, and what is pickled is a place that is gone.
    """

    def __init__(self, connection: Any, table: Relation):
        self._connection = _reference(connection)
        self._kept: Any = None
        self.table = table

    def keep_open(self) -> None:
        """Have the connection open as long as this is there."""
        self._kept = self._connection()

    def read(self) -> ClientRelation:
        connection = self._connection()
        if connection is None:
            raise DatabaseError(f"{self.table} cannot be read here: its connection is gone, open the database again")
        return relation_of(connection, self.table)

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        return type(self), (None, self.table)


def _reference(connection: Any) -> Callable[[], Any]:
    """What gives the connection while it is there; one that cannot be watched is held."""
    try:
        return (lambda: None) if connection is None else weakref.ref(connection)
    except TypeError:
        return lambda: connection


class FilePlace:
    """A file, which is read on a connection of its own; of a DuckDB file a table."""

    def __init__(self, path: Path, table: Relation | FileRelation):
        self.path = path
        self.table = table

    def read(self) -> ClientRelation:
        connection = connect(MEMORY)
        if isinstance(self.table, FileRelation):
            return relation_of(connection, self.table)
        Engine(connection).execute(f"ATTACH {literal(str(self.path))} AS {_FILE} (TYPE duckdb, READ_ONLY)")
        return relation_of(connection, Relation((_FILE, *self.table.parts)))
