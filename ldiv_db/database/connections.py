"""Connections to databases by their client: the only module that imports `duckdb`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ldiv_db.database import interrupts
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.failures import first_sentence
from ldiv_db.database.names import Relation, literal

#: What the client has: connections, relations, whose rows a caller may read on, and its errors.
Connection = duckdb.DuckDBPyConnection
ClientRelation = duckdb.DuckDBPyRelation
ClientError = duckdb.Error
StoppedError = duckdb.InterruptException


@dataclass(frozen=True)
class Settings:
    """The machine's resources that a database of ours may use; None leaves the database's default."""

    threads: int | None = None
    memory_limit: str | None = None
    temp_directory: str | None = None


@contextmanager
def open_database(
    path: str | Path, read_only: bool = False, create: bool = False, settings: Settings | None = None
) -> Iterator[Connection]:
    """A connection to the database file at `path`, closed at the end.

    Raises DatabaseError if the file is missing (unless `create`), locked by another process, or no database.
    """
    path = str(path)
    if path != ":memory:" and not create and not Path(path).is_file():
        raise DatabaseError(f"no database file {path}")
    connection = connect(path, read_only, settings)
    with closing(connection), stoppable(connection):
        yield connection


def connect(path: str, read_only: bool = False, settings: Settings | None = None) -> Connection:
    """A connection to the database file at `path`, made if it is not there; raises DatabaseError if it cannot be."""
    config: dict[str, Any] = {name: value for name, value in vars(settings or Settings()).items() if value is not None}
    try:
        return duckdb.connect(path, read_only=read_only and path != ":memory:", config=config)
    except ClientError as error:
        raise DatabaseError(f"cannot open {path}: {first_sentence(str(error))}") from error


def stoppable(connection: Connection) -> AbstractContextManager[None]:
    """A context in which Ctrl-C stops what the connection does."""
    return interrupts.stopping(connection.interrupt)


def relation_of(connection: Connection, table: Relation | FileRelation) -> ClientRelation:
    """A table, view or file as a relation of the client's; raises DatabaseError if it is not there, or closed."""
    try:
        return connection.sql(f"FROM {table.sql() if isinstance(table, Relation) else table.sql(literal(table.path))}")
    except ClientError as error:
        raise DatabaseError(f"{table} cannot be read here: {first_sentence(str(error))}") from None


def attempt(connection: Any, sql: str) -> str | None:
    """Run a statement that may hold a secret; what the database says if it fails, which may quote it as well."""
    try:
        connection.execute(sql).fetchall()
    except StoppedError:
        raise KeyboardInterrupt from None
    except ClientError as error:
        return str(error) or type(error).__name__
    return None


def database_version() -> str:
    """The version of the database library."""
    return str(duckdb.__version__)
