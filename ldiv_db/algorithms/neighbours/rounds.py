"""Passes that improve classes round by round: their one loop, its stop rule, and the orders that find neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.database.templates import Relation

#: Rounds end when two in a row lower the cost by less than this part of it.
LEAST_PART = 200
#: The jitter of an order by cardinality, in thousandths of a place.
JITTER = 4000


@dataclass(frozen=True)
class Changed:
    """The result of a round: the assignment (row_id, class_id), the number of changes, what they save, and the cost of
    the classes before.
    """

    assigned: Relation
    changes: int
    gain: int
    cost: int


@dataclass(frozen=True)
class Improving:
    """All that a pass needs besides the classes: the task, its judge of classes, and measures of what they cost."""

    task: Task
    checker: ClassChecker
    measures: Sequence[Measure]

    @staticmethod
    def of(task: Task) -> Improving:
        """The state in which a task's classes are improved by LM."""
        return Improving(task, ClassChecker(task), lm_measures(task))


#: A round: an assignment (row_id, class_id) and the number of the round from 0.
Round = Callable[[Relation, int], Changed]


@dataclass(frozen=True)
class Pass:
    """A pass over all classes in rounds, after which they meet the same requirements and cost no more.

    `name` is its key in the `search` of a plan, `stage` what is shown while it runs. `start` makes its round. With
    `until_idle` it ends also when a round changes nothing; `small_only`: large tables are spared its many rounds.
    """

    name: str
    stage: str
    rounds: Callable[[Task], int]
    start: Callable[[Improving], Round]
    least_part: int = LEAST_PART
    until_idle: bool = False
    small_only: bool = False

    def work(self, task: Task) -> int:
        """The cells that it looks at, as estimates count them."""
        return task.cell_count * (1 if self.small_only else self.rounds(task))


def improve(step: Pass, state: Improving, assigned: Relation, rounds: int | None = None) -> tuple[Relation, list[int]]:
    """The assignment after a pass of at most so many rounds, and the changes of each; `assigned` is dropped.

    It ends when two rounds in a row lower the cost by less than its `least_part`-th part.
    """
    task, changes, before = state.task, list[int](), 0
    rounds, change = step.rounds(task) if rounds is None else rounds, step.start(state)
    task.stage(step.stage)
    while len(changes) < rounds:
        if not task.is_part:  # which says itself how far its algorithm is
            task.progress(len(changes), rounds)
        changed = change(assigned, len(changes))
        task.engine.drop(assigned)  # all the rows, once a round
        assigned = changed.assigned
        changes.append(changed.changes)
        slow = len(changes) > 1 and (before + changed.gain) * step.least_part <= changed.cost
        if slow or (step.until_idle and not changed.changes):
            break
        before = changed.gain
    return assigned, changes


class Orders:
    """The orders of quasi-identifiers by which rounds sort classes."""

    def __init__(self, task: Task, measures: Sequence[Measure]):
        codes = [len(task.engine.tally(m.axis.dictionary, "code")) for m in measures]
        self._coarse_first = [measures[i] for _, i in sorted((count, i) for i, count in enumerate(codes))]
        self._seed = task.seed

    def order(self, number: int) -> list[Measure]:
        """Even rounds take the quasi-identifiers with few codes first, with some jitter; odd ones any order."""
        keyed = []
        for rank, measure in enumerate(self._coarse_first):
            drawn = self._draw(number, measure.axis.code.name)
            keyed.append((drawn if number % 2 else rank * 1000 + drawn % JITTER, rank))
        return [self._coarse_first[rank] for _, rank in sorted(keyed)]

    def several(self, number: int, count: int) -> list[list[Measure]]:
        """The orders of a round that takes so many."""
        return [self.order(count * number + i) for i in range(count)]

    def _draw(self, number: int, name: str) -> int:
        digest = hashlib.sha256(f"{self._seed}:{number}:{name}".encode()).digest()
        return int.from_bytes(digest[:8], "big")
