"""A small database and its policy, and a way to call the command line and see that a failure changed nothing."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pytest
import typer
import typer.testing
import yaml
from refusals import codes_told
from typer.testing import CliRunner

from ldiv_db.commands import progress
from ldiv_db.commands.cli import app
from tests.docs.output_schema import refuse_unknown

COUNTRIES = "Norway;Europe;*\nItaly;Europe;*\nJapan;Asia;*\nKorea;Asia;*\n"
DISEASES = ("Flu", "Cancer", "Hepatitis", "Asthma")
PATIENTS = [
    (f"P{i}", 20 + i * 7 % 40, ("Norway", "Italy", "Japan", "Korea")[i % 4], DISEASES[i // 2 % 4], f"W{i % 2}")
    for i in range(24)
]

# typer makes all commands anew for each call; once is enough.
typer.testing._get_command = functools.cache(typer.testing._get_command)
# What is printed is compared, also where the machine is so busy that a run would tell its progress.
progress._PAUSE = 3_600.0


def policy_document(**changes: Any) -> dict[str, Any]:
    """A policy that the table `patients` meets, with other values for some keys (None takes a key out)."""
    document: dict[str, Any] = {
        "source": "main.patients",
        "target": "published.patients",
        "identifiers": ["name"],
        "quasi_identifiers": {"age": {"numeric": True}, "country": {"taxonomy": {"file": "country.csv"}}},
        "sensitive": ["disease"],
        "keep": ["ward"],
        "require": [{"unique_distinct": 3}],
        "algorithm": {"name": "bsgi", "select": "bisect"},  # half as many statements as by default
        "seed": 0,  # so that runs can be compared
    }
    document.update(changes)
    return {key: value for key, value in document.items() if value is not None}


@functools.cache
def attaching() -> Any:
    """An instance of DuckDB that databases are attached to, as to begin one takes twenty times as long."""
    return duckdb.connect(":memory:", config={"threads": 1})


@dataclass
class Called:
    """What a call printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed, without the version of its form."""
        return {key: value for key, value in json.loads(self.out).items() if key != "schema_version"}


def called(app: typer.Typer, words: Sequence[Any], name: str) -> Called:
    """What a call of the command line `name` does; a traceback is a failure of the test."""
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name=name)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if name == "ldiv" and "--json" in words and result.stdout:
        refuse_unknown([str(word) for word in words], result.stdout)
    return Called(result.exit_code, result.stdout, result.stderr)


@dataclass
class Bed:
    """A folder with a database file, a taxonomy and a policy."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "hospital.duckdb"

    @property
    def policy(self) -> Path:
        return self.folder / "policy.yml"

    def write_policy(self, **changes: Any) -> None:
        self.policy.write_text(yaml.safe_dump(policy_document(**changes), sort_keys=False))

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        root = attaching()
        try:
            root.execute(f"ATTACH '{self.database}' AS hospital")
        except duckdb.Error:  # another connection of this process has it open
            with duckdb.connect(str(self.database)) as con:
                return con.execute(text).fetchall()
        try:
            with root.cursor() as con:
                return con.execute(f"USE hospital; {text}").fetchall()
        finally:
            root.execute("DETACH hospital")

    def call(self, *words: Any) -> Called:
        """Call `ldiv WORDS`; a traceback is a failure of the test."""
        return called(app, words, "ldiv")

    def run(self, *words: Any) -> Called:
        return self.call("run", self.database, self.policy, *words)

    def fails(self, code: int, *words: Any) -> str:
        """The message of a call that fails with `code`, prints no data on stdout and leaves every file as it was."""
        before = self.files()
        called = self.call(*words)
        assert called.code == code, called
        assert (set(called.json) == {"error"}) if "--json" in words else (called.out == ""), called
        assert self.files() == before
        assert "Traceback" not in called.err
        return called.err

    def refuses(self, code: str, *words: Any) -> str:
        """What is said of a call that is refused, with problems of this code alone."""
        told = self.fails(2, *words)
        assert codes_told(told) == {code}, told
        return told

    def copied(self, folder: Path) -> Bed:
        """The same in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Bed(folder)

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="session")
def first_bed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bed")
    bed = Bed(folder)
    bed.write("country.csv", COUNTRIES)
    bed.write_policy()
    with duckdb.connect(str(bed.database)) as con:
        con.execute("CREATE TABLE patients (name VARCHAR, age INTEGER, country VARCHAR, disease VARCHAR, ward VARCHAR)")
        con.executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?)", PATIENTS)
        con.execute("CREATE TABLE empty AS FROM patients LIMIT 0")
    return folder


@pytest.fixture
def bed(first_bed: Path, tmp_path: Path) -> Bed:
    return Bed(first_bed).copied(tmp_path)


@pytest.fixture(scope="session")
def first_release(first_bed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    bed = Bed(first_bed).copied(tmp_path_factory.mktemp("released"))
    assert bed.run("--json").code == 0
    return bed.folder


@pytest.fixture
def released(first_release: Path, tmp_path: Path) -> Bed:
    """A bed whose policy was run."""
    return Bed(first_release).copied(tmp_path)


@pytest.fixture
def call(bed: Bed) -> Callable[..., Called]:
    return bed.call


@pytest.fixture
def bench() -> Callable[..., Called]:
    """Calls `python -m tests.benchmarks.NAME WORDS`, in this process."""

    def call(name: str, *words: Any) -> Called:
        module = f"tests.benchmarks.{name}"
        return called(import_module(module).app, words, f"python -m {module}")

    return call
