"""Releases over time: plan with what was published before, write, audit, compare, and enter in the ledger.

A row that was published stays in its group or class for ever. All of a release appears together: its tables and its
place in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from ldiv_db.auditing.kept import warn_of_kept
from ldiv_db.database import migrate
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.context import Context
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse, refused
from ldiv_db.policy.changes import labelled_as
from ldiv_db.policy.reading import Policy
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID, place_of
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing import ledger
from ldiv_db.publishing.destinations import Columns
from ldiv_db.publishing.history import Published, Watch, forgotten, known_as
from ldiv_db.publishing.in_database import InDatabase, compare_columns
from ldiv_db.publishing.in_file import DatabaseFile, DataFile, ReleasesFolder
from ldiv_db.publishing.pairings import entered_limits
from ldiv_db.publishing.people_over_time import require_same
from ldiv_db.publishing.refusals import TargetCheck, refuse_read_tables, refuse_read_target
from ldiv_db.publishing.result import HAND_OUT_ONE
from ldiv_db.publishing.series import ANOTHER_TARGET, Series, key_of, open_series
from ldiv_db.publishing.series_draft import ReleaseStart
from ldiv_db.publishing.series_target import ReleaseTables, SeriesTarget, series_target_of, settle_crashed, sql_name_of
from ldiv_db.recoding.encode import read_source
from ldiv_db.running.estimate import READING
from ldiv_db.running.policy_algorithm import judge_algorithm
from ldiv_db.running.release_classes import ClassesDraft, plan_classes
from ldiv_db.running.release_groups import DecomposedDraft, plan_groups


def draft_release(
    engine: Engine, context: Context, policy: Policy, begun: float, publishes: bool
) -> ClassesDraft | DecomposedDraft:
    """The next release as it will be; its work began at `begun`, and a plan `publishes` nothing of it."""
    target = partial(_checked_target, engine)
    checks: dict[str, Check] = {"algorithm": judge_algorithm, "target": target}
    resolved = resolve(engine, policy, context.folder, checks)
    context.listener.on_stage(READING)
    if resolved.source.place:
        resolved.source.place.bring_series(resolved.judged["target"].name)
    migrate.pending(engine)  # raises if the ledger could not be written
    settle(engine, resolved.judged["target"].name, publishes)
    entries = ledger.releases(engine, resolved.judged["target"].name)
    followed = labelled_as(policy, entries[-1].report.get("inferred", ())) if entries else policy
    if followed is not policy:
        resolved = resolve(engine, followed, context.folder, checks)
    start = _start(resolved, resolved.judged["target"], begun, publishes)
    plan = plan_groups if resolved.algorithm in DECOMPOSITIONS else plan_classes
    return plan(start, context, read_source(engine, resolved.source, context.show_values, keyed=True))


def settle(engine: Engine, series: str, publishes: bool) -> None:
    """See to what a process left of the last release, or raise PolicyError if nothing is to be published."""
    if publishes:
        settle_crashed(engine, series)
        return
    for entry in ledger.unsettled(engine, series):
        what = f"release {entry.release} of {series} is under way, or was cut off"
        raise refused("series", what, "`ldiv release list` settles it where its process is dead")


def _checked_target(engine: Engine, found: Findings) -> SeriesTarget:
    policy, place = found.policy, (found.folder, place_of(found.policy.source))
    columns = _columns_of(policy)
    target = series_target_of(engine, policy.targets, policy.algorithm.name, *place, columns=columns)
    is_of_files = isinstance(target.destination, DataFile | ReleasesFolder)
    if found.source is not None and (policy.target.database or is_of_files):
        # What is there may be of an earlier release, which is not known yet.
        anew = policy.model_copy(update={"target": policy.target.model_copy(update={"if_exists": "replace"})})
        types = None if found.columns is None else _types_of(policy, found.columns)
        TargetCheck(target.destination, anew, found.folder, [found.source], types).refuse()
        return target
    target.check()
    if found.source is not None:
        refuse_read_target(engine, policy, found.folder, found.source)
    return target


def _columns_of(policy: Policy) -> Columns:
    """The columns of a release, or of each of its tables by the ending of its name."""
    released, endings = policy.released, DECOMPOSITIONS.get(policy.algorithm.name)
    if endings is None:
        return released.all
    counts = [COUNT] if len(endings) == 2 else []
    values = [GROUP_ID, *released.sensitive, *counts]
    tables = ([GROUP_ID, *policy.quasi_identifiers, *released.keep], values, list(released.sensitive))
    return dict(zip(endings, tables, strict=False))


def _types_of(policy: Policy, columns: Sequence[Column]) -> dict[str, str]:
    """The types of the columns of a release; those of a decomposition are the source's."""
    if not policy.decomposes:
        return policy.released.types(columns)
    shown = {name.lower() for name in (*policy.quasi_identifiers, *policy.sensitive, *policy.keep)}
    return {column.name: column.published for column in columns if column.name.lower() in shown}


def first_start(engine: Engine, resolved: Resolved) -> ReleaseStart:
    """The start of the first release of a series, of which nothing is to be published.

    Nobody looks at hashes of its keys, so that any word will do for the secret of these.
    """
    columns = _columns_of(resolved.policy)
    target = series_target_of(engine, {ONLY: resolved.target}, resolved.algorithm, resolved.folder, columns=columns)
    series = Series(target.name, "nothing", key_of(resolved.source.key))
    return ReleaseStart(resolved, series, target, Watch(engine, resolved.source.name, resolved.folder))


def _start(resolved: Resolved, target: SeriesTarget, begun: float, publishes: bool) -> ReleaseStart:
    engine, source = target.engine, resolved.source
    series = open_series(engine, target.name, resolved.algorithm, key_of(source.key))
    if resolved.target.file is None and resolved.target.database is None:
        numbers = range(1, series.next + 1)
        tables = [table for number in numbers for table in target.tables(target.prefix, number).all]
        refuse_read_tables(engine, source.relation, tables)
    start = started(_as_before(resolved, series), series, target, begun, [source.relation], publishes)
    if series.releases:
        with target.opened() as prefix:
            _require_columns(start, target.require_earlier(prefix, series.releases))
    source.let_go()
    return start


def started(
    resolved: Resolved, series: Series, target: SeriesTarget, begun: float, read: Sequence[Table], publishes: bool
) -> ReleaseStart:
    """The start of a release of what is `read`; raises PolicyError where those before do not go together with it.

    Where it `publishes`, the ledger must stay for the next one.
    """
    engine, source = target.engine, resolved.source
    require_same(resolved, series)
    published = Published.in_ledger(engine).of(known_as(engine, source.name, resolved.folder))
    beside = _published_beside(resolved, published) if series.is_new else []
    watch = Watch(engine, source.name, resolved.folder, published.names, run_id=target.destination.run_id)
    if resolved.transparent and series.releases:
        what = f"is for one release, and {target.name} has one: releases that are compared tell more"
        raise refused("transparent", what, "publish the table anew under another target")
    target.check_next(series.next)
    place = source.place
    kept = place.kept_warnings(source.keep, source.individual) if place else warn_of_kept(engine, source)
    forgets = None if place else forgotten(engine, resolved, read)
    if forgets and publishes:
        forgets.require_kept()
    return ReleaseStart(resolved, series, target, watch, begun, [*beside, *kept], forgets)


def _as_before(resolved: Resolved, series: Series) -> Resolved:
    """What is resolved, with the `auto` of the last release; raises PolicyError if that took other values for one."""
    known = {limit.column.name: limit.same for limit in entered_limits(series.report.get(ledger.LIMITS, {}))}
    refuse(
        Problem(f"sensitive.{name}", f"the releases of {series.name} took other values for one", ANOTHER_TARGET)
        for name in known.keys() & resolved.required.attributes.keys()
        if tuple(resolved.source.same.get(name, ())) != tuple(known[name])
    )
    return replace(resolved, required=resolved.required.settled(series.report.get("requirements", ())))


def _require_columns(start: ReleaseStart, before: ReleaseTables) -> None:
    """Raise PolicyError unless the last release's tables have the columns that the next one has."""
    if start.resolved.algorithm not in DECOMPOSITIONS:
        if not start.resolved.source.place:
            require_columns(start.target, start.resolved.types, before.people)
        return
    named = {GROUP_ID, *(name.lower() for name in start.resolved.limits), *([before.count] if before.count else [])}
    if named != {column.name.lower() for column in columns_of(start.engine, before.values)}:
        what = f"{sql_name_of(before.values)} has other sensitive attributes than the policy"
        raise refused("sensitive", what, ANOTHER_TARGET)


def require_columns(target: SeriesTarget, types: Mapping[str, str], before: Table) -> None:
    """Raise PolicyError unless a table of the last release has the columns of these types that the next one has."""
    # A table that is written anew each time may have other types: those that files, and other databases, have.
    if not isinstance(target.destination, InDatabase | DatabaseFile):
        held = {column.name: column.type for column in columns_of(target.engine, before)}
        types = {name: held.get(name, kind) for name, kind in types.items()}
    compare_columns(target.engine, types, before)


def _published_beside(resolved: Resolved, published: Published) -> list[str]:
    """A note on the latest release of the source by another series, or by a run, if there is one.

    Raises PolicyError for a run that the policy does not take for independent: who has both may compare their classes.
    """
    run_id = published.runs[-1]["run_id"] if published.runs else None
    if run_id is not None and resolved.policy.over_time is None:
        what = f"run {run_id} published this source without a key, so that its release does not go together with these"
        hint = f"`ldiv runs withdraw DATABASE {run_id}`, if it was never handed out; or over_time: independent"
        raise refused("key", what, f"{hint}, and make sure that nobody has both")
    if published.latest_release and resolved.source.key is None and resolved.policy.over_time is None:
        what = f"{published.latest_release} published this source, and without a key nothing is held against it"
        raise refused("key", what, "give the key of a series, or over_time: independent, if nobody has both")
    other = published.latest_release or (f"run {run_id}" if run_id else "")
    what = f"{other} published this source as well: this series is another draft of it"
    return [f"{what}. {HAND_OUT_ONE}"] if other else []
