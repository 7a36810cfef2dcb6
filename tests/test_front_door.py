"""Where people meet the program: the action for GitHub, the hook for pre-commit, the image, and the build."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from tests.beds import policy_document

ROOT = Path(__file__).parents[1]
POLICY = policy_document(
    source="people.parquet", identifiers=[], keep=[], quasi_identifiers=["age"], require=[{"k": 2}]
)


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a policy and published files, in which the program is as the action's first step leaves it."""
    (tmp_path / "ldiv" / "bin").mkdir(parents=True)
    (tmp_path / "ldiv" / "bin" / "ldiv").write_text(f'#!/bin/sh\nexec {sys.executable} -m ldiv_db "$@"\n')
    (tmp_path / "ldiv" / "bin" / "ldiv").chmod(0o755)
    (tmp_path / "policy.yml").write_text(yaml.safe_dump(POLICY))
    (tmp_path / "out").mkdir()
    for name, rows in (("good", 4), ("two good", 6), ("bad", 1)):
        to = tmp_path / ("out" if "good" in name else "") / f"{name}.parquet"
        duckdb.sql(f"SELECT 30 AS age, 'flu' AS disease FROM range({rows})").write_parquet(str(to))
    return tmp_path


def act(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's second step, as a runner takes it: with bash, and inputs in the environment."""
    action = read("action.yml")
    step = action["runs"]["steps"][1]
    given = {name: said.get("default", "") for name, said in action["inputs"].items()} | inputs
    env = {key: given[re.sub(r"\W|inputs", "", value)] for key, value in step["env"].items()}
    env |= {"RUNNER_TEMP": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_action_passes_a_folder_that_is_good(folder: Path) -> None:
    done = act(folder, policy="policy.yml", table="out")
    assert done.returncode == 0 and "::error" not in done.stdout, done
    assert done.stdout.count("k k=2") == 2


@pytest.mark.slow
def test_the_action_annotates_what_violates_and_fails(folder: Path) -> None:
    (folder / "bad.parquet").rename(folder / "out" / "bad.parquet")
    done = act(folder, policy="policy.yml", table="out")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("::error")]
    assert done.returncode == 1 and line.startswith("::error file=out/bad.parquet,title=ldiv::")
    assert "| k k=2 | NO |" in line and not set("┏┡└┃│") & set(line)
    assert act(folder, policy="policy.yml", table="out/bad.parquet").returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "policy"), [("nothing", "policy.yml"), ("out", "wrong.yml"), ("empty", "policy.yml")]
)
def test_the_action_never_passes_what_it_cannot_judge(folder: Path, table: str, policy: str) -> None:
    (folder / "wrong.yml").write_text(yaml.safe_dump(POLICY | {"require": [{"distict": 3}]}))
    (folder / "empty").mkdir()
    done = act(folder, policy=policy, table=table)
    assert done.returncode and "::error file=" in done.stdout
    assert ("did you mean 'distinct'" in done.stdout) is (policy == "wrong.yml")


@pytest.mark.slow
def test_the_action_checks_a_table_of_a_database(folder: Path) -> None:
    with duckdb.connect(str(folder / "clinic.duckdb")) as con:
        con.execute(f"CREATE TABLE people AS FROM '{folder}/out/good.parquet'")
    given = {"policy": "policy.yml", "database": "clinic.duckdb"}
    assert act(folder, table="people", **given).returncode == 0
    assert act(folder, table="no_people", **given).returncode != 0


def test_the_first_step_installs_what_is_asked_for() -> None:
    step = read("action.yml")["runs"]["steps"][0]
    assert 'pip" install --quiet' in step["run"] and step["env"] == {"SOURCE": "${{ inputs.source }}"}


def test_the_hook_checks_policies(folder: Path) -> None:
    (hook,) = read(".pre-commit-hooks.yaml")
    names = ["policy.yml", "a/b/policy.yaml", "clinic-policy.yml", "clinic.ldiv.yml"]
    assert all(re.search(hook["files"], name) for name in names)
    assert not [name for name in ("mypolicy.yml", "policy.yml.j2", "x.yml") if re.search(hook["files"], name)]
    (folder / "bad_policy.yml").write_text(yaml.safe_dump(POLICY | {"algorithm": "bsgy"}))
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    program, *words = hook["entry"].split()
    assert program in scripts
    command = [sys.executable, "-m", "ldiv_db", *words, "policy.yml", "bad_policy.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (told,) = done.stderr.splitlines()
    assert done.returncode == 2 and told.startswith("error: bad_policy.yml: algorithm.name: no algorithm 'bsgy'")


def test_the_version_stands_in_one_place_of_the_program() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert read("sql/dbt/dbt_project.yml")["version"] == version
    written = re.compile(rf"[\"']{re.escape(version)}[\"']")
    assert not [path for path in (ROOT / "ldiv_db").rglob("*.py") if written.search(path.read_text())]


def test_the_first_page_says_which_versions_at_a_glance() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    duckdb_from = next(one for one in project["dependencies"] if one.startswith("duckdb>="))
    told = [f"Version {project['version']} ", f" {project['license']} "]
    told += [f" Python {project['requires-python'][2:]} or later", f" DuckDB {duckdb_from[8:]} or later"]
    line = (ROOT / "README.md").read_text().splitlines()[2]
    assert all(words in line for words in told)


def test_the_image_runs_the_command_on_a_folder_as_nobody_special() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert lines[-3:] == ["USER ldiv", "WORKDIR /data", 'ENTRYPOINT ["ldiv"]']
