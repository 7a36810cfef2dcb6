"""Clipped bisection: classes of exactly l different values by halving, a few statements a level.

A node of k classes has l*k rows and no value in more than k of them. It splits into a = k div 2 and
b = k - a classes along its most widely spread quasi-identifier: of each value, the first rows beyond b
must go left and those beyond a must go right; the left half takes the first l*a rows, the forced ones
before the free. Both halves then have the node's property, so the recursion ends in classes of l rows
with l different values, as many as BSGI's Theorem 1 allows. Decisions depend on content alone.

Where rows must differ on other keys too, the free rows are clipped by those as well, one key after the
other. That is no guarantee: what one key wants another may forbid, and `repair` mends what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.database.templates import Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis

#: Spreads are compared in millionths of a quasi-identifier's domain.
SPREAD_UNIT = 10**6
#: The sides of rows that other keys want left or right; the first of them goes first. Rows beyond are free.
_WANTED = ((1, 7), (2, 6), (3, 5))


def bisect(
    task: Task,
    quotas: list[int],
    l: int,  # noqa: E741 - the field's name for it
    classes: int,
    others: Sequence[SensitiveAxis] = (),
) -> Relation:
    """The assignment (row_id, class_id) of `sum(quotas) = l * classes` rows; quotas are by falling bucket size.

    Classes differ on the first sensitive attribute, and mostly on the `others`.
    """
    engine = task.engine
    nodes = fill_root(task, quotas, classes, others)
    levels = (classes - 1).bit_length()
    for level in range(levels):
        task.progress(level, levels)
        fewest = classes >> (level + 1)  # classes of a left half, at least
        wanting = [key for key in others if key.distribution.counts[0] > fewest]
        halved = _halve(task, nodes, l, others, wanting)
        engine.drop(nodes)  # all the rows, once a level
        nodes = halved
    task.progress(levels, levels)
    assigned = engine.materialise("assigned", "bsgi/assign_nodes", nodes=nodes)
    engine.drop(nodes)  # all the rows, as long as exchanges go on
    return assigned


def fill_root(task: Task, quotas: list[int], classes: int, others: Sequence[SensitiveAxis] = ()) -> Relation:
    """The rows that are selected, all in one node; which rows of a bucket stay out is drawn by the seed."""
    engine, encoded = task.engine, task.encoded
    sensitive = encoded.sensitive[0]
    buckets = engine.load("quotas", {"place": "BIGINT", "quota": "BIGINT"}, list(enumerate(quotas, 1)))
    return engine.materialise(
        "node",
        "bsgi/fill_root",
        rows=encoded.rows,
        dictionary=sensitive.dictionary,
        quotas=buckets,
        axes=encoded.axes,
        sensitive=sensitive,
        others=others,
        seed=Value(task.seed),
        classes=Value(classes),
    )


def _halve(
    task: Task,
    nodes: Relation,
    l: int,  # noqa: E741
    others: Sequence[SensitiveAxis],
    wanting: Sequence[SensitiveAxis],
) -> Relation:
    """The next level: every node of two classes or more split in two; of the `others` some are `wanting` a side."""
    engine, encoded = task.engine, task.encoded
    holes = {"axes": encoded.axes, "sensitive": encoded.sensitive[0], "others": others}
    with engine.scope() as scope:
        spreads = engine.materialise(
            "spreads", "bsgi/measure_spreads", nodes=nodes, axes=encoded.axes, unit=Value(SPREAD_UNIT)
        )
        sided = _sided(task, nodes, spreads, wanting, holes) if wanting else None
        more = {"nodes": nodes, "spreads": spreads, "sided": sided, "l": Value(l)}
        return scope.keep(engine.materialise("node", "bsgi/halve_nodes", **more, **holes))


def _sided(
    task: Task, nodes: Relation, spreads: Relation, wanting: Sequence[SensitiveAxis], holes: dict[str, Any]
) -> Relation:
    """The rows of nodes to be split, each with the side that the keys want it on, the first key before the others."""
    engine = task.engine
    sided = engine.materialise("sided", "bsgi/side_rows", nodes=nodes, spreads=spreads, **holes)
    for key, (left, right) in zip(wanting, _WANTED, strict=False):
        clipped = engine.materialise(
            "sided", "bsgi/clip_sides", sided=sided, key=key, left=Value(left), right=Value(right), **holes
        )
        engine.drop(sided)  # all the rows, once a key
        sided = clipped
    return sided
