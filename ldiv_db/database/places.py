"""Where a release is, for callers who read it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.engine import ClientRelation, Engine, connect, relation_of
from ldiv_db.database.templates import FileRelation, Relation, literal

#: The name under which a file of DuckDB's is attached to be read.
_FILE = "release"


class Place(Protocol):
    """Where a release is."""

    def read(self) -> ClientRelation:
        """The release as a relation; raises DatabaseError if it cannot be read from here."""


@dataclass(frozen=True)
class TablePlace:
    """A table on the caller's connection."""

    connection: Any
    table: Relation

    def read(self) -> ClientRelation:
        return relation_of(self.connection, self.table)


@dataclass(frozen=True)
class FilePlace:
    """A file, which is read on a connection of its own; of a DuckDB file a table."""

    path: Path
    table: Relation | FileRelation

    def read(self) -> ClientRelation:
        connection = connect(MEMORY)
        if isinstance(self.table, FileRelation):
            return relation_of(connection, self.table)
        Engine(connection).execute(f"ATTACH {literal(str(self.path))} AS {_FILE} (TYPE duckdb, READ_ONLY)")
        return relation_of(connection, Relation((_FILE, *self.table.parts)))
