"""The main job: encode, plan, recode, publish and audit, in one call."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Progress, Report, Task
from ldiv_db.algorithms.infeasible import explained
from ldiv_db.algorithms.registry import ALGORITHMS, algorithm_of
from ldiv_db.attacking.similarity import Similarity, measure_similarity
from ldiv_db.auditing.audit import Audit, refuse_unknown, require_listed
from ldiv_db.database.catalog import Column, columns_of, refuse_settings
from ldiv_db.database.engine import Engine, Step
from ldiv_db.database.equality import compared_by_bytes
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.templates import Statement
from ldiv_db.measuring.measure import Wanted, measure_table
from ldiv_db.policy.attributes import absent_values, columns_in, read_attributes, resolve_all, smallest_class
from ldiv_db.policy.policy import Policy, check_columns, parse_policy
from ldiv_db.policy.release_columns import forms
from ldiv_db.publishing.destinations import Destination, destination_of
from ldiv_db.publishing.draft import RunDraft
from ldiv_db.publishing.refusals import check_target
from ldiv_db.publishing.result import Result, versions
from ldiv_db.recoding.encode import Encoder
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.global_recoding import GlobalRecoding, recoding_of
from ldiv_db.recoding.loss import Loss, measure_recoding
from ldiv_db.recoding.recode import PUBLISHED, Recoding, plan_recoding, published_rows
from ldiv_db.requirements import Attribute, Requirement
from ldiv_db.requirements.named import Named, listing
from ldiv_db.running.estimate import Estimate, estimate_run


@dataclass(frozen=True)
class Listener:
    """Who hears of a run's progress; every member may be left out."""

    on_step: Callable[[Step], None] | None = None
    on_statement: Callable[[Statement], None] | None = None
    on_progress: Progress = lambda done, total: None
    on_search: Report = lambda text: None


@dataclass(frozen=True)
class Preparation:
    """A policy held against its source: what runs next, with the table encoded."""

    policy: Policy
    algorithm: Algorithm
    task: Task
    feasibility: Feasibility
    destination: Destination
    requirements: Mapping[str, Sequence[Requirement]]
    estimate: Estimate
    attributes: Mapping[str, Attribute]
    columns: Sequence[Column]
    reason: str = ""
    #: Values that have a threshold in the policy, but do not occur.
    absent: Sequence[Named] = ()

    @property
    def encoded(self) -> Encoded:
        return self.task.encoded

    @property
    def reasons(self) -> list[str]:
        """Why this algorithm runs, if the policy left that open, and what of the policy bears on nothing."""
        absent = [f"no row has the value {listing([v])}, which has a threshold of its own" for v in self.absent]
        return [*([self.reason] if self.reason else []), *absent]


def run(
    connection: Any,
    policy: Policy | dict[str, Any],
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
    start = time.perf_counter()
    with (
        working_engine(connection, listener, catalog) as engine,
        _prepared(engine, policy, folder, listener, show_values) as ready,
    ):
        ready.estimate.require_room()
        plan, recoding = _work_out(ready, Path(folder), listener, catalog)
        loss, similarity = _measured(ready, recoding)
        if kl:
            loss = replace(loss, kl=_divergence(ready, recoding, Path(folder), listener, catalog))
        rules = _global_recoding(ready, recoding, plan)
        run_id = uuid.uuid4().hex

        def describe(audits: list[Audit]) -> Result:
            return Result(
                run_id=run_id,
                algorithm=ready.algorithm.name,
                source=ready.policy.source,
                target=str(ready.policy.target),
                l=plan.l,
                loss=loss,
                audits=audits,
                search=plan.search,
                seconds=time.perf_counter() - start,
                seed=ready.policy.seed,
                versions=versions(),
                notes=(*ready.reasons, *plan.notes, *ready.estimate.notes),
                similarity=similarity,
                recoding=rules,
                smallest_class=smallest_class(ready.task.requirements),
            )

        draft = RunDraft(engine, ready.policy, ready.encoded, recoding, ready.requirements, run_id, describe)
        return ready.destination.publish(draft)


def _work_out(
    ready: Preparation, folder: Path, listener: Listener | None, catalog: str | None
) -> tuple[Plan, Recoding]:
    """The algorithm's plan, and how its classes are published."""

    def divergence(plan: Plan) -> float | None:
        recoding = _recode(ready, plan)
        found = _divergence(ready, recoding, folder, listener, catalog)
        ready.task.engine.drop(*(span.relation for span in recoding.spans))
        return found

    plan = ready.algorithm.run(replace(ready.task, divergence=divergence))
    return plan, _recode(ready, plan)


def _measured(ready: Preparation, recoding: Recoding) -> tuple[Loss, tuple[Similarity, ...]]:
    """What is lost, and how many rows are open to the similarity attack, of what is to be published."""
    engine, encoded, has_ids = ready.task.engine, ready.encoded, ready.policy.publishes_class_id
    similarity = measure_similarity(engine, encoded, recoding, ready.attributes, has_ids)
    return measure_recoding(engine, encoded, recoding, has_ids), similarity


def _global_recoding(ready: Preparation, recoding: Recoding, plan: Plan) -> GlobalRecoding | None:
    """What every value is published as, if that does not depend on the rows of its class."""
    if not ready.algorithm.recodes_globally:
        return None
    return recoding_of(ready.task.engine, ready.policy, ready.columns, recoding, plan.search)


def _recode(ready: Preparation, plan: Plan) -> Recoding:
    """How the plan's classes are published."""
    return plan_recoding(
        ready.task.engine,
        ready.encoded,
        plan.assigned,
        forms(ready.policy),
        plan.classes,
        plan.blanked,
        plan.stars,
    )


def _divergence(
    ready: Preparation, recoding: Recoding, folder: Path, listener: Listener | None, catalog: str | None
) -> float | None:
    """The KL divergence of what is to be published, read off its labels as `measure` does for any table."""
    policy = ready.policy
    with working_engine(ready.task.engine.connection, listener, catalog) as engine:
        source = resolve_source(engine, policy.source, folder)
        with published_rows(engine, ready.encoded, recoding, policy.publishes_class_id) as holes:
            release = engine.materialise("release", PUBLISHED, **holes)
        return measure_table(engine, release, source, policy, folder, Wanted()).loss.kl


def plan(
    connection: Any,
    policy: Policy | dict[str, Any],
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
    with (
        working_engine(connection, listener, catalog) as engine,
        _prepared(engine, policy, folder, listener, show_values) as ready,
    ):
        if rehearse:
            _, recoding = _work_out(ready, Path(folder), listener, catalog)
            _measured(ready, recoding)
            draft = RunDraft(engine, ready.policy, ready.encoded, recoding, ready.requirements)
            with draft.rows() as holes:
                release = engine.materialise("release", PUBLISHED, **holes)
            draft.audits(release)
        return ready


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


@contextmanager
def _prepared(
    engine: Engine, policy: Policy | dict[str, Any], folder: str | Path, listener: Listener | None, show_values: bool
) -> Iterator[Preparation]:
    """The policy checked against the source, and the source encoded; raises before any work if it cannot be met."""
    policy = parse_policy(policy)
    algorithm = make_algorithm(policy)
    _refuse_sets(policy, algorithm)
    source = resolve_source(engine, policy.source, Path(folder))
    columns = columns_of(engine, source)
    check_columns(policy, columns)
    destination = destination_of(engine, policy, Path(folder))
    check_target(destination, policy, Path(folder), source, columns)
    attributes = read_attributes(engine, policy.sensitive, columns, Path(folder))
    encoded = Encoder(engine, policy, columns, Path(folder), show_values=show_values).encode(source)
    requirements = resolve_requirements(engine, policy, encoded, attributes)
    hear = listener or Listener()
    every = [requirement for own in requirements.values() for requirement in own]
    refuse_unknown(policy.suppressed, every)
    task = Task(engine, encoded, every, policy.seed, hear.on_progress, hear.on_search, requirements)
    algorithm, reason = algorithm.chosen(task)
    with explained(engine, encoded, requirements, algorithm.says_why, algorithm.takes_any_class, show_values):
        feasible = algorithm.check(task)
    estimate = estimate_run(engine, encoded, destination.folder)
    absent = absent_values(engine, requirements, columns_in(encoded.sensitive))
    yield Preparation(
        policy, algorithm, task, feasible, destination, requirements, estimate, attributes, columns, reason, absent
    )


def resolve_requirements(
    engine: Engine, policy: Policy, encoded: Encoded, attributes: Mapping[str, Attribute]
) -> dict[str, list[Requirement]]:
    """What the policy requires of each sensitive attribute, with what the source's values make of it."""
    hardest = min((key.judged_distribution for key in encoded.keys), key=lambda found: found.largest_l)
    requirements = resolve_all(engine, policy.require, attributes, dict.fromkeys(attributes, hardest))
    absent_values(engine, requirements, columns_in(encoded.sensitive))
    for axis in encoded.sensitive:
        name, categories = axis.column.name, attributes[axis.column.name].categories
        requirements[name] = [found.spread(engine, axis.reference) for found in requirements[name]]
        if categories is not None:
            require_listed(engine, name, categories, axis.dictionary)
    return requirements


def make_algorithm(policy: Policy) -> Algorithm:
    """The policy's algorithm with its options; raises PolicyError if there is none of that name."""
    if policy.is_series:
        what = f"{policy.algorithm.name} with a key publishes release by release"
        raise PolicyError([Problem("algorithm.name", what, "use `ldiv release publish`, or ldiv_db.publish_release")])
    if policy.algorithm.name not in ALGORITHMS:
        hint = nearest(policy.algorithm.name, ALGORITHMS)
        raise PolicyError([Problem("algorithm.name", f"no algorithm {policy.algorithm.name!r}", hint)])
    return algorithm_of(policy.algorithm.name)(policy.algorithm.options)


def _refuse_sets(policy: Policy, algorithm: Algorithm) -> None:
    """Raise PolicyError for `recode: set` where the algorithm says itself what is published."""
    if algorithm.excludes_sets and "set" in forms(policy).values():
        what = f"{algorithm.name} publishes {algorithm.excludes_sets}, not sets"
        raise PolicyError([Problem("recode", what, "set recode: tree")])
