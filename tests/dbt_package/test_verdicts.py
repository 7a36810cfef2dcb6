"""The generic tests, on random tables: they find what `ldiv check` finds, in any database that dbt reaches."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
import random_cases
from dbt_projects import Project

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")
pytestmark = pytest.mark.dbt


def judged(project: Project, cases: list[dict[str, Any]]) -> list[list[list[Any]]]:
    """The violating classes of every case by the tests, without what they are said to violate."""
    done = project.run("run-operation", "judge", "--args", json.dumps(random_cases.arguments(cases)))
    assert done.success, done.said[-5:]
    found = [json.loads(line.partition("JUDGED ")[2]) for line in done.said if "JUDGED " in line]
    return [random_cases.in_order([row[1:] for row in rows]) for rows in found]


def judging(folder: Path, profile: dict[str, Any]) -> Project:
    """The project that has nothing but the macro `judge`."""
    shutil.copytree(Path(__file__).parent / "judging", folder)
    project = Project(folder)
    project.write("profiles.yml", json.dumps({"judging": {"target": "dev", "outputs": {"dev": profile}}}))
    project.install()
    return project


def random_and_checked(seed: int) -> tuple[list[dict[str, Any]], list[list[list[Any]]]]:
    """Cases, and what `ldiv check` finds of them; most, but not all, have violating classes."""
    draw = random.Random(seed)
    cases = [random_cases.random_case(draw, number) for number in range(13)]
    with duckdb.connect(":memory:") as con:
        expected = [random_cases.checked(con, case) for case in cases]
    assert 0 < sum(not rows for rows in expected) < len(cases)
    return cases, expected


def test_tests_find_what_check_finds(tmp_path: Path) -> None:
    cases, expected = random_and_checked(1710)
    project = judging(tmp_path / "project", {"type": "duckdb", "path": ":memory:", "schema": "main"})
    assert judged(project, cases) == expected


def test_tests_find_the_same_in_postgres(tmp_path: Path, postgres: Path) -> None:
    cases, expected = random_and_checked(3017)
    profile = {"type": "postgres", "host": str(postgres), "port": 5432, "user": "tester", "password": "none"}
    project = judging(tmp_path / "project", {**profile, "dbname": "postgres", "schema": "public"})
    assert judged(project, cases) == expected


def test_tests_find_the_same_in_sqlite(tmp_path: Path) -> None:
    pytest.importorskip("dbt.adapters.sqlite", reason="dbt-sqlite is not installed: pip install dbt-sqlite")
    cases, expected = random_and_checked(1730)
    profile = {"type": "sqlite", "database": "database", "schema": "main", "schema_directory": str(tmp_path)}
    project = judging(tmp_path / "project", {**profile, "schemas_and_paths": {"main": str(tmp_path / "main.db")}})
    assert judged(project, cases) == expected
