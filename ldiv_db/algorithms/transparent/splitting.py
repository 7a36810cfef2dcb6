"""Splitting: the columns of a bucket become classes, by the quasi-identifiers and without a look at the values.

A node of c classes has c rows of each of its bucket's values. It splits into nodes of a and of c - a classes along a
quasi-identifier: of each value the first a rows go left, so that either side has a row of each value for each of its
classes. Where to split is chosen by what the sides span, for all nodes at once, a level a few statements. Nodes of few
classes are dealt: of each value the first row in the order of codes goes to the first class, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, SpanCosts, span_costs
from ldiv_db.database.templates import Relation, Value

#: Each side of a split that is not in halves has at least so many hundredths of the classes.
PART = 8
#: Nodes of at most so many classes are dealt in the order of their codes: exchanges do as well there as splits.
SIMPLE = 4
#: Levels allowed, in hundredths of those that halving takes: nodes may be uneven, but not for ever.
DEPTH = 125


@dataclass(frozen=True)
class Way:
    """A quasi-identifier along which nodes split, by its number."""

    number: Value
    measure: Measure


def split(task: Task, measures: Sequence[Measure], nodes: Relation, largest: int) -> Relation:
    """The rows with their node and their class's place in it; `largest` is the classes of the largest node."""
    engine = task.engine
    halvings = (largest - 1).bit_length()
    depth, level = -(-halvings * DEPTH // 100), 0
    ways = [Way(Value(number), measure) for number, measure in enumerate(measures, 1)]
    with engine.scope() as scope:
        holes = {"ways": ways, "sensitive": task.encoded.sensitive[0]}
        settled = engine.materialise("settled", "transparent/settle_nodes", nodes=nodes, simple=Value(SIMPLE), **holes)
        costs = span_costs(task, measures)
        while largest > SIMPLE:
            task.progress(level, depth)
            level += 1
            nodes, largest = _split(task, ways, costs, nodes, settled, 2 ** max(depth - level, 0))
        task.progress(depth, depth)
        return scope.keep(settled)


def _split(
    task: Task, ways: Sequence[Way], costs: SpanCosts, nodes: Relation, settled: Relation, deepest: int
) -> tuple[Relation, int]:
    """The next level without nodes of few classes, which are `settled`, and the classes of its largest node.

    No side of a split has more than `deepest` classes, unless it is a half.
    """
    engine, holes = task.engine, {"ways": ways, "sensitive": task.encoded.sensitive[0]}
    with engine.scope() as scope:
        splits = _choose(task, ways, costs, nodes, deepest)
        sides = engine.record("neighbours/bound_splits", splits=splits)
        halves = engine.materialise("node", "transparent/split_nodes", nodes=nodes, splits=splits, **holes)
        if sides["least"] <= SIMPLE:
            engine.insert(settled, "transparent/settle_nodes", nodes=halves, simple=Value(SIMPLE), **holes)
        engine.drop(nodes)  # all the rows, once a level
        return scope.keep(halves), sides["most"]


def _choose(task: Task, ways: Sequence[Way], costs: SpanCosts, nodes: Relation, deepest: int) -> Relation:
    """How each node splits, as (node, axis, classes, left_classes)."""
    engine, sensitive = task.engine, task.encoded.sensitive[0]
    directions = engine.materialise(
        "directions", "transparent/list_directions", nodes=nodes, ways=ways, simple=Value(SIMPLE)
    )
    codes = engine.materialise(
        "codes", "transparent/count_codes", nodes=nodes, directions=directions, ways=ways, sensitive=sensitive
    )
    return engine.materialise(
        "splits",
        "transparent/choose_splits",
        codes=codes,
        levels=costs.levels,
        scales=costs.scales,
        columns=costs.columns,
        part=Value(PART),
        deepest=Value(deepest),
    )
