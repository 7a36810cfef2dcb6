"""`ldiv measure`: what a published table lost against its source, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import measure
from ldiv_db.commands.console import show
from ldiv_db.commands.options import Database, DatabaseOptions, Json, OptionsOf, Published, ShowValues, grouped
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.measuring.measure import MeasureRequest
from ldiv_db.policy.reading import read_policy

#: The endings of files that hold a taxonomy.
_TAXONOMY_FILES = (".csv", ".yml", ".yaml", ".json")


@grouped
def measure_command(
    *,
    database: Database,
    published: Published,
    policy: Annotated[Path | None, typer.Option(help="A policy: its source, quasi-identifiers and l.")] = None,
    source: Annotated[str | None, typer.Option(help="The source table or file; by default the policy's.")] = None,
    qi: Annotated[
        list[str] | None,
        typer.Option(
            help="Without a policy: a quasi-identifier (numbers and times generalise to ranges), or NAME=TAXONOMY (a"
            " file, or a name in the catalog); repeated."
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="Without a policy: a sensitive attribute; repeated.")
    ] = None,
    wanted: Annotated[dict[str, Any], OptionsOf(MeasureRequest)],
    resources: DatabaseOptions,
    show_values: ShowValues = False,
    json: Json = False,
) -> None:
    """Measure what any published table lost against its source; writes nothing.

    A published cell is a value of the source, a label of the taxonomy, a range [min .. max], a {set}, * or NULL, or
    two columns NAME_min and NAME_max.

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
    asked = {"qi": keys, "sensitive": sensitive, "policy": policy, **wanted}
    with resources.open(database, True, asked) as connection:
        found = measure(
            connection,
            published,
            read_policy(policy) if policy else None,
            source=source,
            qi=keys,
            sensitive=sensitive or [],
            folder=folder,
            **wanted,
            catalog=resources.catalog_name,
            show_values=show_values,
        )
    show(found.as_dict(), found.text(), json)


def _key(text: str) -> tuple[str, dict[str, Any]]:
    """A quasi-identifier as a policy has it: `age`, or `country=country.csv`."""
    name, equals, taxonomy = text.rpartition("=")
    if not equals:
        return text, {}
    if Path(taxonomy).suffix.lower() in _TAXONOMY_FILES:
        return name, {"taxonomy": {"file": taxonomy}}
    return name, {"taxonomy": taxonomy}
