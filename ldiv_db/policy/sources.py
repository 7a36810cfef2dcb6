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
        return "frame"


PolicySource = str | SourceQuery | Frame


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
    if isinstance(source, Frame):
        try:
            return engine.frame("frame", source.value)
        except DatabaseError as error:
            raise PolicyError(
                [Problem(key, error.message, "pandas, Polars, Arrow, or a relation of DuckDB's")]
            ) from None
    return resolve_source(engine, source, folder, key)
