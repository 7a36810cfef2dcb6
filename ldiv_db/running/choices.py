"""What a run of one release adds to a policy held against its source: its algorithm, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.algorithms.auto.from_counts import FromCounts
from ldiv_db.algorithms.base import Algorithm
from ldiv_db.algorithms.registry import ALGORITHMS, algorithm_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.policy.document import Policy
from ldiv_db.policy.policy import GivenPolicy, examine
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.publishing.destinations import Destination, destination_of
from ldiv_db.publishing.refusals import check_target
from ldiv_db.publishing.rights import require_rights


@dataclass(frozen=True)
class Choices:
    """A policy as written and held against its source, its algorithm with its options, and where the release goes."""

    policy: Policy
    resolved: Resolved
    algorithm: Algorithm
    destination: Destination


def resolve_run(engine: Engine, written: GivenPolicy, folder: Path) -> Choices:
    """The policy held against its source, for one release; raises PolicyError with all that is wrong.

    Raises DatabaseError if a run may not write what it has to.
    """
    reading = examine(written)
    if reading.policy is not None and not (reading.problems or reading.is_series):
        _require_rights(engine, reading.policy, folder)
    algorithms: list[Algorithm] = []
    destinations: list[Destination] = []

    def judge_algorithm(found: Findings) -> None:
        algorithms.append(make_algorithm(found.policy))

    def judge_target(found: Findings) -> None:
        if not found.policy.is_series and found.policy.target.prefix is None:
            destinations.append(_checked_destination(engine, found))

    checks: Mapping[str, Check] = {"algorithm": judge_algorithm, "target": judge_target}
    resolved = resolve(engine, reading, folder, checks)
    return Choices(reading.required(), resolved, algorithms[0], destinations[0])


def _require_rights(engine: Engine, policy: Policy, folder: Path) -> None:
    """Raise DatabaseError if a run may not write its release, or enter it in the ledger."""
    columns, name = policy.released.all, policy.algorithm.name
    has_rules = name in ALGORITHMS and algorithm_of(name).recodes_globally
    with suppress(PolicyError):  # which is told with all others
        destination = destination_of(engine, policy.target, folder, columns)
        require_rights(destination, policy.target, columns, has_rules)


def _checked_destination(engine: Engine, found: Findings) -> Destination:
    """The destination that the target names; raises PolicyError if a release may not go there."""
    policy, released = found.policy, found.policy.released
    destination = destination_of(engine, policy.target, found.folder, released.all)
    if found.source is not None:
        types = None if found.columns is None else released.types(found.columns)
        check_target(destination, policy, found.folder, found.source, types)
    return destination


def make_algorithm(policy: Policy) -> Algorithm:
    """The policy's algorithm with its options; raises PolicyError if there is none of that name."""
    name = policy.algorithm.name
    if policy.is_series:
        what = f"{name} with a key publishes release by release"
        raise PolicyError([Problem("algorithm.name", what, "use `ldiv release publish`, or ldiv_db.publish_release")])
    if name not in ALGORITHMS:
        raise PolicyError([Problem("algorithm.name", f"no algorithm {name!r}", nearest(name, ALGORITHMS))])
    if policy.weight is not None and not policy.names_algorithm:
        as_written = not any(setting.same for setting in policy.sensitive.values())
        return FromCounts("set" in policy.released.forms.values(), as_written)
    algorithm = algorithm_of(name)(policy.algorithm.options)
    if policy.weight is not None and not algorithm.takes_counts:
        takes = ", ".join(other for other in ALGORITHMS if algorithm_of(other).takes_counts)
        what = f"{name} makes classes of rows, and with weight the source only counts them"
        raise PolicyError([Problem("algorithm.name", what, f"{takes} plan from counts; or leave it out")])
    refuse_forms(algorithm, policy.released, [name for name, setting in policy.sensitive.items() if setting.same])
    return algorithm


def refuse_forms(algorithm: Algorithm, released: ReleaseColumns, same: Sequence[str]) -> None:
    """Raise PolicyError for sets, or sensitive texts that are the `same`, where a recoding has neither."""
    if algorithm.excludes_sets and "set" in released.forms.values():
        what = f"{algorithm.name} publishes {algorithm.excludes_sets}, not sets"
        raise PolicyError([Problem("recode", what, "set recode: tree")])
    if algorithm.recodes_globally and same:
        what = f"{algorithm.name} publishes a recoding as one SELECT, which compares values as they are written"
        raise PolicyError([Problem(f"sensitive.{name}.same", what, "leave it out") for name in same])
