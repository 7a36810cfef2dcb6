"""Boxes: what every partition costs that any cut may have, in one table.

A box is a choice of one value, leaf or inner, for each quasi-identifier, and stands for the rows that have them. A cut's
partitions are boxes, and what a partition costs depends on its box alone; so the cost of a cut is the sum over its boxes.
They are few where data are sparse: each cell lies in as many as its leaves have ancestors, and near cells share them.

The table is (key, cost). A key has a digit for each quasi-identifier: the number of a value, or, once cuts were summed,
that of a cut. Counts of sensitive values travel several to a column until each box's cost is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ldiv_db.algorithms.cut_problem import CutProblem
from ldiv_db.algorithms.cut_trees import CutTree
from ldiv_db.templates import Identifier, Relation, Value

#: More boxes than this are not made: the search then goes from cut to cut.
MOST_BOXES = 40_000_000
#: Keys stay below this, and the sums of a pack, which are DOUBLE, below that.
_KEY, _EXACT_BITS = 2**62, 53


@dataclass(frozen=True)
class Digit:
    """A quasi-identifier's digit in keys: its place value, and how many values it takes."""

    tree: CutTree
    place_value: int
    size_value: int

    @property
    def number(self) -> Value:
        return Value(self.tree.number)

    @property
    def code(self) -> Identifier:
        return self.tree.axis.code

    @property
    def table(self) -> Identifier:
        return self.tree.axis.table

    @property
    def place(self) -> Value:
        return Value(self.place_value)

    @property
    def size(self) -> Value:
        return Value(self.size_value)

    @property
    def nodes(self) -> int:
        return len(self.tree.taxonomy.nodes)

    def of(self, key: int) -> int:
        """The digit in a key."""
        return key // self.place_value % self.size_value


@dataclass(frozen=True)
class PackedCount:
    """A column of counts, and its place in a pack."""

    column: Identifier
    place: Value


@dataclass(frozen=True)
class Pack:
    """A column that holds several counts, each below `size`."""

    column: Identifier
    counts: tuple[PackedCount, ...]
    size: Value


def lay_out(trees: Sequence[CutTree], most_cuts: int) -> list[Digit] | None:
    """The digits in the given order, or None if keys would be too large; there is room for numbers of up to `most_cuts` cuts."""
    digits, place = [], 1
    for tree in trees:
        cuts = tree.taxonomy.cuts
        size = max(len(tree.taxonomy.nodes), cuts if cuts <= most_cuts else 1)
        digits.append(Digit(tree, place, size))
        place *= size
    return digits if place < _KEY else None


def make_boxes(problem: CutProblem, digits: Sequence[Digit]) -> Relation | None:
    """(key, cost) of all boxes that have rows, or None if they are too many."""
    packs = _packs(problem)
    boxes = _count_boxes(problem, digits, packs)
    if boxes is None:
        return None
    engine, costs = problem.task.engine, [_cost(problem, boxes, packs, again=False)]
    while problem.cost.scheme == "vioRec":
        loose = engine.materialise("loose", "cuts/select_loose", boxes=boxes, costs=costs[-1], packs=packs)
        if not engine.scalar("input/count_rows", rows=loose):
            engine.drop(loose)
            break
        costs.append(_cost(problem, loose, packs, again=True))
        engine.drop(loose)
    engine.drop(boxes)
    merged = engine.materialise("boxes", "cuts/merge_costs", costs=costs)
    engine.drop(*costs)
    return merged


def _count_boxes(problem: CutProblem, digits: Sequence[Digit], packs: Sequence[Pack]) -> Relation | None:
    """The boxes with their packed counts: the quasi-identifiers with the most values first, which share the most."""
    engine = problem.task.engine
    leaves = engine.load("leaves", {"axis": "INTEGER", "code": "INTEGER", "part": "BIGINT"}, list(_leaves(digits)))
    columns = {"axis": "INTEGER", "leaf": "INTEGER", "shift": "BIGINT", "loss": "BIGINT"}
    climbs = engine.load("climbs", columns, list(_climbs(digits, problem.loss_unit)))
    boxes = engine.materialise(
        "boxes", "cuts/key_cells", cells=problem.cells, leaves=leaves, digits=digits, packs=packs
    )
    for digit in sorted(digits, key=lambda digit: -digit.nodes):
        lifted = engine.materialise("boxes", "cuts/lift_boxes", boxes=boxes, climbs=climbs, digit=digit, packs=packs)
        engine.drop(boxes)
        boxes = lifted
        if engine.scalar("input/count_rows", rows=boxes) > MOST_BOXES:
            engine.drop(leaves, climbs, boxes)
            return None
    engine.drop(leaves, climbs)
    return boxes


def _cost(problem: CutProblem, boxes: Relation, packs: Sequence[Pack], again: bool) -> Relation:
    """What each box costs as a partition."""
    cost, unit = problem.cost, problem.unit
    return problem.task.engine.materialise(
        "costs",
        "cuts/cost_boxes",
        boxes=boxes,
        packs=packs,
        labels=problem.labels,
        values=problem.values,
        unit=unit,
        common=problem.common,
        refused=Value(refused_cost(problem)),
        metric=cost.metric,
        scheme=cost.scheme,
        again=again,
    )


def refused_cost(problem: CutProblem) -> int:
    """More than any cut costs: the cost of a partition that is not allowed."""
    return problem.rows * int(problem.unit.row.value) + 1


def _packs(problem: CutProblem) -> list[Pack]:
    """The columns of counts, as many together as a pack can hold."""
    bits = max(1, problem.rows.bit_length())
    together = _EXACT_BITS // bits
    columns = [tally.column for tally in problem.tallies]
    return [
        Pack(
            Identifier(f"pack_{start // together + 1}"),
            tuple(
                PackedCount(column, Value(2 ** (bits * place)))
                for place, column in enumerate(columns[start : start + together])
            ),
            Value(2**bits),
        )
        for start in range(0, len(columns), together)
    ]


def _leaves(digits: Sequence[Digit]) -> Iterator[tuple[int, int, int]]:
    """(axis, code, part) of each leaf, part being its digit times its place."""
    for digit in digits:
        for code, node in digit.tree.leaf_of.items():
            yield digit.tree.number, code, node * digit.place_value


def _climbs(digits: Sequence[Digit], unit: int) -> Iterator[tuple[int, int, int, int]]:
    """(axis, leaf, shift, loss) of each leaf and value above it."""
    for digit in digits:
        tree = digit.tree
        for node in tree.taxonomy.nodes:
            if tree.children[node.node]:
                for code in range(node.low, node.high + 1):
                    leaf = tree.leaf_of[code]
                    shift = (node.node - leaf) * digit.place_value
                    yield tree.number, leaf, shift, tree.loss(node.low, node.high, unit)


def blow_up(digits: Sequence[Digit]) -> float:
    """How many cuts through the taxonomies of the digits a box is in, about."""
    return prod(sum(len(cut) for cut in digit.tree.all_cuts) / digit.nodes for digit in digits)
