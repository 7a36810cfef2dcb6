"""Snowflake's rules of names in front of fakesnow, which holds `"rows"` and `"ROWS"` for one column.

Every name of a statement is resolved as Snowflake does, one without quotes in upper case, and then written so that two
names are one for fakesnow only if they are one for Snowflake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import snowflake.connector
import sqlglot
from sqlglot import exp

#: What stands before a letter that is small.
_SMALL = "~"
_SYSTEM = {"INFORMATION_SCHEMA"}
#: What a value that is bound stands as while a statement is read.
_BOUND = "'bound value'"


def encoded(name: str) -> str:
    """A name in capitals, with a sign before those that stand for small letters."""
    return re.sub("[a-z]", lambda letter: _SMALL + letter[0].upper(), name.replace(_SMALL, _SMALL * 2))


def decoded(name: str) -> str:
    """The name that was encoded."""
    return re.sub(rf"{_SMALL}({_SMALL}|[A-Z])", lambda found: _SMALL if found[1] == _SMALL else found[1].lower(), name)


def resolved(sql: str) -> str:
    """A statement of Snowflake's whose names fakesnow tells apart."""
    (tree,) = sqlglot.parse(sql.replace("%s", _BOUND), read="snowflake")
    for name in list(tree.find_all(exp.Identifier)):
        held = name.name if name.quoted else name.name.upper()
        if held not in _SYSTEM:
            name.replace(exp.to_identifier(encoded(held), quoted=True))
    return tree.sql("snowflake").replace(_BOUND, "%s")


def patched() -> AbstractContextManager[Any]:
    """Within, connections that anybody opens are by exact names; within fakesnow's own patch."""
    connect = snowflake.connector.connect
    return patch("snowflake.connector.connect", lambda *given, **more: Connection(connect(*given, **more)))


class Connection:
    """A connection of fakesnow's by exact names; it has its cursors' and its own methods."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def cursor(self) -> Cursor:
        return Cursor(self._connection.cursor())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Cursor:
    """A cursor of fakesnow's, which is sent statements by exact names and tells the names of columns so."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, sql: str, *values: Any) -> Cursor:
        return self._sent(self._cursor.execute, sql, *values)

    def executemany(self, sql: str, *values: Any) -> Cursor:
        return self._sent(self._cursor.executemany, sql, *values)

    def _sent(self, send: Callable[..., Any], sql: str, *values: Any) -> Cursor:
        try:
            send(resolved(sql), *values)
        except snowflake.connector.Error as error:
            error.msg = decoded(str(error.msg))
            raise
        return self

    @property
    def description(self) -> Any:
        return [entry._replace(name=decoded(entry.name)) for entry in self._cursor.description]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


Connection.__module__ = "snowflake.connector"  # whose dialect it speaks
