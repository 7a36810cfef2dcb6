"""Databases that DuckDB attaches, each with the same table of patients; those that are not here are skipped by name."""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from typer.testing import CliRunner

from ldiv_db.commands.cli import app
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.extensions import load_extension

EXTENSIONS = {"sqlite": "sqlite_scanner", "ducklake": "ducklake", "postgres": "postgres_scanner"}
COUNTRIES = ("Norway", "Italy", "Japan", "Korea")
DISEASES = ("Flu", "Cancer", "Hepatitis", "Asthma")
PATIENTS = [(f"P{i}", 20 + i * 7 % 40, COUNTRIES[i % 4], DISEASES[i // 2 % 4], f"W{i % 2}") for i in range(24)]
COLUMNS = "name varchar, age integer, country varchar, disease varchar, ward varchar"


def policy_document(**changes: Any) -> dict[str, Any]:
    """A policy that `patients` meets, with other values for some keys (None takes a key out)."""
    document: dict[str, Any] = {
        "source": "patients",
        "target": {"table": "released"},
        "identifiers": ["name"],
        "quasi_identifiers": {"age": {"numeric": True}, "country": {"taxonomy": {"file": "country.csv"}}},
        "sensitive": ["disease"],
        "keep": ["ward"],
        "require": [{"unique_distinct": 3}],
        "algorithm": {"name": "bsgi", "select": "bisect"},
        "seed": 0,
    }
    return {key: value for key, value in {**document, **changes}.items() if value is not None}


@functools.cache
def missing(kind: str) -> str | None:
    """Why a kind of database cannot be attached here, None if it can."""
    with duckdb.connect() as connection:
        try:
            load_extension(connection, EXTENSIONS[kind], kind)
        except DatabaseError:
            return f"{kind}: DuckDB {duckdb.__version__} has no extension {EXTENSIONS[kind]} here"
    if kind == "postgres":
        import servers  # noqa: PLC0415

        return servers.missing("postgres") or None
    return None


def skip_without(kind: str) -> None:
    """Skip the test if the database cannot be attached, or fail it where LDIV_TEST_ENGINES asks for it."""
    why = missing(kind)
    if why is None:
        return
    if os.environ.get("LDIV_TEST_ENGINES") in ("all", kind):
        pytest.fail(why)
    pytest.skip(why)


@dataclass
class Home:
    """A database of one kind with the table `patients`, in a folder with a policy and a taxonomy."""

    kind: str
    folder: Path
    address: str
    #: What runs a statement as the database itself does.
    sql: Callable[[str], list[tuple[Any, ...]]] = field(repr=False)

    @property
    def policy(self) -> Path:
        return self.folder / "policy.yml"

    def write_policy(self, **changes: Any) -> None:
        self.policy.write_text(yaml.safe_dump(policy_document(**changes), sort_keys=False))

    def call(self, *words: Any) -> Any:
        """What `ldiv WORDS` does; a traceback is a failure of the test."""
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="ldiv")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def json(self, command: str, *words: Any) -> dict[str, Any]:
        """The JSON that a command on the database prints."""
        result = self.call(command, self.address, *words, "--json")
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def run(self, **changes: Any) -> dict[str, Any]:
        """A run under the policy with changes."""
        self.write_policy(**changes)
        return self.json("run", self.policy)

    def table(self, name: str) -> str:
        """A table of the catalog, as the database calls it."""
        return f"ldiv_{name}" if self.kind == "sqlite" else f"ldiv.{name}"


def home_of(kind: str, folder: Path) -> Home:
    """A database of a kind in a folder."""
    skip_without(kind)
    (folder / "country.csv").write_text("Norway;Europe;*\nItaly;Europe;*\nJapan;Asia;*\nKorea;Asia;*\n")
    home = {"sqlite": _sqlite, "ducklake": _ducklake, "postgres": _postgres}[kind](folder)
    home.write_policy()
    return home


def _sqlite(folder: Path) -> Home:
    def sql(text: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(folder / "crm.db") as connection:
            rows = connection.execute(text).fetchall()
        connection.close()
        return rows

    sql(f"CREATE TABLE patients ({COLUMNS})")
    for row in PATIENTS:
        sql(f"INSERT INTO patients VALUES {row}")
    return Home("sqlite", folder, f"sqlite:{folder}/crm.db", sql)


def _ducklake(folder: Path) -> Home:
    def sql(text: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            load_extension(connection, "ducklake", "the test")
            connection.execute(f"ATTACH 'ducklake:{folder}/lake.ducklake' AS lake; USE lake")
            return connection.execute(text).fetchall()

    listed = ", ".join(map(str, PATIENTS))
    sql(f"CREATE TABLE patients ({COLUMNS}); INSERT INTO patients VALUES {listed}")
    return Home("ducklake", folder, f"ducklake:{folder}/lake.ducklake", sql)


def _postgres(folder: Path) -> Home:
    import psycopg  # noqa: PLC0415
    import servers  # noqa: PLC0415

    host, name = servers.started("postgres").connection.info.host, f"clinic_{uuid.uuid4().hex[:8]}"
    servers.started("postgres").execute(f"CREATE DATABASE {name}")
    words = f"host={host} user=postgres dbname={name}"

    def sql(text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(words, autocommit=True) as connection:
            found = connection.execute(text)
            return list(found.fetchall()) if found.description else []

    sql(f"CREATE TABLE patients ({COLUMNS})")
    sql(f"INSERT INTO patients VALUES {', '.join(map(str, PATIENTS))}")
    return Home("postgres", folder, f"postgres:{words}", sql)


@pytest.fixture(params=list(EXTENSIONS))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    yield home_of(request.param, tmp_path)


@pytest.fixture
def postgres(tmp_path: Path) -> Home:
    return home_of("postgres", tmp_path)


@pytest.fixture
def lake(tmp_path: Path) -> Home:
    return home_of("ducklake", tmp_path)
