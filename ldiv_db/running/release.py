"""Releases over time: plan with what was published before, write, audit, compare, and enter in the ledger.

A row that was published stays in its group or class for ever. All of a release appears together: its tables and its
place in the ledger.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.database import migrate
from ldiv_db.database.attach import named_databases, takes_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.policy.policy import GivenPolicy, examine
from ldiv_db.policy.resolve import Findings, Resolved, resolve
from ldiv_db.policy.series import DECOMPOSITIONS, REPEATED
from ldiv_db.publishing.decomposed_tables import check_decomposed_before
from ldiv_db.publishing.refusals import refuse_read_tables, refuse_read_target
from ldiv_db.publishing.result import Released
from ldiv_db.publishing.series import open_series
from ldiv_db.publishing.series_draft import Start
from ldiv_db.publishing.series_key import key_of
from ldiv_db.publishing.series_tables import require_earlier, tables_of
from ldiv_db.publishing.series_target import SeriesTarget, series_target_of, settle_crashed
from ldiv_db.running.preparation import Listener
from ldiv_db.running.release_classes import check_classes_before, plan_classes
from ldiv_db.running.release_groups import plan_decomposition, read_options
from ldiv_db.running.run import working_engine


@takes_database(read_only=False)
def publish_release(
    connection: Any,
    policy: GivenPolicy,
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
    begun, hear = time.perf_counter(), listener or Listener()
    reading = examine(policy)
    with (
        working_engine(connection, listener, catalog) as engine,
        named_databases(engine, reading.databases, Path(folder)),
    ):
        resolved, target = resolve_release(engine, reading, Path(folder))
        hear.on_stage("reading earlier releases")
        migrate.pending(engine)  # raises if the ledger could not be written
        settle_crashed(engine, target.name)
        start = _start(resolved, target, show_values, begun)
        plan = plan_decomposition if resolved.algorithm in DECOMPOSITIONS else plan_classes
        hear.on_stage("forming groups")
        draft = plan(start, hear)
        hear.on_stage("writing, auditing and comparing releases")
        return target.destination.publish(draft)


def resolve_release(engine: Engine, written: GivenPolicy, folder: Path) -> tuple[Resolved, SeriesTarget]:
    """The policy held against its source, for releases over time, and their target; raises PolicyError."""
    targets: list[SeriesTarget] = []

    def judge_target(found: Findings) -> None:
        if found.policy.is_series:
            targets.append(_checked_target(engine, found))

    resolved = resolve(engine, written, folder, {"algorithm": judge_series_algorithm, "target": judge_target})
    return resolved, targets[0]


def _checked_target(engine: Engine, found: Findings) -> SeriesTarget:
    """The target that the policy names; raises PolicyError if releases may not go there."""
    policy = found.policy
    target = series_target_of(engine, policy.target, policy.algorithm.name, found.folder)
    target.check()
    if found.source is not None:
        refuse_read_target(engine, policy, found.folder, found.source)
    return target


def judge_series_algorithm(found: Findings) -> None:
    """Raise PolicyError unless the policy is one of releases over time, and the algorithm has its options."""
    policy, name = found.policy, found.policy.algorithm.name
    if policy.decomposes:
        read_options(name, policy.algorithm.options)
    elif name not in REPEATED:
        what = f"{name} publishes one table, without releases over time"
        raise PolicyError([Problem("algorithm.name", what, nearest(name, [*DECOMPOSITIONS, *REPEATED]))])
    elif not policy.is_series:
        what = f"is required: {name} without one publishes one table, without releases over time"
        raise PolicyError([Problem("key", what, "name the column that says which row is which over time")])
    else:
        Bsgi(policy.algorithm.options)


def _start(resolved: Resolved, target: SeriesTarget, show_values: bool, begun: float) -> Start:
    """What the next release starts from, once target and earlier releases are known to go together."""
    engine, algorithm, source = target.engine, resolved.algorithm, resolved.source
    assert source.key is not None  # noqa: S101 - releases over time have one
    series = open_series(engine, target.name, algorithm, key_of(source.key))
    if resolved.transparent and series.releases:
        what = f"is for one release, and {target.name} has one: releases that are compared tell more"
        raise PolicyError([Problem("transparent", what, "publish the table anew under another target")])
    if resolved.target.file is None:
        numbers = range(1, series.next + 1)
        tables = [table for number in numbers for table in tables_of(target.prefix, algorithm, number).all]
        refuse_read_tables(engine, source.relation, tables)
    target.check_next(series.next)
    start = Start(engine, resolved, series, target, show_values, begun=begun)
    if series.releases:
        with target.opened() as prefix:
            require_earlier(engine, prefix, algorithm, series.releases)
            before = tables_of(prefix, algorithm, series.releases)
            (check_decomposed_before if algorithm in DECOMPOSITIONS else check_classes_before)(start, before)
    return start
