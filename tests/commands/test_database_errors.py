"""Databases that are missing, none, locked or not to be written; the process from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from ldiv_db.database.engine import Engine
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy, load_adult
from tests.strategies import some

LDIV = [sys.executable, "-m", "ldiv_db"]


def outside(*words: Any) -> subprocess.CompletedProcess[str]:
    """`ldiv WORDS` in a process of its own."""
    return subprocess.run([*LDIV, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", some(["run", "plan"]))
def test_a_locked_database_says_so_plainly(bed: Any, command: str) -> None:
    before = bed.files()
    with duckdb.connect(str(bed.database)):
        done = outside(command, bed.database, bed.policy)
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr.startswith(f"error: {bed.database} is in use by another process: PID {os.getpid()} (")
    assert len(done.stderr.splitlines()) == 1
    assert bed.files() == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_a_database_error(bed: Any) -> None:
    bed.database.chmod(0o444)
    bed.folder.chmod(0o555)
    try:
        assert "cannot open" in bed.fails(3, "run", bed.database, bed.policy)
        assert bed.call("plan", bed.database, bed.policy).code == 0
    finally:
        bed.folder.chmod(0o755)


def test_a_memory_limit_is_a_number_with_a_unit(bed: Any) -> None:
    judged = ("patients", "--qi", "age", "--sensitive", "disease", "--require", "k:1")
    commands = {"plan": (bed.policy,), "run": (bed.policy,), "profile": ("patients",), "check": judged}
    for command, words in commands.items():
        assert "is not a size" in bed.fails(2, command, bed.database, *words, "--memory-limit", "plenty")
    for size in ("4", "4 XB", "-1GB", "0GB", "", "4GB2"):
        assert "is not a size" in bed.fails(2, "plan", bed.database, bed.policy, "--memory-limit", size)
    for size in ("1.5 GB", "1000000KB"):
        assert bed.call("plan", bed.database, bed.policy, "--memory-limit", size, "--threads", 1).code == 0


@pytest.mark.slow
def test_too_little_memory_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    database, policy = _adult(tmp_path, select="bisect")
    before = database.read_bytes()
    (tmp_path / "spill").write_text("a file where a folder is needed")
    done = outside("run", database, policy, "--memory-limit", "8MB", "--temp-dir", tmp_path / "spill")
    assert (done.returncode, done.stdout) == (3, "")
    assert "\nerror: " in "\n" + done.stderr and "Traceback" not in done.stderr
    assert database.read_bytes() == before


def _adult(folder: Path, select: str) -> tuple[Path, Path]:
    """A database with Adult and a policy for it."""
    document = adult_policy(4, select)
    for qi in document["quasi_identifiers"].values():
        if "taxonomy" in qi:
            fixtures = Path(__file__).parents[2] / "fixtures" / "adult"
            qi["taxonomy"]["file"] = str(fixtures / qi["taxonomy"]["file"])
    (folder / "policy.yml").write_text(yaml.safe_dump(document))
    with duckdb.connect(str(folder / "adult.duckdb")) as con:
        load_adult(Engine(con), parse_policy(document))
    return folder / "adult.duckdb", folder / "policy.yml"


def test_version_and_help_of_every_command(bed: Any) -> None:
    assert bed.call("--version").out.startswith("ldiv ")
    commands = [
        ("demo",), ("run",), ("plan",), ("check",), ("migrate",), ("taxonomy", "import"),
        ("taxonomy", "build"), ("taxonomy", "show"), ("taxonomy", "list"), ("taxonomy", "check"),
    ]  # fmt: skip
    for command in commands:
        shown = bed.call(*command, "--help")
        assert shown.code == 0 and "Example" in shown.out and f"ldiv {' '.join(command)}" in shown.out


def test_the_module_is_the_command() -> None:
    done = outside("--version")
    assert done.returncode == 0 and done.stdout.startswith("ldiv ") and done.stderr == ""
