"""Boxes: what every partition costs that any cut may have, in one table.

A box is a choice of one value, leaf or inner, for each quasi-identifier, and stands for the rows that have them. The
partitions of a cut are boxes, and what a partition costs depends on its box alone; so the cost of a cut is the sum over
its boxes. They are few where data are sparse: each cell lies in as many as its leaves have ancestors, and near cells
share them.

The table is (key, cost). A key has some bits for each quasi-identifier: the number of a value, or, once cuts were
summed, that of a cut. Values with the same threshold share one product of rows and threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt
from typing import Any

from ldiv_db.algorithms.cuts.intervals import IntervalTree
from ldiv_db.algorithms.cuts.judged import Pack, find_bad
from ldiv_db.algorithms.cuts.problem import CutProblem, intervals_of, judged_packs, packs_of
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import Identifier, NamedAfter, Relation, Value

#: More boxes than this are not made: the search then goes from cut to cut.
MOST_BOXES = 40_000_000
_KEY_BITS = 62
#: Steps towards the l-eligible core in the first statement, and in those for the boxes that need more.
_STEPS, _MORE_STEPS = 2, 6
#: Boxes are estimated before they are made: of so many cells, on a sample of one box in so many, drawn once the inner
#: values of so many quasi-identifiers are in, and believed within so many standard deviations.
_MOST_SAMPLED, _SHARE, _LEADING, _DEVIATIONS = 250_000, 32, 3, 4


@dataclass(frozen=True)
class Digit:
    """A quasi-identifier's bits in keys: the place of the lowest, and how many there are."""

    tree: CutTree
    lowest: int
    width: int

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
        return Value(self.lowest)

    @property
    def mask(self) -> Value:
        return Value(2**self.width - 1)

    @property
    def bits(self) -> int:
        """All its bits in a key."""
        return int(self.mask.value) << self.lowest

    @property
    def nodes(self) -> int:
        """The number of values that a cut may have."""
        return self.tree.node_count

    def of(self, key: int) -> int:
        """The digit in a key."""
        return (key >> self.lowest) % (1 << self.width)


def lay_out(trees: Sequence[CutTree], most_cuts: int) -> list[Digit] | None:
    """The digits in this order, or None if keys would be too large; up to `most_cuts` cuts have numbers too."""
    digits, place = [], 0
    for tree in trees:
        width = max(tree.size, tree.cuts if tree.cuts <= most_cuts else 1).bit_length()
        digits.append(Digit(tree, place, width))
        place += width
    return digits if place <= _KEY_BITS else None


def make_boxes(problem: CutProblem, digits: Sequence[Digit]) -> Relation | None:
    """(key, cost) of all boxes that have rows, or None if they are too many."""
    return _make_judged(problem, digits) if problem.judged else _make_shared(problem, digits)


def _make_judged(problem: CutProblem, digits: Sequence[Digit]) -> Relation | None:
    """As `make_boxes`, where boxes are judged."""
    engine, packs = problem.task.engine, judged_packs(problem)
    every = [pack for of_one in packs for pack in of_one]
    with engine.scope() as scope:
        boxes = _count_boxes(problem, digits, every)
        if boxes is None:
            return None
        bad = find_bad(problem.task, problem.judged, packs[: len(problem.judged)], boxes)
        params = _costed_by(problem)
        return scope.keep(engine.materialise("boxes", "cuts/cost_judged", boxes=boxes, bad=bad, packs=every, **params))


def _make_shared(problem: CutProblem, digits: Sequence[Digit]) -> Relation | None:
    """As `make_boxes`, where values have thresholds."""
    packs, engine = packs_of(problem), problem.task.engine
    with engine.scope() as scope:
        boxes = _count_boxes(problem, digits, packs)
        if boxes is None:
            return None
        costs = [_cost(problem, boxes, packs, again=False)]
        while problem.cost.scheme == "vioRec":
            loose = engine.materialise("loose", "cuts/select_loose", boxes=boxes, costs=costs[-1], packs=packs)
            engine.drop(*boxes)  # with all their counts, and there may be millions
            boxes = [loose]
            if not engine.count(loose):
                break
            costs.append(_cost(problem, boxes, packs, again=True))
        engine.drop(*boxes)  # as above, before as many costs are merged
        exact = [Where("loose", 0)]  # each box is exact in one of the tables
        merged = engine.select("boxes", costs[0], "key", "cost", where=exact)
        for more in costs[1:]:
            engine.extend(merged, more, "key", "cost", where=exact)
        return scope.keep(merged)


def _count_boxes(problem: CutProblem, digits: Sequence[Digit], packs: Sequence[Pack]) -> list[Relation] | None:
    """The boxes with their packed counts: of taxonomies those with the most values first, which share the most, and
    then of numbers, whose intervals are differences of counts."""
    engine = problem.task.engine
    with engine.scope() as scope:
        columns = {"axis": "INTEGER", "code": "INTEGER", "part": "BIGINT", "loss": "BIGINT"}
        leaves = engine.load("leaves", columns, list(_leaves(digits, problem.loss_unit)))
        columns = {"axis": "INTEGER", "leaf": "INTEGER", "shift": "BIGINT", "loss": "BIGINT"}
        climbs = engine.load("climbs", columns, list(_climbs(digits, problem.loss_unit)))
        params = {"digits": digits, "packs": packs}
        boxes = [engine.materialise("boxes", "cuts/key_cells", cells=problem.cells, leaves=leaves, **params)]
        ordered = sorted(digits, key=lambda digit: (isinstance(digit.tree, IntervalTree), -digit.nodes))
        if _least_boxes(problem, boxes[0], climbs, ordered) > MOST_BOXES:
            return None
        for digit in ordered:
            spans = _spans(problem, boxes, digit, packs) if isinstance(digit.tree, IntervalTree) else []
            if spans is None:
                return None
            lifted = engine.materialise(
                "boxes", "cuts/generalise_boxes", boxes=boxes, climbs=climbs, digit=digit, packs=packs
            )
            boxes += [*spans, lifted]
            if sum(map(engine.count, boxes)) > MOST_BOXES:
                return None
        return [scope.keep(box) for box in boxes]


def _least_boxes(problem: CutProblem, cells: Relation, climbs: Relation, digits: Sequence[Digit]) -> float:
    """The least number of boxes, beyond all reasonable doubt; 0 where they are clearly few, or intervals.

    `cells` are the boxes of leaves. Whenever the data are the same, so is the sample, and the search that is taken.
    """
    if intervals_of(problem):  # how many they make is counted when they are about to be made
        return 0
    engine, depths = problem.task.engine, [1 + digit.tree.taxonomy.height for digit in digits]
    if min(prod(digit.nodes for digit in digits), problem.cell_count * prod(depths)) <= MOST_BOXES:
        return 0
    part, mask = Value(-(-problem.cell_count // _MOST_SAMPLED)), Value(sum(d.bits for d in digits[:_LEADING]))
    work = cells
    for place, digit in enumerate(digits, 1):
        params = {"climbs": climbs, "digit": digit, "part": part, "mask": mask}
        share = Value(_SHARE if place == min(_LEADING, len(digits)) else 1)
        sampled = engine.materialise("sample", "cuts/sample_keys", boxes=work, share=share, **params)
        if work is not cells:
            engine.drop(work)
        work, part = sampled, Value(1)
    ((keys, squares),) = engine.rows("cuts/count_sample", boxes=work, mask=mask)
    engine.drop(work)
    return float(_SHARE * keys - _DEVIATIONS * sqrt(squares * _SHARE * (_SHARE - 1)))


def _spans(
    problem: CutProblem, boxes: Sequence[Relation], digit: Digit, packs: Sequence[Pack]
) -> list[Relation] | None:
    """The boxes of all intervals of two numbers or more; None if they are too many, which is counted first."""
    engine = problem.task.engine
    assert isinstance(digit.tree, IntervalTree)  # noqa: S101 - by whom it is called
    if int(engine.scalar("cuts/count_spans", boxes=boxes, digit=digit) or 0) > MOST_BOXES:
        return None
    columns = {"axis": "INTEGER", "place": "BIGINT", "low": "BIGINT", "high": "BIGINT"}
    edges = engine.load("edges", columns, list(digit.tree.edges()))
    unit = Value(problem.loss_unit)
    return [
        engine.materialise("boxes", "cuts/span_boxes", boxes=boxes, edges=edges, digit=digit, packs=packs, unit=unit)
    ]


def _cost(problem: CutProblem, boxes: Sequence[Relation], packs: Sequence[Pack], again: bool) -> Relation:
    """The cost of each box as a partition."""
    shares = shares_of(problem)
    return problem.task.engine.materialise(
        "costs",
        "cuts/cost_boxes",
        boxes=boxes,
        packs=packs,
        derived=[*problem.values, *problem.labels] if problem.cost.both else [],
        caps=caps_of(shares),
        shares=shares,
        steps=steps_of(shares, again) if problem.cost.scheme == "vioRec" else [],
        again=again,
        **_costed_by(problem),
    )


def _costed_by(problem: CutProblem) -> dict[str, Any]:
    """The parameters that say what a box costs."""
    costs = {"labels": problem.labels, "values": problem.values, "unit": problem.unit}
    refused, cost = Value(refused_cost(problem)), problem.cost
    return {**costs, "refused": refused, "metric": cost.metric, "scheme": cost.scheme}


def refused_cost(problem: CutProblem) -> int:
    """More than any cut costs: the cost of a partition that is not allowed."""
    return problem.rows * int(problem.unit.row.value) + 1


def _leaves(digits: Sequence[Digit], unit: int) -> Iterator[tuple[int, int, int, int]]:
    """(axis, code, part, loss) of each leaf, part being its bits in a key."""
    for digit in digits:
        for code, node, loss in digit.tree.leaves_of(unit):
            yield digit.tree.number, code, node << digit.lowest, loss


def _climbs(digits: Sequence[Digit], unit: int) -> Iterator[tuple[int, int, int, int]]:
    """(axis, leaf, shift, loss) of each leaf and value above it."""
    for digit in digits:
        for leaf, node, loss in digit.tree.climbs(unit):
            yield digit.tree.number, leaf, (node - leaf) * 2**digit.lowest, loss


def blow_up(digits: Sequence[Digit]) -> float:
    """About the number of cuts, through the taxonomies of the digits, that a box is in."""
    return prod(sum(len(cut) for cut in digit.tree.all_cuts) / digit.nodes for digit in digits)


@dataclass(frozen=True)
class Cap:
    """The most rows that a threshold allows a value: the column of that, and of that in what is kept."""

    column: Identifier
    over: Value
    under: Value

    last = NamedAfter("last_{0.column.name}")


@dataclass(frozen=True)
class Share:
    """A sensitive value's rows, and the column of how many its threshold allows."""

    rows: Identifier
    of: Cap

    @property
    def cap(self) -> Identifier:
        return self.of.column

    @property
    def last(self) -> Identifier:
        return self.of.last


def shares_of(problem: CutProblem) -> list[Share]:
    """The sensitive values with their caps, of which each threshold has one."""
    places = {theta: place for place, theta in enumerate(dict.fromkeys(value.theta for value in problem.values))}
    return [
        Share(value.rows, Cap(Identifier(f"cap_{places[value.theta]}"), value.over, value.under))
        for value in problem.values
    ]


def caps_of(shares: Sequence[Share]) -> list[Cap]:
    return list(dict.fromkeys(share.of for share in shares))


def steps_of(shares: Sequence[Share], again: bool) -> list[dict[str, Any]]:
    """Steps towards the l-eligible core, each `before` and `kept`: from all rows, or those that steps have left."""
    names = [
        Identifier("so_far" if again else "n"),
        *(Identifier(f"kept_{place}") for place in range(_MORE_STEPS if again else _STEPS)),
    ]
    steps = []
    for place, (before, kept) in enumerate(pairwise(names)):
        of_step = [Share(s.rows, Cap(Identifier(f"{s.cap.name}_{place}"), s.of.over, s.of.under)) for s in shares]
        steps.append({"before": before, "kept": kept, "caps": caps_of(of_step), "shares": of_step})
    return steps
