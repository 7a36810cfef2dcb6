"""`ldiv runs`: what was published, by the ledger."""

from __future__ import annotations

import typer

from ldiv_db.commands.console import open_for_command, print_json, printer
from ldiv_db.commands.options import Catalog, Database, Json, ShowSeed, catalog_name
from ldiv_db.database.addresses import address_of
from ldiv_db.database.engine import Engine
from ldiv_db.publishing import ledger
from ldiv_db.publishing.result import DISTINCT_CLASSES, print_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("runs")
def runs_command(database: Database, json: Json = False, catalog: Catalog = None, show_seed: ShowSeed = False) -> None:
    """List the runs of the ledger, the latest last; `ldiv release list` has the releases of series.

    Seeds are shown to who asks for them, and may read the table that has them.

    \b
    Examples:
      ldiv runs warehouse.duckdb
      ldiv runs warehouse.duckdb --catalog ours.duckdb --json
    """
    with open_for_command(database, read_only=True, catalog=catalog) as connection:
        found = ledger.runs(Engine(connection, catalog=catalog_name(catalog)), show_seed)
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
