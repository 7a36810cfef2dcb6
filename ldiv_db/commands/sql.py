"""`ldiv sql`: what a run did, as SQL for any database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ldiv_db.commands.console import open_for_command, print_json
from ldiv_db.commands.options import Catalog, Database, Json, catalog_name
from ldiv_db.database.engine import Engine
from ldiv_db.policy.policy import read_policy
from ldiv_db.recoding.statement import find_run, recoding_sql

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="What a run did, as SQL for any database."
)
Dialect = Literal[
    "bigquery", "clickhouse", "databricks", "duckdb", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino"
]  # fmt: skip


@app.callback()
def sql_group() -> None:
    """What a run did, as SQL for any database."""


@app.command("recode")
def recode_command(
    database: Database,
    run: Annotated[str, typer.Argument(help="The run's id, or how it begins.", show_default=False)],
    dialect: Annotated[Dialect, typer.Option(help="The database that the SELECT is for.")] = "duckdb",
    source: Annotated[
        str | None, typer.Option(help="The table there, if it is not called as in the run.", show_default=False)
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="The run's policy: needed if values have thresholds of their own.", show_default=False),
    ] = None,
    json: Json = False,
    catalog: Catalog = None,
) -> None:
    """Print the recoding of a run as one SELECT on its source; of runs that recode globally.

    \b
    Examples:
      ldiv sql recode warehouse.duckdb 4f1d2c --dialect snowflake
      ldiv sql recode warehouse.duckdb 4f1d2c --dialect postgres --source public.patients --policy policy.yml
    """
    wanted = None if policy is None else read_policy(policy)
    with open_for_command(database, read_only=True, catalog=catalog) as connection:
        engine = Engine(connection, catalog=catalog_name(catalog))
        found = find_run(engine, run)
        text = recoding_sql(engine, found, dialect, source, wanted)
    if json:
        print_json({"run_id": found.run_id, "dialect": dialect, "sql": text})
    else:
        typer.echo(f"{text};")
