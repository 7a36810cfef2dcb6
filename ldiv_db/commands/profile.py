"""`ldiv profile`: how identifying a table's columns are, and a policy to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ldiv_db.commands.console import ProgressDisplay, print_json, printer, split_names
from ldiv_db.commands.options import (
    Database,
    DatabaseOptions,
    Json,
    PopulationSize,
    Published,
    Quiet,
    grouped,
)
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.sources import resolve_source
from ldiv_db.measuring.profile import Profile, profile_table
from ldiv_db.measuring.starter_policy import (
    StarterPolicy,
    make_starter_policy,
    policy_source,
    refuse_folder,
    write_starter_policy,
)
from ldiv_db.measuring.uniqueness import RARE
from ldiv_db.publishing.result import print_rows

profile_app = typer.Typer(add_completion=False, rich_markup_mode=None)

#: Values of a sensitive column whose rows are shown.
_SHOWN = 20
#: Of the unique rows, the share that some column alone must make unique for the columns to be left out in turn.
_TELLING = 0.01


@profile_app.command("profile")
@grouped
def profile_command(
    *,
    database: Database,
    table: Published,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="A sensitive attribute; may be repeated.", show_default=False)
    ] = None,
    qi: Annotated[
        list[str] | None,
        typer.Option(help="Quasi-identifiers, comma-separated or repeated; guessed if not given.", show_default=False),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="Write the policy here and, beside it, level files for quasi-identifiers of text: they list the"
            " column's values, into which groups can be written. Nothing is overwritten.",
            show_default=False,
        ),
    ] = None,
    population_size: PopulationSize = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the sensitive values that comments of the policy name.")
    ] = False,
    json: Json = False,
    resources: DatabaseOptions,
    quiet: Quiet = False,
) -> None:
    """Show how identifying a table's columns are, and a policy to start from; writes nothing to the database.

    Without --qi columns are taken for identifiers if nearly every row has its own value, if they name rows of
    another table, or by their name, and otherwise for quasi-identifiers; the reason is shown. The policy says
    what a column is on the screen. Without --sensitive it asks for k-anonymity. Only counts are printed, no values.

    \b
    Examples:
      ldiv profile warehouse.duckdb patients --sensitive disease
      ldiv profile warehouse.duckdb patients --sensitive disease --qi age,sex,zip --policy policy.yml
      ldiv profile warehouse.duckdb patients --qi age,sex,zip --population-size 83000000
    """
    if policy is not None:
        refuse_folder(policy)
    with (
        resources.open(database, read_only=True) as connection,
        ProgressDisplay(quiet, "counting columns") as listener,
    ):
        engine = Engine(connection, on_step=listener.on_step, catalog=resources.catalog_name)
        relation = resolve_source(engine, table, Path(), "table")
        names = {column.name.lower() for column in columns_of(engine, relation)}
        keys = None if qi is None else split_names(qi, names)
        secrets = split_names(sensitive or [], names)
        found = profile_table(engine, relation, keys, secrets, listener.on_progress, population_size)
        source = policy_source(table, relation, policy.parent if policy else Path())
        skeleton, reason = make_starter_policy(engine, found, relation, source)
    written = _write(skeleton, reason, policy)
    if json:
        document = {**found.as_dict(), "policy": skeleton.policy if skeleton else None}
        print_json({**document, "note": reason, "written": [str(path) for path in written]})
        return
    print_profile(printer(), found)
    _print_skeleton(skeleton, reason, written, show_values)


def _write(skeleton: StarterPolicy | None, reason: str, policy: Path | None) -> list[Path]:
    """The files that were written: none if none were asked for."""
    if policy is None:
        return []
    if skeleton is None:
        raise InfeasibleError(f"no policy was written: {reason}")
    return write_starter_policy(skeleton, policy)


def print_profile(console: Console, found: Profile) -> None:
    """The profile as tables."""
    document = found.as_dict()
    rows = [
        (
            *(c[key] for key in ("column", "type", "role", "reason")),
            *(f"{c['distinct']:,}", f"{c['nulls']:,}", f"{c['largest_share']:.1%}"),
        )
        for c in document["columns"]
    ]
    headings = ("column", "type", "role", "reason", "different values", "NULLs", "most frequent value")
    print_rows(console, f"{found.table}: {found.rows:,} rows", headings, rows)
    if document["uniqueness"]:
        _print_uniqueness(console, document["uniqueness"])
    for column in document["sensitive"]:
        _print_sensitive(console, column)


def _print_uniqueness(console: Console, found: dict[str, Any]) -> None:
    table = Table(title="how far the quasi-identifiers together distinguish rows", show_header=False)
    table.add_row("different combinations", f"{found['combinations']:,}")
    table.add_row("unique rows", f"{found['unique_rows']:,} ({found['unique_share']:.1%})")
    rare, share = found[f"rows_below_{RARE}"], found[f"share_below_{RARE}"]
    table.add_row(f"rows that share it with fewer than {RARE - 1} others", f"{rare:,} ({share:.1%})")
    if found["population"]:
        _add_population(table, found["population"])
    console.print(table)
    _print_few_columns(console, found["few_columns"])
    parts = sorted(found["contributions"], key=lambda part: -part["explains"])
    if not parts or parts[0]["explains"] < _TELLING * found["unique_rows"]:
        return  # where many columns tell who somebody is, none is missed
    rows = [(p["column"], f"{p['unique_rows_without']:,}", f"{p['explains']:,}") for p in parts]
    print_rows(console, "each one's contribution", ("left out", "unique rows then", "fewer by"), rows)


def _add_population(table: Table, found: dict[str, Any]) -> None:
    """Add the number of people unique in the population by each model; mark the one that Dankar et al. choose."""
    for name, estimate in found["estimates"].items():
        uniques = estimate["unique_people"]
        share = "no estimate" if uniques is None else f"{uniques:,.0f} ({uniques / found['size']:.2%})"
        reason = f": {estimate['reason']}" if estimate["reason"] else ""
        chosen = ", the one to go by" if name == found["model"] else ""
        table.add_row(f"unique among {found['size']:,} people, by {name}{chosen}", f"{share}{reason}")


def _print_few_columns(console: Console, found: list[dict[str, Any]]) -> None:
    """Print how far one, two or three columns identify people: an attacker rarely knows them all."""
    rows = [(", ".join(few["columns"]), f"{few['combinations']:,}", f"{few['unique_rows']:,}") for few in found]
    if rows:
        title = "which few of them distinguish most rows"
        print_rows(console, title, ("columns", "different combinations", "unique rows"), rows)


def _print_sensitive(console: Console, found: dict[str, Any]) -> None:
    table = Table(title=f"sensitive: {found['column']}", show_header=False)
    table.add_row("different values", f"{found['distinct']:,}")
    if found["distinct_folded"] < found["distinct"]:
        table.add_row("different but for case and blanks", f"{found['distinct_folded']:,}")
    table.add_row("most frequent value", f"{found['largest_share']:.1%} of the rows")
    table.add_row("rows by value", _histogram(found))
    table.add_row("largest feasible l", f"{found['largest_l']}")
    table.add_row("entropy", f"{found['entropy']:.2f} bits")
    console.print(table)


def _histogram(found: dict[str, Any]) -> str:
    """The rows of the most frequent values, without the values."""
    counts = found["histogram"][:_SHOWN]
    more = found["distinct"] + (found["nulls"] > 0) - len(counts)
    return ", ".join(f"{count:,}" for count in counts) + (f" and of {more:,} more" if more else "")


def _print_skeleton(skeleton: StarterPolicy | None, reason: str, written: list[Path], show_values: bool) -> None:
    if skeleton is None:
        typer.echo(f"note: {reason}")
    elif written:
        for path in written:
            typer.echo(f"written: {path}")
    else:
        typer.echo(f"\n{skeleton.text if show_values else skeleton.shown_text}", nl=False)
        if skeleton.shown_text != skeleton.text and not show_values:
            typer.echo("# `…` stands for a sensitive value: --policy FILE writes it, --show-values shows it here.")
