"""Levels: the people who publish equally many rows, each level a task of its own, and what their plans are together.

A level whose people cannot meet the policy by themselves is joined with the one below: they publish a row fewer each.
So is one whose people lose more by all of their rows than by one fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Task
from ldiv_db.algorithms.infeasible import explained
from ldiv_db.algorithms.local.class_checker import ClassChecker, count_classes
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.database.errors import InfeasibleError, PolicyError, count_phrase, rows_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.sequences import Lengths, lowered
from ldiv_db.recoding.units import Level, Units, name_at
from ldiv_db.requirements import Requirement
from ldiv_db.solving.improve import mean_loss


def level_tasks(task: Task) -> list[tuple[Level, Task]]:
    """The task of each level, most rows first; none unless people publish their rows aligned."""
    if task.units is None:
        return []
    left = _left_to_suppress(task, task.units)
    return [(level, _task_of(task, level, left)) for level in task.units.levels]


def _task_of(task: Task, level: Level, suppression: Decimal | None) -> Task:
    forms = {name_at(name, n): form for name, form in task.forms.items() for n in range(1, level.rows + 1)}
    own = {axis.column.name: axis.asked(task.wanted) for axis in level.encoded.sensitive}
    every = [found for wanted in own.values() for found in wanted]
    known = replace(task, units=None, forms=forms, suppression=suppression)
    return replace(known, encoded=level.encoded, wanted=own, requirements=every)


def _left_to_suppress(task: Task, units: Units) -> Decimal | None:
    """The share of the published rows that may be left out beside those that are left out already."""
    if task.suppression is None or not units.left_out:
        return task.suppression
    total = units.rows.row_count
    most = int(task.suppression * total) - units.left_out
    share = Decimal(max(most, 0)) / Decimal(max(total - units.left_out, 1))
    return share.quantize(Decimal(10) ** -12, rounding=ROUND_DOWN)


def planned_levels(task: Task, solved: Sequence[tuple[Level, Plan]]) -> Plan:
    """The plan of all people, whose classes are those of the levels one after the other."""
    engine, last, searches = task.engine, 0, list[dict[str, Any]]()
    assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
    for level, by_level in solved:
        plan = by_level.in_rows(engine)
        with engine.scope():
            numbers = [("whole_id", "row_id")]
            named = engine.join(
                "named", plan.assigned, level.numbers, "row_id", left_columns=["class_id"], right_columns=numbers
            )
            engine.insert(assigned, "bsgi/residue/shift_classes", assigned=named, last=last)
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
        algorithm=largest.algorithm,
        parts=sum(plan.parts for _, plan in solved),
    )


def with_enough(lengths: Lengths, people: Counter[int], requirements: Iterable[Requirement]) -> Lengths:
    """How many rows people publish if levels of fewer `people` than a class must have publish a row fewer."""
    least, people = max([1, *(requirement.least_rows for requirement in requirements)]), people.copy()
    for rows in range(max(people), 1, -1):
        if 0 < people[rows] < least:
            people[rows - 1] += people[rows]
            lengths = lowered(lengths, rows)
    return lengths


def joins(algorithm: Algorithm, task: Task, by_loss: bool, losses: dict[tuple[int, int], float | None]) -> bool:
    """Whether the people of the highest level of a task publish a row fewer each.

    They do if they cannot meet the policy by themselves; `by_loss` also if that loses less, about: a row that is left
    out loses 1, and those that stay what rows of the level below lose. Mondrian's classes are the measure, as they are
    quickly made; `losses` has it of levels by their rows and people, and takes in what is found.
    """
    (level, own), *below = level_tasks(task)
    if not _meets(algorithm, own):
        return True
    if not by_loss or not below or not _affords(task, level):
        return False
    rows, loss = level.rows, _known_loss(level, own, losses)
    if loss is None or rows * loss <= 1:
        return False
    less = _known_loss(*below[0], losses)
    return less is not None and rows * loss > 1 + (rows - 1) * less


def _affords(task: Task, level: Level) -> bool:
    """Whether a row of everybody in a level may be left out besides those that are."""
    units, share = task.units, task.suppression
    assert units is not None  # noqa: S101 - it has the level
    return share is None or units.left_out + level.encoded.row_count <= int(share * units.rows.row_count)


def _known_loss(level: Level, task: Task, losses: dict[tuple[int, int], float | None]) -> float | None:
    """The loss of a level, which is as it was as long as no people are joined with it."""
    key = (level.rows, task.encoded.row_count)
    if key not in losses:
        losses[key] = _quick_loss(task)
    return losses[key]


def _quick_loss(task: Task) -> float | None:
    """The mean LM of a level's quickest classes; None if there are none."""
    mondrian = Mondrian({})
    if mondrian.unfit(task):
        return None
    with task.engine.scope():
        try:
            return mean_loss(task, mondrian.run(task))
        except InfeasibleError:
            return None


def _meets(algorithm: Algorithm, task: Task) -> bool:
    try:
        algorithm.checked(task)
    except InfeasibleError:
        return False
    except PolicyError:  # which no number of rows mends
        return True
    return True


def unmet(task: Task, algorithm: Algorithm, each: Iterable[tuple[Encoded, Relation]]) -> set[int]:
    """The levels whose people do not meet the policy as one class; all are asked at once.

    `each` are people as units, with (row_id, level). Empty for an algorithm that may leave some of them out, or whose
    classes may be good where their union is not.
    """
    leaves = task.suppression is not None or getattr(algorithm.options, "residue", "") == "suppress"
    engine, found = task.engine, set[int]()
    if leaves or not algorithm.traits.meets_whole:
        return found
    with engine.scope():
        for encoded, levels in each:
            own = {a.column.name: [r for r in a.asked(task.wanted) if r.monotone] for a in encoded.sensitive}
            every = [requirement for asked in own.values() for requirement in asked]
            if not every or any(axis.bags and not axis.bags.scale for axis in encoded.sensitive):
                continue
            counts = count_classes(engine, encoded.sensitive, encoded.rows, levels, Identifier("level"))
            checker = ClassChecker(replace(task, encoded=encoded, requirements=every, wanted=own))
            bad = engine.select("bad", checker.margins(counts), "class_no", where=[Where("margin", 0, "<")])
            found.update(engine.column(bad, "class_no"))
    return found


def check_levels(algorithm: Algorithm, task: Task, show_values: bool) -> Feasibility:
    """The feasibility of all levels together; raises InfeasibleError with the reasons of one that cannot be met."""
    says, takes, found = algorithm.traits.explains, algorithm.traits.any_class, list[Feasibility]()
    assert task.units is not None  # noqa: S101 - the caller has looked
    left_out = task.units.left_out + task.units.rows.left_out
    for level, own in level_tasks(task):
        try:
            with explained(own.engine, own.encoded, own.wanted, says, takes, show_values):
                one = algorithm.checked(own)
        except InfeasibleError as error:
            people = count_phrase(own.encoded.row_count, "person", "people")
            what = f"{people} who would publish {rows_phrase(level.rows)} each are too few, or too much alike"
            way_out = "`rows: together` has no such groups, and `suppression` leaves them out"
            raise InfeasibleError(f"{error.message}\n{what}: {way_out}", error.l) from error
        left_out += level.rows * one.rows_suppressed
        found.append(one)
    return Feasibility(
        min(one.l for one in found),
        sum(one.classes for one in found),
        left_out,
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        tuple(dict.fromkeys(name for one in found for name in one.tries)),
    )


def told_of_levels(units: Units) -> str:
    """A line on how many people publish how many rows, and on the rows that are left out; empty without levels."""
    listed = [f"{level.encoded.row_count:,} publish {rows_phrase(level.rows)}" for level in reversed(units.levels)]
    if not listed:
        return ""
    left = units.left_out
    out = f"; {rows_phrase(left)} of people who have more are left out, of which nothing is promised" if left else ""
    return f"people by their rows: {', '.join(listed)}{out}"
