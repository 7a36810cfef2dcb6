"""dbt as a project's user runs it, in this process, on copies of the project in `fixtures/dbt`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dbt_projects import Done, Project


@pytest.fixture(scope="session")
def seeded_once(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Path:
    """The project with the package installed and its seed loaded."""
    folder = tmp_path_factory.mktemp("seeded") / "project"
    names = shutil.ignore_patterns("target", "logs", "dbt_packages", "*.duckdb*", ".user.yml", "package-lock.yml")
    shutil.copytree(fixtures / "dbt", folder, ignore=names)
    project = Project(folder)
    project.install()
    assert project.run("seed").success
    return folder


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory, seeded_once: Path) -> tuple[Path, Done]:
    """The same, all of it built, and what its first build came to."""
    folder = tmp_path_factory.mktemp("built") / "project"
    shutil.copytree(seeded_once, folder, symlinks=True)
    done = Project(folder).run("build")
    assert done.success, done.said
    return folder, done


@pytest.fixture
def project(tmp_path: Path, seeded_once: Path) -> Project:
    """A copy of the project of which nothing but the seed is there."""
    return Project(Path(shutil.copytree(seeded_once, tmp_path / "project", symlinks=True)))


@pytest.fixture
def built(tmp_path: Path, built_once: tuple[Path, Done]) -> Project:
    """A copy of the project as its first build leaves it."""
    return Project(Path(shutil.copytree(built_once[0], tmp_path / "project", symlinks=True)))


@pytest.fixture
def first_build(built_once: tuple[Path, Done]) -> Done:
    """What the first build came to."""
    return built_once[1]


@pytest.fixture
def bytes_of(tmp_path: Path) -> Callable[[Project, str], bytes]:
    """The bytes that a table's rows make in a file, in the order in which they lie."""

    def read(project: Project, table: str) -> bytes:
        with project.database() as connection:
            connection.execute(f"COPY (SELECT * FROM {table}) TO '{tmp_path / 'copy.csv'}' (FORMAT csv)")
        return (tmp_path / "copy.csv").read_bytes()

    return read
