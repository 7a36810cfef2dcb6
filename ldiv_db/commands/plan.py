"""`ldiv plan`: what a run would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ldiv_db.commands.console import ProgressDisplay, open_for_command, print_json, printer
from ldiv_db.commands.options import (
    Catalog,
    Database,
    Json,
    Memory,
    PolicyFile,
    Quiet,
    ShowValues,
    TempDir,
    Threads,
    catalog_name,
    settings,
)
from ldiv_db.database.templates import Statement
from ldiv_db.policy.reading import examine_file
from ldiv_db.running.preview import describe_plan, print_plan
from ldiv_db.running.run import plan

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("plan")
def plan_command(
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    sql: Annotated[bool, typer.Option("--sql", help="Show the SQL of every step: the run is rehearsed.")] = False,
    threads: Threads = None,
    memory_limit: Memory = None,
    temp_dir: TempDir = None,
    catalog: Catalog = None,
    quiet: Quiet = False,
    show_values: ShowValues = False,
) -> None:
    """Show what a run would do, by counts alone; writes nothing.

    With --sql all steps are carried out on temporary tables, which takes as long as a run.

    \b
    Examples:
      ldiv plan warehouse.duckdb policy.yml
      ldiv plan warehouse.duckdb policy.yml --sql
    """
    wanted = examine_file(policy)
    statements: list[Statement] = []
    limits = settings(threads, memory_limit, temp_dir)
    with (
        open_for_command(database, read_only=True, settings=limits, catalog=catalog) as connection,
        ProgressDisplay(quiet) as shown,
    ):
        listener = replace(shown, on_statement=statements.append)
        ready = plan(connection, wanted, policy.parent, listener, catalog_name(catalog), show_values, rehearse=sql)
    document = describe_plan(ready, statements if sql else None)
    if json:
        print_json(document)
    else:
        print_plan(printer(), document)
