"""Databases of which no emulator is there: what is sent to them in their SQL is carried over to DuckDB, and run there.

So their statements are read by their grammar, and names and types are resolved; what the service does is not known.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from ldiv_db.database.traits_there import TRAITS


class Cursor:
    """A cursor of PEP 249."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.duckdb

    def execute(self, sql: str, values: Any = ()) -> None:
        self._connection.sent.append(sql)
        (tree,) = sqlglot.parse(sql.replace("%s", "?"), read=self._connection.dialect)
        assert tree is not None
        for step in tree.find_all(exp.Command):
            raise AssertionError(f"{self._connection.dialect} has no grammar for {step.sql()}")
        self._connection.begin()
        self._cursor.execute(tree.sql("duckdb").replace("TEXT(MAX)", "TEXT"), list(values))

    @property
    def description(self) -> Any:
        return self._cursor.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._cursor.fetchall()

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return self._cursor.fetchmany(size)

    def close(self) -> None:
        """Nothing is open."""


class Connection:
    """A connection that speaks a dialect, and has the statements that were `sent`.

    Where the database takes tables back a transaction begins with the first of them, as drivers of PEP 249 begin one.
    """

    def __init__(self, dialect: str) -> None:
        self.dialect, self.sent = dialect, list[str]()
        self._is_open = False
        if duckdb.__version__.startswith("1."):  # our program never asks it for instants; this stub of a driver does
            pytest.importorskip("pytz")
        self.duckdb = duckdb.connect(":memory:", config={"threads": 1})

    def cursor(self) -> Cursor:
        return Cursor(self)

    def begin(self) -> None:
        if TRAITS[self.dialect].takes_back and not self._is_open:
            self.duckdb.execute("BEGIN")
            self._is_open = True

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def _end(self, how: str) -> None:
        if self._is_open:
            self.duckdb.execute(how)
        self._is_open = False
