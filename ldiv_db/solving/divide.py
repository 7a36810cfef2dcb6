"""Division: which tables are divided, and into which parts, by counts, until no part has more than `part_rows` rows.

Of classes of l different values a part of k classes has l*k rows and no value in more than k of them, so that k classes
can be made of it by itself, as many in all parts together as of the whole table: it is split by refined bisection. The
rows beyond, fewer than l, are the last part's.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.algorithms.bsgi.bisection import DEPTH, PART, RANKED, SIMPLE, fill_root
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.costs import lm_measures, span_costs
from ldiv_db.algorithms.eligibility import quotas
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.database.names import Relation
from ldiv_db.solving.nodes import HalvedNodes, Nodes


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
    if getattr(options, "residue", "") == "suppress" and task.compares_with_table:
        return "classes are compared with all rows that are published"
    return ""


def divide(task: Task, algorithm: Algorithm, part_rows: int) -> Division:
    """The parts of a task that is divided; of `bsgi` that leaves rows out those rows are in no part."""
    with task.engine.scope() as scope:
        if isinstance(algorithm, Bsgi):
            found = _in_classes(task, algorithm, part_rows)
        else:
            nodes = Nodes(task, task.encoded.rows)
            keeps_equal = isinstance(algorithm, Mondrian) and algorithm.options.split == "strict"
            found = _divided(nodes, HalvedNodes(task, nodes, part_rows, cuts=not keeps_equal).divide())
        scope.keep(found.rows)
        return found


def _in_classes(task: Task, algorithm: Bsgi, part_rows: int) -> Division:
    feasible = algorithm.check(task)
    l, classes, rows = feasible.l, feasible.classes, task.encoded.rows
    beyond = task.encoded.row_count - l * classes
    if algorithm.options.residue == "suppress" and beyond:
        counts = task.encoded.sensitive[0].distribution.counts
        rows, beyond = fill_root(task, quotas(counts, l, classes), classes), 0
    nodes = Nodes(task, rows, classes)
    if rows is not task.encoded.rows:
        task.engine.drop(rows)
    parts = _split_classes(task, nodes, l, classes, part_rows)
    last = {node for node, _ in parts if node & (node + 1) == 0}  # the right side of every split above it
    return _divided(nodes, [(node, size * l + (beyond if node in last else 0)) for node, size in parts])


def _split_classes(task: Task, rows: Nodes, l: int, classes: int, part_rows: int) -> list[tuple[int, int]]:
    """The parts (node, classes) of the rows, all in node 1 of so many classes at first."""
    most = max((part_rows - l + 1) // l, 2 * l)  # so many that either side of a split can have the rows beyond
    depth = -(-(classes - 1).bit_length() * DEPTH // 100)  # as far as the whole table's go: uneven where that pays
    level, parts, nodes = 0, list[tuple[int, int]](), [(1, classes)]
    part = PART if most * PART >= 100 * l else 50
    rows.know(**span_costs(task, lm_measures(task)), l=l, part=part, ranked=RANKED, simple=SIMPLE, weight=None)
    while True:
        small = [(node, size) for node, size in nodes if size <= most]
        rows.settle([node for node, _ in small])
        parts += small
        if len(small) == len(nodes):
            return sorted(parts)
        task.progress(classes - max(size for _, size in nodes), classes - most)
        level += 1
        nodes = _halve(rows, side=2 ** (depth - level))


def _halve(rows: Nodes, side: int) -> list[tuple[int, int]]:
    """Split every node at the boundary of most gain, no side of more than `side` classes; the nodes there are then."""
    sensitive = rows["sensitive"][0]
    with rows.scope("splits", "cells"):
        rows.step("counts", "bsgi/count_positions", sensitive=sensitive, by_bucket=True, simple=1)
        rows.step("splits", "bsgi/choose_splits", forced=True, most=side)
        rows.step("cells", "bsgi/cut_cells")
    rows.replace("nodes", "bsgi/split_cells", sensitive=sensitive)
    halves = sorted(rows.rows("list_halves"))
    rows.drop("splits", "cells")
    return halves


def _divided(nodes: Nodes, parts: list[tuple[int, int]]) -> Division:
    nodes.drop("nodes")  # none is left, once all are settled
    assert nodes.parts is not None  # noqa: S101 - every division has a part
    return Division(parts, nodes.parts)
