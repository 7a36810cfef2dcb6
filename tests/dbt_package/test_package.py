"""The package as dbt users install it: an archive whose only folder is the package, its versions and its names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import threading
import tomllib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from dbt_projects import PACKAGE, Project

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")
pytestmark = pytest.mark.dbt

ROOT = Path(__file__).resolve().parents[2]
DESCRIBED = yaml.safe_load((PACKAGE / "dbt_project.yml").read_text(encoding="utf-8"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    subprocess.run(["make", "-s", "package", f"DIST={tmp_path / 'dist'}"], cwd=ROOT, check=True)
    (found,) = (tmp_path / "dist").iterdir()
    return found


def test_the_archive_is_installed_by_its_address(
    archive: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = partial(SimpleHTTPRequestHandler, directory=str(archive.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/{archive.name}"
        project.write("packages.yml", json.dumps({"packages": [{"tarball": address, "name": "ldiv"}]}))
        assert project.run("clean").success and project.run("deps").success
        server.shutdown()
    installed = project.folder / "dbt_packages" / "ldiv"
    assert not installed.is_symlink() and {"LICENSE", "README.md"} < {path.name for path in installed.iterdir()}
    done = project.run("build", "--select", "patients")
    assert done.success and done.statuses == {"patients": "success", "ldiv_meets_policy_patients_": "pass"}


def test_the_archive_is_one_folder_of_what_lies_here(archive: Path) -> None:
    assert archive.name == f"ldiv-{DESCRIBED['version']}.tar.gz"
    with tarfile.open(archive) as opened:
        files = {member.name for member in opened.getmembers() if member.isfile()}
    here = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file()]
    assert files == {f"ldiv-{DESCRIBED['version']}/{path}" for path in [*here, "LICENSE"]}


def test_versions_are_those_of_the_program() -> None:
    program = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert DESCRIBED["version"] == program["version"]
    (core,) = (need for need in program["optional-dependencies"]["dbt"] if need.startswith("dbt-core"))
    assert DESCRIBED["require-dbt-version"] == [core.removeprefix("dbt-core"), "<2.0.0"]
    shown = (PACKAGE / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?:ldiv-|revision: v)(\d[\d.]*\d)", shown)) == {program["version"]}


def test_no_macro_is_called_as_one_of_dbts(project: Project) -> None:
    assert project.run("parse").success
    macros = json.loads((project.folder / "target" / "manifest.json").read_text())["macros"].values()
    ours, theirs = (
        {macro["name"] for macro in macros if (macro["package_name"] == "ldiv") is own} for own in (True, False)
    )
    assert {"materialization_anonymized_duckdb", "test_meets_policy"} < ours
    assert not ours & theirs


def test_what_the_readme_shows_is_what_the_package_takes(project: Project) -> None:
    """Its models are built and tested, on the rows of the project."""
    blocks = re.findall(r"```yaml\n(.*?)```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    installed, tested, published = blocks[:2], yaml.safe_load(blocks[2]), yaml.safe_load(blocks[3])
    assert [set(yaml.safe_load(text)["packages"][0]) for text in installed] == [
        {"tarball", "name"},
        {"git", "subdirectory", "revision"},
    ]
    (model,), (shown,) = published["models"], tested["models"]
    model["data_tests"] += shown["data_tests"]
    project.write("models/readme.yml", json.dumps(published))
    project.write("models/patients_public.sql", "select * from {{ ref('admissions') }}")
    done = project.run("build", "--select", "patients_public")
    assert len(done.results) == 5 and done.success, done.said
