"""The division for classes of l different values: refined bisection by counts, as far as parts go.

A part of k classes has l*k rows and no value in more than k of them, so that k classes can be made of it by itself, as
many in all parts together as of the whole table. The rows beyond, fewer than l, are the last part's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi.boundaries import DEPTH, PART, RANKED, SIMPLE
from ldiv_db.algorithms.costs import SpanCosts, lm_measures, span_costs
from ldiv_db.database.templates import Relation, Value
from ldiv_db.distributing.movable import Movable
from ldiv_db.distributing.positions import Grained


def most_of(l: int, part_rows: int) -> int:  # noqa: E741 - the field's name for it
    """The most classes of a part: at least so many that either side of a split can have the rows beyond."""
    return max((part_rows - l + 1) // l, 2 * l)


def divide_by_classes(
    task: Task,
    rows: Movable,
    positions: Sequence[Grained],
    l: int,  # noqa: E741
    classes: int,
    part_rows: int,
) -> list[tuple[int, int]]:
    """The parts (node, classes) of the rows, all in node 1 of so many classes at first."""
    most = most_of(l, part_rows)
    depth = -(-(classes - 1).bit_length() * DEPTH // 100)  # as far as the whole table's go: uneven where that pays
    level, parts, nodes = 0, list[tuple[int, int]](), [(1, classes)]
    costs = span_costs(task, lm_measures(task))
    while True:
        small = [(node, size) for node, size in nodes if size <= most]
        rows.settle([node for node, _ in small])
        parts += small
        if len(small) == len(nodes):
            return sorted(parts)
        task.progress(classes - max(size for _, size in nodes), classes - most)
        level += 1
        nodes = _split(task, rows, positions, costs, l, most, 2 ** (depth - level))


def _split(
    task: Task,
    rows: Movable,
    positions: Sequence[Grained],
    costs: SpanCosts,
    l: int,  # noqa: E741
    most: int,
    side: int,
) -> list[tuple[int, int]]:
    """Split every node in two, no side of a boundary with more than `side` classes; the nodes there are then."""
    engine, holes = task.engine, {"positions": positions, "sensitive": task.encoded.sensitive[0]}
    with engine.scope() as scope:
        counts = rows.count(
            "counts", "bsgi/count_positions", scales=costs.scales, by_bucket=True, simple=Value(1), **holes
        )
        splits = scope.keep(_choose(task, counts, costs, l, PART if most * PART >= 100 * l else 50, side))
        cells = scope.keep(engine.materialise("cells", "bsgi/cut_cells", counts=counts, splits=splits, l=Value(l)))
    rows.move("bsgi/split_cells", cells=cells, splits=splits, weight=None, **holes)
    halves = sorted(engine.rows("distributing/list_halves", splits=splits))
    engine.drop(splits, cells)
    return halves


def _choose(task: Task, counts: Relation, costs: SpanCosts, l: int, part: int, side: int) -> Relation:  # noqa: E741
    """How each node splits, (node, axis, classes, left_classes), by the boundaries of most gain."""
    engine = task.engine
    tables: dict[str, Any] = {"levels": costs.levels, "scales": costs.scales, "columns": costs.columns}
    bounds = {"l": Value(l), "simple": Value(SIMPLE), "part": Value(part), "most": Value(side), "ranked": Value(RANKED)}
    boundaries = engine.materialise("boundaries", "bsgi/rank_boundaries", counts=counts, **tables, **bounds)
    return engine.materialise("splits", "bsgi/choose_splits", boundaries=boundaries, counts=counts, l=Value(l))
