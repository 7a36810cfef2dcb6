"""Releases of classes: in the table that all releases of a series share, or in one for each.

A class, once published, stays as it is in all later releases, label for label and value for value: a row that has left
the source leaves a place in it, and one that has changed its old values. New rows form classes of their own, together
with those that found none before, by any algorithm that forms classes; of a value that too many rows have, those that
have waited longest come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.eligibility import hardest_first
from ldiv_db.auditing.audit import Audit
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import looseness
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.sources import KEEPS_APART
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.pairings import LimitedAttribute, promised_limits
from ldiv_db.publishing.series_draft import MATCHED, ReleaseStart, SeriesDraft, match_rows
from ldiv_db.publishing.series_target import ReleaseTables
from ldiv_db.recoding.axes import among
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.recoding.loss import measure_recoding
from ldiv_db.recoding.recode import PUBLISHED, Recoding, plan_recoding
from ldiv_db.recoding.units import counted_by_members
from ldiv_db.requirements import Requirement, promised_by
from ldiv_db.requirements.guarantees import most_classes
from ldiv_db.running.classes import work_out
from ldiv_db.running.preparation import check_ready, make_ready
from ldiv_db.running.remedies import other_policies, remedied
from ldiv_db.running.run_spec import resolve_requirements, series_algorithm
from ldiv_db.solving.levels import meets


@dataclass
class ClassesDraft(SeriesDraft):
    """A release of classes."""

    classes: NewClasses
    plan: Plan

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
        engine = self.engine
        if before and before.people != tables.people:
            types = {column.name.lower(): column for column in columns_of(engine, before.people)}
            names = [(Identifier(name), types[name.lower()]) for name in self.start.resolved.released.all]
            columns = [Renamed(name, name, looseness(column)) for name, column in names]
            engine.create(tables.people, "publishing/list_published", published=before.people, columns=columns)
        with self.classes.published() as params:
            if before:
                engine.insert(tables.people, PUBLISHED, **params)
            else:
                engine.create(tables.people, PUBLISHED, replace=self.start.target.replaces, **params)

    def audit_tables(self, tables: ReleaseTables, counts: dict[str, Any], short_groups: int) -> list[Audit]:
        return self.classes.audits(tables.people, earlier_rows=counts["rows_kept"] + counts["counterfeits"])

    def figures(self) -> dict[str, Any]:
        return {"loss_new": self.loss.as_dict(self.plan.l) if self.loss else None, "search": self.plan.search}


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
    free_rows = _among(engine, encoded, encoded.rows)
    requirements, _ = resolve_requirements(engine, resolved.required, free_rows)
    new, plan, recoding = _formed(_settled(start, requirements), context, free_rows, requirements)
    rows_new, made = engine.count(plan.assigned), engine.count(recoding.classes)
    classes = NewClasses(engine, resolved, new, recoding, requirements, start.series.last_group)
    loss = None
    if rows_new:
        published = replace(new, rows_in=rows_new, left_out=0)
        loss = measure_recoding(engine, published, recoding, resolved.released.has_class_ids)
    with classes.published() as params:
        tables, numbers = (recoding.assigned, params["labels"]), [("published_id", "group_no")]
        shown = engine.join("shown", *tables, "class_id", left_columns=["row_id"], right_columns=numbers)
    return ClassesDraft(start, matched, encoded.rows, shown, made, rows_new, classes, plan, loss=loss)


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
) -> tuple[Encoded, Plan, Recoding]:
    """Classes of rows that are in none: of all, or if there is no such plan without those whose value is too frequent.

    Where there cannot be any and some were published before, all of them wait, and there are no classes.
    """
    engine, resolved = start.engine, start.resolved
    failed = InfeasibleError(f"{start.source.name} has no rows to publish")
    algorithm = series_algorithm(resolved.algorithm, resolved.options)
    ready = None
    for rows in _attempts(start, new, algorithm, requirements):
        try:
            ready = make_ready(engine, context.listener, resolved, algorithm, rows)
            check_ready(ready, context.show_values)
            return rows, *work_out(ready, context.workers)
        except InfeasibleError as error:
            failed = error
    if not start.series.groups:
        if ready is None:
            raise failed
        ready = replace(ready, task=replace(ready.task, encoded=new), read=new)
        with remedied(partial(other_policies, ready, context.show_values, partial(_as_first, start, new))):
            raise failed
    nothing = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
    return new, Plan(nothing, 0), plan_recoding(engine, new, nothing, resolved.released.forms)


def _attempts(
    start: ReleaseStart, new: Encoded, algorithm: Algorithm, requirements: Mapping[str, Sequence[Requirement]]
) -> list[Encoded]:
    """The rows of which classes are formed, those that are tried first before the others; none if there are none."""
    every = [one for own in requirements.values() for one in own]
    fewer = _longest_waiting(start, new, every) if new.rows_in else None
    if fewer is None:
        return [new] if new.rows_in else []
    # One that leaves rows out itself would do so whoever has waited longest.
    return [fewer] if algorithm.name in KEEPS_APART else [new, fewer]


def _as_first(start: ReleaseStart, new: Encoded, algorithm: Algorithm, task: Task) -> Task:
    """The task of the rows, of all that are `new`, by which the first release is made."""
    *others, last = (replace(task, encoded=rows) for rows in _attempts(start, new, algorithm, task.wanted))
    return next((one for one in others if meets(algorithm, one)), last)


def _longest_waiting(start: ReleaseStart, new: Encoded, requirements: Sequence[Requirement]) -> Encoded | None:
    """The rows without what is too much of a value for classes of different values, None if nothing is.

    Of such a value those come first that have waited longest. Also None where no class of different values is good.
    """
    sizes, key = [found.unique_class_size() for found in requirements], hardest_first(new)[0]
    l = max([2, *(size or 0 for size in sizes)]) + new.leaves_unjudged
    most: int = min(most_classes(axis.distribution.counts, l) for axis in new.keys)
    if None in sizes or not most or key.distribution.counts[0] <= most:
        return None
    params = {"rows": new.rows, "key": key, "most": most, "seed": start.source.seed}
    return _among(start.engine, new, start.engine.materialise("first", "publishing/list_longest_waiting", **params))
