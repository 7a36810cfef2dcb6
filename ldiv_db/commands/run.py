"""`ldiv run` and `ldiv plan`: anonymize, audit, publish; and what that would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from ldiv_db.commands import lineage
from ldiv_db.commands.console import refuse_memory
from ldiv_db.commands.options import (
    Database,
    DatabaseOptions,
    OptionsOf,
    OutputOptions,
    PolicyFile,
    ShowSeed,
    grouped,
)
from ldiv_db.database.counted import names_warehouse
from ldiv_db.database.errors import refused
from ldiv_db.database.templates import Statement
from ldiv_db.policy.reading import load_file
from ldiv_db.publishing.result import Result
from ldiv_db.running.preview import describe_plan
from ldiv_db.running.run import PlanRequest, RunRequest, plan, run


@grouped
def run_command(
    *,
    database: Database,
    policy: PolicyFile,
    asked: Annotated[dict[str, Any], OptionsOf(RunRequest)],
    show_seed: ShowSeed = False,
    resources: DatabaseOptions,
    output: OutputOptions,
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

    def work() -> Result:
        with resources.open_planned(database) as (opened, catalog), output.progress() as listener:
            return run(opened, wanted, policy.parent, listener, catalog, **asked)

    result = lineage.telling_of(database, wanted, work)
    output.show(result.as_dict(show_seed), result.text(show_seed=show_seed))


@grouped
def plan_command(
    *,
    database: Database,
    policy: PolicyFile,
    asked: Annotated[dict[str, Any], OptionsOf(PlanRequest)],
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Show what a run would do, from counts alone; writes nothing.

    --sql carries out all steps on temporary tables, which takes as long as a run. Under a policy with a `key` the
    classes of the next release are formed, to count them.

    \b
    Examples:
      ldiv plan warehouse.duckdb policy.yml
      ldiv plan warehouse.duckdb policy.yml --sql
      ldiv plan warehouse.duckdb policy.yml --bound
    """
    wanted = load_file(policy)
    refuse_memory(database, wanted)
    statements: list[Statement] = []
    sql = asked["rehearse"]
    if sql and names_warehouse(database):
        raise refused("sql", "a plan in a warehouse is not rehearsed", "leave it out")
    with resources.open_planned(database, read_only=True) as (opened, catalog), output.progress() as shown:
        listener = replace(shown, on_statement=statements.append)
        ready = plan(opened, wanted, policy.parent, listener, catalog, **asked)
    shown_sql = statements if sql else None
    output.show(describe_plan(ready, shown_sql), ready.text(statements=shown_sql))
