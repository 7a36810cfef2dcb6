"""Sessions of Spark's: which object is one, and of which kind.

What Spark says when it fails, in one sentence: no traces of Java's, and no values that they may quote.

The types of Spark's columns by those of our own database, and which of them have none there.

Templates run by Spark: every step a view of the session's, kept by its executors, and only counts are read here.

Tables of Spark's catalog: what is there, and the few statements that make, rename and drop one.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from ldiv_db.database.dialects import listed_rows, written_step
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.queries import Step
from ldiv_db.database.templates import Relation, Statement, literal, render


def is_session(value: Any) -> bool:
    """True if it is a session of Spark's, classic or of Spark Connect; told without importing either."""
    return any(kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.") for kind in type(value).mro())


def is_remote(session: Any) -> bool:
    """True if it is a session of Spark Connect, behind which no Java machine can be reached."""
    return type(session).__module__.startswith("pyspark.sql.connect")


_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]\s*(.*)")
#: The names of Java's exceptions, which stand before their messages.
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):?\s*")
#: Conditions whose sentences quote values of the data.
_QUOTING = ("CAST_", "INVALID_INPUT", "CANNOT_PARSE", "MALFORMED", "DIVIDE", "ARITHMETIC", "NUMERIC_VALUE", "UDF")


@contextmanager
def plainly(doing: str) -> Iterator[None]:
    """Within, failures of Spark's are raised as DatabaseError: what was being done, and Spark's own short sentence."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise DatabaseError(f"Spark cannot {doing}: {sentence(error)}") from None  # a cause would quote data


def sentence(error: BaseException) -> str:
    """The first sentence of what Spark says, or the name of its condition where that would quote data."""
    text = str(error).strip() or type(error).__name__
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text):
        return (
            f"the Python of its executors has no module {missing[1]}; install ldiv-db there, or set PYSPARK_PYTHON"
            " to one that has it"
        )
    if re.search(r"PYTHON_VERSION_MISMATCH|different .*version.* in worker", text):
        return "its executors have another version of Python than the driver; set PYSPARK_PYTHON"
    if found := _CONDITION.search(text):
        condition, said = found.groups()
        return condition if condition.startswith(_QUOTING) else said.strip() or condition
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if line.startswith("Caused by:")), lines[0] if lines else text)
    return _CLASS.sub("", cause.removeprefix("Caused by:").strip())[:300] or type(error).__name__


#: Types of Spark by the names that its schemas have for them; decimals keep their digits.
_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


def type_of(field: Any) -> str | None:
    """Our own type of a field of Spark's schema; None for nested and collated ones, and those without a counterpart."""
    name = str(field.dataType.simpleString())
    if name.startswith("decimal("):
        return name.upper()
    return "VARCHAR" if name.startswith(("varchar(", "char(")) else _TYPES.get(name)


def shown(field: Any) -> str:
    """The field's type as people may see it: of nested types the kind alone, whose members may have telling names."""
    return str(field.dataType.simpleString()).partition("<")[0]


def arrow_schema(fields: Any, zone: str) -> Any:
    """The fields of Spark's schema as Arrow has them, points in time in the session's zone: of types that we know."""
    import pyarrow  # noqa: PLC0415 - comes with the extra

    plain = {
        "boolean": pyarrow.bool_(),
        "tinyint": pyarrow.int8(),
        "smallint": pyarrow.int16(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "float": pyarrow.float32(),
        "double": pyarrow.float64(),
        "binary": pyarrow.binary(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us", zone),
        "timestamp_ntz": pyarrow.timestamp("us"),
    }

    def found(kind: Any) -> Any:
        name = kind.simpleString()
        decimal = name.startswith("decimal(")
        return pyarrow.decimal128(kind.precision, kind.scale) if decimal else plain.get(name, pyarrow.string())

    return pyarrow.schema([pyarrow.field(field.name, found(field.dataType)) for field in fields])


DIALECT = "spark"
#: The settings under which our statements are read, whatever the session's own are.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
}


class SparkEngine(Engine):
    """Runs templates, carried over to Spark's dialect, in a session; what it makes is dropped by `close_scratch`."""

    def __init__(self, session: Any, on_step: Callable[[Step], None] | None = None):
        self.session = session
        self.catalog = None
        self.steps = []
        self._on_step = on_step
        self._on_statement = None
        self._render = partial(render, folders=())
        self._scratch = []
        self._counted = {}
        self._caller_views = []
        self._prefix = f"ldiv_{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)

    def make(self, name: str, statement: Statement) -> Relation:
        """A view of what a statement selects, whose rows executors keep once they are made."""
        return self.keep(name, self._sql(written_step(statement, DIALECT)))

    def view(self, name: str, template: str, **params: Any) -> Relation:
        """As `materialise`, kept nowhere."""
        return self.keep(name, self._sql(written_step(self._render(template, params), DIALECT)), kept=False)

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """A view of rows of metadata made in Python: `columns` is name to SQL type of our own database."""
        return self.keep(name, self._sql(listed_rows(columns, rows, DIALECT)), kept=False)

    def keep(self, name: str, frame: Any, kept: bool = True) -> Relation:
        """A view of a frame of Spark's."""
        target = self._temp_name(name)
        with plainly("read what was counted"):
            (frame.persist() if kept else frame).createOrReplaceTempView(target.name)
        self._scratch.append(target)
        if self._on_step:
            self._on_step(Step(name, 0, 0.0))
        return target

    def drop(self, *relations: Relation) -> None:
        """Drop views that `materialise`, `view` or `load` made, and what is kept of them."""
        for relation in relations:
            self._forget(relation)
            self._scratch.remove(relation)

    def close_scratch(self) -> None:
        """Drop every view that is left."""
        for relation in reversed(self._scratch):
            with suppress(Exception):  # the session itself may be gone; the first error is the one to report
                self._forget(relation)
        self._scratch.clear()

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Within, the session reads our statements as we mean them; its settings are put back at the end."""
        before = {name: self.session.conf.get(name, None) for name in SETTINGS}
        try:
            for name, value in SETTINGS.items():
                self.session.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                with suppress(Exception):  # the session itself may be gone
                    self.session.conf.unset(name) if old is None else self.session.conf.set(name, old)

    def _forget(self, relation: Relation) -> None:
        # What was kept of it goes with it: a frame of Spark Connect's could not say so once what it reads is dropped.
        self.session.catalog.dropTempView(relation.name)

    def _temp_name(self, name: str) -> Relation:
        return Relation((f"{self._prefix}_{next(self._numbers)}_{name}",))

    def _sql(self, text: str) -> Any:
        with plainly("run a statement"):
            return self.session.sql(text)

    def _execute(self, statement: Statement) -> tuple[list[str], list[tuple[Any, ...]]]:
        frame = self._sql(written_step(statement, DIALECT))
        with plainly("count"):
            rows = frame.collect()
        return list(frame.columns), [tuple(map(_as_ours, row)) for row in rows]


def _as_ours(value: Any) -> Any:
    """A whole number that Spark has as a decimal, as one."""
    return int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else value


#: Formats of tables that have a commit of their own: what replaces or appends to them is there whole or not at all.
ATOMIC = ("delta", "iceberg")


def table_named(text: str, key: str) -> Relation:
    """The table that a name stands for; raises PolicyError for what is no name of one."""
    try:
        parts = [part for part in exp.to_table(text, dialect="spark").parts if isinstance(part, exp.Identifier)]
    except SqlglotError:
        parts = []
    if not parts or len(parts) > 3:
        raise PolicyError([Problem(key, f"{text!r} names no table", "TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE")])
    return Relation(tuple(part.name for part in parts))


def quoted(table: Relation) -> str:
    """The table's name as Spark takes it, whatever characters are in it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in table.parts)


def sibling(table: Relation, name: str) -> Relation:
    """Another table of the same schema."""
    return Relation((*table.parts[:-1], name))


def exists(session: Any, table: Relation) -> bool:
    """True if there is a table or view of that name."""
    with plainly(f"look up {table}"):
        return bool(session.catalog.tableExists(quoted(table)))


def description(session: Any, table: Relation) -> Mapping[str, str]:
    """The catalog's entries on a table beside its columns: `Provider`, `Type` and others."""
    with plainly(f"look up {table}"):
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {quoted(table)}").collect()
    names = [row[0] for row in rows]
    start = next((i for i, name in enumerate(names) if name.startswith("# Detailed")), len(rows))
    return {row[0]: row[1] for row in rows[start:]}


def read(session: Any, table: Relation) -> Any:
    """The table as a frame, with the files that it has now: another session may have written or renamed some."""
    session.catalog.refreshTable(quoted(table))
    return session.table(quoted(table))


def names_in_schema(session: Any, table: Relation) -> list[str]:
    """The names of all tables beside a table; none if its schema is not there."""
    where = f" IN {quoted(Relation(table.parts[:-1]))}" if len(table.parts) > 1 else ""
    if where and not session.catalog.databaseExists(quoted(Relation(table.parts[:-1]))):
        return []
    with plainly("list tables"):
        return [row["tableName"] for row in session.sql(f"SHOW TABLES{where}").collect() if not row["isTemporary"]]


def make_schema(session: Any, table: Relation) -> None:
    """Make the schema of a table, if it names one that is not there."""
    schema = quoted(Relation(table.parts[:-1]))
    with plainly("make the schema"):
        if schema and not session.catalog.databaseExists(schema):
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


def make_empty(session: Any, table: Relation, columns: Sequence[Any]) -> None:
    """An empty table of these fields: it is in the catalog before it has files, so that none are left unknown."""
    provider = session.conf.get("spark.sql.sources.default", "parquet")
    listed = ", ".join(f"{quoted(Relation((field.name,)))} {field.dataType.simpleString()}" for field in columns)
    with plainly(f"make {table}"):
        session.sql(f"CREATE TABLE {quoted(table)} ({listed}) USING {provider}")


def make_lasting(session: Any, table: Relation, columns: str) -> None:
    """A table of columns, as SQL, if it is not there; of a catalog in memory where later sessions find it again."""
    make_schema(session, table)
    if exists(session, table):
        return
    in_memory = (
        session.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory" and len(table.parts) == 2
    )
    place = f"{session.conf.get('spark.sql.warehouse.dir')}/{table.parts[0]}.db/{table.name}" if in_memory else ""
    located = f" USING parquet LOCATION {literal(place)}" if in_memory else ""
    with plainly(f"make {table}"):
        session.sql(f"CREATE TABLE {quoted(table)} ({columns}){located}")


def rename(session: Any, table: Relation, name: str) -> None:
    """Have a table under another name of its schema."""
    with plainly(f"rename {table}"):
        session.sql(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(sibling(table, name))}")


def drop(session: Any, table: Relation) -> None:
    """Drop a table, if it is there."""
    with plainly(f"drop {table}"):
        session.sql(f"DROP TABLE IF EXISTS {quoted(table)}")
