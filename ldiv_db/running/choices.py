"""What a run of one release adds to a policy held against its source: its algorithm, and the place it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.algorithms import ALGORITHMS, Algorithm
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.policy.document import Policy
from ldiv_db.policy.policy import Written
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.publishing.collisions import refuse_read_target
from ldiv_db.publishing.destinations import Place, place_of


@dataclass(frozen=True)
class Choices:
    """A policy held against its source, its algorithm with its options, and the place of the release."""

    resolved: Resolved
    algorithm: Algorithm
    place: Place


def resolve_run(engine: Engine, written: Written, folder: Path) -> Choices:
    """The policy held against its source, for one release; raises PolicyError with all that is wrong."""
    algorithms: list[Algorithm] = []
    places: list[Place] = []

    def check_algorithm(found: Findings) -> None:
        algorithms.append(make_algorithm(found.policy))

    def check_target(found: Findings) -> None:
        if not found.policy.is_series:
            places.append(_checked_place(engine, found))

    checks: Mapping[str, Check] = {"algorithm": check_algorithm, "target": check_target}
    resolved = resolve(engine, written, folder, checks)
    return Choices(resolved, algorithms[0], places[0])


def _checked_place(engine: Engine, found: Findings) -> Place:
    """The place that the target names; raises PolicyError if a release may not go there."""
    place = place_of(engine, found.policy, found.folder)
    if found.source is not None:
        types = None if found.columns is None else found.policy.released.types(found.columns)
        place.check(found.source, types)
        refuse_read_target(engine, found.policy, found.folder, found.source)
    return place


def make_algorithm(policy: Policy) -> Algorithm:
    """The policy's algorithm with its options; raises PolicyError if there is none of that name."""
    name = policy.algorithm.name
    if policy.is_series:
        what = f"{name} with a key publishes release by release"
        raise PolicyError([Problem("algorithm.name", what, "use `ldiv release publish`, or ldiv_db.publish_release")])
    kind = ALGORITHMS.get(name)
    if kind is None:
        raise PolicyError([Problem("algorithm.name", f"no algorithm {name!r}", nearest(name, ALGORITHMS))])
    algorithm = kind(policy.algorithm.options)
    if algorithm.excludes_sets and "set" in policy.released.forms.values():
        what = f"{algorithm.name} publishes {algorithm.excludes_sets}, not sets"
        raise PolicyError([Problem("recode", what, "set recode: tree")])
    return algorithm
