"""`ldiv policy`: is a policy right as it is written, whatever its source holds, and what may one say?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ldiv_db.commands.console import group_of_commands, open_for_command, show
from ldiv_db.commands.options import Json
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems, unreported
from ldiv_db.policy.quasi_identifiers import collect_hierarchies
from ldiv_db.policy.reading import load_file
from ldiv_db.policy.resolve import Findings
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import members_of
from ldiv_db.running.policy_algorithm import judge_algorithm

policy_app = group_of_commands("Check policies without a database, and print the JSON Schema that editors take.")


@policy_app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of policies, by which editors complete and check them.

    \b
    Example:
      ldiv policy schema > policy.schema.json
    """
    typer.echo((resource_folder("docs/reference") / "policy.schema.json").read_text(encoding="utf-8"), nl=False)


@policy_app.command("check")
def check_command(
    files: Annotated[list[Path], typer.Argument(help="Policies, YAML files.")],
    json: Json = False,
) -> None:
    """Check policies without a database: what a run would refuse, whatever the source holds.

    Columns, types and names in the catalog are held against a source by `ldiv plan`. The exit code is 2 if a policy is
    wrong. Of several files each problem begins with its file.

    \b
    Examples:
      ldiv policy check policy.yml
      ldiv policy check policies/*.yml --json
    """
    found = {file: problems_in(file) for file in files}
    if len(found) > 1:
        found = {file: [replace(p, key=f"{file}: {p.key}") for p in problems] for file, problems in found.items()}
    refuse(problem for problems in found.values() for problem in problems)
    show({"policies": list(map(str, found))}, [f"{file}: good as it is written" for file in found], json)


def problems_in(file: Path) -> list[Problem]:
    """Everything that a run says of the policy in a file that is not about its source, its target or the catalog."""
    try:
        policy = load_file(file)
    except PolicyError as error:
        return error.problems
    known, problems = problems_of(policy), Problems()
    with problems.collected():
        judge_algorithm(Findings(policy, file.parent))
    parts = {f"tables.{name}": part for name, part in members_of(policy).items()} if policy.tables else {"": policy}
    for name, part in parts.items():
        with problems.collected(name):
            _read_taxonomies(part, file.parent)
    return [*known, *unreported(problems.found, known)]


def _read_taxonomies(policy: Policy, folder: Path) -> None:
    """Raise PolicyError for taxonomies that cannot be read or made."""
    problems = Problems()
    made = {name: qi for name, qi in policy.quasi_identifiers.items() if qi.taxonomy and qi.taxonomy.name is None}
    if made and not policy.decomposes:
        with open_for_command(":memory:") as connection:
            collect_hierarchies(Engine(connection), made, folder, problems)
    problems.refuse()
