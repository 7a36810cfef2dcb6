"""Spark as a warehouse: which object is a session, and how it counts, writes and keeps a ledger.

What Spark says when it fails is told in one sentence: no traces of Java's, and no values that they may quote.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from ldiv_db.database import spark_tables
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.dialects import written_type
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, LdivError, refused
from ldiv_db.database.failures import sentence_of_spark
from ldiv_db.database.names import Relation, literal
from ldiv_db.database.traits_there import FORMATS, TraitsThere
from ldiv_db.database.warehouses import Warehouse

#: The settings under which our statements are read, whatever the session's own are.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    # Otherwise partitions that get no new rows could keep their old ones.
    "spark.sql.sources.partitionOverwriteMode": "static",
}
#: What is sent goes to tasks as Arrow has it; below the threshold Java would write down each row as an object.
_SENDING = {"spark.sql.execution.arrow.localRelationThreshold": "0"}
#: The formats that a path says by its ending; a folder that says nothing is read in the session's default format.
_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".csv": "csv", ".avro": "avro"}


class SparkWarehouse(Warehouse):
    """A session of Spark's. Plans come to it as views, and its ledger has a row for every status of a run."""

    updates = False

    def __init__(self, session: Any):
        super().__init__(session, "spark")
        self.session = session
        self._views: list[str] = []
        self._found: tuple[Any, Path] = (None, Path())

    @contextmanager
    def moment(self, written: Relation | None = None) -> Iterator[None]:
        """Within, the session reads our statements as we mean them; its settings are put back at the end."""
        settings = SETTINGS | (_SENDING if self._context else {})
        before = {name: self.session.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                self.session.conf.set(name, value)
            yield
        finally:
            for view in self._views:
                with suppress(Exception):  # the session itself may be gone; the first error is the one to report
                    self.session.catalog.dropTempView(view)
            for name, old in before.items():
                with suppress(Exception):
                    self.session.conf.unset(name) if old is None else self.session.conf.set(name, old)

    @property
    def _context(self) -> Any:
        """None of a session of Spark Connect, which has no pages and sends in its own way."""
        return None if "connect" in type(self.session).__module__ else self.session.sparkContext

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Within, Spark's pages describe its jobs so, and its failures are told in one sentence."""
        context = self._context
        if context:
            context.setJobDescription(f"{self.run}: {what}")
        try:
            yield
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
                raise
            said = sentence_of_spark(error)
            raise DatabaseError(f"Spark cannot {what}: {said}") from None  # a cause would quote data
        finally:
            if context:
                context.setJobDescription(None)

    def execute(self, sql: str, doing: str = "run a statement") -> None:
        self.rows(sql, doing)

    def rows(self, sql: str, doing: str = "read") -> list[tuple[Any, ...]]:
        with self._doing(doing):
            return [tuple(row) for row in self.session.sql(sql).collect()]

    def source(self, given: Any, folder: Path) -> Relation:
        """A view of a table, path, query or frame; raises PolicyError if there is none."""
        view = self.scratch(Relation(()), f"ldiv_source_{uuid.uuid4().hex[:8]}")
        self._found = given, folder
        try:
            self.refresh(view)
        except DatabaseError as error:
            raise refused("source", f"{given}: {error}") from None
        return view

    def refresh(self, source: Relation) -> None:
        """Look its files up again, which a view has as they were; the view goes with the moment that it is made in."""
        with self._doing("read it"):
            self._frame(*self._found).createOrReplaceTempView(source.name)

    def _frame(self, given: Any, folder: Path) -> Any:
        if not isinstance(given, str):
            query = getattr(given, "query", None)
            frame = self.session.sql(query) if query else given.value
            if not type(frame).__module__.startswith("pyspark."):
                what = f"{type(frame).__name__} is not a frame of Spark's"
                raise refused("source", what, "session.createDataFrame makes one of it")
            return frame
        form = _FORMATS.get(Path(given).suffix.lower())
        if "`" in given or (form is None and "/" not in given):
            self.session.catalog.refreshTable(given)
            return self.session.table(given)
        path = given if "://" in given or given.startswith("/") else str((folder / given).resolve())
        reader = self.session.read.format(form) if form else self.session.read
        return (reader.option("header", True) if form == "csv" else reader).load(path)

    def described(self, table: Relation | str, parts: Sequence[int] = (0, 1)) -> list[tuple[Any, ...]]:
        sql = table if isinstance(table, str) else f"TABLE {self.name(table)}"
        with self._doing("read" if isinstance(table, str) else f"read {table}"):
            return [(field.name, field.dataType.simpleString()) for field in self.session.sql(sql).schema.fields]

    def exact(self, table: Relation) -> set[str]:
        """All but floating numbers: a zero may have a sign."""
        return {name.lower() for name, kind in self.described(table) if kind not in ("float", "double")}

    def fetch(self, engine: Engine, name: str, sql: str, renamed: Sequence[str]) -> Relation:
        with self._doing("count"):
            table = self.session.sql(sql).toArrow()
        return engine.copy(name, engine.register(name, table.rename_columns(list(renamed))))

    def scratch(self, beside: Relation, name: str) -> Relation:
        """A view of the session's."""
        self._views.append(name)
        return Relation((name,))

    def lend(self, engine: Engine, rows: Relation, table: Relation, typed: str = "") -> None:
        """Send the rows of one of the engine's TEMP tables, in order, as a view, or to a table if one is named."""
        view = table if table.name in self._views else self.scratch(table, f"ldiv_rows_{uuid.uuid4().hex[:8]}")
        types = import_module("pyspark.sql.pandas.types")
        given = engine.reader(rows).read_all()
        with self._doing("send a plan to its executors"):
            frame = self.session.createDataFrame(
                given, None if given.num_rows else types.from_arrow_schema(given.schema)
            )
            if typed:
                wanted = self.session.sql(typed).schema
                if wanted.simpleString() != frame.schema.simpleString():
                    frame = frame.select(*(frame[field.name].cast(field.dataType) for field in wanted))
            # Arrow's times without a zone become points in time of the session's zone.
            for column in columns_of(engine, rows):
                if column.type == "TIMESTAMP":
                    frame = frame.withColumn(column.name, frame[column.name].cast("timestamp_ntz"))
            frame.createOrReplaceTempView(view.name)
        if view != table:
            self._write(table, f"TABLE {self.name(view)}")

    # -- tables ------------------------------------------------------------------------------------------

    def tables(self, beside: Relation) -> list[str]:
        schema = self.name(Relation(beside.parts[:-1]))
        if schema and not self.session.catalog.databaseExists(schema):
            return []
        found = self.rows(f"SHOW TABLES{f' IN {schema}' if schema else ''}", "list tables")
        return [name for _, name, is_temporary in found if not is_temporary]

    def exists(self, table: Relation) -> bool:
        with self._doing(f"look up {table}"):
            return bool(self.session.catalog.tableExists(self.name(table)))

    def described_by_catalog(self, table: Relation) -> Mapping[str, str]:
        """The catalog's entries on a table beside its columns: `Provider`, `Type` and others, and headings."""
        return spark_tables.entries(self.rows(f"DESCRIBE TABLE EXTENDED {self.name(table)}", f"look up {table}"))

    def read(self, table: Relation) -> Any:
        """The table as a frame, with the files that it has now: another session may have written or renamed some."""
        self.session.catalog.refreshTable(self.name(table))
        return self.session.table(self.name(table))

    def make_schema(self, table: Relation) -> bool:
        schema = self.name(Relation(table.parts[:-1]))
        is_missing = bool(schema) and not self.session.catalog.databaseExists(schema)
        if is_missing:
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}", "make the schema")
        return is_missing

    def make_table(self, table: Relation, columns: Sequence[Column], withheld: bool = False) -> None:
        """A table of the ledger, if it is not there; of a catalog in memory where later sessions find it again."""
        self.make_schema(table)
        if self.exists(table):
            return
        listed = ", ".join(f"{self.name(c.name)} {written_type(c.type, self.dialect)}" for c in columns)
        conf, located = self.session.conf, ""
        if conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory" and len(table.parts) == 2:
            place = f"{conf.get('spark.sql.warehouse.dir')}/{table.parts[0]}.db/{table.name}"
            located = f" USING parquet LOCATION {literal(place)}"
        self.execute(f"CREATE TABLE {self.name(table)} ({listed}){located}", f"make {table}")

    def create(self, table: Relation, template: str, **params: Any) -> None:
        """As of every warehouse."""
        self._write(table, self.written(template, **params))

    def _write(self, table: Relation, sql: str, like: Relation | None = None) -> None:
        """Make a table of a SELECT's rows, if need be with all that another has of the same columns.

        It is in the catalog before it has files, so that none are left unknown.
        """
        provider = self.session.conf.get("spark.sql.sources.default", "parquet")
        with self._doing(f"write {table}"):
            frame = self.session.sql(sql)
            fields = [f"{self.name(field.name)} {field.dataType.simpleString()}" for field in frame.schema.fields]
            made = f" ({', '.join(fields)}) USING {provider}"
            if like:
                made = spark_tables.made_as(self.session.sql(f"SHOW CREATE TABLE {self.name(like)}").first()[0])
            self.session.sql(f"CREATE TABLE {self.name(table)}{made}")
            frame.write.insertInto(self.name(table))

    def send(self, engine: Engine, rows: Relation, table: Relation, lent: bool = False) -> None:
        view = self.scratch(table, f"ldiv_rows_{uuid.uuid4().hex[:8]}")
        self.lend(engine, rows, view)
        names = ", ".join(self.name(column.name) for column in columns_of(engine, rows))
        self.execute(f"INSERT INTO {self.name(table)} ({names}) SELECT {names} FROM {self.name(view)}")

    def change(self, table: Relation, values: Mapping[str, str] | None, having: Mapping[str, str]) -> None:
        """Add the row of a run with another status; what is deleted has the status `dropped`."""
        names = [column.name for column in self.columns(table)]
        if "status" not in names:
            return
        status = (values or {"status": "dropped"})["status"]
        shown = ", ".join(literal(status) if name == "status" else self.name(name) for name in names)
        where = " AND ".join(f"{self.name(name)} = {literal(text)}" for name, text in having.items())
        self.read(table)
        self.execute(f"INSERT INTO {self.name(table)} SELECT {shown} FROM {self.name(table)} WHERE {where} LIMIT 1")

    def put(self, staged: Relation, table: Relation, append: bool) -> None:
        """Put a staged release into the place of a table: in one commit where the format has one.

        Elsewhere a table is renamed within its schema alone: it is written beside it, now that it is audited. That
        leaves a moment without a table; the next run puts back what a dead one had moved aside.
        """
        rows, there = self.rows_of(staged), self.exists(table)
        provider = self._provider(table, staged, there)
        kept = there and not append and self.keeps(staged, table)
        if kept:
            listed = ", ".join(self.name(name) for name, _ in self.described(table))
            rows = f"SELECT {listed} FROM ({rows})"
        if there and append:
            self.execute(f"INSERT INTO {self.name(table)} {rows}")
        elif provider in FORMATS and kept:
            self.execute(FORMATS[provider].overwrite[0].format(table=self.name(table), rows=rows), f"write {table}")
        elif provider in FORMATS:
            with self._doing(f"write {table}"):
                self.session.sql(rows).writeTo(self.name(table)).using(provider).createOrReplace()
        else:
            copy, aside = (table.beside(staged.name.replace("new", kind, 1)) for kind in ("put", "old"))
            self._write(copy, rows, table if kept else None)
            self.require_all(staged, copy)
            self._rename(copy, table, aside if there else None)
        self.forget(staged)

    def facts(self, table: Relation, staged: Relation) -> TraitsThere:
        """As of every warehouse: of the format that the table has."""
        return FORMATS.get(self._provider(table, staged, self.exists(table)), self.traits)

    def keeps(self, staged: Relation, table: Relation) -> bool:
        """As of every warehouse, if the columns are the same in any order: files have last what they are parted by."""
        is_same = sorted(self.released(staged)) == sorted(self.described(table))
        return is_same and spark_tables.exchanges(self.described_by_catalog(table), self.read(table).schema.fields)

    def beside_rows(self, table: Relation) -> list[str]:
        told = self.described_by_catalog(table)
        if facts := FORMATS.get(spark_tables.provider_of(told)):
            return [what for (what,) in self.rows(facts.beside)]
        return spark_tables.beside_rows(told, self.read(table).schema.fields)

    def refuse_place(self, table: Relation) -> None:
        """As of every warehouse: a table of files is renamed, which takes no folder that is there."""
        told = self.described_by_catalog(table) if self.exists(table) else {}
        provider = spark_tables.provider_of(told) or self.session.conf.get("spark.sql.sources.default", "parquet")
        if provider in FORMATS or told.get("Type", "EXTERNAL") != "EXTERNAL":
            return
        with self._doing(f"look up {table}"):
            folder = spark_tables.folder_of(self.session, table, self.name(Relation(table.parts[-2:-1])))
            if folder and spark_tables.is_there(self.session, folder):
                what = f"{folder} has files already, of a table that this session's catalog has forgotten, or elsewhere"
                raise refused("target", what, "move them away and use a catalog that lasts, or name another table")

    def rename(self, table: Relation, name: str) -> None:
        """Rename a table within its schema."""
        target = table.beside(name)
        self.execute(f"ALTER TABLE {self.name(table)} RENAME TO {self.name(target)}", f"rename {table}")

    def _rename(self, copy: Relation, table: Relation, aside: Relation | None) -> None:
        if aside:
            self.rename(table, aside.name)
        try:
            self.rename(copy, table.name)
        except LdivError:
            if aside:
                with suppress(LdivError):  # the first error is the one to report
                    self.rename(aside, table.name)
            raise
        if aside:
            self.forget(aside)

    def _provider(self, table: Relation, staged: Relation, there: bool) -> str:
        """The format of a table that is there, or of a new one: that of a catalog that is named, or the session's."""
        is_named = not there and table.parts[0] != "spark_catalog"
        catalog = self.session.conf.get(f"spark.sql.catalog.{table.parts[0]}", "") if is_named else ""
        for kind in FORMATS:
            if kind in catalog:
                return kind
        return spark_tables.provider_of(self.described_by_catalog(table if there else staged))

    def put_back(self, aside: Relation, table: Relation) -> None:
        """Put back what a dead run had moved aside, if its release is not there."""
        if self.exists(table):
            self.drop(aside)
        else:
            self.rename(aside, table.name)

    def drop(self, table: Relation) -> None:
        if table.name in self._views:
            self.session.catalog.dropTempView(table.name)
        else:
            self.execute(f"DROP TABLE IF EXISTS {self.name(table)}", f"drop {table}")
