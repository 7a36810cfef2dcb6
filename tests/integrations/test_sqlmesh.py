"""The page on SQLMesh: its files make a project, and what it says of failures is so."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import Project

pytestmark = pytest.mark.skipif(find_spec("sqlmesh") is None, reason="sqlmesh is not installed")
DOWNSTREAM = """
MODEL (name marts.by_country, kind FULL);
SELECT country, count(*) AS n FROM published.patients GROUP BY country
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.of(tmp_path, "SQLMesh", SQLMESH__DISABLE_ANONYMIZED_ANALYTICS="true")
    project.write("models/by_country.sql", DOWNSTREAM)
    project.does(project.page.commands[0])
    return project


def copy_the_source(project: Project) -> None:
    """Have the model publish what it reads, held by its audit alone."""
    model = project.page.files["models/patients.sql"]
    project.write("models/patients.sql", re.sub(r"kind CUSTOM \(.*?\n  \)", "kind FULL", model, flags=re.DOTALL))


def test_a_rebuild_that_fails_leaves_the_release(project: Project) -> None:
    _, plan, again = project.page.commands
    assert "audits passed 1" in project.does(plan)
    first = project.release()
    assert len(first) == 24 and len(first[0]) == 4 and project.runs() == 1
    assert sum(n for _, n in project.sql("FROM marts.by_country")) == 24
    assert "audits passed 1" in project.does(again)
    assert project.runs() == 2
    project.fill(("Flu", "Cancer"))
    before, downstream = project.release(), project.sql("FROM marts.by_country ORDER BY ALL")
    failed = project.call(again)
    assert failed.returncode == 1 and "InfeasibleError" in failed.stdout
    assert "Cancer" not in failed.stdout + failed.stderr
    assert (project.release(), project.runs()) == (before, 2)
    assert project.sql("FROM marts.by_country ORDER BY ALL") == downstream
    copy_the_source(project)  # a new version, which the audit keeps back
    failed = project.call(plan)
    assert failed.returncode == 1 and "l_diverse" in failed.stdout
    assert project.release() == before


def test_an_audit_alone_comes_too_late_for_a_rebuild(project: Project) -> None:
    _, plan, again = project.page.commands
    copy_the_source(project)
    project.sql("UPDATE raw.patients SET age = 30, country = 'Norway'")
    project.does(plan)
    assert len({row[3] for row in project.release()}) == 4
    project.sql("UPDATE raw.patients SET disease = 'Flu'")
    failed = project.call(again)
    assert failed.returncode == 1 and "l_diverse" in failed.stdout
    assert {row[3] for row in project.release()} == {"Flu"}
