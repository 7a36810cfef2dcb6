"""`ldiv attack`: what attackers gain from a published table, against what is promised."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import attack
from ldiv_db.attacking.question import AttackRequest
from ldiv_db.commands.console import ProgressDisplay, show, split_columns
from ldiv_db.commands.options import Database, DatabaseOptions, Json, OptionsOf, Published, grouped
from ldiv_db.commands.table_options import AskedTable, Attributes
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import Policy


@grouped
def attack_command(
    *,
    database: Database,
    published: Published,
    table: AskedTable,
    attributes: Attributes,
    asked: Annotated[dict[str, Any], OptionsOf(AttackRequest)],
    resources: DatabaseOptions,
    json: Json = False,
) -> None:
    """Attack a published table: compare what attackers gain with what the requirements promise.

    Always tried: homogeneity, skewness, background knowledge of m excluded values, posterior, prosecutor and marketer
    risk, and the form of the table. Other attacks need an option; several rows of a person need a --policy with an
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
      ldiv attack warehouse.duckdb qit --sensitive-table st --group group_id --qi age --sensitive disease \\
        --definetti patients
    """
    policy = table.written
    described = attributes.of(list(policy.sensitive) if policy else table.sensitive or [])
    with (
        resources.open(database, True, vars(table) | asked) as connection,
        ProgressDisplay() if asked["replay"] else nullcontext() as listener,
    ):
        found = attack(
            connection,
            published,
            split_columns(connection, published, table.qi),
            {name: described.get(name) for name in table.sensitive or []},
            table.require or None,
            policy=policy and _with_settings(policy, described),
            folder=table.policy.parent if table.policy else Path(),
            class_column=table.class_column,
            **asked,
            listener=listener,
            catalog=resources.catalog_name,
        )
    show({"table": published, **found.as_dict()}, found.text(table=published), json)
    raise typer.Exit(1 if found.holds is False or found.undecided else 0)


def _with_settings(policy: Policy, described: Mapping[str, Sensitive]) -> Policy:
    """The policy with what the options say of sensitive attributes, of which it says nothing itself."""
    said = {name: setting for name, setting in described.items() if setting != Sensitive()}
    twice = [name for name in said if policy.sensitive[name] != Sensitive()]
    if twice:
        what = "the policy says what its categories, weights, taxonomy and harmless values are"
        raise PolicyError([Problem(f"sensitive.{name}", what) for name in twice])
    return policy.model_copy(update={"sensitive": policy.sensitive | said})
