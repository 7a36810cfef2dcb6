"""`ldiv release`: what the releases of a series published, and what they tell together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Annotated, Any

import typer

from ldiv_db.commands.console import group_of_commands
from ldiv_db.commands.options import CatalogOptions, OptionsOf, grouped
from ldiv_db.database.counted import ON_ROWS, names_warehouse
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse, refused
from ldiv_db.display import table_of
from ldiv_db.publishing import earlier_releases as releases
from ldiv_db.publishing import ledger
from ldiv_db.publishing.result import Result
from ldiv_db.publishing.series import name_of, require_release
from ldiv_db.publishing.series_target import settle_crashed

release_app = group_of_commands("List, compare and check releases of tables that are published again as they change.")

Series = Annotated[str, typer.Argument(help="The series: its table, or the prefix of its tables, as in the policy.")]
#: What is said beside a verdict on tables that no series made.
_IN_TURN = "note: each group was examined by itself, all of its keys together; several groups at once may reveal more"


@contextmanager
def _settled_engine(
    stored: CatalogOptions, series: str | None = None, work: str = "reading the ledger"
) -> Iterator[Engine]:
    """The database open for reading, after what a crashed release left there is finished or rolled back."""
    if not names_warehouse(stored.database):  # which takes back what a release left
        with stored.engine(read_only=True) as engine:
            crashed = ledger.unsettled(engine)
        if crashed:
            with stored.engine() as engine:
                settle_crashed(engine)
    with stored.ledger(read_only=True, series=series, work=work) as engine:
        try:
            yield engine
        finally:
            engine.close_scratch()


@release_app.command("list")
@grouped
def list_command(
    *,
    stored: CatalogOptions,
    series: Annotated[str | None, typer.Argument(help="Only this series.")] = None,
) -> None:
    """List the releases in the ledger.

    \b
    Examples:
      ldiv release list warehouse.duckdb
    """
    with _settled_engine(stored) as engine:
        found = ledger.releases(engine, series and name_of(engine, series))
    names = ["rows_published", "rows_first_published", "rows_waiting", "groups", "counterfeits"]
    rows = [
        (e.series, e.release, e.status, e.released_at[:19], *(f"{n:,}" for n in (e.rows, *map(e.count, names))))
        for e in found
    ]
    counts = ["rows of the table", "of the source", "new", "waiting", "groups", "counterfeits"]
    headings = ["series", "release", "status", "at", *counts]
    warnings = [f"note: {entry.warning}" for entry in found if entry.warning]
    stored.show({"releases": [e.as_dict() for e in found]}, [table_of("releases", headings, rows), *warnings])


@release_app.command("show")
@grouped
def show_command(
    *,
    stored: CatalogOptions,
    series: Series,
    release: Annotated[int | None, typer.Argument(help="The number of the release; by default the last.")] = None,
) -> None:
    """Show what a release published, and how many rows wait.

    \b
    Examples:
      ldiv release show warehouse.duckdb published.census 2
    """
    with _settled_engine(stored) as engine:
        entry = require_release(engine, series, release)
    notes = [*entry.report["notes"], *([entry.warning] if entry.warning else [])]
    stored.show(entry.as_dict(), Result.of_night(entry.report, notes=notes).text())


@release_app.command("diff")
@grouped
def diff_command(
    *,
    stored: CatalogOptions,
    series: Series,
    first: Annotated[int, typer.Argument(help="The earlier release.")],
    last: Annotated[int, typer.Argument(help="The later release.")],
) -> None:
    """Count what happened to rows between two releases.

    \b
    Examples:
      ldiv release diff warehouse.duckdb published.census 1 3
    """
    with _settled_engine(stored, series) as engine:
        found = releases.difference(engine, series, first, last)
    rows = [(name, f"{one:,}", f"{other:,}") for name, (one, other) in found["figures"].items()]
    beside = ("rows_first_published", "rows_first_waiting", "groups_new")
    counts = [f"{name.replace('_', ' ')}: {found[name]:,}" for name in beside]
    stored.show(found, [table_of(found["series"], ["", f"release {first}", f"release {last}"], rows), *counts])


@release_app.command("check")
@grouped
def check_command(
    *,
    stored: CatalogOptions,
    series: Annotated[str | None, typer.Argument(help="A series of the ledger.")] = None,
    tables: Annotated[dict[str, Any], OptionsOf(releases.SequenceRequest)],
) -> None:
    """Check what comparing releases reveals about any key: of a series, or of any published tables with a key.

    Groups are compared in pairs; in tables that are no series, several groups at once may reveal more.

    \b
    Examples:
      ldiv release check warehouse.duckdb published.census
      ldiv release check warehouse.duckdb --table jan --table feb --key id --group class_id --sensitive disease:3
    """
    beside = [name for name in tables if series is not None and tables[name]]
    refuse(Problem(f"--{name}", f"does not go with a series, {series}", "name a series or tables") for name in beside)
    if names_warehouse(stored.database):
        raise refused("database", f"{stored.database} is a warehouse, and releases are compared row by row", ON_ROWS)
    with _settled_engine(stored, work="comparing releases") as engine:
        if series is not None:
            found = releases.check_series(engine, series)
        else:
            found = releases.check_sequence(engine, releases.SequenceRequest(**tables))
    stored.show(found.as_dict(), chain(found.text(), [_IN_TURN] if series is None and len(found.releases) > 1 else []))
    if not found.holds:
        raise typer.Exit(1)
