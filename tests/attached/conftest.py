"""Databases that DuckDB attaches, each with the same table of patients; those that are not here are skipped by name."""

from __future__ import annotations

import functools
import json
import os
import shutil
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import mysql_server
import pytest
import yaml
from homes import COLUMNS, EXTENSIONS, HOMES, PATIENTS, SQL, TREE, Sql, policy_document
from strategies import some
from typer.testing import CliRunner

from ldiv_db.commands.cli import app
from ldiv_db.database.connections import load_extension
from ldiv_db.database.errors import DatabaseError


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
    return mysql_server.missing() if kind == "mysql" else None


def skip_without(kind: str) -> None:
    """Skip the test if the database cannot be attached, or fail it where LDIV_TEST_ENGINES asks for it."""
    why = missing(kind)
    if why is None:
        return
    if os.environ.get("LDIV_TEST_ENGINES") in ("all", kind):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def needs() -> Callable[[str], None]:
    """Skips the test without a kind of database, or of table."""
    return skip_without


@dataclass
class Home:
    """A database of one kind with the table `patients`, in a folder with a policy and a taxonomy."""

    kind: str
    folder: Path
    address: str
    #: What runs a statement as the database itself does.
    sql: Sql = field(repr=False)

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
    (folder / "country.csv").write_text(TREE)
    address = _postgres() if kind == "postgres" else f"{kind}:{folder}/crm.{kind}"
    home = Home(kind, folder, address, SQL[kind](address))
    for table, rows in (("patients", PATIENTS), ("others", PATIENTS[:12])):
        home.sql(f"CREATE TABLE {table} ({COLUMNS})")
        home.sql(f"INSERT INTO {table} VALUES {', '.join(map(str, rows))}")
    home.write_policy()
    return home


def _postgres(template: str = "template1") -> str:
    """The address of a new database of the server that is shared by the tests of a process, a copy of another."""
    import servers  # noqa: PLC0415

    host, name = servers.started("postgres").connection.info.host, f"clinic_{uuid.uuid4().hex[:8]}"
    servers.started("postgres").execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return f"postgres:host={host} user=postgres dbname={name}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of `home` is of each kind; in every pass of one, which is another's for other tests."""
    if "home" in metafunc.fixturenames:
        first = zlib.crc32(metafunc.function.__name__.encode()) % len(HOMES)
        metafunc.parametrize("home", some([*HOMES[first:], *HOMES[:first]]), indirect=True)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return home_of(request.param, tmp_path)


@pytest.fixture
def postgres(tmp_path: Path) -> Home:
    return home_of("postgres", tmp_path)


@pytest.fixture(scope="session")
def first_published(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A database of PostgreSQL's after a run, which nobody changes."""
    home = home_of("postgres", tmp_path_factory.mktemp("published"))
    home.run()
    return home


@pytest.fixture
def published(first_published: Home, tmp_path: Path) -> Home:
    """A copy of it."""
    shutil.copytree(first_published.folder, tmp_path, dirs_exist_ok=True)
    address = _postgres(first_published.address.rpartition("=")[2])
    return Home("postgres", tmp_path, address, SQL["postgres"](address))


@pytest.fixture
def lake(tmp_path: Path) -> Home:
    return home_of("ducklake", tmp_path)
