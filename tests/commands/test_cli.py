"""The commands by name: what `ldiv` says of them, and that their code is imported when they are called."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import ldiv_db
from ldiv_db.attacking.question import AttackRequest
from ldiv_db.auditing.check import AuditRequest
from ldiv_db.commands.cli import COMMANDS, command_of, module_of
from ldiv_db.database.requests import asked_fields
from ldiv_db.measuring.measure import MeasureRequest
from ldiv_db.measuring.profile import ProfileRequest
from ldiv_db.policy.context import ReleaseContext
from ldiv_db.reporting.request import ReportRequest
from ldiv_db.running.exploring.question import ExploreRequest

FOLDER = Path(ldiv_db.__file__).parent / "commands"
#: What takes long to import, and is not needed to say what there is.
HEAVY = ("duckdb", "sqlglot", "pydantic", "jinja2", "rich", "yaml", "ldiv_db.api", "ldiv_db.database.engine")


def imported(code: str, among: Sequence[str] = HEAVY) -> set[str]:
    """Those of some modules that a process of its own has imported when the code has run."""
    script = f"import sys\n{code}\nprint(*[name for name in {among!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def call_main(*words: str) -> str:
    return f"""
from ldiv_db.commands.cli import main
sys.argv = {["ldiv", *words]!r}
try:
    main()
except SystemExit as end:
    assert end.code in (0, 2)
"""


def test_help_and_version_import_nothing_that_takes_long() -> None:
    assert imported(call_main("--help") + call_main("--version")) == set()


def test_a_check_of_a_policy_imports_no_algorithm_no_attack_and_writes_no_sql(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yml"
    policy.write_text(
        "{source: t, target: u, quasi_identifiers: [a], sensitive: [s], require: [{k: 2}], algorithm: bsgi}"
    )
    unused = ("sqlglot", "ldiv_db.api", "ldiv_db.attacking", "ldiv_db.publishing", "ldiv_db.algorithms.local.topdown")
    assert imported(call_main("policy", "check", str(policy)), unused) == set()


def test_every_command_takes_quiet() -> None:
    def lacking(command: Any) -> list[str]:
        each = getattr(command, "commands", {}).values()
        own = [] if each or any("--quiet" in one.opts for one in command.params) else [command.name]
        return own + [name for one in each for name in lacking(one)]

    assert [name for command in COMMANDS for name in lacking(command_of(command))] == []


def test_a_command_is_imported_when_it_is_called_and_collections_of_garbage_pass_over_it() -> None:
    passed_over = "import gc\nassert gc.isenabled() and gc.get_freeze_count() > 10_000\n"
    assert "duckdb" in imported(call_main("run", "--help") + passed_over)


def test_every_command_is_named_and_every_name_has_one() -> None:
    """A command is a function, or an app with functions of its own."""
    made = []
    for path in FOLDER.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        made += re.findall(r"^(\w+)_app = (?:typer\.Typer|group_of_commands)\(", text, re.M)
        alone = re.sub(r"^@\w+_app\.command\(.*\)\n(@grouped\n)?def \w+", "", text, flags=re.M)
        made += re.findall(r"^def ([a-z]+)_command\(", alone, re.M)
    assert sorted(made) == sorted(COMMANDS)
    assert all(command_of(name) for name in COMMANDS)


def test_help_lists_a_command_with_what_it_says_of_itself(call: Any) -> None:
    lines = call("--help").out.splitlines()
    for name, said in COMMANDS.items():
        assert str(command_of(name).help).splitlines()[0] == said
        (line,) = (line for line in lines if line.startswith(f"  {name} "))
        shown = line.split(maxsplit=1)[1]
        assert shown and said.startswith(shown.removesuffix("..."))


def test_a_command_that_there_is_not(call: Any) -> None:
    called = call("chek")
    assert called.code == 2 and "Did you mean 'check'?" in called.err


#: What a Python call takes that the command of its name has no option for: it opens the database and the folder itself.
CALLERS = {"con", "connection", "folder", "listener"}
#: What the two call by another name.
OTHER_NAMES = {"attack": {"table": "published"}, "profile": {"table": "tables"}, "report": {"table": "release"}}


@pytest.mark.parametrize("name", ["attack", "check", "explore", "measure", "profile", "report"])
def test_a_command_has_an_option_for_all_that_its_call_takes(name: str) -> None:
    command = getattr(module_of(name), f"{name}_command")
    called = {OTHER_NAMES.get(name, {}).get(one, one) for one in signature(getattr(ldiv_db, name)).parameters}
    texts = (
        set(ReleaseContext.model_fields) - {"population"} if name == "report" else set()
    )  # --context has all of them
    assert called - CALLERS - texts <= set(signature(command).parameters)


QUESTIONS = {
    "attack": AttackRequest,
    "check": AuditRequest,
    "explore": ExploreRequest,
    "measure": MeasureRequest,
    "profile": ProfileRequest,
    "report": ReportRequest,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_has_the_same_defaults_for_the_command_and_the_call(name: str) -> None:
    command = getattr(module_of(name), f"{name}_command")
    asked = set(asked_fields(QUESTIONS[name])) - {"replay"}  # a flag with options of its own
    defaults = {one.name: one.default for one in fields(QUESTIONS[name]) if one.name in asked}
    assert {one: signature(getattr(ldiv_db, name)).parameters[one].default for one in asked} == defaults
    found = {one: signature(command).parameters[one].default for one in asked}
    assert found == {one: None if default == () else default for one, default in defaults.items()}
