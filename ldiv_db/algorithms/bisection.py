"""Clipped bisection: classes of exactly l different values by halving, a few statements a level.

A node of k classes has l*k rows and no value in more than k of them. It splits into a = k div 2 and
b = k - a classes along its most widely spread quasi-identifier: of each value, the first rows beyond b
must go left and those beyond a must go right; the left half takes the first l*a rows, the forced ones
before the free. Both halves then have the node's property, so the recursion ends in classes of l rows
with l different values, as many as BSGI's Theorem 1 allows. Decisions depend on content alone.
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Task
from ldiv_db.templates import Relation, Value

#: Spreads are compared in millionths of a quasi-identifier's domain.
SPREAD_UNIT = 10**6


def bisect(task: Task, quotas: list[int], l: int, classes: int) -> Relation:  # noqa: E741 - the field's name for it
    """The assignment (row_id, class_id) of `sum(quotas) = l * classes` rows; quotas are by falling bucket size."""
    engine = task.engine
    nodes = fill_root(task, quotas, classes)
    levels = (classes - 1).bit_length()
    for level in range(levels):
        task.progress(level, levels)
        halved = _halve(task, nodes, l)
        engine.drop(nodes)
        nodes = halved
    task.progress(levels, levels)
    assigned = engine.materialise("assigned", "bsgi/assign_nodes", nodes=nodes)
    engine.drop(nodes)
    return assigned


def fill_root(task: Task, quotas: list[int], classes: int) -> Relation:
    """The rows that are selected, all in one node; which rows of a bucket stay out is drawn by the seed."""
    engine, encoded = task.engine, task.encoded
    sensitive = encoded.sensitive[0]
    buckets = engine.load("quotas", {"place": "BIGINT", "quota": "BIGINT"}, list(enumerate(quotas, 1)))
    root = engine.materialise(
        "node",
        "bsgi/fill_root",
        rows=encoded.rows,
        dictionary=sensitive.dictionary,
        quotas=buckets,
        axes=encoded.axes,
        sensitive=sensitive,
        seed=Value(task.seed),
        classes=Value(classes),
    )
    engine.drop(buckets)
    return root


def _halve(task: Task, nodes: Relation, l: int) -> Relation:  # noqa: E741
    """The next level: every node of two classes or more split in two."""
    engine, encoded = task.engine, task.encoded
    spreads = engine.materialise(
        "spreads", "bsgi/measure_spreads", nodes=nodes, axes=encoded.axes, unit=Value(SPREAD_UNIT)
    )
    halved = engine.materialise(
        "node",
        "bsgi/halve_nodes",
        nodes=nodes,
        spreads=spreads,
        axes=encoded.axes,
        sensitive=encoded.sensitive[0],
        l=Value(l),
    )
    engine.drop(spreads)
    return halved
