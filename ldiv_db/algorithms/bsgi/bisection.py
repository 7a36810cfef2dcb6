"""Bisection: classes of exactly l different values by splitting a node of rows in two, a few statements a level.

A node of k classes has l*k rows and no value in more than k of them. It splits into a and b = k - a classes along a
quasi-identifier: of each sensitive value, the first rows beyond b must go left and those beyond a must go right; the
left side takes the first l*a rows, the forced ones before the free. Both sides then have the node's property, so the
recursion ends in classes of l rows with l different values, as many as BSGI's Theorem 1 allows. Decisions depend on
content alone.

`bisect` halves nodes along their most widely spread quasi-identifier (a = k div 2), until they have one class, or rows
that are equal on all of these: such a node deals its rows to its classes, value by value. Where rows must differ on
other keys too, the free rows are clipped by those as well, one key after the other. That is no guarantee: what one key
wants another may forbid, and `repair` mends what is left.

`split` looks for where values part: every boundary between neighbouring values is tried, with the a nearest to the rows
before it, and the one that lowers the cost most is taken, less what sensitive values force across it. Small nodes halve
on their dearest quasi-identifier.

Equal rows that follow each other by number are one row with a `weight` until a split puts some of them on either side.
That changes no class: in every order of a split they follow each other too. In a node of one class each weight is 1, as
its values differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, span_costs
from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.steps import OneStatement
from ldiv_db.recoding.encoded import Axis, SensitiveAxis

#: Spreads are compared in millionths of a quasi-identifier's domain.
SPREAD_UNIT = 10**6
#: The sides of rows that other keys want left or right; the first of them goes first. Rows beyond are free.
_WANTED = ((1, 7), (2, 6), (3, 5))


def bisect(task: Task, quotas: list[int], l: int, classes: int, others: Sequence[SensitiveAxis] = ()) -> Relation:
    """The assignment (row_id, class_id) of `sum(quotas) = l * classes` rows; quotas are by falling bucket size.

    Classes differ on the first sensitive attribute, and mostly on the `others`.
    """
    engine, levels = task.engine, (classes - 1).bit_length()
    with engine.scope() as scope:
        flow = _root(task, quotas, classes, others)
        positions = [Position(number, axis) for number, axis in enumerate(task.encoded.axes, 1)]
        large, width = task.encoded.row_count >= MANY_ROWS, 2 ** (task.encoded.row_count // GRAINS).bit_length()
        flow.know(positions=positions, l=l, unit=SPREAD_UNIT, width=width)
        columns = ("row_id", WEIGHT.name, task.encoded.sensitive[0].code.name, "node", "classes")
        settled = engine.select("settled", flow["nodes"], *columns, where=[Where("classes", 0)])
        for level in range(levels):
            task.progress(level, levels)
            fewest = classes >> (level + 1)  # classes of a left half, at least
            wanting = [key for key in others if key.distribution.counts[0] > fewest]
            sides = zip(wanting, _WANTED, strict=False)
            wanted = [{"key": key, "left": left, "right": right} for key, (left, right) in sides]
            with flow.scope("nodes"):
                nodes, splits = flow["nodes"], flow.step("splits", "choose_widest")
                engine.extend_others(settled, nodes, splits, "node", *columns)
                if large and fewest >= FORCED and not others:  # few rows of a large node are sorted
                    flow.step("cells", "halve_cells")
                flow.know(nodes=flow.step("node", "split_nodes", wanting=wanted))
                engine.drop(nodes)  # all the rows, once a level
        engine.extend(settled, flow["nodes"], *columns)
        task.progress(levels, levels)
        return scope.keep(flow.step("assigned", "deal_classes", settled=settled))


def fill_root(task: Task, quotas: list[int], classes: int) -> Relation:
    """The rows that are selected, all in one node."""
    nodes: Relation = _start(task, quotas, classes)["nodes"]
    return nodes


def _start(task: Task, quotas: list[int], classes: int, others: Sequence[SensitiveAxis] = ()) -> EngineFlow:
    """A flow with `nodes`, the rows that are selected, all in one; which rows of a bucket stay out the seed draws."""
    engine, encoded = task.engine, task.encoded
    flow = EngineFlow(engine, "bsgi", rows=encoded.rows, axes=encoded.axes, sensitive=encoded.sensitive[0])
    flow.know(others=others, wanting=(), cells=None, width=0, seed=task.seed, classes=classes, weight=WEIGHT)
    flow.know(dictionary=encoded.sensitive[0].dictionary)
    flow.know(quotas=engine.load("quotas", {"place": "BIGINT", "quota": "BIGINT"}, list(enumerate(quotas, 1))))
    flow.know(nodes=flow.step("node", "fill_root"))
    return flow


#: Nodes of at most so many classes halve on their dearest quasi-identifier.
SIMPLE = 8
#: While a node has more classes than this, what sensitive values force across a boundary is counted.
FORCED = 64
#: With so many rows, nodes that large are cut by counts; with fewer, ordering all rows is faster. Parts of a table are
#: cut as the whole is: cells that give their share to both sides lose less.
MANY_ROWS = 200_000
#: The boundaries of each quasi-identifier for which it is counted.
RANKED = 2
#: Each side of a boundary has at least so many hundredths of the classes.
PART = 8
#: Levels allowed, in hundredths of those that halving takes: nodes may be uneven, but not for ever.
DEPTH = 120
#: A domain wider than GRAINS squared is counted in this many grains.
GRAINS = 1024


@dataclass(frozen=True)
class Position:
    """A quasi-identifier by its number, and the grain in which its values are counted, None for one by one.

    `coarse` is a column of the rows with the grain that each is in.
    """

    number: int
    axis: Axis
    grain: int | None = None
    coarse: Identifier | None = None

    @property
    def null_code(self) -> int | None:
        return self.axis.null_apart


def split(task: Task, measures: Sequence[Measure], quotas: list[int], l: int, classes: int) -> Relation:
    """The assignment (row_id, class_id) of `sum(quotas) = l * classes` rows; quotas are by falling bucket size."""
    engine = task.engine
    halvings = (classes - 1).bit_length()
    depth, level, largest = -(-halvings * DEPTH // 100), 0, classes
    with engine.scope() as scope:
        flow = _root(task, quotas, classes)
        settled = engine.select("settled", flow["nodes"], "row_id", "node", where=[Where("classes", 1)])
        positions = [Position(number, m.axis, _grain(m)) for number, m in enumerate(measures, 1)]
        flow.know(positions=positions, l=l, simple=SIMPLE, part=PART, ranked=RANKED, **span_costs(task, measures))
        while largest > 1:
            task.progress(level, depth)
            level += 1
            largest, least = _split(task, flow, largest, 2 ** (depth - level))
            if least == 1:
                engine.extend(settled, flow["nodes"], "row_id", "node", where=[Where("classes", 1)])
        task.progress(depth, depth)
        return scope.keep(engine.number_groups("assigned", settled, "node"))


def _root(task: Task, quotas: list[int], classes: int, others: Sequence[SensitiveAxis] = ()) -> EngineFlow:
    """As `_start`, each row with its `weight`: equal ones in one, but for rows that may differ on other keys."""
    flow = _start(task, quotas, classes, others)
    rows, codes = flow["nodes"], [*(axis.code for axis in task.encoded.axes), task.encoded.sensitive[0].code]
    if others:
        flow.know(nodes=task.engine.select("node", rows, constants={WEIGHT.name: 1}))
    else:
        flow.know(nodes=flow.step("node", "group_rows", rows=rows, codes=codes))
    task.engine.drop(rows)  # all the rows, as long as nodes are split
    return flow


def _grain(measure: Measure) -> int | None:
    wide = not measure.levels and measure.axis.scale > GRAINS**2
    return measure.axis.scale // GRAINS if wide else None


def _split(task: Task, flow: EngineFlow, largest: int, most: int) -> tuple[int, int]:
    """Split every node of two classes or more in two; the classes of the largest and the smallest node after that.

    `largest` is that of this level; no side of a boundary gets more than `most` classes. While nodes are
    large the counts of their values tell for most rows which side they go to, and few need an order.
    """
    with flow.scope("nodes"):
        nodes = flow["nodes"]
        if largest > SIMPLE:  # rows by node and value, of small nodes the bounds; while large by sensitive value too
            flow.step("counts", "count_positions", by_bucket=largest > FORCED)
            flow.step("splits", "choose_splits", forced=largest > FORCED, most=most)
        if largest > max(SIMPLE, FORCED) and (task.is_part or task.encoded.row_count >= MANY_ROWS):
            flow.step("cells", "cut_cells")
            halves = flow.step("node", "split_cells")
        elif largest > SIMPLE:
            halves = flow.step("node", "split_nodes")
        else:
            steps = OneStatement(flow.engine)
            splits = steps.materialise("splits", flow.path("choose_dearest"), **flow.params("choose_dearest"))
            halves = steps.keep("node", flow.path("split_nodes"), **flow.params("split_nodes", splits=splits))
        flow.know(nodes=halves)
        flow.engine.drop(nodes)  # all the rows, once a level
        sides = flow.record("bound_nodes")
    return sides["most"], sides["least"]
