"""`ldiv dbt`: the dbt package that comes with this program."""

from __future__ import annotations

import typer

from ldiv_db.commands.console import print_json
from ldiv_db.commands.options import Json
from ldiv_db.database.templates import resource_folder

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def dbt() -> None:
    """Find the dbt package: tests, and releases as models."""


@app.command("path")
def path_command(json: Json = False) -> None:
    """Print the folder of the dbt package, as `local:` in packages.yml takes it.

    \b
    Example:
      ldiv dbt path
    """
    folder = str(resource_folder("sql") / "dbt")
    if json:
        print_json({"path": folder})
    else:
        typer.echo(folder)
