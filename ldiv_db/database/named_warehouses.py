"""Warehouses as callers give them: by name, `spark` or `snowflake:PROFILE`, a connection, or a session of Spark's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from ldiv_db.database.drivers import is_warehouse
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.failures import sentence_of
from ldiv_db.database.spark import SparkWarehouse, is_session
from ldiv_db.database.spark_tables import sentence
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


def names_warehouse(text: str) -> bool:
    """True if the text names a warehouse, as `snowflake:PROFILE` or `spark`."""
    return text == SPARK or (text.partition(":")[0].lower() in NAMED and ":" in text)


@contextmanager
def open_warehouse(text: str) -> Iterator[Warehouse]:
    """The warehouse of a name; its secrets are in its driver's own files, or in the environment.

    Raises DatabaseError if its driver is missing, or cannot connect.
    """
    word, _, rest = text.partition(":")
    kind = word.lower()
    try:
        connection = _CONNECT[kind](rest)
    except ImportError:
        raise DatabaseError(f"{kind}: needs its driver: pip install pyarrow {NAMED[kind]}") from None
    except Exception as error:
        why = sentence_of(str(error)) or f"{type(error).__name__} (its words may quote a secret and are withheld)"
        raise DatabaseError(f"cannot open the {kind} database: {why}") from None
    with closing(connection):
        yield Warehouse(connection, None if kind == "adbc" else kind)


def _adbc(uri: str) -> Any:
    """A connection of ADBC by its URI: `postgresql://…`, `sqlite:crm.db`, or that of another driver by its scheme."""
    scheme, _, rest = uri.partition(":")
    if scheme in ("postgres", "postgresql"):
        return import_module("adbc_driver_postgresql.dbapi").connect(f"postgresql:{rest}")
    if scheme == "sqlite":
        return import_module("adbc_driver_sqlite.dbapi").connect(rest)
    return import_module("adbc_driver_manager.dbapi").connect(driver=scheme, db_kwargs={"uri": uri})


def _snowflake(profile: str) -> Any:
    return import_module("snowflake.connector").connect(connection_name=profile)


def _bigquery(project: str) -> Any:
    client = import_module("google.cloud.bigquery").Client(project=project or None)
    return import_module("google.cloud.bigquery.dbapi").connect(client)


def _databricks(path: str) -> Any:
    host, token = os.environ.get("DATABRICKS_HOST", ""), os.environ.get("DATABRICKS_TOKEN", "")
    server = host.removeprefix("https://")
    return import_module("databricks.sql").connect(server_hostname=server, http_path=path, access_token=token)


_CONNECT = {"adbc": _adbc, "bigquery": _bigquery, "databricks": _databricks, "snowflake": _snowflake}


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


def is_given_warehouse(given: Any) -> bool:
    """True if it is the name of a warehouse, a connection to one, or a session of Spark's."""
    return is_session(given) or is_warehouse(given) or (isinstance(given, str) and names_warehouse(given))


@contextmanager
def open_named(given: Any, dialect: str | None = None) -> Iterator[Warehouse]:
    """The warehouse that is given, of a connection by its `dialect`; one that is named is closed at the end."""
    if is_session(given) or given == SPARK:
        yield SparkWarehouse(environment_session() if given == SPARK else given)
    elif isinstance(given, str):
        with open_warehouse(given) as there:
            yield there
    else:
        yield Warehouse(given, dialect)
