"""Specification of a run: its policy held against the source, its algorithm, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.algorithms import algorithm_of
from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.auditing.refusals import require_listed
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.policy.document import Policy
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sensitive import Required, absent_values, asked_l
from ldiv_db.policy.sources import place_of
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.destinations import destination_of
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.place_there import PlaceThere
from ldiv_db.publishing.refusals import TargetCheck
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.units import Units, units_of
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.values import Named
from ldiv_db.running.policy_algorithm import make_algorithm
from ldiv_db.running.rights import require_rights


@dataclass(frozen=True)
class RunSpec:
    """A policy held against its source, its algorithm with its options, and where the release goes."""

    resolved: Resolved
    algorithm: Algorithm
    destination: Destination


def resolve_run(engine: Engine, policy: Policy, folder: Path) -> RunSpec:
    """The policy held against its source, for one release; raises PolicyError with all that is wrong.

    Raises DatabaseError if a run may not write what it has to.
    """
    if place_of(policy.source) is None and not problems_of(policy):
        with suppress(PolicyError):  # which is told with all others
            require_rights(destination_of(engine, policy.targets, folder, policy.released.all), policy)
    resolved, algorithm = resolve_algorithm(engine, policy, folder, target=partial(_checked_destination, engine))
    return RunSpec(resolved, algorithm, resolved.judged["target"])


def resolve_algorithm(engine: Engine, policy: Policy, folder: Path, **checks: Check) -> tuple[Resolved, Algorithm]:
    """The policy held against its source, with further checks, and its algorithm; raises PolicyError."""
    checks["algorithm"] = lambda found: make_algorithm(found.policy)
    resolved = resolve(engine, policy, folder, checks)
    return resolved, resolved.judged["algorithm"]


def _checked_destination(engine: Engine, found: Findings) -> Destination | None:
    policy, released, place = found.policy, found.policy.released, place_of(found.policy.source)
    if isinstance(place, PlaceThere) and not policy.target.is_elsewhere:
        return InWarehouse(place, policy.target).checked(found)
    if policy.target.prefix is not None:
        return None
    destination = destination_of(engine, policy.targets, found.folder, released.all)
    destination.keeper = place
    if found.source is not None:
        types = None if found.columns is None else released.types(found.columns)
        TargetCheck(destination, policy, found.folder, [found.source], types).refuse()
    return destination


@dataclass(frozen=True)
class PreparedRun:
    """A policy, its algorithm and the encoded table: all that classes are made of."""

    resolved: Resolved
    algorithm: Algorithm
    task: Task
    #: The rows as they were read, of which another policy may make another task.
    read: Encoded
    #: Why this algorithm was chosen, if the policy left it open.
    chosen: str = ""
    #: The values with thresholds of their own that no row has.
    absent: Sequence[Named] = ()
    #: By what numbers of people are drawn, where the release has these.
    secret: str = field(default="", repr=False)

    @property
    def units(self) -> Units | None:
        """The units in which the task sees the rows, where people are counted in their place."""
        return self.task.units

    @property
    def encoded(self) -> Encoded:
        """The rows, whatever the task sees in their place."""
        return self.units.rows if self.units else self.task.encoded

    @property
    def requirements(self) -> Mapping[str, Sequence[Requirement]]:
        """The requirements on each sensitive attribute."""
        return self.task.wanted


def l_of(algorithm: str, requirements: Sequence[Requirement], l: int) -> Any:
    """The `l` of an algorithm's classes of different values; of others the l that is asked for, None if none is."""
    return asked_l(requirements) if algorithm_of(algorithm).traits.meets_whole else l


def resolve_requirements(
    engine: Engine, required: Required, encoded: Encoded, units: Units | None = None
) -> tuple[dict[str, list[Requirement]], list[Named]]:
    """The requirements on each sensitive attribute, resolved against the source's values, as `units` have them.

    Also the values with thresholds of their own that no row has.
    """
    counted = units.encoded if units else encoded
    automatic = any(spec.is_auto for spec in required.specs)
    asked = [key.asked_distribution for key in counted.keys]
    if units and not units.together and automatic:  # classes are judged by people, and by rows
        with engine.scope():
            asked = [key.asked_distribution for key in units_of(engine, encoded, together=True).encoded.sensitive]
        asked += [key.asked_distribution for key in encoded.sensitive]
    hardest = min(asked, key=lambda found: found.largest_l)
    requirements = required.resolved(hardest)
    absent = absent_values(engine, requirements, {s.column.name: (s.values, "value") for s in encoded.sensitive})
    for axis, known in zip(counted.sensitive, encoded.sensitive, strict=True):
        name, categories = axis.column.name, required.attributes[axis.column.name].categories
        requirements[name] = [found.spread(engine, axis.values) for found in requirements[name]]
        if categories is not None:
            require_listed(engine, name, categories, known.values)
    return requirements, absent
