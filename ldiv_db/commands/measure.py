"""`ldiv measure`: what a published table lost against its source, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ldiv_db.api import measure
from ldiv_db.commands.console import print_json, printer
from ldiv_db.commands.options import (
    ClassColumn,
    Database,
    DatabaseOptions,
    Json,
    Published,
    ShowValues,
    grouped,
)
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.measuring.measure import MOST_QUERIES, Measurement
from ldiv_db.policy.parts import LARGEST_SEED
from ldiv_db.policy.reading import read_policy
from ldiv_db.publishing.result import DISTINCT_CLASSES
from ldiv_db.requirements.parameters import LARGEST

measure_app = typer.Typer(add_completion=False, rich_markup_mode=None)

#: The endings of files that hold a taxonomy.
_TAXONOMY_FILES = (".csv", ".yml", ".yaml", ".json")


@dataclass(frozen=True)
class MeasureOptions:
    """Further measures, by the names that the Python call has for them."""

    l: Annotated[  # noqa: E741 - the field's name for it
        int | None,
        typer.Option("--l", min=1, max=LARGEST, help="The l of CAVG; the policy's by default.", show_default=False),
    ] = None
    class_column: ClassColumn = None
    class_label: Annotated[str | None, typer.Option(help="A published column: the class label of CM.")] = None
    queries: Annotated[int, typer.Option(min=0, max=MOST_QUERIES, help="Random COUNT queries to answer.")] = 0
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Draws the queries.")] = 0
    kl: Annotated[bool, typer.Option("--kl/--no-kl", help="Work out the KL divergence.")] = True


@measure_app.command("measure")
@grouped
def measure_command(
    *,
    database: Database,
    published: Published,
    policy: Annotated[
        Path | None, typer.Option(help="A policy: its source, quasi-identifiers and l.", show_default=False)
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="The original table, view or file; the policy's by default.", show_default=False)
    ] = None,
    qi: Annotated[
        list[str] | None,
        typer.Option(
            help="Without a policy: a quasi-identifier, generalised by its type (numbers and times to ranges), or"
            " NAME=TAXONOMY (a file, or a name in the catalog); repeated.",
            show_default=False,
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="Without a policy: a sensitive attribute; repeated.", show_default=False)
    ] = None,
    wanted: MeasureOptions,
    resources: DatabaseOptions,
    show_values: ShowValues = False,
    json: Json = False,
) -> None:
    """Measure what any published table lost against its source; writes nothing.

    Published values may be values of the source, labels of the taxonomy, [min-max] ranges, {sets}, * and NULL, or two
    columns NAME_min and NAME_max. DATABASE may be :memory: if the tables are files.

    \b
    Examples:
      ldiv measure warehouse.duckdb published.patients --policy policy.yml
      ldiv measure warehouse.duckdb other.csv --policy policy.yml --queries 1000 --json
      ldiv measure :memory: other.csv --source patients.csv --qi age --qi country=country.csv --sensitive disease --l 3
    """
    if policy is not None and (qi or sensitive):
        raise PolicyError([Problem("policy", "says what the columns are", "leave out --qi and --sensitive")])
    folder = policy.parent if policy else Path()
    keys = dict(map(_key, qi or []))
    with resources.open(database, read_only=True) as connection:
        found = measure(
            connection,
            published,
            read_policy(policy) if policy else None,
            source=source,
            qi=keys,
            sensitive=sensitive or [],
            folder=folder,
            **vars(wanted),
            catalog=resources.catalog_name,
            show_values=show_values,
        )
    if json:
        print_json(found.as_dict())
    else:
        print_measurement(printer(), found)


def _key(text: str) -> tuple[str, dict[str, Any]]:
    """A quasi-identifier as a policy has it: `age`, or `country=country.csv`."""
    name, equals, taxonomy = text.rpartition("=")
    if not equals:
        return text, {}
    if Path(taxonomy).suffix.lower() in _TAXONOMY_FILES:
        return name, {"taxonomy": {"file": taxonomy}}
    return name, {"taxonomy": taxonomy}


def print_measurement(console: Console, found: Measurement) -> None:
    """The measurement as a table."""
    loss = found.loss
    table = Table(title=f"{found.source} → {found.published}", show_header=False)
    table.add_row("rows of the source", f"{found.rows_in:,}")
    table.add_row("rows published", f"{loss.rows_published:,}")
    table.add_row("rows suppressed", f"{loss.rows_suppressed:,}")
    if found.rows_added:
        table.add_row("rows more than the source has", f"{found.rows_added:,}")
    table.add_row("sensitive cells left blank", f"{loss.cells_suppressed:,}")
    table.add_row(DISTINCT_CLASSES, f"{loss.classes:,}")
    sizes = f"{loss.average_class_size:.2f} on average, {loss.smallest_class} to {loss.largest_class}"
    table.add_row("class size", sizes)
    table.add_row("LM, NCP", f"{loss.lm_mean:.4f}, {loss.ncp_mean:.4f} of 1 per cell")
    for name, value in loss.lm_by_column.items():
        table.add_row(f"  LM of {name}", f"{value:.4f}")
    table.add_row("stars", f"{loss.stars:,} cells fully generalised")
    table.add_row("DM", f"{loss.dm:,}")
    for name, text in _optional(found):
        table.add_row(name, text)
    console.print(table)


def _optional(found: Measurement) -> list[tuple[str, str]]:
    """The lines of measures that were asked for, or can be known."""
    lines = []
    if found.l:
        lines.append((f"CAVG for l = {found.l}", f"{found.loss.cavg(found.l):.4f}"))
    if found.cm is not None:
        lines.append(("CM", f"{found.cm:,}"))
    if found.rows_uncovered is not None:
        kl = "infinite" if found.loss.kl is None else f"{found.loss.kl:.4f} nats"
        lines.append(("KL", kl))
        lines.append(("source rows that no published row covers", f"{found.rows_uncovered:,}"))
        lines.append(("published rows that cover no source row", f"{found.rows_unmatched:,}"))
    if errors := found.queries:
        lines.append(
            (f"error of {errors.queries:,} COUNT queries", f"{errors.mean:.4f} mean, {errors.median:.4f} median")
        )
    return lines
