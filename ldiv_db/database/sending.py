"""Rows that are sent to a warehouse, in bulk as far as its driver has a way; one way for a ledger's row and for a plan.

A file that a driver takes has plain values and texts alone: the warehouse reads each as the type of its column, as it
would read a literal. It lies in a folder of our own for as long as it is read.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlglot import Dialect, exp

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.dialects import written_table, written_type
from ldiv_db.database.drivers import AT_ONCE
from ldiv_db.database.engine import Engine
from ldiv_db.database.files import spill_folder
from ldiv_db.database.names import Identifier, Relation, literal
from ldiv_db.database.traits_there import TRAITS

#: The marks of a value that a driver binds by its place; how many rows, and values, one statement has at most.
_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s", "numeric": ":{}"}
_MOST_ROWS, _MOST_VALUES = 1_000, 30_000


@dataclass(frozen=True)
class Sent:
    """Rows of a TEMP table of the engine's on their way to a table there; one that is `lent` this run has made."""

    engine: Engine
    rows: Relation
    connection: Any
    cursor: Any
    table: Relation
    dialect: str
    lent: bool = False

    @cached_property
    def columns(self) -> list[Column]:
        return columns_of(self.engine, self.rows)

    @property
    def kinds(self) -> list[str]:
        """What the types of the columns are called there."""
        return [written_type(column.type, self.dialect) for column in self.columns]

    @property
    def names(self) -> list[str]:
        """The names of the columns there."""
        return [written_table(Relation((column.name,)), self.dialect) for column in self.columns]

    @property
    def place(self) -> str:
        """The table and its columns, after INSERT INTO."""
        return f"{written_table(self.table, self.dialect)} ({', '.join(self.names)})"

    def quoted(self, text: str) -> str:
        """The text as a literal there."""
        return exp.Literal.string(text).sql(dialect=self.dialect)

    def values(self, shown: str) -> Iterator[tuple[Any, ...]]:
        """The rows, of what is `shown` of each."""
        found = self.engine.connection.execute(f"SELECT {shown} FROM {self.rows.sql()}")
        while part := found.fetchmany(AT_ONCE):
            yield from part

    def with_texts(self, texts: Sequence[Column]) -> str:
        """All columns, some of them as texts: drivers, and our own database, have types of several packages."""
        names = [Identifier(column.name).sql() for column in texts]
        cast = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
        return f"* REPLACE ({cast})" if cast else "*"

    @contextmanager
    def file(self, form: str) -> Iterator[Path]:
        """A file of the rows, of plain values and texts; `form` is `json`, an object a line, or `parquet`."""
        shown = self.with_texts([column for column in self.columns if not _is_plain(column)])
        with spill_folder(Path(self.engine.snapshot.temp_directory or tempfile.gettempdir())) as folder:
            path = folder.resolve() / f"rows.{form}"
            to = f"{literal(str(path))} (FORMAT {form})"
            self.engine.execute(f"COPY (SELECT {shown} FROM {self.rows.sql()}) TO {to}")
            yield path


def send_rows(sent: Sent) -> None:
    """Append the rows to the table there, by the names of its columns: in bulk, if its driver has a call for that."""
    if TRAITS[sent.dialect].written_down:
        return _write_down(sent)
    for dialect, call, way in _BULK:
        has_call = hasattr(sent.cursor, call) or hasattr(sent.connection, call)
        if has_call and dialect in (sent.dialect, "") and (sent.lent or way is not _stage):
            return way(sent)
    return _bind(sent)


def _ingest(sent: Sent) -> None:
    """As Arrow, by ADBC."""
    _, schema, name = (None, None, *sent.table.parts)[-3:]
    reader = sent.engine.reader(sent.rows, AT_ONCE)
    sent.cursor.adbc_ingest(name, reader, mode="append", db_schema_name=schema)


def _copy(sent: Sent) -> None:
    with sent.cursor.copy(f"COPY {sent.place} FROM STDIN") as copy:
        for row in sent.values(sent.with_texts([column for column in sent.columns if column.is_time])):
            copy.write_row(row)


def _load(sent: Sent) -> None:
    """By a load job, which appends all rows or none, where the dataset of the table is."""
    said = {"source_format": "NEWLINE_DELIMITED_JSON", "write_disposition": "WRITE_APPEND"}
    config = import_module("google.cloud.bigquery").LoadJobConfig(**said)
    client = sent.connection._client  # the driver gives it out in no other way
    with sent.file("json") as path, path.open("rb") as file:
        client.load_table_from_file(file, ".".join(sent.table.parts), job_config=config).result()


def _stage(sent: Sent) -> None:
    """By the stage that each table has, which only its owner may use; it goes with the table, after a kill too."""
    parts = sent.table.parts
    within, name = (written_table(Relation(part), sent.dialect) for part in (parts[:-1], parts[-1:]))
    stage = f"@{within}.%{name.strip(chr(34))}"  # the name is plain, in capitals
    read = ", ".join(f"$1:{column.name}::{kind}" for column, kind in zip(sent.columns, sent.kinds, strict=True))
    with sent.file("parquet") as path:
        sent.cursor.execute(f"PUT {sent.quoted(f'file://{path.as_posix()}')} {stage} AUTO_COMPRESS = FALSE")
        found = f"(SELECT {read} FROM {stage}) FILE_FORMAT = (TYPE = PARQUET) PURGE = TRUE"
        sent.cursor.execute(f"COPY INTO {sent.place} FROM {found}")


def _read_file(sent: Sent) -> None:
    """By a file that the database reads itself, as it runs in this process."""
    types = ", ".join(f"{name} {kind}" for name, kind in zip(sent.names, sent.kinds, strict=True))
    with sent.file("json") as path:
        found = f"file({sent.quoted(str(path))}, 'JSONEachRow', {sent.quoted(types)})"
        sent.cursor.execute(f"INSERT INTO {sent.place} SELECT * FROM {found}")


def _send_file(sent: Sent) -> None:
    """By a file that the client sends as it is."""
    with sent.file("json") as path, path.open("rb") as file:
        names, table = [column.name for column in sent.columns], written_table(sent.table, sent.dialect)
        sent.connection.client.raw_insert(table, column_names=names, insert_block=file, fmt="JSONEachRow")


def _write_down(sent: Sent) -> None:
    """By statements that have rows as literals, as many as one may; our own database writes them."""
    cells = ", ".join(_cell(column, kind, sent.dialect) for column, kind in zip(sent.columns, sent.kinds, strict=True))
    begun, most = f"INSERT INTO {sent.place} VALUES\n", TRAITS[sent.dialect].written_down
    rows: list[str] = []
    length = len(begun)
    for (row,) in sent.values(f"'(' || concat_ws(', ', {cells}) || ')'"):
        if rows and length + len(row) > most:
            sent.cursor.execute(begun + ",\n".join(rows))
            rows, length = [], len(begun)
        rows.append(row)
        length += len(row) + 2
    if rows:
        sent.cursor.execute(begun + ",\n".join(rows))


def _cell(column: Column, kind: str, dialect: str) -> str:
    """What makes literals of the values of a column."""
    text = f"CAST({Identifier(column.name).sql()} AS VARCHAR)"
    if not _is_plain(column):
        has_escapes = "\\" in Dialect.get_or_raise(dialect).tokenizer_class.STRING_ESCAPES
        escape = "\\" if has_escapes else "'"
        for mark in ("\\", "'", "{") if has_escapes else ("'",):  # ${…} is a variable in any text of Spark's
            text = f"replace({text}, {literal(mark)}, {literal(escape + mark)})"
        text = f"'''' || {text} || ''''"
        if column.type != "VARCHAR":
            text = f"'CAST(' || {text} || {literal(f' AS {kind})')}"
    return f"coalesce({text}, 'NULL')"


def _bind(sent: Sent) -> None:
    """By statements of many rows each: a round trip a row would take longest of all."""
    traits = TRAITS[sent.dialect]
    driver = sys.modules[type(sent.connection).__module__.split(".")[0]]
    mark = _MARKS.get(getattr(driver, "paramstyle", ""), traits.mark)
    rows = sent.values(sent.with_texts([c for c in sent.columns if c.is_time or c.type in traits.texts]))
    while part := list(itertools.islice(rows, max(1, min(_MOST_ROWS, _MOST_VALUES // len(sent.columns))))):
        numbers = itertools.count(1)
        listed = ", ".join(f"({', '.join(mark.format(next(numbers)) for _ in row)})" for row in part)
        sent.cursor.execute(f"INSERT INTO {sent.place} VALUES {listed}", [value for row in part for value in row])


def _is_plain(column: Column) -> bool:
    """True if values stand in a file, and in a statement, as they are: truth, and whole numbers of 64 bits."""
    return column.type == "BOOLEAN" or (column.is_integer and "HUGEINT" not in column.type)


#: The ways in bulk: of which dialect, or of any, and the call that a driver's cursor or connection has for it.
_BULK: tuple[tuple[str, str, Callable[[Sent], None]], ...] = (
    ("", "adbc_ingest", _ingest),
    ("postgres", "copy", _copy),
    ("bigquery", "_client", _load),
    ("snowflake", "cursor", _stage),
    ("clickhouse", "query", _read_file),
    ("clickhouse", "client", _send_file),
)
