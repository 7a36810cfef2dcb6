"""`ldiv run` and `ldiv plan`: anonymize, audit, publish; and what that would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from ldiv_db.api import plan, run
from ldiv_db.commands.console import ProgressDisplay, refuse_memory, show
from ldiv_db.commands.options import (
    MOST_THREADS,
    Database,
    DatabaseOptions,
    Json,
    PolicyFile,
    Quiet,
    ShowSeed,
    ShowValues,
    grouped,
)
from ldiv_db.database.counted import names_warehouse
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import Statement
from ldiv_db.policy.reading import load_file
from ldiv_db.running.preview import describe_plan

Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Worker processes for a table of more than part_rows rows; by default one per thread.",
    ),
]


@grouped
def run_command(
    *,
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    resources: DatabaseOptions,
    quiet: Quiet = False,
    kl: Annotated[bool, typer.Option("--kl", help="Compute the KL divergence as well; takes longer.")] = False,
    show_values: ShowValues = False,
    workers: Workers = None,
    show_seed: ShowSeed = False,
) -> None:
    """Anonymize, audit and publish under a policy: all or nothing.

    Under a policy with a `key` it publishes the next release of a series.

    \b
    Examples:
      ldiv run warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml --threads 2 --memory-limit 4GB --json
      ldiv run warehouse.duckdb policy.yml --workers 4
      ldiv run warehouse.duckdb policy.yml --catalog ours.duckdb
      ldiv run spark policy.yml
      ldiv run snowflake:PROFILE policy.yml
      ldiv run adbc:postgresql://host/clinic policy.yml
    """
    wanted = load_file(policy)
    refuse_memory(database, wanted)
    with resources.open_planned(database) as (opened, catalog), ProgressDisplay(quiet) as listener:
        result = run(opened, wanted, policy.parent, listener, catalog, kl, show_values, workers)
    show(result.as_dict(show_seed), result.text(show_seed=show_seed), json)


@grouped
def plan_command(
    *,
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    sql: Annotated[bool, typer.Option("--sql", help="Rehearse the run and show the SQL of every step.")] = False,
    resources: DatabaseOptions,
    quiet: Quiet = False,
    show_values: ShowValues = False,
) -> None:
    """Show what a run would do, from counts alone; writes nothing.

    --sql carries out all steps on temporary tables, which takes as long as a run. Under a policy with a `key` the
    classes of the next release are formed, to count them.

    \b
    Examples:
      ldiv plan warehouse.duckdb policy.yml
      ldiv plan warehouse.duckdb policy.yml --sql
    """
    wanted = load_file(policy)
    statements: list[Statement] = []
    if sql and names_warehouse(database):
        raise PolicyError([Problem("sql", "a plan in a warehouse is not rehearsed", "leave it out")])
    with resources.open_planned(database, read_only=True) as (opened, catalog), ProgressDisplay(quiet) as shown:
        listener = replace(shown, on_statement=statements.append)
        ready = plan(opened, wanted, policy.parent, listener, catalog, show_values, rehearse=sql)
    shown_sql = statements if sql else None
    show(describe_plan(ready, shown_sql), ready.text(statements=shown_sql), json)
