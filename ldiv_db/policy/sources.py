"""What a policy may name as its source: a table or files by name, a query, or in Python a frame or a relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.frames import FRAME, KINDS, view_of_frame
from ldiv_db.database.queries import name_of_query, view_of_query
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.templates import FileRelation, Relation


@dataclass(frozen=True)
class SourceQuery:
    """A query, `source: {query: "SELECT …"}`."""

    query: str

    def __str__(self) -> str:
        return name_of_query(self.query)


class Frame:
    """A frame, or a relation of the database's client, that a caller gave; it is never copied."""

    def __init__(self, value: Any):
        self.value = value

    def __deepcopy__(self, memo: Any) -> Frame:
        return self

    def __str__(self) -> str:
        return FRAME


PolicySource = str | SourceQuery | Frame
#: Stands where a policy leaves its source to a frame that it is given.
UNSAID = Frame(None)


def read_source(value: Any) -> PolicySource:
    """What is written, with anything that no document can hold taken for a frame; raises PydanticCustomError."""
    if isinstance(value, str | SourceQuery | Frame):
        return value
    if isinstance(value, Mapping) and list(value) == ["query"] and isinstance(value["query"], str):
        return SourceQuery(value["query"])
    if isinstance(value, Mapping):
        raise PydanticCustomError("source_query", 'takes {query: "SELECT …"}, or a text')
    if value is None or isinstance(value, bool | int | float | list | tuple | date):
        raise PydanticCustomError("string_type", "takes a text")
    return Frame(value)


def open_source(engine: Engine, source: PolicySource, folder: Path, key: str = "source") -> Relation | FileRelation:
    """The source as it can be read until the engine is closed; raises PolicyError if there is none."""
    if isinstance(source, SourceQuery):
        return view_of_query(engine, source.query, f"{key}.query")
    if source is UNSAID:
        raise PolicyError([Problem(key, "is required")])
    if isinstance(source, Frame):
        try:
            return view_of_frame(engine, FRAME, source.value)
        except DatabaseError as error:
            raise PolicyError([Problem(key, error.message, KINDS)]) from None
    return resolve_source(engine, source, folder, key)


def open_given(engine: Engine, given: Any, key: str) -> Relation | FileRelation:
    """What a caller names, or gives as a frame, for the argument `key`; raises PolicyError if it cannot be read."""
    try:
        source = read_source(given)
    except PydanticCustomError as error:
        what = "is required" if given is None else f"{error.message()}, or a frame"
        raise PolicyError([Problem(key, what)]) from None
    return open_source(engine, source, Path(), key)


def given_name(given: Any, relation: Relation | FileRelation) -> str:
    """What a caller's table is called in a report."""
    return str(relation) if isinstance(given, str) else str(read_source(given))
