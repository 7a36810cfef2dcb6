"""The page on Airflow: its tasks follow the exit codes, and no log has the seed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest
from pages import Project

pytestmark = pytest.mark.skipif(find_spec("airflow") is None, reason="apache-airflow is not installed")
SEED = "987654321987654321"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Airflow's own folder; `airflow db migrate` fills its database by its first call."""
    return tmp_path_factory.mktemp("airflow")


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    project = Project.of(
        tmp_path,
        "Airflow",
        HOSPITAL=str(tmp_path),
        AIRFLOW_HOME=str(home),
        AIRFLOW__CORE__LOAD_EXAMPLES="false",
        AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "dags"),
        AIRFLOW__USAGE_DATA_COLLECTION__ENABLED="false",
    )
    project.write("policies/patients.yml", project.page.files["policies/patients.yml"] + f"seed: {SEED}\n")
    project.does("airflow db migrate")
    return project


def test_published_then_refused(project: Project) -> None:
    (run,) = project.page.commands
    said = project.does(run)
    assert "rows_published" in said and SEED not in said
    before = project.release()
    assert len(before) == 24 and project.runs() == 1
    project.fill(("Flu", "Cancer"))
    failed = project.call(run)
    said = failed.stdout + failed.stderr
    assert failed.returncode != 0 and "exit code 1" in said and "ldiv check" not in said
    assert "up_for_retry" not in said and "Cancer" not in said
    assert (project.release(), project.runs()) == (before, 1)


def change(project: Project, *changes: tuple[str, str]) -> None:
    """Have the page's DAG say something else in these places."""
    (path,) = (path for path in project.page.files if path.startswith("dags/"))
    code = project.page.files[path]
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    project.write(path, code)


def test_a_locked_database_is_tried_again(project: Project) -> None:
    change(project, ("retries=3", "retries=1"), ("timedelta(minutes=5)", "timedelta(seconds=1)"))
    with duckdb.connect(str(project.folder / "warehouse.duckdb")):
        failed = project.call(project.page.commands[0])
    said = failed.stdout + failed.stderr
    assert failed.returncode != 0 and "exit code 3" in said and "up_for_retry" in said
    assert not project.sql("SELECT * FROM duckdb_tables() WHERE schema_name = 'published'")


def test_an_audit_that_fails(project: Project) -> None:
    change(project, ("distinct:3", "k:25"))
    failed = project.call(project.page.commands[0])
    said = failed.stdout + failed.stderr
    assert failed.returncode != 0 and '"holds": false' in said and SEED not in said
