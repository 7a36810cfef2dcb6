"""Levels: the people who publish equally many rows, each level a task of its own, and what their plans are together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, PopulationCells, Task
from ldiv_db.algorithms.infeasible import explained
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, count_phrase, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.recoding.levels import Level, name_at, place_classes
from ldiv_db.recoding.stacked import RUNS, Member
from ldiv_db.recoding.units import Units


def level_tasks(task: Task) -> list[tuple[Level, Task]]:
    """The task of each level, most rows first; none unless people publish their rows aligned."""
    if task.units is None:
        return []
    left = left_to_suppress(task.suppression, task.units.rows.row_count, task.units.left_out)
    return [(level, task_of_level(task, level, left)) for level in task.units.levels]


def task_of_level(task: Task, level: Level, suppression: Decimal | None) -> Task:
    """The task of a level, of whose rows so many may be left out."""
    forms = {name_at(name, n): form for name, form in task.forms.items() for n in range(1, level.rows + 1)}
    own = {axis.column.name: axis.asked(task.wanted) for axis in level.encoded.sensitive}
    every = [found for wanted in own.values() for found in wanted]
    known = replace(task, units=None, made={}, forms=forms, suppression=suppression)
    known = replace(known, encoded=level.encoded, wanted=own, requirements=every)
    return replace(known, people=_people_of(task, task.people, level)) if task.people else known


def _people_of(task: Task, people: PopulationCells, level: Level) -> PopulationCells:
    """The people of populations as a level has them: whoever has values has them at every position."""
    codes = {
        own.code: axis.code
        for axis in task.encoded.axes
        for position in level.positions.get(axis.code, ())
        if (own := level.at(axis, position))
    }
    columns: list[ColumnName] = [(of_rows.name, own.name) for own, of_rows in codes.items()]
    cells = {
        name: task.engine.select("people", cells, *columns, "sensitive", "rows") for name, cells in people.cells.items()
    }
    return replace(people, spans={own: people.spans[of_rows] for own, of_rows in codes.items()}, cells=cells)


def left_to_suppress(suppression: Decimal | None, total: int, left_out: int) -> Decimal | None:
    """The share of the published rows that may be left out beside those that are left out already."""
    if suppression is None or not left_out:
        return suppression
    most = int(suppression * total) - left_out
    share = Decimal(max(most, 0)) / Decimal(max(total - left_out, 1))
    return share.quantize(Decimal(10) ** -12, rounding=ROUND_UP)


def planned_levels(task: Task, solved: Sequence[tuple[Level, Plan]]) -> Plan:
    """The plan of all people, whose classes are those of the levels one after the other."""
    engine, units, last, searches = task.engine, task.units, 0, list[dict[str, Any]]()
    assert units is not None  # noqa: S101 - the levels are of them
    classes: Relation | None = None
    assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
    for level, by_level in solved:
        plan = by_level.in_rows(engine)
        with engine.scope():
            numbers = [("whole_id", "row_id")]
            named = engine.join(
                "named", plan.assigned, level.numbers, "row_id", left_columns=["class_id"], right_columns=numbers
            )
            engine.insert(assigned, "bsgi/residue/shift_classes", assigned=named, last=last)
        if plan.classes:
            own = place_classes(engine, units.rows.axes, level, plan.classes, units.width, last)
            if classes:
                engine.extend(classes, own)
            classes = classes or own
        last = int(engine.most(assigned, "class_id") or 0)
        known = {"rows": level.rows, "people": level.encoded.row_count}
        searches.append({**known, **({"algorithm": plan.algorithm} if plan.algorithm else {}), **plan.search})
        engine.drop(plan.assigned)
    _, largest = max(solved, key=lambda one: one[0].encoded.row_count)
    notes = dict.fromkeys(note for _, plan in solved for note in plan.notes)
    return Plan(
        assigned,
        min(plan.l for _, plan in solved),
        tuple(notes),
        {"levels": searches},
        classes=classes,
        algorithm=largest.algorithm,
        parts=sum(plan.parts for _, plan in solved),
    )


def meets(algorithm: Algorithm, task: Task) -> bool:
    """Whether the counts allow the task, as far as that is up to them."""
    try:
        algorithm.checked(task)
    except InfeasibleError:
        return False
    return True


def why_poor(algorithm: Algorithm, level: Level, task: Task) -> str:
    """Why the people of a level cannot meet the policy; empty if they can."""
    try:
        algorithm.checked(task)
    except InfeasibleError as error:
        return _poor(error, level)
    return ""


def _poor(error: InfeasibleError, level: Level) -> str:
    people = count_phrase(level.encoded.row_count, "person", "people")
    return f"{error.message}\n{people} who would publish {rows_phrase(level.rows)} each are too few, or too much alike"


def check_levels(algorithm: Algorithm, task: Task, show_values: bool) -> Feasibility:
    """The feasibility of all levels together; raises InfeasibleError with the reasons of one that cannot be met."""
    says, takes, found = algorithm.traits.explains, algorithm.traits.any_class, list[Feasibility]()
    assert task.units is not None  # noqa: S101 - the caller has looked
    if not task.units.levels:
        return algorithm.checked(task)
    left_out = task.units.left_out + task.units.rows.left_out
    for level, own in level_tasks(task):
        try:
            with explained(own.engine, own.encoded, own.wanted, says, takes, show_values):
                one = algorithm.checked(own)
        except InfeasibleError as error:
            way_out = "`suppression` leaves them out"
            if len(task.units.levels) > 1:
                way_out = f"`rows: together` has no such groups, and {way_out}"
            raise InfeasibleError(f"{_poor(error, level)}: {way_out}", error.l) from error
        left_out += level.rows * one.rows_suppressed
        found.append(one)
    replace(task, encoded=task.units.rows).refuse_left_out(left_out - task.units.rows.left_out)
    return Feasibility(
        min(one.l for one in found),
        sum(one.classes for one in found),
        left_out,
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        tuple(dict.fromkeys(name for one in found for name in one.tries)),
    )


def told_of_levels(units: Units, over_time: bool = False) -> str:
    """A line on how many people publish how many rows, and on those that do not; empty without levels."""
    listed = [f"{level.encoded.row_count:,} publish {rows_phrase(level.rows)}" for level in reversed(units.levels)]
    if not listed:
        return ""
    left = units.left_out
    then = "wait for a later night" if over_time else "are left out, of which nothing is promised"
    out = f"; {rows_phrase(left)} of people who have more than they publish {then}" if left else ""
    return f"people by their rows: {', '.join(listed)}{out}{told_of_given_up(units)}"


def told_of_places(engine: Engine, members: Sequence[Member], units: Units, busiest: Collection[int]) -> Iterator[str]:
    """A line for each table whose rows do not stand in their order, and for each whose later rows share labels."""
    turns = dict(engine.grouped(units.members, "member", most=("max", "turn")))
    for member in members:
        if member.number in busiest:
            below = " and ".join(one.name for one in members if one.above == member.number)
            what = f"rows to which most rows of {below} belong come first, so that fewer rows are left out"
            yield f"{member.name}: {what}; with `rows: aligned` they stand in their order alone"
        if member.order and member.bits == RUNS and turns.get(member.number, 0) >= 1 << RUNS:
            above = next((f"row of {one.name}" for one in members if one.number == member.above), "person")
            what = f"rows of one {above} share labels from the {1 << RUNS}th on, in runs"
            yield f"{member.name}: {what}; with `rows: aligned` each has its own, which takes longer"


def told_of_given_up(units: Units) -> str:
    """Why rows are left out, how few could be, and what leaves out fewer; empty if only numbers of rows are why."""
    rows, people = units.given_up
    if not rows:
        return ""
    why = f"{rows:,} of them as one value is too frequent among people who publish as many rows"
    return f": {why} (by counts {count_phrase(people, 'person', 'people')} must give up some)"
