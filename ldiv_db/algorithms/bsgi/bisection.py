"""Clipped bisection: classes of exactly l different values by halving, a few statements a level.

A node of k classes has l*k rows and no value in more than k of them. It splits into a = k div 2 and
b = k - a classes along its most widely spread quasi-identifier: of each value, the first rows beyond b
must go left and those beyond a must go right; the left half takes the first l*a rows, the forced ones
before the free. Both halves then have the node's property, so the recursion ends in classes of l rows
with l different values, as many as BSGI's Theorem 1 allows. Decisions depend on content alone.

Where rows must differ on other keys too, the free rows are clipped by those as well, one key after the
other. That is no guarantee: what one key wants another may forbid, and `repair` mends what is left.

Refined bisection: classes of exactly l different values by splitting where values part.

As in `bisection`, a node of k classes has l*k rows and no value in more than k of them, and splits into
a and b = k - a classes: of each sensitive value, the first rows beyond b must go left and those beyond a
must go right; the left side takes the first l*a rows, the forced ones before the free. Both sides then
have the node's property, so the recursion ends in as many classes as BSGI's Theorem 1 allows.

What differs is where to split: every boundary between neighbouring values is tried, with the a nearest to
the rows before it, and the one that lowers the cost most is taken, less what sensitive values force
across it. Small nodes halve on their dearest quasi-identifier. Decisions depend on content alone.

Equal rows that follow each other by number are one row with a `weight` until a split puts some of them on either
side. That changes no release: in every order of a split they follow each other too. In a node of one class each
weight is 1, as its values differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, SpanCosts, span_costs
from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import Axis, SensitiveAxis

#: Spreads are compared in millionths of a quasi-identifier's domain.
SPREAD_UNIT = 10**6
#: The sides of rows that other keys want left or right; the first of them goes first. Rows beyond are free.
_WANTED = ((1, 7), (2, 6), (3, 5))


def bisect(task: Task, quotas: list[int], l: int, classes: int, others: Sequence[SensitiveAxis] = ()) -> Relation:
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
    assigned = engine.number_groups("assigned", nodes, "node")
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
        seed=task.seed,
        classes=classes,
    )


def _halve(
    task: Task, nodes: Relation, l: int, others: Sequence[SensitiveAxis], wanting: Sequence[SensitiveAxis]
) -> Relation:
    """The next level: every node of two classes or more split in two; of the `others` some are `wanting` a side."""
    encoded, sides = task.encoded, zip(wanting, _WANTED, strict=False)
    return task.engine.materialise(
        "node",
        "bsgi/halve_nodes",
        nodes=nodes,
        axes=encoded.axes,
        sensitive=encoded.sensitive[0],
        others=others,
        wanting=[{"key": key, "left": Value(left), "right": Value(right)} for key, (left, right) in sides],
        l=l,
        unit=SPREAD_UNIT,
    )


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

    number: Value
    axis: Axis
    grain: Value | None = None
    coarse: Identifier | None = None

    @property
    def null_code(self) -> Value:
        return Value(self.axis.null_code)


@dataclass(frozen=True)
class _Domain:
    """The quasi-identifiers as the statements of a level need them."""

    positions: tuple[Position, ...]
    costs: SpanCosts


def split(task: Task, measures: Sequence[Measure], quotas: list[int], l: int, classes: int) -> Relation:
    """The assignment (row_id, class_id) of `sum(quotas) = l * classes` rows; quotas are by falling bucket size."""
    engine = task.engine
    halvings = (classes - 1).bit_length()
    depth, level, largest = -(-halvings * DEPTH // 100), 0, classes
    with engine.scope() as scope:
        nodes = _root(task, quotas, classes)
        settled = engine.select("settled", nodes, "row_id", "node", where=[Where("classes", 1)])
        positions = tuple(Position(Value(number), m.axis, _grain(m)) for number, m in enumerate(measures, 1))
        domain = _Domain(positions, span_costs(task, measures))
        while largest > 1:
            task.progress(level, depth)
            level += 1
            nodes, largest, least = _split(task, nodes, domain, l, largest, 2 ** (depth - level))
            if least == 1:
                engine.extend(settled, nodes, "row_id", "node", where=[Where("classes", 1)])
        task.progress(depth, depth)
        return scope.keep(engine.number_groups("assigned", settled, "node"))


def _root(task: Task, quotas: list[int], classes: int) -> Relation:
    """The rows that are selected, all in one node, equal ones in one with their `weight`."""
    engine = task.engine
    rows = fill_root(task, quotas, classes)
    codes = [*(axis.code for axis in task.encoded.axes), task.encoded.sensitive[0].code]
    grouped = engine.materialise("node", "bsgi/group_rows", rows=rows, codes=codes, classes=classes)
    engine.drop(rows)  # all the rows, as long as nodes are split
    return grouped


def _grain(measure: Measure) -> Value | None:
    wide = not measure.levels and measure.axis.scale > GRAINS**2
    return Value(measure.axis.scale // GRAINS) if wide else None


def _split(task: Task, nodes: Relation, domain: _Domain, l: int, largest: int, most: int) -> tuple[Relation, int, int]:
    """The next level, every node of two classes or more split in two, and the classes of its largest and smallest node.

    `largest` is that of this level; no side of a boundary gets more than `most` classes. While nodes are
    large the counts of their values tell for most rows which side they go to, and few need an order.
    """
    engine, sensitive = task.engine, task.encoded.sensitive[0]
    with engine.scope() as scope:
        counts = _count(task, nodes, domain, by_bucket=largest > FORCED) if largest > SIMPLE else None
        splits = _choose(task, nodes, counts, domain, l, largest, most)
        params = {"nodes": nodes, "splits": splits, "positions": domain.positions, "sensitive": sensitive}
        if counts and largest > FORCED and (task.is_part or task.encoded.row_count >= MANY_ROWS):
            cells = engine.materialise("cells", "bsgi/cut_cells", counts=counts, splits=splits, l=l)
            halves = engine.materialise("node", "bsgi/split_cells", cells=cells, weight=WEIGHT, **params)
        else:
            halves = engine.materialise("node", "bsgi/split_nodes", l=l, weight=WEIGHT, **params)
        engine.drop(nodes)  # all the rows, once a level
        sides = engine.record("neighbours/bound_splits", splits=splits)
        return scope.keep(halves), sides["most"], sides["least"]


def _count(task: Task, nodes: Relation, domain: _Domain, by_bucket: bool) -> Relation:
    """Rows by node and value, of small nodes the bounds; by sensitive value too if `by_bucket`."""
    return task.engine.materialise(
        "counts",
        "bsgi/count_positions",
        nodes=nodes,
        scales=domain.costs.scales,
        positions=domain.positions,
        sensitive=task.encoded.sensitive[0],
        by_bucket=by_bucket,
        simple=SIMPLE,
        weight=WEIGHT,
    )


def _choose(
    task: Task, nodes: Relation, counts: Relation | None, domain: _Domain, l: int, largest: int, most: int
) -> Relation:
    """The split of each node, (node, axis, classes, left_classes); without `counts` on its dearest axis."""
    engine = task.engine
    tables = dict(vars(domain.costs))
    if not counts:
        return engine.materialise("splits", "bsgi/choose_dearest", nodes=nodes, positions=domain.positions, **tables)
    tables |= {"counts": counts, "l": Value(l), "simple": Value(SIMPLE), "part": Value(PART), "most": Value(most)}
    return engine.materialise("splits", "bsgi/choose_splits", ranked=RANKED, forced=largest > FORCED, **tables)
