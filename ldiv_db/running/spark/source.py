"""The source of a run on Spark: a table, view, path, query or frame, and what its columns are in our own types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.spark_types import shown, type_of
from ldiv_db.policy.document import Policy
from ldiv_db.policy.sources import Frame, PolicySource, SourceQuery

#: The formats that a path says by its ending; a folder that says nothing is read in the session's default format.
_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".csv": "csv", ".avro": "avro"}
#: What an unread column of another type is taken for: nothing of it is copied.
_UNREAD = "VARCHAR"


@dataclass(frozen=True)
class SparkSource:
    """A frame of Spark's, and its columns in our own types; those that have none are `unread`, by name."""

    frame: Any
    columns: tuple[Column, ...]
    unread: dict[str, str]

    def problems(self, policy: Policy) -> Iterator[Problem]:
        """The columns that a release would read, of types that have no counterpart, and names that are one to us."""
        unread = {name.lower(): kind for name, kind in self.unread.items()}
        for key, name in policy.roles():
            if key != "identifiers" and name.lower() in unread:
                what = f"is {unread[name.lower()]}, which is not read"
                yield Problem(f"{key}.{name}", what, "give numbers, texts or times in a view, or list it as identifier")
        for name, count in Counter(column.name.lower() for column in self.columns).items():
            if count > 1:
                alike = ", ".join(column.name for column in self.columns if column.name.lower() == name)
                yield Problem("source", f"has columns that differ in case alone: {alike}", "rename them in a view")

    def taken(self, names: Sequence[str]) -> Any:
        """The columns named, as c0, c1, …, in that order: whatever they are called in either place."""
        from pyspark.sql import functions  # noqa: PLC0415 - an extra

        own = {column.name.lower(): column.name for column in self.columns}
        quoted = [f"`{own[name.lower()].replace('`', '``')}`" for name in names]
        with plainly("read the source"):
            return self.frame.select(*(functions.col(name).alias(f"c{i}") for i, name in enumerate(quoted)))


def open_on_spark(session: Any, source: PolicySource, folder: Path) -> SparkSource:
    """The source, of which nothing is read yet but its columns; raises PolicyError if there is none."""
    try:
        with plainly("read it"):
            frame = _frame(session, source, folder)
            fields = list(frame.schema.fields)
    except DatabaseError as error:
        raise PolicyError([Problem("source", f"{source}: {error}")]) from None
    types = {field.name: type_of(field) for field in fields}
    columns = tuple(Column(name, kind or _UNREAD) for name, kind in types.items())
    return SparkSource(frame, columns, {field.name: shown(field) for field in fields if types[field.name] is None})


def _frame(session: Any, source: PolicySource, folder: Path) -> Any:
    if isinstance(source, SourceQuery):
        return session.sql(source.query)
    if isinstance(source, Frame):
        if not hasattr(source.value, "schema") or not type(source.value).__module__.startswith("pyspark."):
            what = f"{type(source.value).__name__} is no frame of Spark's"
            raise PolicyError([Problem("source", what, "session.createDataFrame makes one of it")])
        return source.value
    form = _FORMATS.get(Path(source).suffix.lower())
    if "`" in source or (form is None and "/" not in source):
        return session.table(source)
    reader = session.read.format(form) if form else session.read
    if form == "csv":
        reader = reader.option("header", True)
    return reader.load(place_of(source, folder))


def place_of(path: str, folder: Path) -> str:
    """The path as Spark takes it: one with a scheme as it is, one of this machine's from `folder` on."""
    return path if "://" in path or path.startswith("/") else str((folder / path).resolve())
