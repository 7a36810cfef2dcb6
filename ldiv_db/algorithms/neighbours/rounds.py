"""Rounds: by which orders neighbours are found, round by round, and when no other round is worth its time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.database.templates import Relation

#: Rounds end when two in a row lower the cost by less than this part of it.
LEAST_PART = 200
#: What rounds do.
SPLITTING, FLOWING, TRADING = "splitting classes anew", "letting rows flow between classes", "trading rows"
#: The jitter of an order by cardinality, in thousandths of a place.
JITTER = 4000


@dataclass(frozen=True)
class Changed:
    """What a round made of the classes: the assignment (row_id, class_id), the changes, what they save, and what the
    classes cost before.
    """

    assigned: Relation
    changes: int
    gain: int
    cost: int


#: A round, of an assignment, with the number of the round from 0.
Round = Callable[[Relation, int], Changed]


def run_rounds(
    task: Task,
    stage: str,
    assigned: Relation,
    rounds: int,
    change: Round,
    least_part: int = LEAST_PART,
    until_idle: bool = False,
) -> tuple[Relation, list[int]]:
    """The assignment after at most so many rounds, and the changes of each; `assigned` is dropped.

    They end when two in a row lower the cost by less than its `least_part`-th part, with `until_idle` also when one
    changes nothing.
    """
    changes, before = list[int](), 0
    task.stage(stage)
    while len(changes) < rounds:
        if not task.is_part:  # which says itself how far its algorithm is
            task.progress(len(changes), rounds)
        changed = change(assigned, len(changes))
        task.engine.drop(assigned)  # all the rows, once a round
        assigned = changed.assigned
        changes.append(changed.changes)
        slow = len(changes) > 1 and (before + changed.gain) * least_part <= changed.cost
        if slow or (until_idle and not changed.changes):
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
