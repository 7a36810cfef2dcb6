"""Passes over the classes of several tasks in one series of statements, as strata of one.

A round takes about as long for few rows as for many: the people of all levels are improved in the time of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.strata import joined
from ldiv_db.algorithms.neighbours.passes import Course, Improving, Pass, improve
from ldiv_db.database.names import Relation

#: The most cells of several tasks whose classes are improved at once: with more of them rows are what takes long.
CELLS = 100_000


def improve_all(
    steps: Sequence[Pass], tasks: Sequence[Task], assigned: Sequence[Relation], asked: Callable[[Task], int]
) -> Iterator[tuple[Relation, list[Course]]]:
    """What is assigned of each task after passes, and their courses; the tasks must be able to be strata of one.

    `asked` is what a tenth of work must gain, by the task of all that are improved at once.
    """
    pairs = list(zip(tasks, assigned, strict=True))
    while pairs:
        first, *others = pairs
        some, cells = [first], first[0].cell_count
        while others and (cells := cells + others[0][0].cell_count) <= CELLS:
            some.append(others.pop(0))
        pairs = others
        yield from _improved(steps, some, asked)


def _improved(
    steps: Sequence[Pass], pairs: Sequence[tuple[Task, Relation]], asked: Callable[[Task], int]
) -> Iterator[tuple[Relation, list[Course]]]:
    (task, assigned), *others = pairs
    if not others:
        yield improve(steps, Improving.of(task), assigned, asked(task))
        return
    with task.engine.scope() as scope:
        strata = joined([own for own, _ in pairs], filled=True)
        start = strata.stacked([own for _, own in pairs])
        made, courses = improve(steps, Improving.of_strata(strata), start, asked(strata.task))
        found = [scope.keep(own) for own in strata.parted(made)]
    yield from ((own, courses) for own in found)
