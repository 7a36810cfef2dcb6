"""Releases over time: plan with what was published before, write, audit, compare, and enter in the ledger.

A row that was published stays in its group or class for ever. All of a release appears together: its tables and its
place in the ledger.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ldiv_db.database import migrate
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.policy import Policy, check_columns, parse_policy
from ldiv_db.policy.series import DECOMPOSITIONS, REPEATED
from ldiv_db.publishing.decomposed_tables import check_decomposed_before
from ldiv_db.publishing.refusals import refuse_read_tables, refuse_read_target
from ldiv_db.publishing.result import Released
from ldiv_db.publishing.series import open_series
from ldiv_db.publishing.series_draft import Start
from ldiv_db.publishing.series_key import key_of
from ldiv_db.publishing.series_tables import require_earlier, tables_of
from ldiv_db.publishing.series_target import SeriesTarget, series_target_of, settle_crashed
from ldiv_db.running.release_classes import check_classes_before, plan_classes
from ldiv_db.running.release_groups import plan_decomposition, read_options
from ldiv_db.running.run import Listener, working_engine


def publish_release(
    connection: Any,
    policy: Policy | dict[str, Any],
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
    show_values: bool = False,
) -> Released:
    """Publish the next release under `policy` on an open DuckDB connection; returns what was done.

    `catalog` is the attached database that holds taxonomies and the ledger, if it is not the current one; with
    `show_values` errors name values that a taxonomy lacks. Nothing is written if PolicyError, InfeasibleError,
    AuditError (also where comparing releases would tell too much) or DatabaseError is raised. Inside a transaction of
    the caller's it joins that one, unless it goes to a file.
    """
    begun = time.perf_counter()
    policy = parse_policy(policy)
    _require_series(policy)
    with working_engine(connection, listener, catalog) as engine:
        target = series_target_of(engine, policy, Path(folder))
        target.check()
        migrate.pending(engine)  # raises if the ledger could not be written
        settle_crashed(engine, target.name)
        start = _start(target, Path(folder), show_values, begun)
        draft = (plan_decomposition if policy.decomposes else plan_classes)(start, listener or Listener())
        return target.destination.publish(draft)


def _require_series(policy: Policy) -> None:
    """Raise PolicyError unless the policy is one of releases over time."""
    name = policy.algorithm.name
    if name in REPEATED and not policy.is_series:
        what = f"is required: {name} without one publishes one table, without releases over time"
        raise PolicyError([Problem("key", what, "name the column that says which row is which over time")])
    if not policy.is_series:
        what = f"{name} publishes one table, without releases over time"
        raise PolicyError([Problem("algorithm.name", what, nearest(name, [*DECOMPOSITIONS, *REPEATED]))])
    if policy.decomposes:
        read_options(policy)


def _start(target: SeriesTarget, folder: Path, show_values: bool, begun: float) -> Start:
    """What the next release starts from, once source, target and earlier releases are known to go together."""
    engine, policy, algorithm = target.engine, target.policy, target.policy.algorithm.name
    source = resolve_source(engine, policy.source, folder)
    columns = columns_of(engine, source)
    check_columns(policy, columns)
    series = open_series(engine, target.name, algorithm, key_of(policy, columns))
    refuse_read_target(engine, policy, folder, source)
    if policy.target.file is None:
        numbers = range(1, series.next + 1)
        tables = [table for number in numbers for table in tables_of(target.prefix, algorithm, number).all]
        refuse_read_tables(engine, source, tables)
    target.check_next(series.next)
    start = Start(engine, policy, source, columns, folder, series, target, show_values, begun=begun)
    if series.releases:
        with target.opened() as prefix:
            require_earlier(engine, prefix, algorithm, series.releases)
            before = tables_of(prefix, algorithm, series.releases)
            (check_decomposed_before if policy.decomposes else check_classes_before)(start, before)
    return start
