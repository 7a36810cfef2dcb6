"""The main job: resolve, encode, plan, recode, draft and publish, in one call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.auditing.people_names import warn_of_people
from ldiv_db.database.attach import named_databases, takes_database
from ldiv_db.database.context import Context, Listener, working_engine
from ldiv_db.database.counted import open_planned
from ldiv_db.database.engine import Engine, is_joined
from ldiv_db.database.errors import ConflictError, PolicyError, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.requests import asked, asks
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.measuring.answers import Answer
from ldiv_db.measuring.least_loss.bounds import LossBound, Wanted
from ldiv_db.measuring.measure import answers_of
from ldiv_db.policy.reading import GivenPolicy, Policy, load_policy, take_for_source
from ldiv_db.publishing.draft import NewClasses, RunDraft
from ldiv_db.publishing.history import OvertakenError, waits_again
from ldiv_db.publishing.result import Result
from ldiv_db.publishing.series_draft import SeriesDraft
from ldiv_db.recoding.loss import Loss
from ldiv_db.recoding.recode import Recoding
from ldiv_db.recoding.rules import GlobalRecoding, recoding_of
from ldiv_db.running.classes import divergence, measured, new_classes, published_members, work_out
from ldiv_db.running.comparing import compared_with_earlier
from ldiv_db.running.estimate import MEASURING, PLACING, READING, WRITING, Estimate, expected
from ldiv_db.running.examples import examples
from ldiv_db.running.preparation import Preparation, prepare, strictest
from ldiv_db.running.release import draft_release
from ldiv_db.running.remedies import other_policies, remedied
from ldiv_db.running.rights import refuse_read_only
from ldiv_db.running.run_spec import PreparedRun, resolve_run
from ldiv_db.running.tables import PreparedTables, open_tables
from ldiv_db.running.tables_apart import plan_apart, publish_apart
from ldiv_db.running.tables_nights import draft_night
from ldiv_db.running.tables_remedies import fewer_left_out
from ldiv_db.running.tables_run import draft_tables, prepare_tables, rehearse_tables
from ldiv_db.running.there import opened_there
from ldiv_db.running.unchanged import published_again, with_release_before
from ldiv_db.solving.auto import Auto
from ldiv_db.solving.cross_tables import told_of_cells
from ldiv_db.solving.improve import EFFORTS

#: Why what is asked for is not known of a series, nor of several tables.
_SERIES = "is of a table and its source, and a series has rows of earlier sources"
_SEVERAL = "is of classes of rows, and of several tables a person's rows lie in one"


#: More processes than this no machine of ours has processors for.
_MOST_WORKERS = 1_024
_BOUND = "Prove what any local recoding through these taxonomies loses at least; takes minutes where many rows differ."


@dataclass(frozen=True)
class RunRequest:
    """The question of a run: a policy, what is worked out besides, and who hears of it."""

    policy: GivenPolicy
    folder: str | Path = "."
    listener: Listener | None = None
    catalog: str | None = None
    kl: bool = asked(False, "Compute the KL divergence as well; takes longer.")
    show_values: bool = asked(False)
    workers: int | None = asked(
        None,
        "Worker processes for a table of more than part_rows rows; by default one per thread.",
        of=int | None,
        least=1,
        most=_MOST_WORKERS,
    )
    dialect: str | None = None
    bound: bool = asked(False, _BOUND)


@dataclass(frozen=True)
class PlanRequest:
    """The question of a plan: a policy, what is worked out besides, and who hears of it."""

    policy: GivenPolicy
    folder: str | Path = "."
    listener: Listener | None = None
    catalog: str | None = None
    show_values: bool = asked(False)
    rehearse: bool = asked(False, "Rehearse the run and show the SQL of every step.", name="sql")
    dialect: str | None = None
    bound: bool = asked(False, _BOUND)


@takes_database(read_only=False, of_frame=take_for_source, of_warehouse=open_planned)
@asks(RunRequest)
def run(connection: Any, request: RunRequest) -> Result | Any:
    """Anonymize, audit and publish under `policy`; returns the `Result`.

    `connection` is an open DuckDB connection, the address of a database (`postgres:service=clinic`), a frame, a Spark
    session, or a warehouse: any other connection by ADBC or PEP 249 (psycopg, snowflake.connector, …), which speaks
    `dialect`, by default that of its driver. A warehouse counts its rows, and the release is written and audited there.
    A frame is the source, whatever the policy calls it; in a mapping of names to frames the policy names one. The
    release stays in memory (`Result.table`) unless the policy has a target.

    `folder` holds the policy's relative files. `catalog` is the attached database with taxonomies and ledger, if that
    is not the current one; for a warehouse the ledger's schema. `kl` adds the KL divergence. `workers` processes, by
    default as many as threads, solve a table of more than the policy's `part_rows` rows; their number does not change
    the release. `bound` proves what any local recoding loses at least, which takes minutes where many rows differ; the
    result alone has it.

    Release, audit and ledger row are one transaction: an error leaves nothing behind. An open transaction is joined:
    the caller commits, or rolls back after an error; a warehouse refuses an open one. A release to a file is written
    beside its place, audited there and moved into place; it joins no transaction.
    """
    begun, failed = time.perf_counter(), Counter[type[ConflictError]]()
    policy = load_policy(request.policy)
    context = Context(request.listener or Listener(), Path(request.folder), request.show_values, request.workers)
    while True:
        try:
            with _opened(connection, policy, context, request.catalog, writes=True) as (engine, counted):
                return publish_run(engine, context, counted, request, begun)
        except ConflictError as error:  # of two that make one table in a warehouse, the second waits for the first
            failed[type(error)] += 1
            is_there = isinstance(connection, Warehouse)
            ends = not is_there and (not isinstance(error, OvertakenError) or is_joined(connection))
            if ends or not waits_again(error, failed[type(error)]):
                raise


@contextmanager
def _opened(
    connection: Any, policy: Policy, context: Context, catalog: str | None, writes: bool = False
) -> Iterator[tuple[Engine, Policy]]:
    """The engine of a run, and its policy: in a warehouse it is on the counts there."""
    if isinstance(connection, Warehouse):
        with opened_there(connection, policy, context, catalog) as opened:
            yield opened
    else:
        written = next(iter(policy.targets.values())).database if writes else None
        with (
            working_engine(connection, context.listener, catalog) as engine,
            named_databases(engine, policy.databases, context.folder, written),
        ):
            yield engine, policy


def publish_run(engine: Engine, context: Context, policy: Policy, request: RunRequest, begun: float) -> Result:
    """Publish under the policy: one release, or with a `key` the next one of a series; its work began at `begun`."""
    kl, bound = request.kl, request.bound
    if policy.is_apart:
        return publish_apart(engine, context, policy, lambda one, own: publish_run(engine, one, own, request, begun))
    if policy.is_series:
        _refuse_asked(_SERIES, kl=kl, bound=bound)
        release = _release(engine, context, policy, begun, publishes=True)
        context.listener.on_stage(WRITING)
        return release.start.target.destination.publish(release)
    ready = _prepared(engine, context, policy, bound)
    again = published_again(ready, kl, begun)
    ready.let_go()
    proved = _bound(ready, context) if bound and isinstance(ready, Preparation) else None
    if again is not None:
        return replace(again, bound=proved)
    if isinstance(ready, PreparedTables):
        draft: RunDraft = draft_tables(with_release_before(ready), context, kl, begun)
    else:
        draft = _draft_run(with_release_before(ready), context, kl, begun)
    context.listener.on_stage(WRITING)
    return draft.told(ready.destination.publish(draft), place=ready.destination.place, bound=proved)


def _release(engine: Engine, context: Context, policy: Policy, begun: float, publishes: bool) -> SeriesDraft:
    """The next release of a series, of one table or of several, of which a plan `publishes` nothing."""
    if policy.tables:
        return draft_night(open_tables(engine, context, policy), begun, publishes)
    return draft_release(engine, context, policy, begun, publishes)


def _prepared(engine: Engine, context: Context, policy: Policy, bound: bool) -> Preparation | PreparedTables:
    """The run of a policy that is to publish, with all that it reads encoded."""
    if policy.tables:
        _refuse_asked(_SEVERAL, bound=bound)
        return prepare_tables(open_tables(engine, context, policy), publishes=True)
    spec = resolve_run(engine, policy, context.folder)
    refuse_read_only(spec.destination)
    return prepare(spec, context.listener, context.show_values, publishes=True)


def _refuse_asked(why: str, **asked: bool) -> None:
    for name in (name for name, is_asked in asked.items() if is_asked):
        raise refused(name, why, "leave it out")


def _bound(ready: Preparation, context: Context) -> LossBound:
    """What no local recoding of the source loses less than; raises PolicyError where that cannot be said."""
    from ldiv_db.measuring.least_loss.search import bound_loss  # noqa: PLC0415 - numpy takes long

    def heard(bound: float) -> None:
        context.listener.on_search(f"nothing loses less than {bound:.4f}")

    context.listener.on_stage("proving the least loss")
    task, judged = ready.task, ready.resolved.suppressed
    any_row = getattr(ready.algorithm.options, "residue", "") == "suppress"
    most = task.most_left_out if task.most_left_out is not None else task.encoded.row_count if any_row else 0
    wanted = Wanted(ready.encoded, task.wanted, ready.units is not None, judged, most)
    return bound_loss(task.engine, wanted, heard)


def _draft_run(ready: Preparation, context: Context, kl: bool, begun: float) -> RunDraft:
    ready.estimate.require_room()
    with remedied(partial(other_policies, ready, context.show_values), is_running=True):
        plan, recoding = work_out(ready, context.workers)
    context.listener.on_stage(MEASURING)
    loss, similarity = measured(ready, recoding)
    people = _note_on_people(ready, recoding)
    rules = _global_recoding(ready, recoding, plan)
    classes = new_classes(ready, recoding)
    if kl:
        loss = replace(loss, **divergence(classes))
    ready = replace(ready, earlier=compared_with_earlier(ready, classes))
    answers, unanswered = _answers(ready, classes)
    plan = replace(plan, notes=(*plan.notes, *filter(None, [people]), *ready.kept))
    assert ready.watch is not None  # noqa: S101 - what is published has looked back
    notes = [*plan.notes_by(loss.lm_mean), *ready.estimate.notes, *loss.notes, *unanswered]
    result = ready.drafted(
        plan,
        loss,
        [*told_of_cells(ready.task, context.show_values), *notes],
        search=plan.search | ({"loss": loss.lm_mean} if plan.told else {}),
        similarity=similarity,
        recoding=rules,
        people=people,
        answers=answers,
        examples=examples(classes) if context.show_values else (),
    )
    return RunDraft(classes, ready.watch, result, begun)


@takes_database(read_only=True, of_frame=take_for_source, of_warehouse=open_planned)
@asks(PlanRequest)
def plan(connection: Any, request: PlanRequest) -> Preparation | Any:
    """Plan a run from counts alone, on whatever `run` takes; writes nothing that stays.

    `rehearse` does all that a run does, in as much time, with a TEMP table in place of the release and nothing in the
    ledger; `listener` then hears every statement. Warehouses are not rehearsed. `bound` is as of `run`.
    Under a policy with a `key` the classes of the next release are formed, and the `Result` that is returned is not
    audited.
    """
    rehearse, bound = request.rehearse, request.bound
    if rehearse and isinstance(connection, Warehouse):
        raise refused("rehearse", "a plan in a warehouse is not rehearsed", "leave it out")
    begun, policy = time.perf_counter(), load_policy(request.policy)
    listener = request.listener or Listener()
    if not (rehearse or policy.is_series):  # which end before what a run has ahead
        tell = listener.on_expected
        listener = replace(listener, on_expected=lambda all_: tell([s for s in all_ if s.kind in (READING, PLACING)]))
    context = Context(listener, Path(request.folder), request.show_values)
    with _opened(connection, policy, context, request.catalog) as (engine, counted):
        if counted.is_apart:
            return plan_apart(engine, context, counted, lambda one, own: _planned(engine, one, own, request))
        if counted.is_series:
            _refuse_asked(_SERIES, bound=bound)
            return _release(engine, context, counted, begun, publishes=False).foreseen()
        if counted.tables:
            _refuse_asked(_SEVERAL, bound=bound)
            tables = prepare_tables(open_tables(engine, context, counted), publishes=False)
            tables = replace(tables, fewer=fewer_left_out(tables))
            return replace(tables, tried=rehearse_tables(tables)[0].search.get("tried", ())) if rehearse else tables
        return _planned(engine, context, counted, request)


def _planned(engine: Engine, context: Context, policy: Policy, request: PlanRequest) -> Preparation:
    """The plan of one table."""
    ready = strictest(prepare(resolve_run(engine, policy, context.folder), context.listener, context.show_values))
    if isinstance(ready.algorithm, Auto):
        ready = replace(ready, efforts=_efforts(ready.algorithm, ready.task))
    if request.bound:
        ready = replace(ready, bound=_bound(ready, context))
    if request.rehearse:
        made, *_ = rehearsed(ready, 1)
        ready = replace(ready, tried=made.search.get("tried", ()))
    return ready


def estimate(connection: Any, policy: GivenPolicy, folder: Path, catalog: str | None = None) -> Estimate:
    """What a run would take, without the rest of a plan; raises as `plan`."""
    with working_engine(connection, catalog=catalog) as engine:
        spec = resolve_run(engine, load_policy(policy), folder)
        return prepare(spec, Listener(), show_values=False, looks_back=False).estimate


def _efforts(algorithm: Auto, task: Task) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for name in EFFORTS:
        other = algorithm.by_effort(name)
        stages = expected(other.stages(task, other.check(task)), task.cell_count, len(task.encoded.axes))
        seconds[name] = sum(stage.seconds for stage in stages)
    return seconds


def rehearsed(ready: PreparedRun, workers: int | None) -> tuple[Plan, Loss, NewClasses, Relation]:
    """Do all that a run does, with a TEMP table of its classes in place of the release; raises as a run does."""
    made, recoding = work_out(ready, workers)
    loss, _ = measured(ready, recoding)
    classes = new_classes(ready, recoding)
    release = classes.table()
    with ready.task.engine.scope():
        classes.audits(release)
    return made, loss, classes, release


def _answers(ready: PreparedRun, classes: NewClasses) -> tuple[tuple[Answer, ...], list[str]]:
    """The answers of the release to what the policy preserves, or a note that there are none."""
    queries = ready.resolved.policy.preserve
    with ready.task.engine.scope():
        try:
            return answers_of(ready.task.engine, classes.table(), ready.resolved, queries) if queries else (), []
        except PolicyError:  # the source has answered them
            return (), ["`preserve` is not answered: a query fails on values of the release, `ldiv measure` says which"]


def _note_on_people(ready: Preparation, recoding: Recoding) -> str:
    """A note on what counting rows hides in the classes of the release, where people may have several."""
    if ready.people is None:
        return ""
    engine, rows = ready.task.engine, ready.encoded.rows
    members = published_members(engine, recoding, ready.resolved.released.has_class_ids)
    told = warn_of_people(engine, ready.people, rows, Identifier("p1"), members)
    engine.drop(members)
    return told


def _global_recoding(ready: Preparation, recoding: Recoding, plan: Plan) -> GlobalRecoding | None:
    """The label of every value, if it does not depend on the rows of its class."""
    if not ready.algorithm.traits.recodes_globally or (ready.units and ready.units.together):
        return None  # what somebody publishes follows from all their rows
    source = ready.resolved.source
    source = replace(source, weight=None) if source.place else source
    return recoding_of(ready.task.engine, source, recoding, plan.search, ready.task.requirements)
