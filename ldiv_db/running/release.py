"""Releases over time: plan with what was published before, write, audit, compare, and enter in the ledger.

A row that was published stays in its group or class for ever. All of a release appears together: its tables and its
place in the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.auditing.kept import kept_warnings
from ldiv_db.database import migrate
from ldiv_db.database.attach import takes_database
from ldiv_db.database.context import Context, Listener, open_context
from ldiv_db.database.engine import Engine, is_joined
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import Identifier
from ldiv_db.policy.reading import GivenPolicy, Policy, load_policy
from ldiv_db.policy.resolve import Check, Findings, Resolved, Source, resolve
from ldiv_db.policy.sources import DECOMPOSITIONS
from ldiv_db.publishing import ledger
from ldiv_db.publishing.history import Published, Watch, forgotten, known_as, until_first
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.refusals import refuse_read_tables, refuse_read_target
from ldiv_db.publishing.result import Released
from ldiv_db.publishing.series import key_of, open_series
from ldiv_db.publishing.series_draft import ReleaseStart
from ldiv_db.publishing.series_target import SeriesTarget, require_earlier, series_target_of, settle_crashed
from ldiv_db.recoding.snapshot import names_of
from ldiv_db.running.release_classes import ClassesDraft, check_classes_before, plan_classes, series_algorithm
from ldiv_db.running.release_groups import (
    DecomposedDraft,
    check_decomposed_before,
    decomposition_options,
    plan_decomposition,
)


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
    AuditError (also if comparing releases would reveal too much) or DatabaseError is raised. It joins a transaction
    that is open, unless it goes to a file.
    """
    begun, asked = time.perf_counter(), load_policy(policy)

    def publish() -> Released:
        with open_context(connection, listener, catalog, folder, show_values, databases=asked.databases) as context:
            return next_release(context, asked, begun)

    return until_first(publish, partial(is_joined, connection))


def next_release(
    context: Context, policy: Policy, begun: float, kl: bool = False, there: InWarehouse | None = None
) -> Released:
    """Publish the next release under the policy, perhaps `there`; `begun` is when work on it began."""
    if kl:
        raise PolicyError([Problem("kl", "is of a table and its source, and a series has rows of earlier sources")])
    draft = _drafted(context, policy, begun, settle_crashed, there)
    context.listener.on_stage("writing, auditing and comparing releases")
    return draft.start.target.destination.publish(draft)


def plan_release(context: Context, policy: Policy, there: InWarehouse | None = None) -> Released:
    """What the next release would have; nothing is written, audited or compared."""
    return _drafted(context, policy, time.perf_counter(), _refuse_unsettled, there).foreseen()


def _drafted(
    context: Context,
    policy: Policy,
    begun: float,
    settle: Callable[[Engine, str], None],
    there: InWarehouse | None = None,
) -> ClassesDraft | DecomposedDraft:
    """The next release as it will be, once `settle` has seen to what a process left of the one before."""
    engine, on_stage = context.engine, context.listener.on_stage
    resolved, target = resolve_release(context, policy, there)
    on_stage("reading earlier releases")
    migrate.pending(engine)  # raises if the ledger could not be written
    settle(engine, target.name)
    start = _start(context, resolved, target, begun)
    on_stage("forming groups")
    return plan_decomposition(start) if resolved.algorithm in DECOMPOSITIONS else plan_classes(start)


def _refuse_unsettled(engine: Engine, series: str) -> None:
    """Raise PolicyError if a release is under way, or its process has died."""
    for entry in ledger.unsettled(engine, series):
        what = f"release {entry.release} of {series} is under way, or was cut off"
        raise PolicyError([Problem("series", what, "`ldiv release list` settles it where its process is dead")])


def resolve_release(
    context: Context, policy: Policy, there: InWarehouse | None = None
) -> tuple[Resolved, SeriesTarget]:
    """The policy held against its source, for releases over time, and their target; raises PolicyError."""
    target = partial(_checked_target, context.engine, there)
    checks: dict[str, Check] = {"algorithm": judge_series_algorithm, "target": target}
    resolved = resolve(context.engine, policy, context.folder, checks)
    return resolved, resolved.judged["target"]


def _checked_target(engine: Engine, there: InWarehouse | None, found: Findings) -> SeriesTarget | None:
    """The target of a series that the policy names; raises PolicyError if releases may not go there."""
    policy = found.policy
    if not policy.is_series:
        return None
    target = series_target_of(engine, policy.target, policy.algorithm.name, found.folder, there)
    target.check()
    if found.source is not None:
        refuse_read_target(engine, policy, found.folder, found.source)
    return target


def judge_series_algorithm(found: Findings) -> None:
    """Raise PolicyError unless the policy is one of releases over time, and the algorithm has its options."""
    policy, name = found.policy, found.policy.algorithm.name
    if policy.decomposes:
        decomposition_options(name, policy.algorithm.options)
    elif not policy.is_series:
        what = f"is required: {name} without one publishes one table, without releases over time"
        raise PolicyError([Problem("key", what, "name the column that says which row is which over time")])
    else:
        series_algorithm(name, policy.algorithm.options)


def _start(context: Context, resolved: Resolved, target: SeriesTarget, begun: float) -> ReleaseStart:
    """The start of the next release, once target and earlier releases are known to go together."""
    engine, algorithm, source = context.engine, resolved.algorithm, resolved.source
    assert source.key is not None  # noqa: S101 - releases over time have one
    series = open_series(engine, target.name, algorithm, key_of(source.key))
    published = Published.in_ledger(engine).of(known_as(engine, source.name, context.folder))
    beside = _published_beside(context, resolved, published) if series.is_new else ""
    watch = Watch(engine, source.name, context.folder, published.names)
    if resolved.transparent and series.releases:
        what = f"is for one release, and {target.name} has one: releases that are compared tell more"
        hint = "publish the table anew under another target"
        raise PolicyError([Problem("transparent", what, hint)])
    if resolved.target.file is None:
        numbers = range(1, series.next + 1)
        tables = [table for number in numbers for table in target.tables(target.prefix, number).all]
        refuse_read_tables(engine, source.relation, tables)
    target.check_next(series.next)
    forgets = None if target.destination.has_rows else forgotten(engine, resolved)
    if forgets:
        forgets.require_kept()
    kept = target.destination.kept or _kept(engine, source)
    start = ReleaseStart(
        context, resolved, series, target, watch, begun=begun, beside=beside, forgotten=forgets, kept=kept
    )
    if series.releases:
        with target.opened() as prefix:
            require_earlier(engine, target, prefix, series.releases)
            before = target.tables(prefix, series.releases)
            (check_decomposed_before if algorithm in DECOMPOSITIONS else check_classes_before)(start, before)
    return start


def _kept(engine: Engine, source: Source) -> list[str]:
    """The warnings of what kept columns of the source tell beyond classes."""
    others = [qi.name for qi in source.quasi_identifiers] + names_of(source.sensitive)
    kept, compared = ({name: Identifier(name) for name in names} for names in (names_of(source.keep), others))
    person = Identifier(source.individual.name) if source.individual else None
    with read_exactly(engine, source.relation) as read:
        return kept_warnings(engine, read, kept, compared, person=person)


def _published_beside(context: Context, resolved: Resolved, published: Published) -> str:
    """The latest release of the source by another series, or by a run, in words; empty if there is none.

    Raises PolicyError for a run that the policy does not take for independent: who has both may compare their classes.
    """
    run_id = published.runs[-1]["run_id"] if published.runs else None
    if run_id is not None and resolved.policy.over_time is None:
        what = f"run {run_id} published this source without a key, so that its release does not go together with these"
        hint = f"`ldiv runs withdraw DATABASE {run_id}`, if it was never handed out; or over_time: independent"
        raise PolicyError([Problem("key", what, f"{hint}, and make sure that nobody has both")])
    return published.latest_release or (f"run {run_id}" if run_id else "")
