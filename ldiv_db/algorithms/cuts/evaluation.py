"""What cuts cost, many at a time, and what they publish.

The partitions of cuts are boxes, which cost what those of `boxes` do, here with the cut that each is of. Other searches
over cuts use `Evaluator.costs`, `neighbours` and `Best` too; costs are whole numbers in `problem.scale`.

`descend` finds a good cut before the exact search, for whoever would publish one without a proof. A step specialises
the value that leaves the least cost, also where that is more than before: a better cut may lie further down. Where
several values save, it tries the best of them together as well. From the best cut it then goes to its best neighbour,
as long as that is better.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldiv_db.algorithms.cuts.boxes import cost_boxes
from ldiv_db.algorithms.cuts.problem import CutProblem
from ldiv_db.algorithms.cuts.trees import SPAN_COLUMNS, CutTree, CutValue
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation

#: A cut: the values of all quasi-identifiers.
Cut = frozenset[CutValue]
#: The cost of a cut that is not allowed.
FORBIDDEN = 2**62
#: Steps of the descent without a better cut, after which it ends.
_PATIENCE = 6


@dataclass
class Best:
    """The `most` best cuts seen, each with its cost."""

    most: int = 1
    costs: dict[Cut, int] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        """The cost below which a cut is among the best."""
        return max(self.costs.values()) if len(self.costs) >= self.most else FORBIDDEN

    def offer(self, cut: Cut, cost: int) -> bool:
        """Take the cut if it is among the best; of equal costs the first stays."""
        if cost >= self.limit or cut in self.costs:
            return False
        self.costs[cut] = cost
        if len(self.costs) > self.most:
            del self.costs[max(reversed(list(self.costs)), key=self.costs.__getitem__)]
        return True

    def ranked(self) -> list[tuple[Cut, int]]:
        """The best cuts, cheapest first."""
        return sorted(self.costs.items(), key=lambda item: item[1])


class Evaluator:
    """Works out the costs of cuts of one problem; `evaluated` counts those that a search has had the cost of."""

    def __init__(self, problem: CutProblem):
        self.problem = problem
        self.trees = {tree.number: tree for tree in problem.trees}
        self.evaluated = 0

    def costs(self, cuts: Sequence[Cut]) -> list[int]:
        """The cost of each cut."""
        size = self.problem.batch
        batches = (cuts[start : start + size] for start in range(0, len(cuts), size))
        return [cost for batch in batches for cost in self._costs(batch)]

    def _costs(self, cuts: Sequence[Cut]) -> list[int]:
        engine = self.problem.task.engine
        with engine.scope():
            _, parts = self._partitions(cuts)
            costs = cost_boxes(self.problem, [parts], "key", "cost")
            sums = dict(engine.rows("cuts/sum_parts", parts=parts, costs=costs))
        return [sums[number] if sums[number] < self.problem.refused else FORBIDDEN for number in range(len(cuts))]

    def offer(self, best: Best, cuts: Sequence[Cut]) -> list[int]:
        """The costs of the cuts, which are offered to `best`."""
        costs = self.costs(cuts)
        for cut, cost in zip(cuts, costs, strict=True):
            best.offer(cut, cost)
        return costs

    def publish(self, cut: Cut) -> tuple[Relation, Relation, Relation | None]:
        """(row_id, class_id) of the published rows, the classes with their bounds, and the values that are blanked.

        These are the classes of the cut under the problem's scheme; rows of a value go in an order that the seed gives.
        """
        problem, engine = self.problem, self.problem.task.engine
        rows, scheme = problem.task.encoded.rows, problem.cost.scheme
        with engine.scope() as scope:
            places, parts = self._partitions([cut])
            shares = [(value.code, value.theta.numerator, value.theta.denominator) for value in problem.values]
            thetas = engine.load("thetas", {"code": "INTEGER", "over": "BIGINT", "under": "BIGINT"}, shares)
            flow = EngineFlow(engine, "cuts", rows=rows, places=places, thetas=thetas, axes=problem.trees)
            flow.know(scheme=scheme, sensitive=problem.task.encoded.sensitive[0].code, both=problem.cost.both)
            flow.know(packs=problem.packs, labels=problem.labels, values=problem.values)
            costs = cost_boxes(problem, [parts], "key", "n", "kept", "broken")
            flow.step("parts", "number_parts", parts=parts, costs=costs)
            label = problem.cost.label.alias if problem.cost.label else None
            flow.know(labels=problem.label_codes, label=label, seed=problem.task.seed)
            assigned = scope.keep(flow.step("assigned", "assign_rows"))
            classes = scope.keep(flow.step("classes", "bound_classes", bounds=[tree.axis for tree in problem.trees]))
            blanks = scheme in ("vioSA", "allSA")
            return assigned, classes, scope.keep(flow.step("blanked", "list_blanked")) if blanks else None

    def _partitions(self, cuts: Sequence[Cut]) -> tuple[Relation, Relation]:
        """The place of every code in the cuts, and their partitions as boxes."""
        problem, engine = self.problem, self.problem.task.engine
        with engine.scope() as scope:
            used = sorted({value for cut in cuts for value in cut})
            spans = [
                row
                for tree in problem.trees
                for row in tree.spans([node for axis, node in used if axis == tree.number], problem.loss_unit)
            ]
            listed = [(number, *value) for number, cut in enumerate(cuts) for value in sorted(cut)]
            columns = dict.fromkeys(("node_no", "axis", "value"), "INTEGER")
            places = engine.join(
                "places",
                engine.load("values", columns, listed),
                engine.load("spans", SPAN_COLUMNS, spans),
                "axis",
                "value",
                left_columns=list(columns),
                right_columns=["code", "cut_low", "cut_high", "loss"],
            )
            params = {"cells": problem.cells, "places": places, "axes": problem.trees, "packs": problem.packs}
            parts = engine.materialise("parts", "cuts/count_parts", **params)
            return scope.keep(places), scope.keep(parts)


def is_late(deadline: float | None) -> bool:
    """True if the time is up."""
    return deadline is not None and time.monotonic() >= deadline


def offer_root(evaluator: Evaluator, best: Best) -> None:
    """Offer `best` the most general cut, which is there whenever the search is stopped."""
    evaluator.offer(best, [frozenset(evaluator.problem.root())])


def descend(evaluator: Evaluator, best: Best, deadline: float | None = None) -> None:
    """Offer `best` good cuts on the way down; no step begins after the deadline."""
    trees, cut = evaluator.trees, frozenset(evaluator.problem.root())
    costs = evaluator.offer(best, [cut])
    while not is_late(deadline) and min(costs[-_PATIENCE:]) <= min(costs):
        ways = [value for value in sorted(cut) if trees[value[0]].children[value[1]]]
        near = [_specialised(trees, cut, [value]) for value in ways]
        ranked = sorted(zip(evaluator.offer(best, near), ways, strict=True))
        saving = [value for cost, value in ranked if cost < costs[-1]]
        several = [
            _specialised(trees, cut, saving[: 2**exponent - 1]) for exponent in range(2, len(saving).bit_length() + 1)
        ]
        found = [*evaluator.offer(best, several), *(cost for cost, _ in ranked[:1])]
        evaluator.evaluated += len(near) + len(several)
        if not found or min(found) >= FORBIDDEN:
            break
        places = [*several, *(_specialised(trees, cut, [value]) for _, value in ranked[:1])]
        cut, cost = min(zip(places, found, strict=True), key=lambda pair: pair[1])
        costs.append(cost)
    while best.costs and not is_late(deadline):
        ((cut, cost), *_) = best.ranked()
        evaluator.evaluated += len(evaluator.offer(best, neighbours(evaluator.trees, cut)))
        if best.ranked()[0][1] >= cost:
            return


def neighbours(trees: Mapping[int, CutTree], cut: Cut) -> list[Cut]:
    """The cuts one step away, in a fixed order: a value specialised, or siblings replaced by their parent."""
    values = [value for value in sorted(cut) if trees[value[0]].children[value[1]]]
    return [*(_specialised(trees, cut, [value]) for value in values), *_generalised(trees, cut)]


def _specialised(trees: Mapping[int, CutTree], cut: Cut, values: Sequence[CutValue]) -> Cut:
    below = [child for value in values for child in trees[value[0]].specialised(value)]
    return (cut - frozenset(values)) | frozenset(below)


def _generalised(trees: Mapping[int, CutTree], cut: Cut) -> Iterator[Cut]:
    for tree in trees.values():
        for node in tree.children:
            siblings = frozenset(tree.specialised((tree.number, node)))
            if siblings and siblings <= cut:
                yield (cut - siblings) | {(tree.number, node)}
