"""`ldiv runs` and `ldiv migrate`: the ledger of the catalog, and its schema."""

from __future__ import annotations

from typing import Annotated

import typer

from ldiv_db.commands.console import print_json, printer
from ldiv_db.commands.options import Catalog, Database, Json, ShowSeed, catalog_engine
from ldiv_db.database import migrate
from ldiv_db.database.addresses import address_of
from ldiv_db.publishing import ledger
from ldiv_db.publishing.result import DISTINCT_CLASSES, print_rows

runs_app = typer.Typer(add_completion=False, rich_markup_mode=None)
migrate_app = typer.Typer(add_completion=False, rich_markup_mode=None)


@runs_app.command("runs")
def runs_command(database: Database, json: Json = False, catalog: Catalog = None, show_seed: ShowSeed = False) -> None:
    """List the runs of the ledger, the latest last; `ldiv release list` has the releases of series.

    Seeds are shown to who asks for them, and may read the table that has them.

    \b
    Examples:
      ldiv runs warehouse.duckdb
      ldiv runs warehouse.duckdb --catalog ours.duckdb --json
    """
    with catalog_engine(database, catalog, read_only=True) as engine:
        found = ledger.runs(engine, show_seed)
    if json:
        print_json({"runs": found})
    elif not found:
        typer.echo("the ledger has no runs")
    else:
        headings: tuple[str, ...] = (
            "run",
            "finished",
            "algorithm",
            "source",
            "target",
            "rows published",
            DISTINCT_CLASSES,
            "LM",
            "",
        )
        headings += ("seed",) if show_seed else ()
        rows = [
            (
                run["run_id"],
                run["finished_at"][:19],
                run["algorithm"],
                run["source"],
                run["target"],
                f"{run['rows_published']:,}",
                f"{run['classes']:,}",
                f"{run['lm_mean']:.4f}",
                "" if run["status"] == ledger.PUBLISHED else run["status"],
                *([run["seed"]] if show_seed else []),
            )
            for run in found
        ]
        print_rows(printer(), f"{address_of(database)}: {len(found):,} runs", headings, rows)


@migrate_app.command("migrate")
def migrate_command(
    database: Database,
    pending: Annotated[bool, typer.Option("--pending", help="Only list what is to be applied.")] = False,
    json: Json = False,
    catalog: Catalog = None,
) -> None:
    """Bring the catalog, schema `ldiv` of the database or of a file of its own, up to date.

    \b
    Examples:
      ldiv migrate warehouse.duckdb
      ldiv migrate warehouse.duckdb --pending
      ldiv migrate warehouse.duckdb --catalog ours.duckdb
    """
    with catalog_engine(database, catalog, read_only=pending) as engine:
        applied = [] if pending else [_name(migration) for migration in migrate.migrate(engine)]
        waiting = [_name(migration) for migration in migrate.pending(engine)]
    if json:
        print_json({"applied": applied, "pending": waiting})
        return
    for verb, names in (("applied", applied), ("pending", waiting)):
        for name in names:
            typer.echo(f"{verb} {name}")
    if not applied and not waiting:
        typer.echo("the catalog is up to date")


def _name(migration: migrate.Migration) -> str:
    return f"{migration.number:04d}_{migration.name}"
