"""`ldiv demo` and `ldiv dbt`: a real data set, anonymized and audited; and the dbt package of this program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ldiv_db.commands.console import show
from ldiv_db.commands.options import Json, OutputOptions, grouped
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.templates import resource_folder
from ldiv_db.reporting.demo_text import demo_text
from ldiv_db.running.demo import demonstrate
from ldiv_db.running.demo_tables import demonstrate_tables

dbt_app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@grouped
def demo_command(
    *,
    l: Annotated[
        int | None, typer.Option("--l", min=2, help="At most one in l rows of a class has the same occupation.")
    ] = None,
    select: Annotated[
        Literal["refine", "bisect", "greedy"] | None,
        typer.Option(help="Make classes of l different occupations by BSGI, with this selection."),
    ] = None,
    transparent: Annotated[
        bool, typer.Option("--transparent", help="Withstand an attacker who knows how the release was made.")
    ] = False,
    tables: Annotated[
        bool, typer.Option("--tables", help="Publish several tables as one release: those of a made-up clinic.")
    ] = False,
    directory: Annotated[Path | None, typer.Option(help="Keep the database and the policy in this folder.")] = None,
    output: OutputOptions,
) -> None:
    """Anonymize a real data set and audit the release.

    \b
    Examples:
      ldiv demo
      ldiv demo --l 6 --select greedy
      ldiv demo --transparent
      ldiv demo --tables
      ldiv demo --directory adult
    """
    if tables:
        asked = {"l": l, "select": select, "transparent": transparent}
        refuse(Problem(name, "is of one table", "leave it, or --tables, out") for name, given in asked.items() if given)
    with output.progress() as listener:
        one = (l, select, directory, listener, transparent)
        shown = demonstrate_tables(directory, listener) if tables else demonstrate(*one)
    output.show(shown.result.as_dict(), demo_text(shown))


@dbt_app.callback()
def dbt() -> None:
    """Show where the dbt package is: tests, and releases as models."""


@dbt_app.command("path")
def path_command(json: Json = False) -> None:
    """Print the folder of the dbt package, as `local:` in packages.yml takes it.

    \b
    Example:
      ldiv dbt path
    """
    folder = str(resource_folder("sql") / "dbt")
    show({"path": folder}, [folder], json)
