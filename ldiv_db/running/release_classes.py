"""Releases of classes: in the table that all releases of a series share, or in one for each.

A class, once published, stays as it is in all later releases, label for label and value for value: a row that has left
the source leaves a place in it, and one that has changed its old values. New rows form classes of their own, together
with those that found none before, by any algorithm that forms classes; of a value that too many rows have, those that
have waited longest come first. Where people are counted, these are the people who have such rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.auditing.audit import Audit
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.sources import KEEPS_APART
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.inference import Inference, Release
from ldiv_db.publishing.ledger import LAST_PERSON
from ldiv_db.publishing.pairings import LimitedAttribute, promised_limits
from ldiv_db.publishing.people_over_time import Persisting, held_of, persisting
from ldiv_db.publishing.result import Result, Similarity
from ldiv_db.publishing.series_draft import MATCHED, PrefixDraft, ReleaseStart, match_rows
from ldiv_db.publishing.series_target import ReleaseTables
from ldiv_db.publishing.writing import require_rows
from ldiv_db.recoding.axes import among
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.recoding.loss import measure_recoding
from ldiv_db.recoding.recode import PUBLISHED, Recoding, plan_recoding
from ldiv_db.recoding.units import POSITION, Link, counted_by_members, units_of, with_numbers
from ldiv_db.requirements import Requirement, promised_by
from ldiv_db.requirements.guarantees import most_classes
from ldiv_db.running.classes import measure_similarity, new_classes, work_out
from ldiv_db.running.foreseen import Foreseen
from ldiv_db.running.policy_algorithm import series_algorithm
from ldiv_db.running.preparation import check_ready, foreseen, make_ready, told_of_lengths
from ldiv_db.running.remedies import other_policies, remedied
from ldiv_db.running.run_spec import PreparedRun, resolve_requirements
from ldiv_db.solving.levels import meets


@dataclass
class ClassesDraft(PrefixDraft):
    """A release of classes."""

    classes: NewClasses
    plan: Plan
    #: What was known of its new rows before they were planned, None if there is no plan; and what that found.
    known: Foreseen | None = field(default=None, kw_only=True)
    planned: Sequence[str] = field(default=(), kw_only=True)
    similarity: Sequence[Similarity] = field(default=(), kw_only=True)
    #: What values tell that persist, once it is written and people are known.
    persisting: Sequence[Persisting] = field(default=(), kw_only=True)

    @property
    def limits(self) -> list[LimitedAttribute]:
        """What requirements allow each value: of harmless values, and where none bounds shares, whatever there is."""
        source = self.start.source
        # Shares of what weighs less where there is more bound no rows.
        promises = {
            name: promised_by(one for one in wanted if name not in source.sets or one.on_people == "counts")
            for name, wanted in self.classes.requirements.items()
        }
        return promised_limits(promises, source.same, self.series.secret)

    def write_tables(self, tables: ReleaseTables, before: ReleaseTables | None) -> None:
        if before is None or before.people != tables.people:
            self.note(self.classes.write(tables.people, before.people if before else None))
        elif self.rows_new and isinstance(tables.people, Relation):
            with self.classes.published() as params:
                self.engine.insert(tables.people, PUBLISHED, **params)

    def audit_tables(self, tables: ReleaseTables, counts: dict[str, Any], short_groups: int) -> list[Audit]:
        earlier, classes = counts["rows_kept"] + counts["counterfeits"], self.classes
        if self.start.source.individual and self.series.releases:
            self.persisting = persisting(self.engine, self.start.source, self.series, self.matched.rows, tables.people)
        if not classes.counts_people:
            return classes.audits(tables.people, earlier_rows=earlier)
        last = self.series.last_group
        self.held = held_of(classes, self.series, tables.people)
        require_rows(self.engine.count(tables.people), earlier + self.rows_new)
        own = self.engine.select("night", tables.people, where=[Where(CLASS_ID, last, ">")])
        return classes.audits(own) if self.rows_new else []

    def compare(self, listed: Sequence[Release]) -> Inference:
        if not self.classes.counts_people:
            return super().compare(listed)
        return Inference.of_nights([one.name for one in listed], self.limits)

    def rehearsed(self) -> Relation:
        """Its classes as a TEMP table, audited as far as that can be without those of earlier releases."""
        release = self.classes.table()
        with self.engine.scope():
            self.classes.audits(release)
        return release

    def figures(self) -> dict[str, Any]:
        known = {"loss_new": self.loss.as_dict(self.plan.l) if self.loss else None, "search": self.plan.search}
        beside = {"persisting": self.persisting, "similarity": self.similarity}
        return known | {name: [vars(one) for one in found] for name, found in beside.items() if found}

    @property
    def notes(self) -> list[str]:
        return [*self.planned, *(str(one) for one in self.persisting if one.people)]

    def foreseen(self) -> Result:
        outcome = super().foreseen()
        return replace(outcome, notes=[*outcome.notes, *(self.known.warnings if self.known else ())])


def plan_classes(
    start: ReleaseStart,
    context: Context,
    coding: Coding,
    world: Relation | None = None,
    side_columns: Sequence[Renamed] = (),
) -> ClassesDraft:
    """The release of the source, or of a `world`, as it will be; raises before any work if it cannot be made."""
    engine, resolved, matched = start.engine, start.resolved, match_rows(start, coding, world)
    free = engine.select("free", matched.rows, where=[Where("group_id", None)]) if start.series.groups else matched.rows
    key = [coding.key.alias] if coding.source.place and coding.key else []
    encoded = coding.encode(free, side_columns, [*MATCHED, *key])
    new = _among(engine, encoded, encoded.rows)
    of_people = new.rows_in and resolved.source.counts_people
    people = units_of(engine, new, resolved.source.together) if of_people else None
    requirements, _ = resolve_requirements(engine, resolved.required, new, people)
    ready, known, plan, recoding = _formed(_settled(start, requirements), context, new, requirements)
    classes = new_classes(ready, recoding, start.series.last_group, start.series.report.get(LAST_PERSON, 0))
    rows_new, made = engine.count(plan.assigned), engine.count(recoding.classes)
    found: dict[str, Any] = {"known": known}
    if rows_new and known:
        published, has_ids = replace(classes.encoded, rows_in=rows_new, left_out=0), resolved.released.has_class_ids
        loss = found["loss"] = measure_recoding(engine, published, recoding, has_ids)
        attributes = resolved.required.attributes
        found["similarity"] = measure_similarity(engine, classes.encoded, recoding, attributes, has_ids)
        notes = [*known.reasons, *told_of_lengths(engine, resolved, coding.axes), *plan.notes_by(loss.lm_mean)]
        found["planned"] = list(dict.fromkeys([*notes, *known.estimate.notes, *loss.notes]))
    with classes.published() as params:
        tables, numbers = (recoding.assigned, params["labels"]), [("published_id", "group_no")]
        shown = engine.join("shown", *tables, "class_id", left_columns=["row_id"], right_columns=numbers)
    return ClassesDraft(start, matched, encoded.rows, shown, made, rows_new, classes, plan, **found)


def _among(engine: Engine, encoded: Encoded, rows: Relation) -> Encoded:
    """Some of the rows as a table of their own, with the counts of values, and of members of sets, among them."""
    some = among(engine, encoded, rows)
    sensitive = (counted_by_members(engine, axis) if axis.bags else axis for axis in some.sensitive)
    return replace(some, sensitive=tuple(sensitive))


def _settled(start: ReleaseStart, requirements: Mapping[str, Sequence[Requirement]]) -> ReleaseStart:
    """The start with what `auto` stands for, whichever of the rows classes are formed of."""
    found = [
        {"name": one.name, "parameters": one.parameters, "sensitive": name}
        for name, wanted in requirements.items()
        for one in wanted
    ]
    return replace(start, resolved=replace(start.resolved, required=start.resolved.required.settled(found)))


def _formed(
    start: ReleaseStart, context: Context, new: Encoded, requirements: Mapping[str, Sequence[Requirement]]
) -> tuple[PreparedRun, Foreseen | None, Plan, Recoding]:
    """Classes of rows that are in none: of all, or if there is no such plan without those whose value is too frequent.

    Where there cannot be any and some were published before, all of them wait, and there are no classes.
    """
    engine, resolved = start.engine, start.resolved
    failed = InfeasibleError(f"{start.source.name} has no rows to publish")
    algorithm = series_algorithm(resolved.algorithm, resolved.options)
    ready = None
    for rows in _attempts(start, new, algorithm, requirements) if new.rows_in else ():
        try:
            ready = make_ready(engine, context.listener, resolved, algorithm, rows)
            feasible = check_ready(ready, context.show_values)
            known = foreseen(ready, feasible, context.listener, start.target.destination)
            known.estimate.require_room()
            return ready, known, *work_out(ready, context.workers)
        except InfeasibleError as error:
            failed = error
    if not start.series.groups:
        if ready is None:
            raise failed
        ready = make_ready(engine, context.listener, resolved, algorithm, new)
        with remedied(partial(other_policies, ready, context.show_values, partial(_as_first, start, new))):
            raise failed
    nothing = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
    task = Task(engine, _without_places(start, new, nothing), [], start.source.seed, wanted=requirements)
    none = PreparedRun(resolved, algorithm, task, new)
    plan = Plan(nothing, 0)
    return none, None, plan, plan_recoding(engine, new, plan, resolved.released.forms)


def _without_places(start: ReleaseStart, new: Encoded, nothing: Relation) -> Encoded:
    """Rows that all wait, with the column of positions that others have among those of their person."""
    name, whose = start.resolved.released.position, new.individual
    if name is None or whose is None:
        return new
    link = Link(1, new.rows, nothing, whose.code, 0, Renamed(Identifier(name), POSITION))
    return with_numbers(start.engine, [(new, [link])], "")[0]


def _attempts(
    start: ReleaseStart, new: Encoded, algorithm: Algorithm, requirements: Mapping[str, Sequence[Requirement]]
) -> Iterator[Encoded]:
    """The rows of which classes are formed, those that are tried first before the others."""
    every = [one for own in requirements.values() for one in own]
    whose = new.individual.code if new.individual and start.source.counts_people else None
    fewer = None
    # One that leaves rows out itself would do so whoever has waited longest.
    if algorithm.name not in KEEPS_APART:
        yield new
    if not (whose and start.source.together):
        fewer = _longest_waiting(start, new, every, None)
    if fewer or algorithm.name in KEEPS_APART:
        yield fewer or new
    if whose and (people := _longest_waiting(start, new, every, whose)):
        yield people


def _as_first(start: ReleaseStart, new: Encoded, algorithm: Algorithm, task: Task) -> Task:
    """The task of the rows, of all that are `new`, by which the first release is made."""
    if task.units is not None:  # of all people
        return task
    *others, last = (replace(task, encoded=rows) for rows in _attempts(start, new, algorithm, task.wanted))
    return next((one for one in others if meets(algorithm, one)), last)


def _longest_waiting(
    start: ReleaseStart, new: Encoded, requirements: Sequence[Requirement], person: Identifier | None
) -> Encoded | None:
    """The rows, or people, without what is too much of a value for classes of different values, None if nothing is.

    Of such a value those come first that have waited longest. Also None where no class of different values is good.
    """
    engine, sizes = start.engine, [found.unique_class_size() for found in requirements]
    l = max([2, *(size or 0 for size in sizes)]) + new.leaves_unjudged
    if None in sizes:
        return None
    params = {"rows": new.rows, "keys": new.sensitive, "person": person, "seed": start.source.seed}
    places = engine.materialise("places", "publishing/place_waiting", **params)
    most = _most_places(dict(engine.tally(places, "place", where=[Where("is_first", True)])), l)
    if new.individual and person is None:
        most = min(most, most_classes(new.individual.distribution.counts, l))
    if not most or most >= (engine.most(places, "place") or 0):
        return None
    few = engine.select("few", places, "row_id", where=[Where("place", most, "<=")])
    return _among(engine, new, engine.select_among("first", new.rows, few, "row_id"))


def _most_places(people: Mapping[int, int], l: int) -> int:
    """The last place that may be published, where so many have each: at least l times as many are then."""
    most = count = 0
    for place, more in sorted(people.items()):
        count += more
        most = place if count >= place * l else most
    return most
