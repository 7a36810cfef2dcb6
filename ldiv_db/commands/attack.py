"""`ldiv attack`: what attackers gain from a published table, against what is promised."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import attack
from ldiv_db.attacking.matching import BUDGET
from ldiv_db.attacking.replay import Replay
from ldiv_db.attacking.trials import MOST_TRIES, TRIES
from ldiv_db.commands.console import ProgressDisplay, show, split_columns
from ldiv_db.commands.options import (
    Budget,
    Control,
    CountColumn,
    Database,
    DatabaseOptions,
    Group,
    Json,
    PopulationSize,
    Published,
    SensitiveTable,
    grouped,
)
from ldiv_db.commands.table_options import AskedTable, Attributes
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import Policy
from ldiv_db.requirements.parameters import LARGEST

#: More digits than any seed has are as wrong as one more.
_DIGITS = 60


@dataclass(frozen=True)
class Knowledge:
    """Further knowledge of attackers, under the names that the Python call has for it."""

    m: Annotated[
        int,
        typer.Option("--m", min=0, max=LARGEST, help="How many sensitive values of a class the attacker can rule out."),
    ] = 1
    threshold: Annotated[
        str | None,
        typer.Option(help="A risk above this counts as high: that of the requirement `risk`, or else 0.2."),
    ] = None
    known: Annotated[str | None, typer.Option(help="A table or file of people whose quasi-identifiers are known.")] = (
        None
    )
    population: Annotated[
        str | None, typer.Option(help="A table or file of everybody who could be in the release, e.g. the source.")
    ] = None
    population_size: PopulationSize = None
    counting: Annotated[
        bool,
        typer.Option("--counting", help="Work out who can be in which class if --population lists everybody."),
    ] = False
    also: Annotated[
        list[str] | None, typer.Option(help="Another release that holds the known people too; may be repeated.")
    ] = None
    also_policies: Annotated[
        list[Path] | None,
        typer.Option(
            "--also-policy",
            help="The policy of the other releases, or one for each in their order; by default --policy.",
        ),
    ] = None
    definetti: Annotated[
        str | None,
        typer.Option(help="Guess the sensitive values of the people in this table or file, which has the true ones."),
    ] = None
    sensitive_table: SensitiveTable = None
    group: Group = None
    count: CountColumn = None
    downcoding: Annotated[
        bool, typer.Option("--downcoding", help="Narrow labels, since a class has rows at both ends of each range.")
    ] = False
    targets: Annotated[
        str | None, typer.Option(help="A table or file of people in the release, with sensitive values.")
    ] = None
    control: Control = None
    link_columns: Annotated[
        str | None, typer.Option(help="The two parts of a person's record to link, e.g. 'age,sex|zip'.")
    ] = None
    tries: Annotated[
        int, typer.Option(min=1, max=MOST_TRIES, help="How many targets, control people and predicates to try.")
    ] = TRIES
    seed: Annotated[int, typer.Option(min=0, help="The seed of random draws.")] = 0
    show_values: Annotated[
        bool, typer.Option("--show-values", help="List known people and what is revealed about them.")
    ] = False

    @property
    def asked(self) -> dict[str, Any]:
        """The same as Python callers write it."""
        parts = {"also": self.also or (), "also_policies": self.also_policies or ()}
        return {**vars(self), **parts, "link_columns": _two_parts(self.link_columns)}


@dataclass(frozen=True)
class ReplayOptions:
    """Options for running the program again."""

    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Replay: run the program again on other sensitive values that the release allows."
        ),
    ] = False
    replay_seed: Annotated[
        str | None, typer.Option(help="The seed of the release; by default that of the policy or the ledger.")
    ] = None
    replay_tries: Annotated[
        int | None,
        typer.Option(min=1, max=LARGEST, help="Replay without the seed: draw this many seeds for each world."),
    ] = None
    replay_limit: Annotated[
        int,
        typer.Option(
            min=2, max=LARGEST, help="About how many worlds (assignments of sensitive values) to try at most."
        ),
    ] = Replay().limit

    @property
    def asked(self) -> Replay | None:
        """The replay of the method, None if there is none; raises PolicyError for options that need one."""
        seed, tries = self.replay_seed, self.replay_tries
        if not self.replay:
            given = {"replay_seed": seed, "replay_tries": tries}
            if beside := [name for name, value in given.items() if value is not None]:
                raise PolicyError(Problem(name, "goes with a replay", "give --replay") for name in beside)
            return None
        if seed is not None and not (seed.isascii() and seed.isdigit()):
            raise PolicyError([Problem("replay_seed", f"takes a whole number, not {seed!r}")])
        return Replay(None if seed is None else int(seed[:_DIGITS]), tries or 0, self.replay_limit)


@grouped
def attack_command(
    *,
    database: Database,
    published: Published,
    table: AskedTable,
    attributes: Attributes,
    knowledge: Knowledge,
    replaying: ReplayOptions,
    budget: Budget = BUDGET,
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
    replayed = replaying.asked
    policy = table.written
    described = attributes.of(list(policy.sensitive) if policy else table.sensitive or [])
    with (
        resources.open(database, True, vars(table) | vars(knowledge)) as connection,
        ProgressDisplay() if replayed else nullcontext() as listener,
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
            **knowledge.asked,
            replay=replayed,
            budget=budget,
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


def _two_parts(written: str | None) -> tuple[list[str], list[str]] | None:
    """The two lists of columns that are parted by `|`."""
    if written is None:
        return None
    parts = [[name.strip() for name in part.split(",") if name.strip()] for part in written.split("|")]
    if len(parts) != 2:
        raise PolicyError([Problem("link_columns", f"takes two lists of columns, not {len(parts)}", "a,b|c,d")])
    return parts[0], parts[1]
