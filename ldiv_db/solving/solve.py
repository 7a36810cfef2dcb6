"""The plan of a task, part by part where it has more rows than a part may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Task, forming
from ldiv_db.algorithms.local.peel import Peel
from ldiv_db.algorithms.local.strata import batches
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Relation
from ldiv_db.policy.document import PART_ROWS
from ldiv_db.recoding.levels import Level
from ldiv_db.solving.auto import Chooser
from ldiv_db.solving.choose import LARGE, MANY_ROWS
from ldiv_db.solving.cross_tables import in_cells, of_cells
from ldiv_db.solving.divide import Division, cells_of, divide, why_whole
from ldiv_db.solving.improve import LEAST, TRADED, Effort, told_of_outliers, without_outliers
from ldiv_db.solving.levels import level_tasks, planned_levels
from ldiv_db.solving.parts import BY_TOPDOWN, work_of
from ldiv_db.solving.workers import solve_parts, workers_for


@dataclass(frozen=True)
class PartwiseSolver:
    """Plans tasks in parts: the most rows of a part, the processes (None: as many as pay).

    A part's classes are taken through improvements by the `effort`, as `auto` does.
    """

    part_rows: int = PART_ROWS
    workers: int | None = 1
    effort: Effort = LEAST
    #: Plans that were made with others, by the algorithm and the rows of their tasks.
    made: Mapping[tuple[str, Relation], Plan] = field(default_factory=dict)

    def plan(self, algorithm: Algorithm, task: Task) -> Plan:
        """The plan of a task as a whole: solved, without outliers; raises SuppressionError if it has too few rows.

        Where people publish their rows aligned, those with equally many are a task of their own.
        """
        if levels := level_tasks(task):
            solver = replace(self, made={**task.made, **self._made_together(algorithm, task, levels)})
            plans = solver._plans(algorithm, [own for _, own in levels])
            return planned_levels(task, [(level, plan) for (level, _), plan in zip(levels, plans, strict=True)])
        return of_cells(task, self._plans(algorithm, [in_cells(task)])[0])

    def _plans(self, algorithm: Algorithm, tasks: Sequence[Task]) -> list[Plan]:
        """The plans of several tasks; what their classes are improved by is one series of statements for all."""
        if isinstance(algorithm, Chooser):
            plans = algorithm.choose_all(tasks, self.solve)
        else:
            plans = [self.solve(algorithm, own) for own in tasks]
        return [_finished(algorithm, own, plan) for own, plan in zip(tasks, plans, strict=True)]

    def solve(self, algorithm: Algorithm, task: Task) -> Plan:
        """The algorithm's plan of a task, as that of its parts together if it has too many rows for one."""
        if isinstance(algorithm, Chooser):
            return algorithm.choose(task, self.solve)
        task = algorithm.seen(task)
        if plan := self.made.get((algorithm.name, task.encoded.rows)):
            return plan
        task.stage(forming(algorithm.name))
        traits, cells = algorithm.traits, task.encoded.size
        if not traits.counts or (cells > self.part_rows and traits.divides):
            task = replace(task, encoded=task.encoded.in_rows(task.engine))
        if task.cross and not (isinstance(algorithm, TopDown) and task.encoded.size <= self.part_rows):
            return self._solved(algorithm, task, cells_of(task))
        if task.encoded.cells or task.encoded.size <= self.part_rows:
            return algorithm.run(task)
        reason = why_whole(task, algorithm)
        task.report("dividing the rows")
        division = None if reason else divide(task, algorithm, self.part_rows)
        if division is None or len(division.parts) == 1:
            if division:
                task.engine.drop(division.rows)
            plan = algorithm.run(task)
            return replace(
                plan, notes=(*plan.notes, _undivided_note(task, reason or "no good part of them can be split off"))
            )
        return self._solved(algorithm, task, division)

    def _made_together(
        self, algorithm: Algorithm, task: Task, levels: Sequence[tuple[Level, Task]]
    ) -> dict[tuple[str, Relation], Plan]:
        """The plans that the levels of a task have together, by the algorithms that make or try several at once."""
        found, by = dict[tuple[str, Relation], Plan](), dict[str, tuple[TopDown | Peel, list[Task]]]()
        for _, own in levels:
            chooses = isinstance(algorithm, Chooser)
            for one in algorithm.tried_on(own) if isinstance(algorithm, Chooser) else [algorithm]:
                is_new = (one.name, own.encoded.rows) not in task.made and not (chooses and own.encoded.size >= LARGE)
                if isinstance(one, TopDown | Peel) and is_new:
                    by.setdefault(one.name, (one, []))[1].append(own)
        for one, tasks in by.values():
            found |= made_together(tasks, self.part_rows, one)
        return found

    def _solved(self, algorithm: Algorithm, task: Task, division: Division) -> Plan:
        """The parts' classes, numbered one part after the other."""
        engine, feasible = task.engine, algorithm.check(task)
        improves = algorithm.name not in TRADED and task.encoded.row_count < MANY_ROWS
        work = replace(work_of(task, algorithm, self.effort if improves else LEAST), weight=division.weight)
        small = task.encoded.size <= self.part_rows  # of cells: few rows are solved before a worker has started
        workers = 1 if small else workers_for(self.workers, engine, len(division.parts))
        assigned, searches = solve_parts(work, task, division, workers)
        left = task.encoded.row_count - engine.count(assigned)
        search = {"parts": len(division.parts), **combined(searches)}
        if "residue_suppressed" in search:
            search |= {
                "residue_suppressed": left - sum(search.get("outliers", ())),
                "residue_rows": task.encoded.row_count - feasible.classes * feasible.l,
            }
        notes = feasible.notes
        if left_to := search.get(BY_TOPDOWN):
            what = f"the classes of {left_to:,} of {len(division.parts):,} cells"
            notes = (*notes, f"topdown makes {what}, as {algorithm.name} could not publish all of their rows")
        return Plan(assigned, feasible.l, notes, search, parts=len(division.parts))


def _finished(algorithm: Algorithm, task: Task, plan: Plan) -> Plan:
    """The plan without outliers; raises SuppressionError if it has too few rows."""
    task.refuse_left_out(task.encoded.row_count - plan.row_count(task.engine))
    plan = without_outliers(task, algorithm, plan)
    return replace(plan, notes=(*plan.notes, *told_of_outliers(plan.search)))


def made_together(
    tasks: Sequence[Task], part_rows: int, algorithm: TopDown | Peel | None = None
) -> dict[tuple[str, Relation], Plan]:
    """The plans by an algorithm, `topdown` by default, that several tasks have together, in one series of statements.

    What fails together is left to each task.
    """
    algorithm, found = algorithm or TopDown({}), dict[tuple[str, Relation], Plan]()
    for batch in batches(tasks, part_rows):
        batch[0].stage(forming(algorithm.name))
        with suppress(InfeasibleError, AssertionError):
            plans = algorithm.run_all(batch)
            found |= {(algorithm.name, own.encoded.rows): plan for own, plan in zip(batch, plans, strict=True)}
    return found


def planned_parts(task: Task, algorithm: Algorithm, part_rows: int) -> str:
    """In how many parts a task will be solved, in words; empty if it has no more rows than a part."""
    rows = task.encoded.size
    if rows <= part_rows or (task.encoded.cells and not algorithm.traits.divides):
        return ""
    if task.cross:
        return f"{rows:,} rows are divided into {task.cross.count:,} parts, the cells of `tables_of`"
    reason = "" if isinstance(algorithm, Chooser) else why_whole(task, algorithm)
    if reason:
        return _undivided_note(task, reason)
    parts = -(-rows // part_rows)
    return f"{rows:,} rows are divided into {parts:,} parts or more, of at most {part_rows:,} rows if they can be"


def _undivided_note(task: Task, reason: str) -> str:
    return f"all {task.encoded.row_count:,} rows are one part: {reason}"


def combined(searches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parts' entries on their work as one: sums, the most of rounds, and what is alike in all."""
    names = [name for name in searches[0] if all(name in search for search in searches)]
    found = {name: _together(name, [search[name] for search in searches]) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _together(name: str, values: Sequence[Any]) -> Any:
    if all(type(value) is int for value in values):
        return max(values) if name.endswith("rounds") or name == "vectors" else sum(values)
    if all(isinstance(value, list) and all(type(one) is int for one in value) for value in values):
        longest = max(map(len, values))
        return [sum(value[at] for value in values if at < len(value)) for at in range(longest)]
    return values[0] if all(value == values[0] for value in values) else None
