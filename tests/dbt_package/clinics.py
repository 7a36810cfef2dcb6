"""A project of anonymized models in a warehouse: PostgreSQL's server, Snowflake's emulator, or a session of Spark's."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from dbt_projects import Project

POLICY = {
    "identifiers": ["id"],
    "quasi_identifiers": {"age": {"numeric": True}, "sex": {}},
    "sensitive": ["disease"],
    "require": [{"distinct": 3}],
    "algorithm": "topdown",
}


def _rows(count: int) -> str:
    listed = ", ".join(f"({i}, {20 + i % 8}, '{'fm'[i % 2]}', 'disease {i % 5}')" for i in range(1, count + 1))
    return f"SELECT * FROM (VALUES {listed}) AS r(id, age, sex, disease)"


class Clinic(ABC):
    """A project whose models are in the schema `clinic`, which is empty; a subclass is one of an adapter.

    `text` is what the warehouse calls the type of a text, `login` the profile beside its schema, and `connection` one
    to the same rows, as runs take it.
    """

    text = "text"
    connection: Any

    def __init__(self, folder: Path, login: dict[str, Any]):
        for schema in ("clinic", "ldiv"):
            self.read(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        folder.mkdir()
        self.project = Project(folder)
        output = {**login, "schema": "clinic", "threads": 2}
        self.project.write("profiles.yml", json.dumps({"clinic": {"target": "dev", "outputs": {"dev": output}}}))
        self.project.write("dbt_project.yml", json.dumps({"name": "clinic", "version": "1.0.0", "profile": "clinic"}))
        self.project.install()

    @abstractmethod
    def read(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, if it has some."""

    def tables(self) -> list[str]:
        """The names, in lower case, of all tables and views in the schemas of models and of the ledger."""
        listed = "SELECT table_name FROM information_schema.tables WHERE lower(table_schema) IN ('clinic', 'ldiv')"
        return [name.lower() for (name,) in self.read(listed)]

    def models(self, rows: int = 40, contract: dict[str, str] | None = None, **policies: dict[str, Any]) -> None:
        """Models of the same rows, each with a policy, and perhaps a contract: the types of its columns."""
        for name, policy in policies.items():
            config = {"materialized": "anonymized", "meta": {"policy": policy}}
            model = {"name": name, "config": config, "data_tests": [{"ldiv.meets_policy": {}}]}
            if contract is not None:
                config["contract"] = {"enforced": True}
                model["columns"] = [{"name": column, "data_type": kind} for column, kind in contract.items()]
            self.project.write(f"models/{name}.yml", json.dumps({"version": 2, "models": [model]}))
            self.project.write(f"models/{name}.sql", _rows(rows))


class InPostgres(Clinic):
    """On dbt-postgres, in a server of our own."""

    def __init__(self, folder: Path, host: Path):
        import psycopg2  # noqa: PLC0415

        self.connection = psycopg2.connect(host=str(host), user="tester", dbname="postgres")
        self.connection.autocommit = True
        login = {"type": "postgres", "host": str(host), "port": 5432, "user": "tester", "password": "none"}
        super().__init__(folder, {**login, "dbname": "postgres"})

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []


class InSnowflake(Clinic):
    """On dbt-snowflake, within fakesnow, by Snowflake's rules of names."""

    text = "varchar"

    def __init__(self, folder: Path):
        import snowflake.connector  # noqa: PLC0415

        self.connection = snowflake.connector.connect(database="HOSPITAL", schema="PUBLIC")
        login = {"type": "snowflake", "account": "none", "user": "tester", "password": "none", "warehouse": "none"}
        super().__init__(folder, {**login, "database": "HOSPITAL"})

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.connection.cursor().execute(sql).fetchall()]


class InSpark(Clinic):
    """On dbt-spark, in a session of this process."""

    text = "string"

    def __init__(self, folder: Path):
        self.connection = _session()
        super().__init__(folder, {"type": "spark", "method": "session", "host": "none"})

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.connection.newSession().sql(sql).collect()]

    def tables(self) -> list[str]:
        listed: list[str] = []
        for schema in ("clinic", "ldiv"):
            with suppress(Exception):  # it is not there
                listed += [row["tableName"] for row in self.connection.sql(f"SHOW TABLES IN {schema}").collect()]
        return listed


@cache
def _session() -> Any:
    """Spark on one core, its tables in a folder of its own."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.log.level": "OFF",
                "spark.ui.showConsoleProgress": "false", "spark.sql.warehouse.dir": mkdtemp(prefix="dbt")}  # fmt: skip
    return SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()


@contextmanager
def clinic_in(adapter: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Clinic]:
    """A clinic on dbt's adapter of that name; the test is skipped where that is not installed."""
    pytest.importorskip(f"dbt.adapters.{adapter}", reason=f"dbt-{adapter} is not installed: pip install dbt-{adapter}")
    if adapter == "postgres":
        yield InPostgres(folder, request.getfixturevalue("postgres"))
    elif adapter == "snowflake":
        fakesnow = pytest.importorskip("fakesnow")
        import exact_names  # noqa: PLC0415

        with fakesnow.patch(), exact_names.patched():
            yield InSnowflake(folder)
    else:
        pytest.importorskip("pyspark")
        yield InSpark(folder)
