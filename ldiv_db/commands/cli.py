"""The command line: it knows the commands by name; a command's module is imported when the command is called."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ldiv_db.commands.guard import guarded

#: The commands, each a module of that name in `ldiv_db.commands`, and how what it says of itself begins.
COMMANDS = {
    "demo": "Anonymize a real data set and audit the release.",
    "profile": "Show how identifying a table's columns are, and a policy to start from;"
    " writes nothing to the database.",
    "measure": "Measure what any published table lost against its source; writes nothing.",
    "attack": "Attack a published table: what an attacker gains at best, and what is promised at most.",
    "report": "Write the evidence on a release as a page for the one who signs; writes nothing to the database.",
    "run": "Anonymize, audit and publish under a policy: all or nothing.",
    "runs": "List the runs of the ledger, the latest last; `ldiv release list` has the releases of series.",
    "plan": "Show what a run would do, by counts alone; writes nothing.",
    "explore": "Rehearse variants of a policy and show what each would lose and tell; nothing is published.",
    "check": "Audit any table: do all its classes meet the requirements?",
    "migrate": "Bring the catalog, schema `ldiv` of the database or of a file of its own, up to date.",
    "taxonomy": "Import, build, show and check the taxonomies of the catalog.",
    "release": "Publish a table again as it changes.",
    "sql": "A plan's counts, a run's recoding and the audit of a table, as SQL for any database.",
    "dbt": "Find the dbt package: tests, and releases as models.",
}
#: Where a context keeps whether the output is to be JSON, which failures ask before any command has read its options.
_AS_JSON = "ldiv.json"


class Commands(TyperGroup):
    """The commands by name: the one that is called takes the place of its stand-in."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        module = import_module(f"ldiv_db.commands.{name}")
        return name, typer.main.get_command(module.app), rest

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[_AS_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        return guarded(partial(super().invoke, ctx), as_json=ctx.meta[_AS_JSON])


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; never returns."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets `?`, not a traceback
    app(prog_name="ldiv")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - a third of what it takes to start

        typer.echo(f"ldiv {version('ldiv-db')} (duckdb {version('duckdb')})")
        raise typer.Exit


@app.callback()
def ldiv(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Anonymize tables inside DuckDB: audited releases that meet an l-diversity policy.

    \b
    Examples:
      ldiv demo
      ldiv profile warehouse.duckdb patients --sensitive disease
      ldiv plan warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml
      ldiv check warehouse.duckdb published.patients --qi age,sex --sensitive disease --require distinct:3
      ldiv report warehouse.duckdb published.patients --policy policy.yml --out report.html

    \b
    With --json every command prints one JSON object, of a failure `{"error": {"kind": …, "problems": […]}}`.

    \b
    Exit codes: 0 good; 1 the data cannot meet the policy, or an audit failed;
    2 usage or policy error; 3 database error; 130 interrupted;
    141 nobody reads the output any more: what was done is done.
    """


def _stand_in() -> None:
    """Never called; `Commands` puts the command in its place."""


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(_stand_in)
