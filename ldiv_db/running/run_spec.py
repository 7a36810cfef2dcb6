"""Specification of a run: its policy held against the source, its algorithm, where it goes, and the rights it needs.

Rights are looked up before work starts, and errors name the grants that are lacking.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.auditing.refusals import require_listed
from ldiv_db.database import catalog, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading, members_of
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem, nearest, refuse
from ldiv_db.database.names import Relation
from ldiv_db.database.postgres import ADD, CHANGE, READ, REMOVE, Right, grants_lacking, user_of
from ldiv_db.policy.document import Policy, Target
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sensitive import Required, absent_values, asked_l
from ldiv_db.publishing.destinations import Destination, InFile, InTable, destination_of
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.refusals import TargetCheck
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.units import Units
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.values import Named
from ldiv_db.solving.auto import FromCounts

#: The tables of the ledger that every run reads, and writes; and what one writes that recodes globally.
_READ = ("run", "run_secret", "run_report_secret", "release", "taxonomy", "taxonomy_node")
_WRITTEN = ("run", "run_requirement", "run_secret", "run_report_secret")
_RULES = ("run_recoding", "run_column", "run_rule")
#: What it takes to see whether there is a ledger, and of which version.
_LOOK = (Right("USAGE", catalog.SCHEMA), Right(READ, catalog.SCHEMA, "migration"))
_MIGRATE = "ldiv migrate (on this database, as its owner)"


def require_rights(destination: Destination, target: Target, columns: Iterable[str], has_rules: bool) -> None:
    """Raise DatabaseError if a run may not write its release, of these columns, or its row of the ledger.

    If it `has_rules` it enters how it recodes as well. What a plan has open for reading alone is judged as it would be
    for a run. Raises also where the ledger could not be brought up to date.
    """
    engine, table = destination.engine, destination.table if isinstance(destination, InTable) else None
    ledger = catalog.catalog_of(engine, catalog.catalog_table(engine, "run"))
    home = ledger if table is None else catalog.catalog_of(engine, table)
    if isinstance(destination, InFile):
        _require_folder(destination.path.parent)
    lines = []
    for database in dict.fromkeys((home, ledger)):
        _require_file(engine.snapshot[database].file)
        if engine.snapshot.kind(database) != "postgres":
            continue
        user, is_read_only = user_of(engine, database)
        if is_read_only:
            raise DatabaseError("the server takes no writes here: it is a standby, or the session is set to read only")
        if table is not None and database == home:
            lines += grants_lacking(engine, database, _on_target(engine, target, table, columns))
        if database == ledger:
            lines += _lacking_on_ledger(engine, database, user, _on_ledger(target, has_rules))
    if lines:
        what = "the user lacks rights that this run needs; the owner of the database gives them:"
        raise DatabaseError("\n  ".join([what, *dict.fromkeys(lines)]))
    migrate.pending(engine)


def refuse_read_only(destination: Destination) -> None:
    """Raise DatabaseError if the connection has a database that a run writes open for reading only."""
    engine, own = destination.engine, [destination.table] if isinstance(destination, InTable) else []
    for place in (catalog.catalog_table(engine, "run"), *own):
        database = catalog.catalog_of(engine, place)
        if engine.snapshot[database].is_read_only:
            raise DatabaseError(f"{database} is open read-only on this connection, and a run writes there")


def _require_file(name: str | None) -> None:
    """Raise DatabaseError if the file of a database may not be written to, or its log beside it."""
    if name is not None and Path(name).exists():
        if not os.access(name, os.W_OK):
            hint = "its owner has to allow it, or give --catalog and `file:`"
            raise DatabaseError(f"{name} may not be written to: {hint}")
        _require_folder(Path(name).parent)


def _require_folder(folder: Path) -> None:
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise DatabaseError(f"no file can be made in {folder}: its owner has to allow it")


def _lacking_on_ledger(engine: Engine, database: str, user: str, ledger: Sequence[Right]) -> list[str]:
    """The statements by which the owner of the database lets the user use the ledger."""
    is_there = catalog.table_exists(engine, catalog.catalog_table(engine, "migration"))
    lacking = grants_lacking(engine, database, _LOOK)
    if is_there and lacking:
        return [*lacking, *grants_lacking(engine, database, ledger)]
    to_make: Sequence[Right] = [] if is_there else _LOOK
    if is_there and migrate.pending(engine):  # tables are made, and altered by their owner
        tables = [catalog.catalog_table(engine, name) for name in ("migration", "run", "release", "series")]
        owned = [Right("OWNER", catalog.SCHEMA, table.name) for table in tables if catalog.table_exists(engine, table)]
        to_make = [Right("CREATE", catalog.SCHEMA), *owned]
    if to_make and grants_lacking(engine, database, to_make):
        return [_MIGRATE, *(right.grant(user) for right in (*_LOOK, *ledger))]
    return [] if to_make else grants_lacking(engine, database, ledger)


def _on_ledger(target: Target, has_rules: bool) -> list[Right]:
    """The rights to enter a run; one whose release is moved into place later is settled, or taken back."""
    found = [*((READ, name) for name in _READ), (READ, migrate.LOCK), (CHANGE, migrate.LOCK)]
    found += [(ADD, name) for name in (*_WRITTEN, *(_RULES if has_rules else ()))]
    if target.file is not None or target.database is not None:
        found += [(CHANGE, "run"), *((verb, name) for name in (*_WRITTEN, *_RULES) for verb in (READ, REMOVE))]
    return [Right(verb, catalog.SCHEMA, name) for verb, name in dict.fromkeys(found)]


def _on_target(engine: Engine, target: Target, table: Relation, columns: Iterable[str]) -> list[Right]:
    """The rights to write the release: to make its table, to empty and fill one, or to own one that is made anew."""
    _, schema, name = catalog.located(engine, table)
    verbs = [READ, ADD]
    if not catalog.table_exists(engine, table):
        return [Right("USAGE", schema), Right("CREATE", schema)]
    if target.if_exists != "append":
        is_alike = {column.name for column in catalog.columns_of(engine, table)} == set(columns)
        verbs = [*verbs, REMOVE] if is_alike and target.database is None else ["OWNER"]
    makes = [Right("CREATE", schema)] if verbs == ["OWNER"] else []
    return [Right("USAGE", schema), *makes, *(Right(verb, schema, name) for verb in verbs)]


@dataclass(frozen=True)
class RunSpec:
    """A policy held against its source, its algorithm with its options, and where the release goes."""

    resolved: Resolved
    algorithm: Algorithm
    destination: Destination


def resolve_run(engine: Engine, policy: Policy, folder: Path, there: InWarehouse | None = None) -> RunSpec:
    """The policy held against its source, for one release, perhaps `there`; raises PolicyError with all that is wrong.

    Raises DatabaseError if a run may not write what it has to.
    """
    if there is None and not problems_of(policy):
        columns, name = policy.released.all, policy.algorithm.name
        has_rules = name in ALGORITHMS and algorithm_of(name).traits.recodes_globally
        with suppress(PolicyError):  # which is told with all others
            destination = destination_of(engine, policy.target, folder, columns)
            require_rights(destination, policy.target, columns, has_rules)
    target = there.checked if there else partial(_checked_destination, engine)
    resolved, algorithm = resolve_algorithm(engine, policy, folder, target=target)
    return RunSpec(resolved, algorithm, resolved.judged["target"])


def resolve_algorithm(engine: Engine, policy: Policy, folder: Path, **checks: Check) -> tuple[Resolved, Algorithm]:
    """The policy held against its source, with further checks, and its algorithm; raises PolicyError."""
    checks["algorithm"] = lambda found: make_algorithm(found.policy)
    resolved = resolve(engine, policy, folder, checks)
    return resolved, resolved.judged["algorithm"]


def _checked_destination(engine: Engine, found: Findings) -> Destination | None:
    policy, released = found.policy, found.policy.released
    if policy.target.prefix is not None:
        return None
    destination = destination_of(engine, policy.target, found.folder, released.all)
    if found.source is not None:
        types = None if found.columns is None else released.types(found.columns)
        TargetCheck(destination, policy, found.folder, found.source, types).refuse()
    return destination


def make_algorithm(policy: Policy) -> Algorithm:
    """The policy's algorithm with its options; raises PolicyError if there is none of that name."""
    name = policy.algorithm.name
    if policy.weight is not None and not policy.names_algorithm:
        as_written = not any(setting.reading for setting in policy.sensitive.values())
        return FromCounts("set" in policy.released.forms.values(), as_written)
    algorithm = algorithm_named(name, policy.algorithm.options)
    refuse_forms(algorithm, policy.released, {name: setting.reading for name, setting in policy.sensitive.items()})
    return algorithm


def algorithm_named(name: str, options: dict[str, Any]) -> Algorithm:
    """The algorithm of that name with its options; raises PolicyError if there is none, or it has no such options."""
    if name not in ALGORITHMS:
        raise PolicyError([Problem("algorithm.name", f"no algorithm {name!r}", nearest(name, ALGORITHMS))])
    return algorithm_of(name)(options)


def refuse_forms(algorithm: Algorithm, released: ReleaseColumns, same: Mapping[str, Reading]) -> None:
    """Raise PolicyError for sets, or sensitive values that are the `same`, where a recoding has neither."""
    if algorithm.excludes_sets and "set" in released.forms.values():
        what = f"{algorithm.name} publishes {algorithm.excludes_sets}, not sets"
        raise PolicyError([Problem("recode", what, "set recode: tree")])
    what = f"{algorithm.name} publishes a recoding as one SELECT, which compares values as they are written"
    refuse(
        Problem(f"sensitive.{name}.{'set' if members_of(reading) else 'same'}", what, "leave it out")
        for name, reading in same.items()
        if algorithm.traits.recodes_globally and reading
    )


@dataclass(frozen=True)
class PreparedRun:
    """A policy, its algorithm and the encoded table: all that classes are made of."""

    resolved: Resolved
    algorithm: Algorithm
    task: Task
    #: Why this algorithm was chosen, if the policy left it open.
    chosen: str = ""
    #: The values with thresholds of their own that no row has.
    absent: Sequence[Named] = ()

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
    engine: Engine, required: Required, encoded: Encoded, units: Encoded | None = None
) -> tuple[dict[str, list[Requirement]], list[Named]]:
    """The requirements on each sensitive attribute, resolved against the source's values, as `units` have them.

    Also the values with thresholds of their own that no row has.
    """
    counted = units or encoded
    hardest = min((key.asked_distribution for key in counted.keys), key=lambda found: found.largest_l)
    requirements = required.resolved(hardest)
    absent = absent_values(engine, requirements, {s.column.name: (s.values, "value") for s in encoded.sensitive})
    for axis, known in zip(counted.sensitive, encoded.sensitive, strict=True):
        name, categories = axis.column.name, required.attributes[axis.column.name].categories
        requirements[name] = [found.spread(engine, axis.values) for found in requirements[name]]
        if categories is not None:
            require_listed(engine, name, categories, known.values)
    return requirements, absent
