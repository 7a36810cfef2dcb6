"""BSGI's Select procedure (Figure 2): one class after the other, each row the cheapest of its bucket.

The buckets that a class draws from follow from bucket sizes alone, so the whole schedule is known
beforehand. Classes are then grown many at a time: each of a batch picks from the rows free at its
start, and the batch is accepted up to the first class that picked a row of an earlier one. What is
accepted is exactly what one class at a time would have picked, because the best of all free rows stays
the best when other rows are taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.encode import Axis
from ldiv_db.templates import Identifier, Relation, Value

#: The unit of costs: weighted NCP per row in millionths, so that cost and row number fit one integer.
COST_UNIT = 10**6
#: How far the order of ties is turned from one class to the next, lest all classes want the same of equal rows.
TIE_STRIDE = 7919
_SMALLEST_BATCH, _LARGEST_BATCH = 8, 256


@dataclass(frozen=True)
class Level:
    """One level of a quasi-identifier's taxonomy: a row's node there, and the cost saved if a class shares it."""

    node: Identifier
    gain: Identifier
    depth: Value


@dataclass(frozen=True)
class Way:
    """A quasi-identifier as Select sees it: the levels of its taxonomy, none for plain numbers."""

    axis: Axis
    levels: tuple[Level, ...]
    full_cost: Value
    null_code: Value
    paths: Relation | None = None

    @property
    def table(self) -> Identifier:
        return self.axis.table


def schedule(counts: Sequence[int], l: int, classes: int) -> list[tuple[int, int, int]]:  # noqa: E741
    """Which bucket each class draws from: (class, step, bucket), all from 1, `counts` by bucket (Max-l).

    Each class takes one row from each of the l largest buckets, ties to the lower number.
    """
    heap = [(-count, bucket) for bucket, count in enumerate(counts, 1)]
    heapq.heapify(heap)
    plan = []
    for number in range(1, classes + 1):
        drawn = [heapq.heappop(heap) for _ in range(l)]
        for step, (count, bucket) in enumerate(drawn, 1):
            plan.append((number, step, bucket))
            heapq.heappush(heap, (count + 1, bucket))
    return plan


def select(task: Task, l: int, classes: int) -> Relation:  # noqa: E741
    """The assignment (row_id, class_id) of `l * classes` rows by the paper's Select."""
    engine, encoded = task.engine, task.encoded
    ways = [_way(task, axis) for axis in encoded.axes]
    free = _candidates(task, ways)
    order = engine.rows("bsgi/list_buckets", dictionary=encoded.sensitive[0].dictionary)
    plan = schedule([rows for _, rows in order], l, classes)
    codes = [code for code, _ in order]
    draws = engine.load(
        "draws", {"class_id": "BIGINT", "step": "INTEGER", "bucket": "INTEGER"}, [(c, s, codes[b - 1]) for c, s, b in plan]
    )
    picked = engine.load("picked", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
    done, batch = 0, _SMALLEST_BATCH
    while done < classes:
        task.progress(done, classes)
        accepted = _grow_batch(task, ways, free, draws, picked, done + 1, min(done + batch, classes), l)
        rest = engine.materialise("free", "bsgi/keep_free", rows=free, picked=picked, first=Value(done + 1))
        engine.drop(free)
        free, done = rest, done + accepted
        batch = max(_SMALLEST_BATCH, min(_LARGEST_BATCH, 2 * accepted))
    task.progress(classes, classes)
    engine.drop(free, draws, *(way.paths for way in ways if way.paths is not None))
    return picked


def _way(task: Task, axis: Axis) -> Way:
    full = Value(round(axis.weight * COST_UNIT))
    null_code = Value(axis.null_code)
    if axis.nodes is None or axis.taxonomy is None:
        return Way(axis, (), full, null_code)
    name = axis.code.name
    levels = tuple(
        Level(Identifier(f"{name}_node_{depth}"), Identifier(f"{name}_gain_{depth}"), Value(depth))
        for depth in range(1, axis.taxonomy.height + 1)
    )
    paths = task.engine.materialise(
        f"paths_{name}",
        "bsgi/trace_paths",
        nodes=axis.nodes,
        levels=levels,
        leaves=Value(axis.leaves),
        unit=full,
    )
    return Way(axis, levels, full, null_code, paths)


def _candidates(task: Task, ways: Sequence[Way]) -> Relation:
    """The rows with their paths through the taxonomies and their place in the seeded order of their bucket."""
    return task.engine.materialise(
        "free",
        "bsgi/list_candidates",
        rows=task.encoded.rows,
        ways=ways,
        sensitive=task.encoded.sensitive[0],
        seed=Value(task.seed),
    )


def _grow_batch(
    task: Task,
    ways: Sequence[Way],
    free: Relation,
    draws: Relation,
    picked: Relation,
    first: int,
    last: int,
    l: int,  # noqa: E741
) -> int:
    """Grow the classes `first..last` from the free rows, add the accepted ones to `picked`, return how many."""
    engine = task.engine
    grown = engine.materialise(
        "grown", "bsgi/start_classes", rows=free, draws=draws, ways=ways, first=Value(first), last=Value(last)
    )
    picks = [grown]
    for step in range(2, l + 1):
        grown = engine.materialise(
            "grown",
            "bsgi/grow_step",
            rows=free,
            draws=draws,
            grown=grown,
            ways=ways,
            step=Value(step),
            modulus=Value(task.encoded.row_count + 1),
            stride=Value(TIE_STRIDE),
        )
        picks.append(grown)
    accepted = int(engine.scalar("bsgi/count_accepted", picks=picks, first=Value(first), last=Value(last)))
    engine.insert(picked, "bsgi/list_accepted", picks=picks, end=Value(first + accepted))
    engine.drop(*picks)
    return accepted
