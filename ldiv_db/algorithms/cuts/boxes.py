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
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod, sqrt
from typing import Any

from ldiv_db.algorithms.cuts.intervals import IntervalTree
from ldiv_db.algorithms.cuts.judged import find_bad
from ldiv_db.algorithms.cuts.problem import CutProblem, intervals_of
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where

#: More boxes than this are not made.
MOST_BOXES = 40_000_000
#: The bits that a key may have, and those of a key that is a plain integer.
_WIDEST, _WORD = 126, 62
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
    def mask(self) -> int:
        return int(2**self.width) - 1

    @property
    def bits(self) -> int:
        """All its bits in a key."""
        return self.mask << self.lowest

    def of(self, key: int) -> int:
        """The digit in a key."""
        return (key >> self.lowest) % (1 << self.width)


def lay_out(trees: Sequence[CutTree], most_cuts: int, at_once: int) -> list[Digit] | None:
    """The digits in this order, or None if keys would be too large.

    All cuts have numbers of a taxonomy that has up to `most_cuts`, of others some `at_once`.
    """
    digits, place = [], 0
    for tree in trees:
        width = max(tree.size, tree.cuts if tree.cuts <= most_cuts else at_once).bit_length()
        digits.append(Digit(tree, place, width))
        place += width
    return digits if place <= _WIDEST else None


def key_type(digits: Sequence[Digit]) -> str:
    """The type of keys."""
    return "BIGINT" if sum(digit.width for digit in digits) <= _WORD else "HUGEINT"


def make_boxes(problem: CutProblem, digits: Sequence[Digit]) -> Relation | None:
    """(key, cost) of all boxes that have rows, or None if they are too many."""
    with problem.task.engine.scope() as scope:
        boxes = _count_boxes(problem, digits)
        return None if boxes is None else scope.keep(cost_boxes(problem, boxes, "key", "cost", drop=True))


def cost_boxes(problem: CutProblem, boxes: Sequence[Relation], *columns: str, drop: bool = False) -> Relation:
    """These columns of boxes as partitions, of `key`, `cost`, `n`, `kept` and `broken`.

    `boxes` are (key, loss, packs), and gone if they are to be dropped.
    """
    engine, unit, cost = problem.task.engine, problem.unit, problem.cost
    costed: dict[str, Any] = {"labels": problem.labels, "values": problem.values, "packs": problem.packs}
    costed |= {"columns": columns, "unit": unit, "refused": problem.refused}
    costed |= {"metric": cost.metric, "scheme": cost.scheme}
    with engine.scope() as scope:
        if problem.judged:
            bad = find_bad(problem.task, problem.judged, problem.packs_by_judge[: len(problem.judged)], boxes)
            return scope.keep(engine.materialise("costs", "cuts/cost_judged", boxes=boxes, bad=bad, **costed))
        costs, done = [_cost(problem, boxes, costed, again=False)], not drop
        while problem.cost.scheme == "vioRec":
            loose = engine.materialise("loose", "cuts/select_loose", boxes=boxes, costs=costs[-1], packs=problem.packs)
            engine.drop(*(() if done else boxes))  # with all their counts, and there may be millions
            boxes, done = [loose], False
            if not engine.count(loose):
                break
            costs.append(_cost(problem, boxes, costed, again=True))
        engine.drop(*(() if done else boxes))  # as above, before as many costs are merged
        exact = [Where("loose", 0)]  # each box is exact in one of the tables
        merged = engine.select("costs", costs[0], *columns, where=exact)
        for more in costs[1:]:
            engine.extend(merged, more, *columns, where=exact)
        return scope.keep(merged)


def _count_boxes(problem: CutProblem, digits: Sequence[Digit]) -> list[Relation] | None:
    """The boxes with their packed counts, None if they are too many.

    First those of taxonomies, of these first those with the most values, which share the most, and then of numbers,
    whose intervals are differences of counts.
    """
    engine, unit, key = problem.task.engine, problem.loss_unit, key_type(digits)
    with engine.scope() as scope:
        flow = EngineFlow(engine, "cuts", cells=problem.cells, digits=digits, packs=problem.packs, unit=unit)
        columns = {"axis": "INTEGER", "code": "INTEGER", "part": key, "loss": "BIGINT"}
        flow.know(leaves=engine.load("leaves", columns, list(_leaves(digits, unit))))
        columns = {"axis": "INTEGER", "leaf": "INTEGER", "shift": key, "loss": "BIGINT"}
        flow.know(climbs=engine.load("climbs", columns, list(_climbs(digits, unit))))
        boxes = [flow.step("boxes", "key_cells")]
        ordered = sorted(digits, key=lambda digit: (isinstance(digit.tree, IntervalTree), -digit.tree.node_count))
        if _least_boxes(problem, flow, ordered) > MOST_BOXES:
            return None
        for digit in ordered:
            flow.know(boxes=boxes, digit=digit)
            made = []
            if isinstance(digit.tree, IntervalTree):
                if flow.record("count_spans")["boxes"] > MOST_BOXES:
                    return None
                columns = {"axis": "INTEGER", "place": "BIGINT", "low": "BIGINT", "high": "BIGINT"}
                edges = engine.load("edges", columns, list(digit.tree.edges()))
                made.append(engine.materialise("boxes", "cuts/span_boxes", **flow.params("span_boxes", edges=edges)))
            made.append(engine.materialise("boxes", "cuts/generalise_boxes", **flow.params("generalise_boxes")))
            boxes = [*boxes, *made]
            if sum(map(engine.count, boxes)) > MOST_BOXES:
                return None
        return [scope.keep(box) for box in boxes]


def _least_boxes(problem: CutProblem, flow: EngineFlow, digits: Sequence[Digit]) -> float:
    """The least number of boxes, beyond all reasonable doubt; 0 where they are clearly few, or intervals.

    The flow has the boxes of leaves. Whenever the data are the same, so is the sample, and the search that is taken.
    """
    if intervals_of(problem):  # how many they make is counted when they are about to be made
        return 0
    depths = [1 + digit.tree.taxonomy.height for digit in digits]
    if min(prod(digit.tree.node_count for digit in digits), problem.cell_count * prod(depths)) <= MOST_BOXES:
        return 0
    part = -(-problem.cell_count // _MOST_SAMPLED)
    with flow.scope():
        flow.know(mask=sum(digit.bits for digit in digits[:_LEADING]))
        for place, digit in enumerate(digits, 1):
            share = _SHARE if place == min(_LEADING, len(digits)) else 1
            before = flow["boxes"]
            flow.know(boxes=flow.step("sample", "sample_keys", digit=digit, share=share, part=part))
            if place > 1:
                flow.engine.drop(before)
            part = 1
        counted = flow.record("count_sample")
    squares = counted["squares"] * _SHARE * (_SHARE - 1)
    return float(_SHARE * counted["keys"] - _DEVIATIONS * sqrt(squares))


def _cost(problem: CutProblem, boxes: Sequence[Relation], costed: dict[str, Any], again: bool) -> Relation:
    """The cost of each box as a partition, where values have thresholds."""
    shares = _shares_of(problem)
    return problem.task.engine.materialise(
        "costs",
        "cuts/cost_boxes",
        boxes=boxes,
        derived=[*problem.values, *problem.labels] if problem.cost.both else [],
        caps=_caps_of(shares),
        shares=shares,
        steps=_steps_of(shares, again) if problem.cost.scheme == "vioRec" else [],
        again=again,
        **costed,
    )


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
    return prod(sum(len(cut) for cut in digit.tree.all_cuts) / digit.tree.node_count for digit in digits)


@dataclass(frozen=True)
class Cap:
    """The most rows that a threshold allows a value: the column of that, and of that in what is kept."""

    column: Identifier
    over: int
    under: int

    last = NamedAfter("last_{0.column.name}")


@dataclass(frozen=True)
class Share:
    """A sensitive value's rows, and how many its threshold allows."""

    rows: Identifier
    cap: Cap


def _shares_of(problem: CutProblem) -> list[Share]:
    """The sensitive values with their caps, of which each threshold has one."""
    places = {theta: place for place, theta in enumerate(dict.fromkeys(value.theta for value in problem.values))}
    return [
        Share(value.rows, Cap(Identifier(f"cap_{places[value.theta]}"), value.over, value.under))
        for value in problem.values
    ]


def _caps_of(shares: Sequence[Share]) -> list[Cap]:
    return list(dict.fromkeys(share.cap for share in shares))


def _steps_of(shares: Sequence[Share], again: bool) -> list[dict[str, Any]]:
    """Steps towards the l-eligible core, each `before` and `kept`: from all rows, or those that steps have left."""
    names = [
        Identifier("so_far" if again else "n"),
        *(Identifier(f"kept_{place}") for place in range(_MORE_STEPS if again else _STEPS)),
    ]
    steps = []
    for place, (before, kept) in enumerate(pairwise(names)):
        caps = {cap: replace(cap, column=Identifier(f"{cap.column.name}_{place}")) for cap in _caps_of(shares)}
        of_step = [Share(share.rows, caps[share.cap]) for share in shares]
        steps.append({"before": before, "kept": kept, "caps": list(caps.values()), "shares": of_step})
    return steps
