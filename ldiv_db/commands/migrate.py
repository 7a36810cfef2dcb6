"""`ldiv migrate`: the catalog's schema, up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from ldiv_db.commands.console import open_for_command, print_json
from ldiv_db.commands.options import Catalog, Database, Json, catalog_name
from ldiv_db.database import migrate
from ldiv_db.database.engine import Engine

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("migrate")
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
    with open_for_command(database, read_only=pending, catalog=catalog) as connection:
        engine = Engine(connection, catalog=catalog_name(catalog))
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
