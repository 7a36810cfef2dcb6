"""dbt as a project's user runs it, in this process, on a copy of the project in `fixtures/dbt`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dbt_projects import Project


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """dbt changes into a project's folder, and back at the end of a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")


@pytest.fixture
def project(tmp_path: Path, fixtures: Path, quiet: None) -> Project:
    """The project of `fixtures/dbt`, in a folder of its own, with the package installed."""
    folder = tmp_path / "project"
    names = shutil.ignore_patterns("target", "logs", "dbt_packages", "*.duckdb*", ".user.yml", "package-lock.yml")
    shutil.copytree(fixtures / "dbt", folder, ignore=names)
    found = Project(folder)
    found.install()
    return found


@pytest.fixture
def bytes_of(tmp_path: Path) -> Callable[[Project, str], bytes]:
    """The bytes that a table's rows make in a file, in the order in which they lie."""

    def read(project: Project, table: str) -> bytes:
        with project.database() as connection:
            connection.execute(f"COPY (SELECT * FROM {table}) TO '{tmp_path / 'copy.csv'}' (FORMAT csv)")
        return (tmp_path / "copy.csv").read_bytes()

    return read
