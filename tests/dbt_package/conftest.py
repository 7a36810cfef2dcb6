"""dbt as a project's user runs it, in this process, on copies of the project in `fixtures/dbt`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dbt_projects import Done, Project

#: How far the folder of PostgreSQL's programs is from being on the path, on Debian.
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


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


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket's folder of a server of our own, which listens nowhere else."""
    pytest.importorskip("dbt.adapters.postgres", reason="dbt-postgres is not installed: pip install dbt-postgres")
    if not SERVERS:
        pytest.skip("PostgreSQL is not installed")
    home = Path(subprocess.check_output(["mktemp", "-d", "-p", "/tmp"], text=True).strip())
    is_root = subprocess.check_output(["id", "-u"], text=True).strip() == "0"
    as_user = ["runuser", "-u", "postgres", "--"] if is_root else []
    if is_root:
        shutil.chown(home, "postgres")
    programs, data = SERVERS[-1], home / "data"
    call = [str(programs / "initdb"), "-D", str(data), "-U", "tester", "--auth=trust", "--encoding=UTF8", "--no-sync"]
    subprocess.run([*as_user, *call], check=True, capture_output=True, cwd=home)
    control = [*as_user, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-c listen_addresses= -c unix_socket_directories={home} -c fsync=off"
    subprocess.run([*control, "-o", options, "-l", str(home / "log"), "start"], check=True, cwd=home)
    yield home
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True, cwd=home)
    shutil.rmtree(home, ignore_errors=True)
