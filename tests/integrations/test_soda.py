"""The page on Soda: its contract finds violating classes, and holds where there are none."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import Project

pytestmark = pytest.mark.skipif(find_spec("soda_duckdb") is None, reason="soda-duckdb is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.of(tmp_path, "Soda", SODA_CORE_TELEMETRY_ENABLED="false")
    project.sql("CREATE SCHEMA published")
    project.sql("CREATE TABLE published.patients AS SELECT '*' AS age, '*' AS country, disease FROM raw.patients")
    project.does(project.page.commands[0])
    return project


def test_a_contract_that_holds(project: Project) -> None:
    assert "failed_rows_count: 0" in project.does(project.page.commands[1])


def test_a_contract_that_is_broken(project: Project) -> None:
    project.sql("UPDATE published.patients SET disease = 'Flu', age = '30' WHERE disease = 'Cancer'")
    failed = project.call(project.page.commands[1])
    assert failed.returncode == 1 and "failed_rows_count: 1" in failed.stdout
    assert "Flu" not in failed.stdout + failed.stderr
