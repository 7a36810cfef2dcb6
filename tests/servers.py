"""Databases that tests start and ask, one a process: what each is called, how it is started, how a table gets there.

A server that is not installed is missing by name (`missing`), and its tests are skipped; with its dialect in
LDIV_TEST_ENGINES (several with commas, or `all`) they fail instead, so that no build leaves them out unnoticed.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import importlib
import importlib.util
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import sqlglot

Rows = Sequence[tuple[Any, ...]]
#: The types of a column that every server has under some name; a decimal has two digits after the point.
TYPES = ("text", "integer", "double", "decimal", "date", "timestamp", "boolean")
_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def _named(*names: str, pattern: str = "{}") -> dict[str, str]:
    """What a server calls the TYPES, in their order."""
    return {kind: pattern.format(name) for kind, name in zip(TYPES, names, strict=True)}


class Server(ABC):
    """A database with tables of the types TYPES; names are quoted, so any text is one.

    A subclass says what its `dialect` is, its `types` by ours, its quote, and how it runs a statement.
    """

    dialect: str
    quote = '"'
    types: dict[str, str]
    #: What holds of `rows` put in by parameters of the driver's: its mark of a parameter.
    mark = "?"
    #: Whether a plain name without quotes is held in upper case.
    upper = False
    #: Whether columns take letters, digits and `_` alone for names.
    plain_names = False

    @abstractmethod
    def version(self) -> str:
        """The server's name and version."""

    @abstractmethod
    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a SELECT, in the driver's values; raises the driver's error."""

    @abstractmethod
    def execute(self, sql: str) -> None:
        """Run a statement without rows."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        """Append rows to a table."""

    def create(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        """A table of `columns` (name, one of TYPES) anew, with rows of Python values, None being NULL."""
        self.drop(table)
        listed = ", ".join(f"{self.quoted(name)} {self.types[kind]}" for name, kind in columns)
        self.execute(f"CREATE TABLE {self.quoted(table)} ({listed})" + self.storage())
        if rows:
            self.insert(table, columns, rows)

    def drop(self, table: str) -> None:
        self.execute(f"DROP TABLE IF EXISTS {self.quoted(table)}")

    def storage(self) -> str:
        """What follows the columns of a new table."""
        return ""

    def quoted(self, name: str) -> str:
        """A name in quotes, as the server holds it if it was made without them."""
        held = name.upper() if self.upper and _PLAIN.fullmatch(name) else name
        return self.quote + held.replace(self.quote, self.escaped_quote()) + self.quote

    def escaped_quote(self) -> str:
        return self.quote * 2

    def marks(self, columns: Sequence[tuple[str, str]]) -> str:
        return ", ".join([self.mark] * len(columns))

    def arrow(self) -> Any:
        """Another connection to the database, which carries Arrow; None if there is no driver for that."""
        return None

    def another(self) -> Any:
        """Another connection to the database, by whatever driver; the same where there is but one."""
        return self.arrow() or self.connection


def comparable(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows with their counts, to compare among servers: times as their text, which some servers hold them as."""
    return Counter(tuple(_comparable(value) for value in row) for row in rows)


def _comparable(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        return text.rstrip("0") if value.microsecond else text  # as DuckDB writes it
    return value.isoformat() if isinstance(value, datetime.date) else value


class DuckDB(Server):
    dialect = "duckdb"
    types = _named("VARCHAR", "INTEGER", "DOUBLE", "DECIMAL(12, 2)", "DATE", "TIMESTAMP", "BOOLEAN")

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})

    def version(self) -> str:
        return f"DuckDB {duckdb.__version__}"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(sql).fetchall())

    def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        self.connection.executemany(f"INSERT INTO {self.quoted(table)} VALUES ({self.marks(columns)})", list(rows))


class DuckDBThere(DuckDB):
    """DuckDB by a connection of ADBC's, as a warehouse."""

    def __init__(self) -> None:
        self.connection = _arrow("duckdb", ":memory:")
        atexit.register(self.connection.close)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def execute(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
        self.connection.commit()

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        with self.connection.cursor() as cursor:
            for row in rows:  # it binds one row at a time
                cursor.execute(f"INSERT INTO {self.quoted(table)} VALUES ({self.marks(columns)})", row)
        self.connection.commit()

    def arrow(self) -> Any:
        return self.connection.adbc_clone()


def _arrow(database: str, address: str) -> Any:
    """A connection of ADBC's; None if its driver is not installed."""
    try:
        return importlib.import_module(f"adbc_driver_{database}.dbapi").connect(address)
    except ImportError:
        return None


class SQLite(Server):
    """Dates and times are text there, booleans 0 and 1, decimals floating."""

    dialect = "sqlite"
    types = _named("TEXT", "INTEGER", "REAL", "NUMERIC", "TEXT", "TEXT", "INTEGER")

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="lite")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.file = f"{folder}/w.sqlite"
        self.connection = sqlite3.connect(self.file)

    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        plain = [[_comparable(float(v) if isinstance(v, Decimal) else v) for v in row] for row in rows]
        self.connection.executemany(f"INSERT INTO {self.quoted(table)} VALUES ({self.marks(columns)})", plain)

    def arrow(self) -> Any:
        return _arrow("sqlite", self.file)


class Postgres(Server):
    dialect = "postgres"
    mark = "%s"
    types = _named("TEXT", "INTEGER", "DOUBLE PRECISION", "NUMERIC(12, 2)", "DATE", "TIMESTAMP", "BOOLEAN")

    def __init__(self) -> None:
        import psycopg  # noqa: PLC0415

        folder = _cluster()
        self._driver = psycopg
        self.connection = psycopg.connect(host=str(folder), user="postgres", dbname="postgres", autocommit=True)
        self.connection.prepare_threshold = None  # a table of one name comes in many shapes
        atexit.register(_stop_cluster, folder)

    def version(self) -> str:
        return f"PostgreSQL {self.query('SHOW server_version')[0][0].split()[0]}"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(sql).fetchall())

    def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {self.quoted(table)} VALUES ({self.marks(columns)})", list(rows))

    def another(self) -> Any:
        return self._driver.connect(host=self.connection.info.host, user="postgres", dbname="postgres")

    def arrow(self) -> Any:
        return _arrow("postgresql", f"postgresql:///postgres?host={self.connection.info.host}&user=postgres")


def _program(name: str) -> str | None:
    """A program of PostgreSQL's, which Debian keeps out of the path; None if it is not there."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    return shutil.which(name) or next((found for path in folders if (found := shutil.which(name, path=path))), None)


def _unprivileged(command: Sequence[str]) -> None:
    """Run a program of PostgreSQL's, which refuses root, as `nobody` where we are root."""
    as_nobody = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
    subprocess.run([*as_nobody, *command], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def _cluster() -> Path:
    """A new server of PostgreSQL, which listens on a socket in the folder alone."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))  # a socket's path may have 107 bytes
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    data = str(folder / "data")
    _unprivileged(
        [str(_program("initdb")), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    )
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c shared_buffers=16MB"
    _unprivileged([str(_program("pg_ctl")), "-D", data, "-w", "-l", f"{folder}/log", "-o", settings, "start"])
    return folder


def _stop_cluster(folder: Path) -> None:
    _unprivileged([str(_program("pg_ctl")), "-D", str(folder / "data"), "-m", "immediate", "stop"])
    shutil.rmtree(folder, ignore_errors=True)


class ClickHouse(Server):
    """chDB, which is ClickHouse in the process. Every column is nullable."""

    dialect = "clickhouse"
    types = _named(
        "String", "Int32", "Float64", "Decimal(12, 2)", "Date32", "DateTime64(6, 'UTC')", "Bool", pattern="Nullable({})"
    )

    def __init__(self) -> None:
        from chdb import dbapi  # noqa: PLC0415

        self.connection = dbapi.connect()

    def version(self) -> str:
        return f"ClickHouse {self.query('SELECT version()')[0][0]} (chDB)"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        import pyarrow  # noqa: PLC0415

        found = self.connection.query(sql, "Arrow").bytes()
        table = pyarrow.ipc.open_file(found).read_all() if found else None
        return (
            [] if table is None else [tuple(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
        )

    def execute(self, sql: str) -> None:
        self.connection.query(sql)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        lines = [
            json.dumps([str(v) if isinstance(v, Decimal | datetime.date) else v for v in row], ensure_ascii=False)
            for row in rows
        ]
        self.connection.query(f"INSERT INTO {self.quoted(table)} FORMAT JSONCompactEachRow\n" + "\n".join(lines))

    def storage(self) -> str:
        return " ENGINE = MergeTree ORDER BY tuple()"

    def quoted(self, name: str) -> str:
        return '"' + name.replace("\\", "\\\\").replace('"', '""') + '"'


#: Settings of Spark's: what Java would compile for small tables takes longer than they do.
FOR_SMALL_TABLES = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


class Spark(Server):
    """PySpark on one core; a table is a view of the session's."""

    dialect = "spark"
    quote = "`"
    types = _named("STRING", "INT", "DOUBLE", "DECIMAL(12, 2)", "DATE", "TIMESTAMP_NTZ", "BOOLEAN")

    def __init__(self) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415

        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers, too, run in this environment
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {
            "spark.sql.shuffle.partitions": "1",
            "spark.log.level": "ERROR",
            "spark.sql.session.timeZone": "UTC",
        }
        builder = SparkSession.builder.master("local[1]")
        self.session = builder.config(map=FOR_SMALL_TABLES | settings).getOrCreate()
        atexit.register(self.session.stop)

    def version(self) -> str:
        return f"Spark {self.session.version}"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session.sql(sql).collect()]

    def execute(self, sql: str) -> None:
        self.session.sql(sql)

    def create(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        self.insert(table, columns, rows)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        """The view of these rows, in place of what had its name."""
        schema = ", ".join(f"{self.quoted(name)} {self.types[kind]}" for name, kind in columns)
        self.session.createDataFrame(list(rows), schema).createOrReplaceTempView(self.quoted(table))

    def drop(self, table: str) -> None:
        self.execute(f"DROP VIEW IF EXISTS {self.quoted(table)}")


class Snowflake(Server):
    """fakesnow, which is Snowflake's dialect and connector on DuckDB; names are Snowflake's."""

    dialect = "snowflake"
    mark = "%s"
    upper = True
    types = _named("VARCHAR", "INTEGER", "DOUBLE", "NUMBER(12, 2)", "DATE", "TIMESTAMP_NTZ", "BOOLEAN")

    def __init__(self) -> None:
        import exact_names  # noqa: PLC0415
        import fakesnow  # noqa: PLC0415
        import snowflake.connector  # noqa: PLC0415

        with contextlib.ExitStack() as stack:
            stack.enter_context(fakesnow.patch())
            self.connection = exact_names.Connection(snowflake.connector.connect(database="CLINIC", schema="PUBLIC"))
            atexit.register(stack.pop_all().close)  # its database lasts as long as the patch

    def version(self) -> str:
        from importlib.metadata import version  # noqa: PLC0415

        return f"Snowflake's dialect in fakesnow {version('fakesnow')}"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.connection.cursor().execute(sql).fetchall()]

    def execute(self, sql: str) -> None:
        self.connection.cursor().execute(sql)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        sql = f"INSERT INTO {self.quoted(table)} VALUES ({self.marks(columns)})"
        self.connection.cursor().executemany(sql, list(rows))


class BigQuery(Server):
    """bqemulator, which is BigQuery's dialect and its REST on DuckDB, in an environment of its own: it pins sqlglot.

    It wants DuckDB's extension `spatial`, which the package duckdb-extension-spatial of that environment holds.
    """

    dialect = "bigquery"
    quote = "`"
    plain_names = True
    types = _named("STRING", "INT64", "FLOAT64", "NUMERIC(12, 2)", "DATE", "DATETIME", "BOOL")

    def __init__(self) -> None:
        from google.api_core.exceptions import BadRequest, NotFound  # noqa: PLC0415
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415
        from google.cloud import bigquery  # noqa: PLC0415
        from google.cloud.bigquery import dbapi  # noqa: PLC0415

        class Client(bigquery.Client):  # type: ignore[misc]
            """It raises what the emulator says of a query that fails, in an answer that does not.

            The emulator lists no tables of a dataset that is not there, of which Google says that it is not found. It
            knows no default dataset: it is named where a statement names none.
            """

            def _call_api(self, *given: Any, **more: Any) -> Any:
                found = super()._call_api(*given, **more)
                if isinstance(found, dict) and found.get("errors"):
                    raise BadRequest(str(found["errors"]))
                return found

            def query_and_wait(self, query: str, **more: Any) -> Any:
                asked = re.search(r"`?(\w+)`?\.INFORMATION_SCHEMA\.TABLES", query)
                if asked and asked[1] not in {dataset.dataset_id for dataset in self.list_datasets()}:
                    raise NotFound(f"Not found: Dataset p:{asked[1]} was not found in location US")
                return super().query_and_wait(_with_dataset(query), **more)

        address = {"api_endpoint": f"http://127.0.0.1:{_bigquery_port()}"}
        settings = bigquery.QueryJobConfig(default_dataset="p.d")
        self.client = Client("p", AnonymousCredentials(), None, None, settings, None, None, address)
        self.client.create_dataset("d")
        self.connection = dbapi.connect(self.client)

    def version(self) -> str:
        return "BigQuery's dialect in bqemulator"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return [row.values() for row in self.client.query_and_wait(sql)]

    def execute(self, sql: str) -> None:
        self.query(sql)

    def insert(self, table: str, columns: Sequence[tuple[str, str]], rows: Rows) -> None:
        kinds = [self.types[kind] for _, kind in columns]
        listed = ", ".join(f"({', '.join(map(_as_bigquery, row, kinds))})" for row in rows)
        self.execute(f"INSERT INTO {self.quoted(table)} VALUES {listed}")

    def escaped_quote(self) -> str:
        return "\\`"


def _with_dataset(sql: str) -> str:
    """A statement whose tables are of the dataset `d` where it names none: those that have plain names."""
    if "INFORMATION_SCHEMA" in sql:
        return sql.replace(" FROM INFORMATION_SCHEMA.TABLES", " FROM d.INFORMATION_SCHEMA.TABLES")
    tree = sqlglot.parse_one(sql, "bigquery")
    known = {step.alias for step in tree.find_all(sqlglot.exp.CTE)}
    for table in tree.find_all(sqlglot.exp.Table):
        if not table.db and table.name not in known and _PLAIN.fullmatch(table.name):
            table.set("db", sqlglot.exp.to_identifier("d"))
    return tree.sql("bigquery")


def _bigquery_port() -> int:
    """Where a new emulator listens on this machine."""
    home, port = Path(tempfile.mkdtemp(prefix="bq")), _free_port()
    program = Path(str(_program("bqemulator"))).resolve()
    for extension in program.parent.parent.glob("lib/*/site-packages/duckdb_extension_spatial/extensions/*/*"):
        there = home / ".duckdb/extensions" / extension.parent.name / "linux_amd64"
        there.mkdir(parents=True)
        shutil.copy(extension, there)
    command = [str(program), "start", "--rest-port", str(port), "--grpc-port", "0", "--project", "p"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=os.environ | {"HOME": str(home)}, **quiet)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    atexit.register(process.terminate)
    _until_it_listens(process, port)
    return port


def _as_bigquery(value: Any, kind: str) -> str:
    """A value as BigQuery writes it."""
    if value is None or isinstance(value, bool | int | float):
        return "NULL" if value is None else str(value)
    text = json.dumps(str(value), ensure_ascii=False)
    return text if kind == "STRING" else f"CAST({text} AS {kind})"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until_it_listens(process: subprocess.Popen[bytes], port: int, seconds: int = 120) -> None:
    """Wait for a server to listen; raises RuntimeError if it ends before, or does not in time."""
    for _ in range(seconds * 5):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"the server {process.args!r} does not listen")


#: The servers by dialect, with the Python module and the program that each needs.
SERVERS: dict[str, tuple[Callable[[], Server], str, str]] = {
    "duckdb": (DuckDB, "duckdb", ""),
    "sqlite": (SQLite, "sqlite3", ""),
    "postgres": (Postgres, "psycopg", "initdb"),
    "clickhouse": (ClickHouse, "chdb", ""),
    "spark": (Spark, "pyspark", "java"),
    "snowflake": (Snowflake, "fakesnow", ""),
    "bigquery": (BigQuery, "google.cloud.bigquery", "bqemulator"),
}

#: Those that take a second or more for a statement.
SLOW = ("spark", "bigquery")


def missing(dialect: str) -> str:
    """What a server lacks here, with its name; nothing if it can be started."""
    made, module, program = SERVERS[dialect]
    lacks = [] if _is_installed(module) else [module]
    lacks += [program] if program and _program(program) is None else []
    return f"{getattr(made, '__name__', dialect)} is not tested: {', '.join(lacks)} is not installed" if lacks else ""


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it
        return False


def required(dialect: str) -> bool:
    """Whether tests of a server that is missing must fail."""
    listed = os.environ.get("LDIV_TEST_ENGINES", "").split(",")
    return dialect in listed or "all" in listed


@cache
def started(dialect: str) -> Server:
    """The server of a dialect, started once in a process; it is stopped when that ends."""
    return SERVERS[dialect][0]()
