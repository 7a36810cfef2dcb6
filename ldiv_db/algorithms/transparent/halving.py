"""Halving: the columns of a bucket become classes, by the quasi-identifiers and without a look at the values.

A node of c classes has c rows of each of its bucket's values. It splits along its dearest quasi-identifier: of each
value the first half of the rows goes left. So either side has a row of each value for each of its classes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.database.templates import Relation, Value


@dataclass(frozen=True)
class Way:
    """A quasi-identifier along which nodes split, by its number."""

    number: Value
    measure: Measure


def halve(task: Task, measures: Sequence[Measure], nodes: Relation, largest: int) -> Relation:
    """The rows with every node split into nodes of one class; `largest` is the classes of the largest node."""
    ways = [Way(Value(number), measure) for number, measure in enumerate(measures, 1)]
    levels = (largest - 1).bit_length()
    for level in range(levels):
        task.progress(level, levels)
        halves = _halve(task, ways, nodes)
        task.engine.drop(nodes)  # all the rows, once a level
        nodes = halves
    task.progress(levels, levels)
    return nodes


def _halve(task: Task, ways: Sequence[Way], nodes: Relation) -> Relation:
    """The next level: every node of two classes or more split in two."""
    engine = task.engine
    with engine.scope() as scope:
        chosen = engine.materialise("axes", "transparent/choose_axes", nodes=nodes, ways=ways)
        return scope.keep(
            engine.materialise(
                "node",
                "transparent/halve_nodes",
                nodes=nodes,
                axes_chosen=chosen,
                ways=ways,
                sensitive=task.encoded.sensitive[0],
            )
        )
