"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import ldiv_db

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
SCRIPTS = [block for block in BLOCKS if "def model(" not in block]
MODELS = [block for block in BLOCKS if "def model(" in block]


class FakeDbt:
    """What dbt hands to a model: a way to configure it and to refer to others."""

    def __init__(self, session: Any):
        self._session = session
        self.settings: dict[str, Any] = {}
        self.refs: list[str] = []

    def config(self, **settings: Any) -> None:
        self.settings.update(settings)

    def ref(self, name: str) -> Any:
        self.refs.append(name)
        return self._session.query(f"SELECT * FROM {name}")


class FakeSession:
    """A cursor in the adapter's wrapping: `execute` of its own, the rest passed on."""

    def __init__(self, cursor: Any):
        self._cursor = cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str, bindings: Any = None) -> Any:
        return self._cursor.execute(sql) if bindings is None else self._cursor.execute(sql, bindings)


@pytest.fixture
def warehouse(bed: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folder that the README's scripts stand in."""
    bed.database.rename(bed.folder / "warehouse.duckdb")
    monkeypatch.chdir(bed.folder)
    return bed


def run_code(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_the_blocks_are_found() -> None:
    assert len(SCRIPTS) >= 2 and len(MODELS) == 1


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_script_publishes(warehouse: Any, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    run_code(SCRIPTS[number])["con"].close()
    assert capsys.readouterr().out
    with duckdb.connect("warehouse.duckdb") as con:
        assert con.execute("SELECT count(*) FROM published.patients").fetchone() == (24,)


def test_a_script_that_fails_publishes_nothing(warehouse: Any) -> None:
    (code,) = [block for block in SCRIPTS if '"k:3"' in block]
    with pytest.raises(SystemExit):
        run_code(code.replace('"k:3"', '"k:25"'))
    with duckdb.connect("warehouse.duckdb") as con, pytest.raises(duckdb.CatalogException):
        con.execute("FROM published.patients")


@pytest.fixture
def project(warehouse: Any) -> Any:
    """A connection to the warehouse, with the policy where a dbt project has it; the staged table is not committed."""
    (warehouse.folder / "policies").mkdir()
    (warehouse.folder / "country.csv").rename("policies/country.csv")
    policy = yaml.safe_load(warehouse.policy.read_text())
    policy |= {"source": "stg_patients", "target": {"table": "published.patients", "if_exists": "replace"}}
    Path("policies/patients.yml").write_text(yaml.safe_dump(policy))
    with duckdb.connect("warehouse.duckdb") as con:
        yield con


def call_model(con: Any) -> tuple[FakeDbt, Any]:
    session = FakeSession(con)
    dbt = FakeDbt(session)
    return dbt, run_code(MODELS[0])["model"](dbt, session)


def test_a_dbt_model_joins_the_transaction(project: Any) -> None:
    project.execute("BEGIN")
    project.execute("CREATE TABLE stg_patients AS FROM patients")
    dbt, relation = call_model(project)
    relation.create("model")
    assert dbt.refs == ["stg_patients"] and dbt.settings == {"materialized": "table"}
    project.execute("COMMIT")
    assert project.execute("SELECT count(*), count(DISTINCT class_id) FROM model").fetchone() == (24, 8)
    project.execute("BEGIN")
    call_model(project)  # dbt runs its models again and again
    project.execute("COMMIT")


def test_a_dbt_run_that_is_rolled_back_leaves_nothing(project: Any, snapshot: Any) -> None:
    before = snapshot(project)
    project.execute("BEGIN")
    project.execute("CREATE TABLE stg_patients AS FROM patients")
    call_model(project)
    project.execute("ROLLBACK")
    assert snapshot(project) == before


def test_a_dbt_model_whose_policy_cannot_be_met_fails(project: Any, snapshot: Any) -> None:
    before = snapshot(project)
    project.execute("BEGIN")
    project.execute("CREATE TABLE stg_patients AS FROM patients WHERE disease = 'Flu'")
    with pytest.raises(ldiv_db.InfeasibleError):
        call_model(project)
    project.execute("ROLLBACK")
    assert snapshot(project) == before
