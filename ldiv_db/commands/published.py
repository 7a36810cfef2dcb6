"""`ldiv attack` and `ldiv measure`: what a published table reveals against what is promised, and what it lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import attack, measure
from ldiv_db.attacking.question import AttackRequest
from ldiv_db.commands.console import split_columns
from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, OutputOptions, Released, grouped
from ldiv_db.commands.table_options import AskedTable, Attributes
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.measuring.measure import MeasureRequest
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import Policy, read_policy


@grouped
def attack_command(
    *,
    database: Database,
    published: Released = None,
    table: AskedTable,
    attributes: Attributes,
    asked: Annotated[dict[str, Any], OptionsOf(AttackRequest)],
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Attack a published table: compare what attackers gain with what the requirements promise.

    Homogeneity, skewness, background knowledge of m excluded values, posterior, prosecutor and marketer risk, and the
    form of the table are always tried. Other attacks need an option; several rows of a person a --policy with an
    individual.

    The exit code is 1 if a promise is broken, or if an attack that might break one stopped at its --budget. Without
    --show-values only counts are printed.

    \b
    Examples:
      ldiv attack warehouse.duckdb published.patients --qi age,sex --sensitive disease --require distinct:3
      ldiv attack warehouse.duckdb published.patients --policy policy.yml --known people.csv --population patients
      ldiv attack warehouse.duckdb published.patients --policy policy.yml --targets patients --control held_out.csv
      ldiv attack :memory: release.parquet --qi age --sensitive disease \\
        --categories '[[HIV, Cancer], [Flu, Cold]]' --m 2
      ldiv attack warehouse.duckdb published.patients --policy policy.yml --replay
      ldiv attack warehouse.duckdb --policy schema.yml
      ldiv attack warehouse.duckdb qit --sensitive-table st --group group_id --qi age --sensitive disease \\
        --definetti patients
    """
    policy = table.written
    described = attributes.of(list(policy.sensitive) if policy else table.sensitive or [])
    with (
        resources.open(database, True, vars(table) | asked) as connection,
        output.progress("reading the table") as listener,
    ):
        found = attack(
            connection,
            published,
            split_columns(connection, published, table.qi),
            {name: described.get(name) for name in table.sensitive or []},
            table.require or None,
            policy=policy and _with_settings(policy, described),
            folder=table.policy.parent if table.policy else Path(),
            **asked,
            listener=listener,
            catalog=resources.catalog_name,
        )
    named = published or (policy.places if policy else "")
    output.show({"table": named, **found.as_dict()}, found.text(table=named))
    raise typer.Exit(1 if found.holds is False or found.undecided else 0)


def _with_settings(policy: Policy, described: Mapping[str, Sensitive]) -> Policy:
    """The policy with what the options say of sensitive attributes, of which it says nothing itself."""
    said = {name: setting for name, setting in described.items() if setting != Sensitive()}
    twice = [name for name in said if policy.sensitive[name] != Sensitive()]
    if twice:
        what = "the policy says what its categories, weights, taxonomy and harmless values are"
        raise PolicyError([Problem(f"sensitive.{name}", what) for name in twice])
    return policy.model_copy(update={"sensitive": policy.sensitive | said}) if said else policy


@grouped
def measure_command(
    *,
    database: Database,
    published: Released = None,
    policy: Annotated[Path | None, typer.Option(help="A policy: its source, quasi-identifiers and l.")] = None,
    wanted: Annotated[dict[str, Any], OptionsOf(MeasureRequest)],
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Measure what any published table lost against its source; writes nothing.

    A published cell is a value of the source, a label of the taxonomy, a range [min .. max], a {set}, * or NULL, or
    two columns NAME_min and NAME_max.

    \b
    Examples:
      ldiv measure warehouse.duckdb published.patients --policy policy.yml
      ldiv measure warehouse.duckdb other.csv --policy policy.yml --queries 1000 --json
      ldiv measure warehouse.duckdb --policy schema.yml
      ldiv measure :memory: other.csv --source patients.csv --qi age --qi country=country.csv --sensitive disease --l 3
    """
    if policy is not None and (wanted["qi"] or wanted["sensitive"]):
        raise PolicyError([Problem("policy", "says what the columns are", "leave out --qi and --sensitive")])
    folder, read = policy.parent if policy else Path(), read_policy(policy) if policy else None
    opened = resources.open(database, True, wanted | {"policy": policy})
    with opened as connection, output.progress("measuring what was lost") as listener:
        wanted |= {"folder": folder, "listener": listener, "catalog": resources.catalog_name}
        found = measure(connection, published, read, **wanted)
    output.show(found.as_dict(), found.text())
