"""`ldiv run`: anonymize, audit, publish."""

from __future__ import annotations

from pathlib import Path
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
    ShowSeed,
    ShowValues,
    TempDir,
    Threads,
    Workers,
    catalog_name,
    settings,
)
from ldiv_db.commands.release import publish_command
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.reading import examine_file
from ldiv_db.publishing import result as report
from ldiv_db.running.run import run
from ldiv_db.running.spark.resolve import NAME as SPARK
from ldiv_db.running.spark.resolve import environment_session

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
    show_seed: ShowSeed = False,
) -> None:
    """Anonymize, audit and publish under a policy: all or nothing.

    \b
    Examples:
      ldiv run warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml --threads 2 --memory-limit 4GB --json
      ldiv run warehouse.duckdb policy.yml --workers 4
      ldiv run warehouse.duckdb policy.yml --catalog ours.duckdb
      ldiv run spark policy.yml
    """
    wanted = examine_file(policy)
    if wanted.is_series:
        publish_command(database, policy, json, threads, memory_limit, temp_dir, catalog, quiet, show_values, show_seed)
        return
    if database == SPARK:
        from ldiv_db.running.spark.run import run_on_spark  # noqa: PLC0415 - few runs are on Spark

        _refuse_limits(threads, memory_limit, temp_dir, workers)
        with ProgressDisplay(quiet) as listener:
            named = None if catalog is None else str(catalog)
            result = run_on_spark(environment_session(), wanted, policy.parent, listener, named, kl, show_values)
    else:
        refuse_memory(database, wanted)
        with (
            open_for_command(database, settings=settings(threads, memory_limit, temp_dir), catalog=catalog) as opened,
            ProgressDisplay(quiet) as listener,
        ):
            named = catalog_name(catalog)
            result = run(opened, wanted, policy.parent, listener, named, kl, show_values, workers)
    if json:
        print_json(result.as_dict(show_seed))
    else:
        report.print_result(printer(), result, show_seed)


def _refuse_limits(threads: int | None, memory_limit: str | None, temp_dir: Path | None, workers: int | None) -> None:
    """Raise PolicyError for limits of a database that are Spark's own to say."""
    given = {"threads": threads, "memory-limit": memory_limit, "temp-dir": temp_dir, "workers": workers}
    problems = [
        Problem(
            name, "is for Spark's own settings to say", "spark.executor.cores, spark.executor.memory, spark.local.dir"
        )
        for name, value in given.items()
        if value is not None
    ]
    if problems:
        raise PolicyError(problems)
