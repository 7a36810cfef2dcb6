"""Preparation of a run: its source is encoded, its requirements are held against it, and counts say if they can be met.

People of populations, which requirements may name, are counted in the codes of the source. The nodes of a taxonomy that
cover them are read from labels, as an attacker reads them: of every value the smallest node whose label covers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility
from ldiv_db.algorithms.infeasible import explained, met_by_table
from ldiv_db.algorithms.local.class_checker import refuse_whole
from ldiv_db.auditing.kept import kept_warnings
from ldiv_db.auditing.people_names import LikelyPeople, likely_people, warn_of_many_rows
from ldiv_db.auditing.refusals import refuse_unknown
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier
from ldiv_db.display import Shown
from ldiv_db.measuring.answers import check_queries
from ldiv_db.measuring.least_loss.bounds import LossBound
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.sensitive import unknown_harmless
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.fingerprints import key_of_release
from ldiv_db.publishing.history import look_back
from ldiv_db.publishing.result import Earlier
from ldiv_db.recoding.encode import Coding, read_source
from ldiv_db.recoding.encoded import Axis, Encoded, SensitiveAxis
from ldiv_db.recoding.snapshot import read_columns
from ldiv_db.requirements import Attribute, Requirement
from ldiv_db.requirements.reading import warn_of_values
from ldiv_db.requirements.values import Named, listing
from ldiv_db.running.estimate import READING, estimate_run, expected
from ldiv_db.running.foreseen import Foreseen, Prepared
from ldiv_db.running.policy_algorithm import refuse_forms
from ldiv_db.running.remedies import other_policies, remedied
from ldiv_db.running.run_spec import PreparedRun, RunSpec
from ldiv_db.running.tasks import task_of
from ldiv_db.solving.auto import Chooser
from ldiv_db.solving.cross_tables import told_of_cells
from ldiv_db.solving.levels import check_levels, told_of_levels
from ldiv_db.solving.people import people_apart
from ldiv_db.solving.solve import planned_parts
from ldiv_db.taxonomies.making import warn_of_lengths


@dataclass(frozen=True, repr=False, kw_only=True)
class Preparation(Shown, PreparedRun, Prepared):
    """A policy that its source can meet: what runs next, with the table encoded."""

    destination: Destination
    #: Of a plan whose classes may have equal values, by attribute: the strictest parameters that can be met, in words.
    met_by_table: Mapping[str, Mapping[Requirement, str]] = field(default_factory=dict)
    #: The seconds that `auto` would take by each effort, about; of a plan whose algorithm it is.
    efforts: Mapping[str, float] = field(default_factory=dict)
    #: What no local recoding loses less than, if it was asked for.
    bound: LossBound | None = None

    @property
    def replaces(self) -> bool:
        return self.resolved.target.if_exists == "replace"

    @property
    def queries(self) -> Sequence[str]:
        return self.resolved.policy.preserve

    @property
    def is_there(self) -> bool:
        return self.resolved.source.place is not None

    def let_go(self) -> None:
        self.resolved.source.let_go()

    @property
    def named(self) -> dict[str, Any]:
        source = self.resolved.source
        told = {"source": source.name, "target": str(self.resolved.target), "inferred": self.resolved.inferred}
        expand = self.resolved.policy.expand
        return {**told, "seed": source.seed, "expand": expand and expand.view}


def prepare(
    spec: RunSpec, listener: Listener, show_values: bool, publishes: bool = False, looks_back: bool = True
) -> Preparation:
    """The source encoded, and what comes of it; raises before any work if what is required cannot be met.

    One that `publishes` raises PolicyError as soon as the source is read, if it was published with other rows. One that
    does not look back knows nothing of earlier releases, nor of people with several rows: it is for an estimate.
    """
    engine, destination = spec.destination.engine, spec.destination
    listener.on_stage(READING)
    people = _people(engine, spec.resolved) if looks_back else None
    check_queries(engine, spec.resolved.source, spec.resolved.policy.preserve)
    source = replace(spec.resolved.source, person=people.column if people else None)
    coding = read_source(engine, source, show_values=show_values, counted=True)
    earlier, watch = Earlier(), None
    if looks_back:
        earlier, watch = look_back(engine, spec.resolved, coding.snapshot, destination.run_id, coding.weight)
    if publishes:
        earlier.require_safe()
    if earlier.seed is not None:
        coding = coding.reseeded(earlier.seed)
    kept = _kept(engine, coding) if looks_back else []
    if not earlier.unchanged:  # else there may be nothing to plan, but the ledger to enter
        coding.source.let_go()
    resolved = replace(spec.resolved, source=coding.source)
    encoded = coding.encode()
    lengths = list(told_of_lengths(engine, resolved, coding.axes))
    engine.drop(coding.snapshot)
    ready = make_ready(engine, listener, resolved, spec.algorithm, encoded)
    with remedied(partial(other_policies, ready, show_values)):
        feasible = check_ready(ready, show_values)
    known = foreseen(ready, feasible, listener, destination, people)
    lacking = told_of_lacking(engine, resolved.required.attributes, ready.encoded.told, ready.absent)
    found = {"kept": kept, "earlier": earlier, "watch": watch, "lost": destination.foreseen}
    found["reasons"] = [*known.reasons, *lengths, *lacking, *told_of_cells(ready.task, show_values)]
    return Preparation(**vars(ready) | vars(known) | found, destination=destination)


def foreseen(
    ready: PreparedRun,
    feasible: Feasibility,
    listener: Listener,
    destination: Destination,
    people: LikelyPeople | None = None,
) -> Foreseen:
    """What is known of rows whose policy can be met, of which the listener is told what to expect."""
    task, resolved = ready.task, ready.resolved
    work = ready.algorithm.stages(task, feasible)
    stages = expected(work, task.cell_count, len(task.encoded.axes))
    listener.on_expected(stages)
    parts = planned_parts(task, ready.algorithm, resolved.part_rows)
    levels = told_of_levels(ready.units, resolved.policy.is_series) if ready.units else ""
    told = told_of_values(task.engine, resolved.required.attributes, task.encoded.told, task.wanted)
    return Foreseen(
        task=task,
        algorithm=ready.algorithm,
        feasibility=feasible,
        estimate=estimate_run(task.engine, [ready.read], destination.folder, stages),
        reasons=[*filter(None, (ready.chosen, parts, levels)), *resolved.warnings],
        warnings=[*([str(people)] if people else []), *_many_rows(ready, people), *told],
        people=people,
    )


def strictest(ready: Preparation) -> Preparation:
    """With the strictest parameters that can be met, where classes may have equal values; elsewhere `l` says it."""
    if not ready.algorithm.traits.meets_whole or (ready.units and (ready.units.levels or not ready.units.together)):
        return ready  # people are several units whose rows stand apart, and parted where these are aligned
    task = ready.task
    found = {
        axis.column.name: met_by_table(task.engine, axis, task.wanted[axis.column.name])
        for axis in task.encoded.sensitive
    }
    return replace(ready, met_by_table=found)


def make_ready(
    engine: Engine, listener: Listener, resolved: Resolved, algorithm: Algorithm, encoded: Encoded
) -> PreparedRun:
    """The run with its task and the algorithm that is chosen; raises PolicyError for what that does not take."""
    secret = key_of_release(engine, resolved) if resolved.released.person else ""
    task, absent = task_of(engine, listener, resolved, algorithm, encoded, secret)
    task = replace(task, forms=resolved.released.forms)
    refuse_unknown(resolved.suppressed, task.requirements)
    chosen, reason = algorithm.chosen(task)
    refuse_forms(chosen, resolved.released, resolved.policy)  # of an algorithm that the policy left open
    chosen.refuse_unfit(task)
    if not (chosen.traits.counts or isinstance(chosen, Chooser)):
        task = replace(task, encoded=task.encoded.in_rows(engine))
    return PreparedRun(resolved, chosen, task, encoded, reason, absent, secret)


def check_ready(ready: PreparedRun, show_values: bool) -> Feasibility:
    """The feasibility by counts; raises InfeasibleError with the reasons if the requirements cannot be met.

    These name values if `show_values` is set.
    """
    algorithm, task = ready.algorithm, ready.task
    if ready.units and ready.units.levels:
        return check_levels(algorithm, task, show_values)
    says, takes = algorithm.traits.explains, algorithm.traits.any_class
    with explained(task.engine, task.encoded, task.wanted, says, takes, show_values):
        feasible = algorithm.checked(task)
    with task.engine.scope():
        if people := people_apart(task):
            with explained(people.engine, people.encoded, people.wanted, any_class=True, show_values=show_values):
                refuse_whole(people)
    return feasible


def told_of_lacking(
    engine: Engine, attributes: Mapping[str, Attribute], axes: Iterable[SensitiveAxis], absent: Iterable[Named]
) -> list[str]:
    """A line for every value that the policy names and no row has; `absent` are those with thresholds of their own."""
    told = {axis.column.name: (axis.values, "value") for axis in axes}
    lines = [f"no row has the value {listing([value])}, which has a threshold of its own" for value in absent]
    return lines + unknown_harmless(engine, attributes, told)


def _people(engine: Engine, resolved: Resolved) -> LikelyPeople | None:
    """By what people may have several rows, where nothing says whose a row is, and each row is read."""
    source = resolved.source
    if source.individual or source.key or source.weight:
        return None
    roles = {name.lower(): role for role, name in resolved.roles}
    asked = ("sensitive", "quasi_identifiers")
    columns = [column for column in resolved.columns if roles.get(column.name.lower()) not in asked]
    dropped = [name for name, role in roles.items() if role == "identifiers"]
    return likely_people(engine, source.relation, columns, dropped)


def told_of_lengths(engine: Engine, resolved: Resolved, axes: Sequence[Axis]) -> Iterator[str]:
    """A line for every quasi-identifier whose texts have other lengths than its prefixes take."""
    for qi, axis in zip(resolved.source.quasi_identifiers, axes, strict=True):
        shortest = qi.hierarchy.levels[-1].prefix if qi.hierarchy.levels and not qi.hierarchy.form else None
        if shortest and (told := warn_of_lengths(engine, qi.name, axis.dictionary, shortest)):
            yield f"{qi.name} has {told}"


def _kept(engine: Engine, coding: Coding) -> Sequence[str]:
    """The warnings of what kept columns tell, from the copy of the source, or as a warehouse counted them."""
    source = coding.source
    if source.place:
        return source.place.kept_warnings(source.keep, source.individual)
    named = {column.alias: column.column.name for column in read_columns(source)}
    by_role = {letter: {name: alias for alias, name in named.items() if alias.name[0] == letter} for letter in "qsk"}
    person = Identifier("p1") if source.individual else None
    others = by_role["q"] | by_role["s"]
    return kept_warnings(engine, coding.snapshot, by_role["k"], others, person=person, weight=coding.weight)


def _many_rows(ready: PreparedRun, people: LikelyPeople | None) -> list[str]:
    """The warning of people with many rows, where others may know several of them in several classes."""
    whose, source = ready.encoded.individual, ready.resolved.source
    if people:  # of whom there are so many on average
        return list(filter(None, [warn_of_many_rows(people.column.name, people.rows // people.people)]))
    if whose is None or source.individual is None or source.together or source.order:
        return []
    counts = whose.distribution.counts
    return list(filter(None, [warn_of_many_rows(whose.column.name, counts[len(counts) // 2] if counts else 0)]))


def told_of_values(
    engine: Engine,
    attributes: Mapping[str, Attribute],
    axes: Iterable[SensitiveAxis],
    wanted: Mapping[str, Sequence[Requirement]],
    of_bags: bool = False,
) -> list[str]:
    """A line for values that a reader takes for one where requirements count several, `of_bags` where people have."""
    return [
        line
        for axis in axes
        for name in [axis.column.name]
        for line in warn_of_values(
            engine, axis.values, attributes[name], wanted[name], of_bags=of_bags or axis.bags is not None
        )
    ]
