"""`ldiv runs` and `ldiv migrate`: the ledger of the catalog, and its schema."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ldiv_db.commands.options import CatalogOptions, ShowSeed, grouped
from ldiv_db.database import migrate
from ldiv_db.database.addresses import address_of
from ldiv_db.database.counted import names_warehouse, open_named
from ldiv_db.database.errors import count_phrase
from ldiv_db.display import Part, table_of
from ldiv_db.publishing import ledger
from ldiv_db.publishing.ledger_there import make_ledger
from ldiv_db.publishing.result import DISTINCT_CLASSES

#: The columns of runs; the status of one that is published is empty.
_HEADINGS = (
    *("run", "finished", "algorithm", "source", "target", "rows published"),
    *(DISTINCT_CLASSES, "LM", ""),
)


class _Runs(TyperGroup):
    """The group without a command lists; `list` is for a database that has the name of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        is_named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if is_named else ["list", *args])


runs_app = typer.Typer(
    cls=_Runs,
    add_completion=False,
    rich_markup_mode=None,
    help="List the runs in the ledger, or withdraw one; `ldiv release list` lists the releases of series.",
)


@runs_app.command("list")
@grouped
def list_command(
    *,
    stored: CatalogOptions,
    show_seed: ShowSeed = False,
) -> None:
    """List the runs in the ledger, the latest last; `ldiv release list` lists the releases of series.

    --show-seed needs the right to read the table of seeds.

    \b
    Examples:
      ldiv runs warehouse.duckdb
      ldiv runs warehouse.duckdb --catalog ours.duckdb --json
    """
    with stored.ledger(read_only=True) as engine:
        found, releases = ledger.runs(engine, show_seed), ledger.releases(engine)
    text = _runs_text(f"{address_of(stored.database)}: {len(found):,} runs", found, show_seed)
    listed = count_phrase(len(releases), "release of a series", "releases of series")
    more = (
        [f"{listed}: `ldiv release list {stored.database}`"]
        if releases
        else []
        if found
        else ["the ledger has no runs"]
    )
    stored.show({"runs": found, "releases": len(releases)}, chain(text, more))


def _runs_text(title: str, found: list[dict[str, Any]], show_seed: bool) -> Iterator[Part]:
    if not found:
        return
    rows = [
        (
            run["run_id"],
            run["finished_at"][:19],
            *(run[key] for key in ("algorithm", "source", "target")),
            *(f"{run[key]:,}" for key in ("rows_published", "classes")),
            f"{run['lm_mean']:.4f}",
            "" if run["status"] == ledger.PUBLISHED else run["status"],
            *([run["seed"]] if show_seed else []),
        )
        for run in found
    ]
    yield table_of(title, (*_HEADINGS, *(["seed"] if show_seed else [])), rows)


@runs_app.command("withdraw")
@grouped
def withdraw_command(
    *,
    stored: CatalogOptions,
    run: Annotated[str, typer.Argument(help="The run's id, or how it begins.")],
) -> None:
    """Record that the release of a run was never handed out: later runs are not held against it.

    Its table or file stays: drop it, or have the next run replace it.

    \b
    Examples:
      ldiv runs withdraw warehouse.duckdb 6f1c2ab0
    """
    with stored.ledger() as engine:
        found = ledger.withdraw_run(engine, run)
    told = f"run {found['run_id']} is withdrawn; what it published as {found['target']} is still there"
    stored.show({"run": found}, [told])


@grouped
def migrate_command(
    *,
    stored: CatalogOptions,
    pending: Annotated[bool, typer.Option("--pending", help="Only list the migrations to be applied.")] = False,
) -> None:
    """Bring the catalog up to date: the schema `ldiv` in the database, or in a file of its own.

    In a warehouse it makes the ledger's tables that are not there, and names them.

    \b
    Examples:
      ldiv migrate warehouse.duckdb
      ldiv migrate warehouse.duckdb --pending
      ldiv migrate warehouse.duckdb --catalog ours.duckdb
    """
    if names_warehouse(stored.database):
        with open_named(stored.database) as there:
            lacking = make_ledger(there, stored.schema, only_look=pending)
        applied, waiting = ([], lacking) if pending else (lacking, [])
    else:
        with stored.engine(read_only=pending) as engine:
            applied = [] if pending else [_name(migration) for migration in migrate.migrate(engine)]
            waiting = [_name(migration) for migration in migrate.pending(engine)]
    told = [f"applied {name}" for name in applied] + [f"pending {name}" for name in waiting]
    stored.show({"applied": applied, "pending": waiting}, told or ["the catalog is up to date"])


def _name(migration: migrate.Migration) -> str:
    return f"{migration.number:04d}_{migration.name}"
