"""The main job: resolve, encode, plan, recode, draft and publish, in one call."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Progress, Report, Task
from ldiv_db.algorithms.infeasible import explained
from ldiv_db.auditing.audit import Audit, refuse_unknown, require_listed
from ldiv_db.database.catalog import refuse_settings
from ldiv_db.database.engine import Engine, Step
from ldiv_db.database.equality import compared_by_bytes
from ldiv_db.database.templates import Statement
from ldiv_db.measuring.measure import Wanted, measure_table
from ldiv_db.policy.policy import GivenPolicy
from ldiv_db.policy.required import Required, absent_values, smallest_class, unknown_harmless
from ldiv_db.policy.resolve import Resolved
from ldiv_db.publishing.destinations import Destination
from ldiv_db.publishing.draft import RunDraft
from ldiv_db.publishing.result import Result, Similarity, versions
from ldiv_db.recoding.encode import encode
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.global_recoding import GlobalRecoding, recoding_of
from ldiv_db.recoding.loss import Loss, measure_recoding
from ldiv_db.recoding.recode import PUBLISHED, Recoding, keep_types, plan_recoding, published_rows
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.named import Named, listing
from ldiv_db.requirements.reading import warn_of_values
from ldiv_db.running.choices import Choices, resolve_run
from ldiv_db.running.estimate import Estimate, estimate_run
from ldiv_db.running.remedies import Case, remedied
from ldiv_db.running.similarity import measure_similarity


@dataclass(frozen=True)
class Listener:
    """Who hears of a run's progress; every member may be left out.

    `on_stage` is told in a few words what begins, `on_progress` how much of it is done, `on_search` how a search is.
    """

    on_step: Callable[[Step], None] | None = None
    on_statement: Callable[[Statement], None] | None = None
    on_progress: Progress = lambda done, total: None
    on_search: Report = lambda text: None
    on_stage: Report = lambda text: None


@dataclass(frozen=True)
class Ready:
    """A policy, its algorithm and the encoded table: all that classes are made of."""

    resolved: Resolved
    algorithm: Algorithm
    task: Task

    @property
    def encoded(self) -> Encoded:
        return self.task.encoded

    @property
    def requirements(self) -> Mapping[str, Sequence[Requirement]]:
        """What is required of each sensitive attribute."""
        return self.task.wanted


@dataclass(frozen=True)
class Preparation(Ready):
    """A policy that its source can meet: what runs next, with the table encoded."""

    feasibility: Feasibility
    destination: Destination
    estimate: Estimate
    #: What is tried of other policies if this one cannot be met after all.
    case: Case
    reason: str = ""
    #: Values that have a threshold in the policy, but do not occur.
    absent: Sequence[Named] = ()
    #: What is to be said of harmless values that do not occur.
    unknown: Sequence[str] = ()
    #: What a reader takes for one value where requirements count several; the audit says it of the release.
    warnings: Sequence[str] = ()
    #: What was tried in a rehearsal, as the result of a run would have it.
    tried: Sequence[Mapping[str, Any]] = ()

    @property
    def reasons(self) -> list[str]:
        """Why this algorithm runs, if the policy left that open, and what of the policy bears on nothing."""
        absent = [f"no row has the value {listing([v])}, which has a threshold of its own" for v in self.absent]
        return [*([self.reason] if self.reason else []), *self.resolved.warnings, *absent, *self.unknown]


#: Opens another engine on the connection, of which nothing is left when it is closed.
Beside = Callable[[], AbstractContextManager[Engine]]


def run(
    connection: Any,
    policy: GivenPolicy,
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
    kl: bool = False,
    show_values: bool = False,
) -> Result:
    """Anonymize, audit and publish under `policy` on an open DuckDB connection; returns what was done.

    `folder` is where the policy's relative files lie, `catalog` the name of the attached database that holds
    taxonomies and the ledger, if it is not the current one; `kl` has the KL divergence worked out as well, with
    `show_values` errors name values that are too frequent or not in a taxonomy. Release, audit and ledger row are one
    transaction, and nothing is written if PolicyError, InfeasibleError, AuditError or DatabaseError is raised. Inside
    a transaction of the caller's they join that one: the caller commits, or rolls back after an error. A release to a
    file of its own is written beside, audited there and moved into place; it joins no transaction.
    """
    start, hear = time.perf_counter(), listener or Listener()
    beside = partial(working_engine, connection, listener, catalog)
    with beside() as engine:
        choices = resolve_run(engine, policy, Path(folder))
        ready = _prepare(engine, choices, hear, show_values)
        ready.estimate.require_room()
        with remedied(ready.case, is_running=True):
            plan, recoding = work_out(ready, beside)
        hear.on_stage("measuring what is lost")
        loss, similarity = _measured(ready, recoding)
        if kl:
            loss = replace(loss, kl=_divergence(ready, recoding, beside))
        rules = _global_recoding(ready, recoding, plan)
        run_id = uuid.uuid4().hex
        measured = {"loss": loss, "similarity": similarity, "recoding": rules}
        describe = partial(_result, ready, plan, start, run_id, measured)
        hear.on_stage("writing and auditing the release")
        return ready.destination.publish(_draft(ready, recoding, run_id, describe))


def plan(
    connection: Any,
    policy: GivenPolicy,
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
    show_values: bool = False,
    rehearse: bool = False,
) -> Preparation:
    """What a run would do, by counts alone; writes nothing but TEMP tables, which are gone on return.

    `show_values` as for `run`. To `rehearse` is to go through all that a run does, with a TEMP table in place of the
    release and nothing in the ledger: `listener` then hears of every statement, and it takes as long.
    """
    beside = partial(working_engine, connection, listener, catalog)
    with beside() as engine:
        choices = resolve_run(engine, policy, Path(folder))
        ready = _prepare(engine, choices, listener or Listener(), show_values)
        if rehearse:
            made, recoding = work_out(ready, beside)
            ready = replace(ready, tried=made.search.get("tried", ()))
            _measured(ready, recoding)
            draft = _draft(ready, recoding)
            with draft.rows() as holes:
                release = engine.materialise("release", PUBLISHED, **holes)
            draft.audits(release)
        return ready


def _prepare(engine: Engine, choices: Choices, hear: Listener, show_values: bool) -> Preparation:
    """The source encoded, and what comes of it; raises before any work if what is required cannot be met."""
    resolved, algorithm, destination = choices.resolved, choices.algorithm, choices.destination
    hear.on_stage("reading the source")
    encoded = encode(engine, resolved.source, show_values=show_values)
    requirements, absent = resolve_requirements(engine, resolved.required, encoded)
    task = make_task(engine, encoded, requirements, resolved.source.seed, hear, resolved.transparent)
    refuse_unknown(resolved.suppressed, task.requirements)
    algorithm, reason = algorithm.chosen(task)
    algorithm.refuse_unfit(task)
    case = Case(choices.policy, task, resolved, resolve_requirements, show_values)
    with (
        remedied(case),
        explained(engine, encoded, requirements, algorithm.says_why, algorithm.takes_any_class, show_values),
    ):
        feasible = algorithm.check(task)
    estimate = estimate_run(engine, encoded, destination.folder)
    told = {axis.column.name: (axis.dictionary, "value") for axis in encoded.told}
    unknown = unknown_harmless(engine, resolved.required.attributes, told)
    warnings = [
        line
        for axis in encoded.told
        for line in warn_of_values(
            engine,
            axis.reference,
            resolved.required.attributes[axis.column.name],
            requirements[axis.column.name],
        )
    ]
    hear.on_stage("forming classes")
    return Preparation(
        resolved, algorithm, task, feasible, destination, estimate, case, reason, absent, unknown, warnings
    )


def make_task(
    engine: Engine,
    encoded: Encoded,
    wanted: Mapping[str, Sequence[Requirement]],
    seed: int,
    hear: Listener,
    transparent: bool = False,
) -> Task:
    """What an algorithm is given."""
    every = [requirement for own in wanted.values() for requirement in own]
    return Task(engine, encoded, every, seed, hear.on_progress, hear.on_search, wanted, transparent)


def resolve_requirements(
    engine: Engine, required: Required, encoded: Encoded
) -> tuple[dict[str, list[Requirement]], list[Named]]:
    """What is required of each sensitive attribute, with what the source's values make of it.

    Also the values with thresholds of their own that no row has.
    """
    hardest = min((key.asked_distribution for key in encoded.keys), key=lambda found: found.largest_l)
    requirements = required.resolved(hardest)
    absent = absent_values(engine, requirements, {s.column.name: (s.dictionary, "value") for s in encoded.sensitive})
    for axis in encoded.sensitive:
        name, categories = axis.column.name, required.attributes[axis.column.name].categories
        requirements[name] = [found.spread(engine, axis.reference) for found in requirements[name]]
        if categories is not None:
            require_listed(engine, name, categories, axis.dictionary)
    return requirements, absent


def work_out(ready: Ready, beside: Beside) -> tuple[Plan, Recoding]:
    """The algorithm's plan, and how its classes are published."""

    def divergence(plan: Plan) -> float | None:
        recoding = _recode(ready, plan)
        found = _divergence(ready, recoding, beside)
        ready.task.engine.drop(*(span.relation for span in recoding.spans))
        return found

    weights = {axis.name: axis.weight for axis in ready.encoded.axes}

    def loss(encoded: Encoded, plan: Plan) -> float:
        with ready.task.engine.scope():
            some = replace(ready, task=replace(ready.task, encoded=encoded))
            return _lost(some, _recode(some, plan)).lm_by_weight(weights)

    plan = ready.algorithm.run(replace(ready.task, divergence=divergence, loss=loss))
    return plan, _recode(ready, plan)


def _recode(ready: Ready, plan: Plan) -> Recoding:
    """How the plan's classes are published."""
    engine, forms = ready.task.engine, ready.resolved.released.forms
    return plan_recoding(engine, ready.encoded, plan.assigned, forms, plan.classes, plan.blanked, plan.stars)


def _draft(
    ready: Preparation,
    recoding: Recoding,
    run_id: str = "",
    describe: Callable[[list[Audit]], Result] | None = None,
) -> RunDraft:
    """The release as it will be; nobody describes that of a rehearsal."""
    engine, requirements = ready.task.engine, ready.requirements
    shown = keep_types(engine, recoding, ready.resolved.typed)
    return RunDraft(engine, ready.resolved, ready.encoded, shown, requirements, run_id, describe)


def _measured(ready: Preparation, recoding: Recoding) -> tuple[Loss, tuple[Similarity, ...]]:
    """What is lost, and how many rows are open to the similarity attack, of what is to be published."""
    engine, encoded, has_ids = ready.task.engine, ready.encoded, ready.resolved.released.has_class_ids
    similarity = measure_similarity(engine, encoded, recoding, ready.resolved.required.attributes, has_ids)
    return _lost(ready, recoding), similarity


def _lost(ready: Ready, recoding: Recoding) -> Loss:
    """What is lost of what is to be published."""
    return measure_recoding(ready.task.engine, ready.encoded, recoding, ready.resolved.released.has_class_ids)


def _result(
    ready: Preparation, plan: Plan, start: float, run_id: str, measured: Mapping[str, Any], audits: list[Audit]
) -> Result:
    """What was done; `start` is when it began, `measured` what its release was found to lose and tell."""
    return Result(
        run_id=run_id,
        algorithm=plan.algorithm or ready.algorithm.name,
        source=ready.resolved.source.name,
        target=str(ready.resolved.target),
        l=plan.l,
        audits=audits,
        search=plan.search,
        seconds=time.perf_counter() - start,
        seed=ready.resolved.source.seed,
        versions=versions(),
        notes=(*ready.reasons, *plan.notes, *ready.estimate.notes),
        smallest_class=smallest_class(ready.task.requirements),
        inferred=ready.resolved.inferred,
        **measured,
    )


def _divergence(ready: Ready, recoding: Recoding, beside: Beside) -> float | None:
    """The KL divergence of what is to be published, read off its labels as `measure` does for any table."""
    with beside() as engine:
        with published_rows(engine, ready.encoded, recoding, ready.resolved.released.has_class_ids) as holes:
            release = engine.materialise("release", PUBLISHED, **holes)
        return measure_table(engine, release, ready.resolved, Wanted()).loss.kl


def _global_recoding(ready: Preparation, recoding: Recoding, plan: Plan) -> GlobalRecoding | None:
    """What every value is published as, if that does not depend on the rows of its class."""
    if not ready.algorithm.recodes_globally:
        return None
    return recoding_of(ready.task.engine, ready.resolved.source, recoding, plan.search)


@contextmanager
def working_engine(connection: Any, listener: Listener | None = None, catalog: str | None = None) -> Iterator[Engine]:
    """An engine on the caller's connection, of which nothing is left; refuses settings that would mislead it."""
    listener = listener or Listener()
    engine = Engine(connection, listener.on_step, listener.on_statement, catalog)
    refuse_settings(engine)
    try:
        with compared_by_bytes(engine):
            yield engine
    finally:
        engine.close_scratch()
