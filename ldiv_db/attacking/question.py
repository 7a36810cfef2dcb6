"""Requests for attacks as callers write them: the columns that attackers see, what they know and whom they look for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.attacking.attackers import Attackers, OtherRelease, read_threshold
from ldiv_db.attacking.columns import Columns, columns_asked, columns_by_policy
from ldiv_db.attacking.matching import BUDGET
from ldiv_db.attacking.replay import Replay
from ldiv_db.attacking.several_rows import owned_rows
from ldiv_db.attacking.trials import TRIES, PeopleTrial
from ldiv_db.auditing.subject import pair_of
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.frames import is_frame
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.quasi_identifiers import open_columns, read_columns
from ldiv_db.policy.reading import (
    GivenRequirement,
    names_of,
    parse_policy,
    read_policy,
    read_requirements,
    read_sensitive,
)
from ldiv_db.policy.sources import open_given
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.risk import HIGH, bounded_risk


def _people(engine: Engine, given: Any, key: str, policy: Policy | None) -> Relation | FileRelation:
    """A table of people, its columns read as those of the policy's source; raises PolicyError."""
    table = open_given(engine, given, key)
    return table if policy is None else read_columns(engine, policy, table)


@dataclass(frozen=True)
class AttackRequest:
    """The knowledge of attackers of a published table, the attacks that they try, and the promises of the table."""

    table: Any = None
    qi: str | Sequence[str] = ()
    sensitive: str | Sequence[str] | Mapping[str, Any] = ()
    require: GivenRequirement | Iterable[GivenRequirement] | None = None
    _: KW_ONLY
    policy: Policy | Mapping[str, Any] | None = None
    folder: str | Path = "."
    class_column: str | None = None
    m: int = 1
    #: By default that of the requirement `risk`, or else of any report.
    threshold: float | str | Decimal | None = None
    known: Any = None
    population: Any = None
    population_size: int | None = None
    counting: bool = False
    also: Any = ()
    also_policies: Sequence[Policy | Mapping[str, Any] | Path] = ()
    definetti: Any = None
    sensitive_table: Any = None
    group: str | None = None
    count: str | None = None
    downcoding: bool = False
    targets: Any = None
    control: Any = None
    link_columns: tuple[Sequence[str], Sequence[str]] | None = None
    tries: int = TRIES
    seed: int = 0
    replay: Replay | None = None
    show_values: bool = False
    budget: int = BUDGET
    listener: Listener | None = None
    catalog: str | None = None

    def promised(self, policy: Policy | None) -> list[RequirementSpec]:
        """The requirements that the table is held to: those asked for, or else those of the policy."""
        if self.require is not None:
            return read_requirements(self.require)
        return list(policy.require) if policy else []

    def columns(self, engine: Engine, published: Relation | FileRelation, policy: Policy | None) -> Columns:
        """The columns that attackers see, by name or by the policy; raises PolicyError for both."""
        pair = pair_of(self.sensitive_table, self.group, self.count, partial(open_given, engine))
        folder = Path(self.folder)
        if policy is None:
            named = read_sensitive(self.sensitive)
            return columns_asked(engine, published, names_of(self.qi), named, self.class_column, folder, pair)
        if self.qi or self.sensitive or self.class_column or pair:
            raise PolicyError([Problem("policy", "already names the columns: leave this out")])
        return columns_by_policy(engine, published, policy, folder)

    def attackers(self, engine: Engine, policy: Policy | None) -> Attackers:
        """The attackers with their knowledge, the tables of people opened."""
        named = {key: getattr(self, key) for key in ("known", "population", "definetti")}
        people: dict[str, Any] = {k: _people(engine, g, k, policy) for k, g in named.items() if g is not None}
        if policy is not None and policy.individual is not None:
            source = partial(open_columns, engine, policy, Path(self.folder))
            people["owned"] = owned_rows(engine, source, policy.individual, policy.output.person)
        return Attackers(
            self.m,
            self._high(policy),
            **people,
            also=self._others(engine, policy),
            counting=self.counting,
            population_size=self.population_size,
            downcoding=self.downcoding,
            trial=self._trial(engine, policy),
            show_values=self.show_values,
            budget=self.budget,
        )

    def _high(self, policy: Policy | None) -> Decimal:
        """The risk of re-identification above which one is high."""
        if self.threshold is None:
            return bounded_risk(self.promised(policy)) or HIGH
        return read_threshold(self.threshold)

    def _others(self, engine: Engine, policy: Policy | None) -> list[OtherRelease]:
        """The other releases, each by its policy or all by one; raises PolicyError if they do not go together."""
        tables = [self.also] if isinstance(self.also, str) or is_frame(self.also) else self.also
        policies = self.also_policies or ([] if policy is None else [policy])
        if tables and not policies:
            raise PolicyError([Problem("also", "needs a policy, which says what labels stand for", "give --policy")])
        if len(policies) > 1 and len(policies) != len(tables):
            raise PolicyError([Problem("also-policy", f"{len(policies)} policies for {len(tables)} other releases")])
        found = []
        for number, name in enumerate(tables):
            given = policies[number if len(policies) > 1 else 0]
            folder = given.parent if isinstance(given, Path) else Path(self.folder)
            read = read_policy(given) if isinstance(given, Path) else parse_policy(given)
            table = open_given(engine, name, "also")
            found.append(OtherRelease(table, columns_by_policy(engine, table, read, folder)))
        return found

    def _trial(self, engine: Engine, policy: Policy | None) -> PeopleTrial | None:
        """The trial on people that are named; raises PolicyError for a control or parts without targets."""
        link = self.link_columns
        if self.targets is None:
            what = "needs targets, people who are in the release"
            without = {"control": self.control, "link_columns": link}
            refuse([Problem(key, what) for key, given in without.items() if given is not None])
            return None
        parts = None if link is None else (tuple(names_of(link[0])), tuple(names_of(link[1])))
        targets = _people(engine, self.targets, "targets", policy)
        control = None if self.control is None else _people(engine, self.control, "control", policy)
        return PeopleTrial(targets, control, parts, self.tries, self.seed)

    def refuse_replay(self, policy: Policy | None) -> None:
        """Raise PolicyError for a replay that is none, or lacks a policy."""
        if self.replay is None:
            return
        problems = list(self.replay.problems())
        if policy is None:
            problems.append(Problem("replay", "needs the policy of the release", "give --policy"))
        elif any(setting.set for setting in policy.sensitive.values()):
            problems.append(Problem("replay", "compares releases by single values, not sets"))
        elif any(setting.same for setting in policy.sensitive.values()):
            problems.append(Problem("replay", "compares releases as they are written, without `same`"))
        if policy is not None and policy.counts_people:
            problems.append(Problem("replay", "runs the policy on rows, and this one counts people"))
        if policy is not None and not policy.sensitive:
            problems.append(Problem("replay", "needs a sensitive attribute"))
        refuse(problems)
