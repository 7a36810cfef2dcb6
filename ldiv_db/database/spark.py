"""Spark as a warehouse: which object is a session, what it says when it fails, its types, its tables.

What Spark says is told in one sentence: no traces of Java's, and no values that they may quote.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.dialects import written_type
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, LdivError, PolicyError, Problem
from ldiv_db.database.templates import Relation, literal
from ldiv_db.database.warehouses import SPARK, Warehouse, open_warehouse


def is_session(value: Any) -> bool:
    """True if it is a session of Spark's, classic or of Spark Connect; told without importing either."""
    return any(kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.") for kind in type(value).mro())


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


#: The settings under which our statements are read, whatever the session's own are.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
}
#: The formats that a path says by its ending; a folder that says nothing is read in the session's default format.
_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".csv": "csv", ".avro": "avro"}


def environment_session() -> Any:
    """The session of the environment: that of spark-submit, of SPARK_REMOTE, or a local one. We make no other.

    Raises DatabaseError where pyspark or Java is missing, or Spark does not start.
    """
    try:
        session = import_module("pyspark.sql").SparkSession
    except ImportError:
        raise DatabaseError("pyspark is not installed: pip install 'ldiv-db[spark]'") from None
    try:
        return session.builder.getOrCreate()
    except Exception as error:
        if "JAVA" in str(error).upper():
            raise DatabaseError("Spark finds no Java: install Java 17 or later, or set JAVA_HOME") from None
        raise DatabaseError(f"Spark does not start: {sentence(error)}") from None


class SparkWarehouse(Warehouse):
    """A session of Spark's. Plans come to it as views, and its ledger has a row for every status of a run."""

    def __init__(self, session: Any):
        self.session = session
        self.dialect = "spark"
        self.takes_back = False
        self.stages_beside = True
        self.updates = False
        self.is_adbc = False
        self._views: list[str] = []

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Within, the session reads our statements as we mean them; its settings are put back at the end."""
        before = {name: self.session.conf.get(name, None) for name in SETTINGS}
        try:
            for name, value in SETTINGS.items():
                self.session.conf.set(name, value)
            yield
        finally:
            for view in self._views:
                with suppress(Exception):  # the session itself may be gone; the first error is the one to report
                    self.session.catalog.dropTempView(view)
            for name, old in before.items():
                with suppress(Exception):
                    self.session.conf.unset(name) if old is None else self.session.conf.set(name, old)

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Within, failures are told plainly, and Spark's pages describe its jobs so; Spark Connect has no such page."""
        context = None if "connect" in type(self.session).__module__ else self.session.sparkContext
        if context:
            context.setJobDescription(f"ldiv: {what}")
        try:
            with plainly(what):
                yield
        finally:
            if context:
                context.setJobDescription(None)

    def execute(self, sql: str) -> None:
        with self._doing("run a statement"):
            self.session.sql(sql).collect()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._doing("read"):
            return [tuple(row) for row in self.session.sql(sql).collect()]

    def source(self, given: Any, folder: Path) -> Relation:
        """A view of a table, path, query or frame; raises PolicyError if there is none."""
        view = self.scratch(Relation(()), f"ldiv_source_{uuid.uuid4().hex[:8]}")
        try:
            with self._doing("read it"):
                self._frame(given, folder).createOrReplaceTempView(view.name)
        except DatabaseError as error:
            raise PolicyError([Problem("source", f"{given}: {error}")]) from None
        return view

    def _frame(self, given: Any, folder: Path) -> Any:
        if not isinstance(given, str):
            query = getattr(given, "query", None)
            frame = self.session.sql(query) if query else given.value
            if not type(frame).__module__.startswith("pyspark."):
                what = f"{type(frame).__name__} is no frame of Spark's"
                raise PolicyError([Problem("source", what, "session.createDataFrame makes one of it")])
            return frame
        form = _FORMATS.get(Path(given).suffix.lower())
        if "`" in given or (form is None and "/" not in given):
            return read(self.session, table_named(given, "source")) if "`" not in given else self.session.table(given)
        path = given if "://" in given or given.startswith("/") else str((folder / given).resolve())
        reader = self.session.read.format(form) if form else self.session.read
        return (reader.option("header", True) if form == "csv" else reader).load(path)

    def columns(self, source: Relation) -> list[Column]:
        """As of every warehouse; `unread` is what has no type of our own."""
        with self._doing(f"read {source}"):
            fields = self.session.table(quoted(source)).schema.fields
        return [Column(field.name, "text" if type_of(field) else "unread") for field in fields]

    def fetch(self, engine: Engine, name: str, sql: str, renamed: Sequence[str]) -> Relation:
        with self._doing("count"):
            table = self.session.sql(sql).toArrow()
        return engine.copy(name, engine.register(name, table.rename_columns(list(renamed))))

    def scratch(self, beside: Relation, name: str) -> Relation:
        """A view of the session's."""
        self._views.append(name)
        return Relation((name,))

    def lend(self, engine: Engine, rows: Relation, table: Relation) -> None:
        """Have the rows of a TEMP table of the engine's as a view."""
        types = import_module("pyspark.sql.pandas.types")
        given = engine.reader(rows).read_all()
        with self._doing("send a plan to its executors"):
            frame = self.session.createDataFrame(
                given, None if given.num_rows else types.from_arrow_schema(given.schema)
            )
            # Arrow's times without a zone become points in time of the session's zone.
            for column in columns_of(engine, rows):
                if column.type == "TIMESTAMP":
                    frame = frame.withColumn(column.name, frame[column.name].cast("timestamp_ntz"))
            frame.createOrReplaceTempView(table.name)

    # -- tables ------------------------------------------------------------------------------------------

    def tables(self, beside: Relation) -> list[str]:
        return names_in_schema(self.session, beside)

    def exists(self, table: Relation) -> bool:
        return exists(self.session, table)

    def make_schema(self, table: Relation) -> None:
        make_schema(self.session, table)

    def make_table(self, table: Relation, columns: Sequence[Column]) -> None:
        """A table of the ledger, of a catalog in memory where later sessions find it again."""
        listed = ", ".join(f"{self._column(c.name)} {written_type(c.type, self.dialect)}" for c in columns)
        make_lasting(self.session, table, listed)

    def create(self, table: Relation, template: str, **params: Any) -> None:
        """As of every warehouse; the table is in the catalog before it has files, so that none are left unknown."""
        provider = self.session.conf.get("spark.sql.sources.default", "parquet")
        with self._doing(f"write {table}"):
            frame = self.session.sql(self.written(template, **params))
            fields = [f"{self._column(field.name)} {field.dataType.simpleString()}" for field in frame.schema.fields]
            self.session.sql(f"CREATE TABLE {quoted(table)} ({', '.join(fields)}) USING {provider}")
            frame.write.insertInto(quoted(table))

    def send(self, engine: Engine, rows: Relation, table: Relation) -> None:
        view = self.scratch(table, f"ldiv_rows_{uuid.uuid4().hex[:8]}")
        self.lend(engine, rows, view)
        names = ", ".join(self._column(column.name) for column in columns_of(engine, rows))
        self.execute(f"INSERT INTO {quoted(table)} ({names}) SELECT {names} FROM {quoted(view)}")

    def change(self, table: Relation, values: Mapping[str, str] | None, having: Mapping[str, str]) -> None:
        """Add the row of a run with another status; what is deleted has the status `dropped`."""
        names = [column.name for column in self.columns(table)]
        if "status" not in names:
            return
        status = (values or {"status": "dropped"})["status"]
        shown = ", ".join(literal(status) if name == "status" else self._column(name) for name in names)
        where = " AND ".join(f"{self._column(name)} = {literal(text)}" for name, text in having.items())
        read(self.session, table)
        self.execute(f"INSERT INTO {quoted(table)} SELECT {shown} FROM {quoted(table)} WHERE {where} LIMIT 1")

    def put(self, staged: Relation, table: Relation, append: bool) -> None:
        """Put a staged table into the place of another: in one commit where the format has one, else renamed.

        What is renamed leaves a moment without a table; the next run puts back what a dead one had moved aside.
        """
        there = self.exists(table)
        if there and append:
            self.execute(f"INSERT INTO {quoted(table)} SELECT * FROM {quoted(staged)}")
            drop(self.session, staged)
        elif (provider := self._provider(table, there)) in ATOMIC:
            with self._doing(f"write {table}"):
                self.session.table(quoted(staged)).writeTo(quoted(table)).using(provider).createOrReplace()
            drop(self.session, staged)
        else:
            self._rename(staged, table, there)

    def _rename(self, staged: Relation, table: Relation, there: bool) -> None:
        aside = sibling(staged, staged.name.replace("ldiv_new", "ldiv_old", 1))
        if there:
            rename(self.session, table, aside.name)
        try:
            rename(self.session, staged, table.name)
        except LdivError:
            if there:
                with suppress(LdivError):  # the first error is the one to report
                    rename(self.session, aside, table.name)
            raise
        if there:
            drop(self.session, aside)

    def _provider(self, table: Relation, there: bool) -> str:
        if there:
            return description(self.session, table).get("Provider", "").lower()
        return str(self.session.conf.get("spark.sql.sources.default", "parquet")).lower()

    def put_back(self, aside: Relation, table: Relation) -> None:
        """Put back what a dead run had moved aside, if its release is not there."""
        if self.exists(table):
            drop(self.session, aside)
        else:
            rename(self.session, aside, table.name)

    def drop(self, table: Relation) -> None:
        if table.name in self._views:
            self.session.catalog.dropTempView(table.name)
        else:
            drop(self.session, table)


@contextmanager
def open_named(text: str) -> Iterator[Warehouse]:
    """The warehouse of a name, as `spark` or `snowflake:PROFILE`."""
    if text == SPARK:
        yield SparkWarehouse(environment_session())
        return
    with open_warehouse(text) as there:
        yield there


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
