"""Subtasks: rows of which classes are to be made, as a task of their own, where several keys count.

A subtask's keys have the counts of its rows, and the hardest sensitive attribute is its first: classes are made
on that one, and repaired for the others. In a trimmed subtask no code of any key is in more rows than there
can be classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.feasibility import hardest_first
from ldiv_db.database.templates import Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import Distribution
from ldiv_db.requirements.distribution import most_classes


@dataclass(frozen=True)
class Subtask:
    """A task over some rows, and the most classes there can be of them."""

    task: Task
    classes: int

    @property
    def others(self) -> tuple[SensitiveAxis, ...]:
        """The keys besides the one that classes are made on."""
        return self.task.encoded.keys[1:]


def whole_subtask(task: Task, l: int) -> Subtask:  # noqa: E741 - the field's name for it
    """All rows."""
    return Subtask(_hardest_first(task), _most(task, l))


def residual_subtask(task: Task, assigned: Relation, l: int) -> Subtask:  # noqa: E741
    """The rows without a class."""
    free = task.engine.materialise("free", "bsgi/residue/list_free", rows=task.encoded.rows, assigned=assigned)
    return subtask_of(task, free, l)


def trimmed(subtask: Subtask, l: int) -> Subtask:  # noqa: E741
    """The subtask without what is too much of any code; leaving rows out may lower what another code may have."""
    engine, rows = subtask.task.engine, None
    while subtask.classes:
        encoded = subtask.task.encoded
        worst = max(encoded.keys, key=lambda key: key.distribution.counts[0])
        if len(encoded.keys) == 1 or worst.distribution.counts[0] <= subtask.classes:
            break
        fewer = engine.materialise(
            "trimmed",
            "bsgi/residue/trim_codes",
            rows=encoded.rows,
            key=worst,
            others=[key for key in encoded.keys if key is not worst],
            most=Value(subtask.classes),
            seed=Value(subtask.task.seed),
        )
        if rows:
            engine.drop(rows)  # all the rows, once for every code that is too frequent
        subtask, rows = subtask_of(subtask.task, fewer, l), fewer
    return subtask


def subtask_of(task: Task, rows: Relation, l: int) -> Subtask:  # noqa: E741
    """These rows, with the counts of their values."""
    encoded = task.encoded
    sensitive = tuple(_counted(task, rows, key) for key in encoded.sensitive)
    individual = _counted(task, rows, encoded.individual) if encoded.individual else None
    some = replace(task, encoded=replace(encoded, rows=rows, cells=None, sensitive=sensitive, individual=individual))
    return Subtask(_hardest_first(some), _most(some, l))


def _hardest_first(task: Task) -> Task:
    encoded = task.encoded
    if not all(key.distribution.counts for key in encoded.keys):
        return task  # nothing is left
    return replace(task, encoded=replace(encoded, sensitive=tuple(hardest_first(encoded))))


def _most(task: Task, l: int) -> int:  # noqa: E741
    return min(most_classes(key.distribution.counts, l) for key in task.encoded.keys)


def _counted(task: Task, rows: Relation, key: SensitiveAxis) -> SensitiveAxis:
    """The key with the counts of these rows; nobody's rows count as one each."""
    engine = task.engine
    counts = engine.materialise("counts", "bsgi/residue/count_codes", rows=rows, key=key)
    falling = [n for n, codes in engine.rows("bsgi/residue/tally_codes", counts=counts) for _ in range(codes)]
    falling += [1] * (engine.count(rows) - sum(falling))
    return replace(key, dictionary=counts, distribution=Distribution(falling))
