"""Warehouses as callers give them, by name, `spark` or `snowflake:PROFILE`, by a connection, or a session of Spark's.

To a call one is a database in memory: each table that it names is counted there, and here a view of equal rows. It is
counted when it is looked up, by those of its columns that the call asks about; the view has no others.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.catalog import Column
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.failures import sentence_of, sentence_of_spark
from ldiv_db.database.files import spill_folder
from ldiv_db.database.names import Identifier, Relation, SqlType

if TYPE_CHECKING:
    from ldiv_db.database.warehouses import Warehouse

#: What names the session of Spark's that the environment says.
SPARK = "spark"
#: The warehouses that a command names, and the driver of each that is to be installed.
NAMED = {
    "adbc": "adbc-driver-postgresql, adbc-driver-sqlite or another",
    "bigquery": "google-cloud-bigquery",
    "databricks": "databricks-sql-connector",
    "snowflake": "snowflake-connector-python",
}
#: The columns of counts and of hashes in working tables; the schema of a warehouse's counts; what to do where counts
#: do not do.
WEIGHT, CONTENT, _COUNTS = Identifier("weight"), Identifier("content"), "ldiv_counts"
ON_ROWS = "run it on a DuckDB file, or on what DuckDB attaches"
#: A scan of so many rows is one thread's work; to wake others for small statements takes a tenth of their time.
_ONE_THREAD = 122_880
#: Opens a warehouse that a call is given, by its other arguments.
OfWarehouse = Callable[[Any, Mapping[str, Any]], AbstractContextManager[Any]]


@dataclass(frozen=True)
class ColumnThere:
    """A column of a table of a warehouse, by its own name there, and its working name."""

    column: Identifier
    alias: Identifier
    #: Whether it is read as text, which is another type there.
    as_text: bool = False
    #: The type in which it is compared here, where it has NULLs: two of different types are not compared as lists.
    nullable: SqlType | None = None


@dataclass(frozen=True)
class RepeatedRows(Relation):
    """A view of rows, each as often as it is counted: `counts` has it once, and `weight` says how often.

    `kept` is a hash of the rows in all their columns, where these are more than are counted; None if none is known.
    """

    counts: Relation = field(kw_only=True)
    weight: Identifier = field(kw_only=True)
    kept: str | None = field(kw_only=True, default="")


@dataclass(frozen=True)
class TableThere:
    """A table of a warehouse."""

    there: Warehouse
    table: Relation

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Its columns, as they were when they were first asked for."""
        return self.there.columns(self.table)

    def count(
        self,
        engine: Engine,
        name: str,
        columns: Sequence[ColumnThere],
        counted: Identifier | None = None,
        weight: Identifier = WEIGHT,
        hashed: Sequence[ColumnThere] = (),
    ) -> Relation:
        """The counts of rows that are equal in some columns, as a TEMP table; `counted` says how many a row is.

        Where columns are `hashed`, by a function that the warehouse must have, `content` is what equal rows have there.
        """
        params = {"columns": columns, "weight": weight, "counted": counted, "hashed": hashed, "by_bytes": False}
        sql = self.there.written("database/count_combinations", source=self.table, **params)
        names = [*(column.alias.name for column in columns), *([CONTENT.name] if hashed else [])]
        found = self.there.fetch(engine, name, sql, [*names, weight.name])
        if engine.count(found):
            return found
        engine.drop(found)  # of no rows drivers tell no types, and counts are numbers
        return engine.load(name, {**dict.fromkeys(names, "VARCHAR"), weight.name: "BIGINT"}, [])


class CountedConnection:
    """A connection to a database in memory, in which `bring` makes a warehouse's tables; `asked` names columns."""

    def __init__(self, connection: Any, there: Warehouse, asked: Collection[str]):
        self._connection, self.there, self._asked = connection, there, asked
        self._brought: set[Relation] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def bring(self, table: Relation) -> None:
        """Bring a table of the warehouse here under its name, if it exists; raises PolicyError for missing columns."""
        if table in self._brought or not self.there.exists(table):
            return
        self._brought.add(table)
        source = TableThere(self.there, table)
        columns = [
            ColumnThere(Identifier(self._as_written(column.name)), Identifier(f"c{place}"), column.type == "other")
            for place, column in enumerate(source.columns)
            if column.name.lower() in self._asked
        ]
        if not columns:
            raise refused("table", f"{table} has none of the named columns", "name some")
        engine = Engine(self._connection)
        counted = source.count(engine, "counted", columns)
        kept = Relation(("memory", _COUNTS, f"t{len(self._brought)}"))
        for schema in (Relation(kept.parts[:2]), Relation(table.parts[:-1])):
            if len(schema.parts) > 1 and schema.parts[0] != "memory":
                engine.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {Identifier(schema.parts[0]).sql()}")
            if schema.parts:
                engine.execute(f"CREATE SCHEMA IF NOT EXISTS {schema.sql()}")
        engine.execute(f"CREATE TABLE {kept.sql()} AS FROM {counted.sql()}")
        shown = engine.rendered("database/repeat_counts", counts=kept, columns=columns, weight=WEIGHT)
        engine.execute(f"CREATE VIEW {table.sql()} AS {shown.sql}")
        engine.close_scratch()

    def _as_written(self, name: str) -> str:
        """A column's name as a policy writes it, where the warehouse holds plain names in capitals."""
        return name.lower() if self.there.held(name.lower()) == name else name


@contextmanager
def memory_for_counts(settings: Settings | None = None) -> Iterator[Any]:
    """A connection to a database in memory; what does not fit into it goes to a folder of its own."""
    settings = settings or Settings()
    with (
        spill_folder(Path(settings.temp_directory or tempfile.gettempdir())) as folder,
        open_database(MEMORY, settings=replace(settings, temp_directory=str(folder))) as connection,
    ):
        yield connection


@contextmanager
def open_planned(
    given: Any, said: Mapping[str, Any] | None = None, settings: Settings | None = None
) -> Iterator[Warehouse]:
    """A warehouse for a run, its counts here by `settings`; `said`, the arguments of the call, may have a `dialect`."""
    with open_named(given, (said or {}).get("dialect")) as there:
        there.settings = settings
        yield there


@contextmanager
def open_counted(given: Any, asked: Collection[str], settings: Settings | None = None) -> Iterator[CountedConnection]:
    """A warehouse as a database in memory, read at one moment; `asked` columns, in lower case, may be counted."""
    with open_named(given) as there, memory_for_counts(settings) as connection, there.moment():
        yield CountedConnection(connection, there, asked)


def spare_threads(engine: Engine, counts: Relation, part_rows: int) -> None:
    """Let one thread plan where these counts are few and stand for no more rows than a part has.

    Call it on a database of ours alone: the number of threads is one for all connections to it.
    """
    if engine.count(counts) <= _ONE_THREAD and engine.total(counts, WEIGHT.name) <= part_rows:
        engine.execute("SET threads = 1")


def names_warehouse(text: str) -> bool:
    """True if the text names a warehouse, as `snowflake:PROFILE` or `spark`."""
    return text == SPARK or (text.partition(":")[0].lower() in NAMED and ":" in text)


@contextmanager
def open_warehouse(text: str) -> Iterator[Warehouse]:
    """The warehouse of a name, whose driver finds the secrets; raises DatabaseError if it cannot connect."""
    word, _, rest = text.partition(":")
    kind = word.lower()
    try:
        connection = _connect(kind, rest)
    except ImportError:
        raise DatabaseError(f"{kind}: needs its driver: pip install pyarrow {NAMED[kind]}") from None
    except Exception as error:
        why = sentence_of(str(error)) or f"{type(error).__name__} (its words may quote a secret and are withheld)"
        raise DatabaseError(f"cannot open the {kind} database: {why}") from None
    from ldiv_db.database.warehouses import Warehouse  # noqa: PLC0415 - and all dialects

    with closing(connection):
        yield Warehouse(connection, None if kind == "adbc" else kind)


def _connect(kind: str, said: str) -> Any:
    """A connection by what follows the kind: a profile, a project, a path of HTTP, or for ADBC a URI."""
    if kind == "snowflake":
        return import_module("snowflake.connector").connect(connection_name=said)
    if kind == "bigquery":
        client = import_module("google.cloud.bigquery").Client(project=said or None)
        return import_module("google.cloud.bigquery.dbapi").connect(client)
    if kind == "databricks":
        host, token = os.environ.get("DATABRICKS_HOST", ""), os.environ.get("DATABRICKS_TOKEN", "")
        server = host.removeprefix("https://")
        return import_module("databricks.sql").connect(server_hostname=server, http_path=said, access_token=token)
    scheme, _, rest = said.partition(":")
    if scheme in ("postgres", "postgresql"):
        return import_module("adbc_driver_postgresql.dbapi").connect(f"postgresql:{rest}")
    if scheme == "sqlite":
        return import_module("adbc_driver_sqlite.dbapi").connect(rest)
    return import_module("adbc_driver_manager.dbapi").connect(driver=scheme, db_kwargs={"uri": said})


def environment_session() -> Any:
    """The session of spark-submit, of SPARK_REMOTE, or a local one; raises DatabaseError if none starts."""
    try:
        session = import_module("pyspark.sql").SparkSession
    except ImportError:
        raise DatabaseError("pyspark is not installed: pip install 'ldiv-db[spark]'") from None
    try:
        return session.builder.getOrCreate()
    except Exception as error:
        if "JAVA" in str(error).upper():
            raise DatabaseError("Spark finds no Java: install Java 17 or later, or set JAVA_HOME") from None
        raise DatabaseError(f"Spark does not start: {sentence_of_spark(error)}") from None


def is_session(value: Any) -> bool:
    """True if it is a session of Spark's, classic or of Spark Connect; told without importing either."""
    return any(kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.") for kind in type(value).mro())


def is_warehouse(given: Any) -> bool:
    """True if it is a connection of Python's to another database than DuckDB, whose connections a wrapper may hide."""
    is_duckdb = hasattr(given, "get_table_names")
    return not is_duckdb and hasattr(given, "cursor") and hasattr(given, "commit")


def is_given_warehouse(given: Any) -> bool:
    """True if it is the name of a warehouse, a connection to one, or a session of Spark's."""
    return is_session(given) or is_warehouse(given) or (isinstance(given, str) and names_warehouse(given))


@contextmanager
def open_named(given: Any, dialect: str | None = None) -> Iterator[Warehouse]:
    """The warehouse that is given, of a connection by its `dialect`; one that is named is closed at the end."""
    from ldiv_db.database.spark import SparkWarehouse  # noqa: PLC0415 - and all dialects
    from ldiv_db.database.warehouses import Warehouse  # noqa: PLC0415

    if is_session(given) or given == SPARK:
        yield SparkWarehouse(environment_session() if given == SPARK else given)
    elif isinstance(given, str):
        with open_warehouse(given) as there:
            yield there
    else:
        yield Warehouse(given, dialect)
