"""docs/how-to/dbt.md: its commands run, and what it shows stands in the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dbt_projects import PACKAGE, Project

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")
pytestmark = pytest.mark.dbt

DOCS = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "dbt.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, text in BLOCKS if not kind for line in text.splitlines()]


def test_the_commands_of_dbt_run(project: Project) -> None:
    said = [line.split()[1:] for line in COMMANDS if line.startswith("dbt ")]
    assert len(said) == 4
    for words in said:
        done = project.run(*words)
        assert done.success, done.said


def test_ldiv_says_where_the_package_is() -> None:
    assert "ldiv dbt path" in COMMANDS
    said = subprocess.check_output([sys.executable, "-m", "ldiv_db", "dbt", "path"], text=True)
    assert said == f"{PACKAGE}\n" and (PACKAGE / "dbt_project.yml").is_file()


def test_no_other_command_is_shown() -> None:
    assert {line.split()[0] for line in COMMANDS} == {"pip", "ldiv", "dbt"}


def test_models_that_are_shown_are_those_of_the_project(fixtures: Path) -> None:
    files = [path.read_text(encoding="utf-8") for path in fixtures.glob("dbt*/models/**/*.*")]
    shown = [text for kind, text in BLOCKS if kind == "sql" or "- name:" in text]
    assert len(shown) == 6
    for text in shown:
        assert any(text in file for file in files), text


def test_the_tests_that_are_shown_hold(built: Project) -> None:
    (shown,) = (text for _, text in BLOCKS if "ldiv.t_close" in text)
    text = (built.folder / "models/models.yml").read_text()
    built.write("models/models.yml", text.replace("    data_tests:\n      - ldiv.meets_policy\n", shown, 1))
    done = built.run("test", "--select", "patients")
    assert len(done.results) == 4 and done.success, done.said


def test_what_packages_yml_takes() -> None:
    (shown,) = (text for kind, text in BLOCKS if kind == "yaml" and text.startswith("packages:"))
    (package,) = yaml.safe_load(shown)["packages"]
    assert set(package) == {"git", "subdirectory"} and PACKAGE.as_posix().endswith(package["subdirectory"])
