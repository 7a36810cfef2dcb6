"""`ldiv run`: anonymize, audit, publish."""

from __future__ import annotations

from typing import Annotated

import typer

from ldiv_db.commands.console import ProgressDisplay, open_for_command, print_json, printer, refuse_memory
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
    Workers,
    catalog_name,
    settings,
)
from ldiv_db.commands.release import publish_command
from ldiv_db.policy.policy import examine_file
from ldiv_db.publishing import result as report
from ldiv_db.running.run import run

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("run")
def run_command(
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    threads: Threads = None,
    memory_limit: Memory = None,
    temp_dir: TempDir = None,
    catalog: Catalog = None,
    quiet: Quiet = False,
    kl: Annotated[bool, typer.Option("--kl", help="Work out the KL divergence as well, which takes longer.")] = False,
    show_values: ShowValues = False,
    workers: Workers = None,
) -> None:
    """Anonymize, audit and publish under a policy: all or nothing.

    \b
    Examples:
      ldiv run warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml --threads 2 --memory-limit 4GB --json
      ldiv run warehouse.duckdb policy.yml --workers 4
      ldiv run warehouse.duckdb policy.yml --catalog ours.duckdb
    """
    wanted = examine_file(policy)
    if wanted.is_series:
        publish_command(database, policy, json, threads, memory_limit, temp_dir, catalog, quiet, show_values)
        return
    refuse_memory(database, wanted)
    limits = settings(threads, memory_limit, temp_dir)
    with open_for_command(database, settings=limits, catalog=catalog) as connection, ProgressDisplay(quiet) as listener:
        result = run(connection, wanted, policy.parent, listener, catalog_name(catalog), kl, show_values, workers)
    if json:
        print_json(result.as_dict())
    else:
        report.print_result(printer(), result)
