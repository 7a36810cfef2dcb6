"""The division for classes of l different values: refined bisection by counts, as far as parts go.

A part of k classes has l*k rows and no value in more than k of them, so that k classes can be made of it by itself, as
many in all parts together as of the whole table. The rows beyond, fewer than l, are the last part's.

Which tables are divided, and into which parts: by counts, until no part has more than `part_rows` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Algorithm, Task, quotas
from ldiv_db.algorithms.bsgi.bisection import DEPTH, PART, RANKED, SIMPLE, fill_root
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.costs import SpanCosts, lm_measures, span_costs
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.solving.nodes import Grained, HalvedNodes, Movable, RowsHere, positions_of


def divide_by_classes(
    task: Task, rows: Movable, positions: Sequence[Grained], l: int, classes: int, part_rows: int
) -> list[tuple[int, int]]:
    """The parts (node, classes) of the rows, all in node 1 of so many classes at first."""
    most = max((part_rows - l + 1) // l, 2 * l)  # so many that either side of a split can have the rows beyond
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
    task: Task, rows: Movable, positions: Sequence[Grained], costs: SpanCosts, l: int, most: int, side: int
) -> list[tuple[int, int]]:
    """Split every node in two, no side of a boundary with more than `side` classes; the nodes there are then."""
    engine, params = task.engine, {"positions": positions, "sensitive": task.encoded.sensitive[0]}
    with engine.scope() as scope:
        counts = rows.count(
            "counts", "bsgi/count_positions", scales=costs.scales, by_bucket=True, simple=Value(1), **params
        )
        splits = scope.keep(_choose(task, counts, costs, l, PART if most * PART >= 100 * l else 50, side))
        cells = scope.keep(engine.materialise("cells", "bsgi/cut_cells", counts=counts, splits=splits, l=l))
    rows.move("bsgi/split_cells", cells=cells, splits=splits, weight=None, **params)
    halves = sorted(engine.rows("solving/list_halves", splits=splits))
    engine.drop(splits, cells)
    return halves


def _choose(task: Task, counts: Relation, costs: SpanCosts, l: int, part: int, side: int) -> Relation:
    """The split of each node, (node, axis, classes, left_classes), by the boundaries of most gain."""
    engine = task.engine
    tables = dict(vars(costs))
    bounds = {"l": Value(l), "simple": Value(SIMPLE), "part": Value(part), "most": Value(side), "ranked": Value(RANKED)}
    return engine.materialise("splits", "bsgi/choose_splits", counts=counts, forced=True, **tables, **bounds)


@dataclass(frozen=True)
class Division:
    """The parts (node, rows), in an order given by content, and their rows with the number of their `node`."""

    parts: list[tuple[int, int]]
    rows: Relation


def why_whole(task: Task, algorithm: Algorithm) -> str:
    """The reason why a task is not divided; empty if it can be."""
    options = algorithm.options
    if isinstance(algorithm, Bsgi):
        if task.transparent:
            return "a transparent release is made of all rows together"
        if len(task.encoded.keys) > 1:
            return "rows that differ on several keys are chosen among all rows"
        return "greedy selection chooses among all rows" if algorithm.options.select == "greedy" else ""
    if not algorithm.traits.divides:
        return f"{algorithm.name} plans on all rows together"
    if getattr(options, "residue", "") == "suppress" and any(r.compares_with_table for r in task.requirements):
        return "classes are compared with all rows that are published"
    return ""


def divide(task: Task, algorithm: Algorithm, part_rows: int) -> Division:
    """The parts of a task that is divided; of `bsgi` that leaves rows out those rows are in no part."""
    with task.engine.scope() as scope:
        positions = positions_of(task)
        if isinstance(algorithm, Bsgi):
            found = _in_classes(task, algorithm, positions, part_rows)
        else:
            rows = RowsHere(task.engine, _started(task.engine, task, positions, task.encoded.rows))
            keeps_equal = isinstance(algorithm, Mondrian) and algorithm.options.split == "strict"
            parts = HalvedNodes(task, rows, positions, part_rows, cuts=not keeps_equal).divide()
            found = _divided(rows, parts)
        scope.keep(found.rows)
        return found


def _in_classes(task: Task, algorithm: Bsgi, positions: tuple[Grained, ...], part_rows: int) -> Division:
    feasible = algorithm.check(task)
    l, classes, rows = feasible.l, feasible.classes, task.encoded.rows
    beyond = task.encoded.row_count - l * classes
    if algorithm.options.residue == "suppress" and beyond:
        counts = task.encoded.sensitive[0].distribution.counts
        rows, beyond = fill_root(task, quotas(counts, l, classes), classes), 0
    started = _started(task.engine, task, positions, rows, classes)
    if rows is not task.encoded.rows:
        task.engine.drop(rows)
    movable = RowsHere(task.engine, started)
    parts = divide_by_classes(task, movable, positions, l, classes, part_rows)
    last = {node for node, _ in parts if node & (node + 1) == 0}  # the right side of every split above it
    return _divided(movable, [(node, size * l + (beyond if node in last else 0)) for node, size in parts])


def _started(
    engine: Engine, task: Task, positions: tuple[Grained, ...], rows: Relation, classes: int | None = None
) -> Relation:
    """The rows, all in the first node."""
    params = {"rows": rows, "positions": positions, "sensitive": task.encoded.sensitive}
    in_classes = {"classes": Value(classes), "in_classes": classes is not None}
    return engine.materialise("node", "solving/start_nodes", **params, **in_classes)


def _divided(rows: RowsHere, parts: list[tuple[int, int]]) -> Division:
    rows.close()
    assert rows.parts is not None  # noqa: S101 - every division has a part
    return Division(parts, rows.parts)
