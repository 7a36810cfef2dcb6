"""Costs and bounds of cuts, many at a time: a few statements over the partitions of a batch of search nodes.

A node is a cut with its open values. For each node a batch gives the cost of the cut and a lower bound on all cuts
of the node's subtree, and the same for the cut with each of its open values specialised, and the bound with
each of them locked. A partition of the node's most specific cut lies in one partition of its cut, and still does so
when a value is specialised or locked; so everything follows from one table of the former, whose rows are few
where much is locked.

Other searches over cuts use this module too: `Evaluator(problem)` with `costs` (exact, of any cuts), `probe` (costs and
bounds), `offer` and `partitions`, and `Best`; costs are whole numbers in `problem.scale`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ldiv_db.algorithms.cuts.bounds import FORBIDDEN, Cut, CutNode, Probe, assemble
from ldiv_db.algorithms.cuts.judged import Pack, PackedCount, find_bad
from ldiv_db.algorithms.cuts.problem import ROWS, CutProblem, judged_packs, packs_of
from ldiv_db.algorithms.cuts.trees import NumberedAxis
from ldiv_db.database.templates import Identifier, Relation, Value

__all__ = ["FORBIDDEN", "Best", "Cut", "CutNode", "Evaluator", "Probe"]

_MARKED = {"node_no": "INTEGER", "axis": "INTEGER", "value": "INTEGER", "open": "INTEGER"}
#: How a value of a cut is marked: it stays; one step further is asked for; its whole subtree is open.
LOCKED, NEXT, OPEN = 0, 1, 2
#: Cuts whose exact costs are worked out together.
_EXACT = 8


@dataclass(frozen=True)
class SpecialisedPartitions:
    """The partitions of cuts in which the open values of some quasi-identifiers are specialised."""

    relation: Relation
    axes: Sequence[NumberedAxis]


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
    """Evaluates batches of nodes of one problem; `evaluated` counts the cuts whose cost was computed."""

    def __init__(self, problem: CutProblem):
        self.problem = problem
        self.trees = {tree.number: tree for tree in problem.trees}
        self.evaluated = 0
        cost = problem.cost
        self._counts = [*(tally.column for tally in problem.tallies), ROWS]
        #: Under LM nothing but sums of counts is asked, and several travel in a column.
        self._packs = _packs(problem) if cost.metric == "LM" else []
        self._costs = {
            "labels": problem.labels,
            "values": problem.values,
            "unit": problem.unit,
            "metric": cost.metric,
            "scheme": cost.scheme,
        }
        self._shape = {"axes": problem.axes, "words": problem.words}
        self._bits = {"bits": problem.bits, **self._shape}

    def probe(self, nodes: Sequence[CutNode], bounds: bool = True) -> list[Probe]:
        """The costs and bounds of each node; without `bounds` costs alone are right, and cheaper.

        Where the scheme keeps the l-eligible core a cost is a lower bound on it, near and soon made exact by `costs`.
        """
        size = self.problem.batch
        batches = (nodes[start : start + size] for start in range(0, len(nodes), size))
        return [probe for batch in batches for probe in self._probe(batch, bounds)]

    def _probe(self, nodes: Sequence[CutNode], bounds: bool) -> list[Probe]:
        """The costs and bounds of the nodes of one batch."""
        engine, metric = self.problem.task.engine, self.problem.cost.metric
        with engine.scope():
            places = self._place(nodes, OPEN if bounds else NEXT)
            groups, steps = self._step(places, nodes)
            parts = self._judge(steps, places, exact=False)
            params: dict[str, Any] = {"parts": parts, "places": places, "both": self.problem.cost.both, **self._costs}
            locked = engine.rows("cuts/sum_locked", groups=groups, **params, **self._bits)
            ahead = engine.rows("cuts/sum_specialised", parts=parts, **self._costs)
        probes = assemble(nodes, locked, ahead, metric, self.problem.cost.scheme)
        self.evaluated += sum(1 + len(probe.costs) for probe in probes)
        return probes

    def costs(self, cuts: Sequence[Cut]) -> list[int]:
        """The exact cost of each cut."""
        nodes = [CutNode(frozenset(), cut) for cut in cuts]
        engine = self.problem.task.engine
        with engine.scope():
            _, parts = self.partitions(nodes)
            sums = {row[0]: row for row in engine.rows("cuts/sum_specialised", parts=parts, **self._costs)}
        strict = self.problem.cost.scheme == "none"
        return [FORBIDDEN if strict and sums[number][5] else sums[number][3] for number in range(len(nodes))]

    def offer(self, best: Best, candidates: Mapping[Cut, int]) -> None:
        """Offer the cuts to `best`, with the cost that `probe` gave, made exact where that is only a lower bound."""
        offers = ((cost, place, cut) for place, (cut, cost) in enumerate(candidates.items()))
        hopeful = sorted(offer for offer in offers if offer[0] < best.limit)
        if self.problem.cost.scheme != "vioRec":
            for cost, _, cut in hopeful:
                best.offer(cut, cost)
            return
        while hopeful:
            batch, hopeful = hopeful[:_EXACT], hopeful[_EXACT:]
            cuts = [cut for _, _, cut in batch]
            for cut, cost in zip(cuts, self.costs(cuts), strict=True):
                best.offer(cut, cost)
            hopeful = [item for item in hopeful if item[0] < best.limit]

    def partitions(self, nodes: Sequence[CutNode]) -> tuple[Relation, Relation]:
        """The place of every code in the nodes' cuts, and their partitions (axis 0) with what is suppressed. There
        `kept` is the size of the l-eligible core if the scheme keeps that."""
        with self.problem.task.engine.scope() as scope:
            places = self._place(nodes, LOCKED)
            _, steps = self._step(places, nodes)
            parts = self._judge(steps, places, exact=True)
            return scope.keep(places), scope.keep(parts)

    def _place(self, nodes: Sequence[CutNode], mark: int) -> Relation:
        """The place of every code in the nodes' cuts."""
        engine, problem = self.problem.task.engine, self.problem
        marks = [
            (number, *value, mark if value in node.open else LOCKED)
            for number, node in enumerate(nodes)
            for value in sorted(node.cut)
        ]
        marked = engine.load("marked", _MARKED, marks)
        paths = problem.layout.paths_of(engine, (value for node in nodes for value in node.cut))
        return engine.materialise("places", "cuts/place_codes", marked=marked, paths=paths)

    def _step(self, places: Relation, nodes: Sequence[CutNode]) -> tuple[Relation | None, list[SpecialisedPartitions]]:
        """The partitions of the nodes' most specific cuts, and those of their cuts with open values specialised.

        Under LM the former are not needed.
        """
        engine, cells, cost = self.problem.task.engine, self.problem.cells, self.problem.cost
        params: dict[str, Any] = {"cells": cells, "places": places, **self._bits}
        if cost.metric == "LM":
            return None, [
                SpecialisedPartitions(
                    engine.materialise("steps", "cuts/group_steps", ahead=ahead, packs=self._packs, **params), ahead
                )
                for ahead in _ahead(self.problem, nodes)
            ]
        groups = engine.materialise("groups", "cuts/group_cells", counts=self._counts, **params)
        steps = engine.materialise(
            "steps",
            "cuts/gather_steps",
            groups=groups,
            counts=self._counts,
            labels=self.problem.labels,
            values=self.problem.values,
            metric=cost.metric,
            both=cost.both,
            **self._bits,
        )
        return groups, [SpecialisedPartitions(steps, self.problem.axes)]

    def _judge(self, steps: Sequence[SpecialisedPartitions], places: Relation, exact: bool) -> Relation:
        """The partitions of the nodes' cuts and of those one value further, each with what its scheme suppresses.

        Unless it is to be `exact`, the l-eligible core is taken to be as large as two steps towards it allow.
        """
        engine, problem, cost = self.problem.task.engine, self.problem, self.problem.cost
        summed = self._summed()
        counted = engine.materialise(
            "counted",
            "cuts/count_parts",
            steps=steps,
            places=places,
            packs=self._packs,
            columns=[ROWS] if self._packs else summed,
            words=problem.words,
            bits=problem.bits,
        )
        engine.drop(*(some.relation for some in steps) if cost.metric == "LM" else ())
        kept = self._columns(summed if cost.metric == "CM" or (exact and not problem.judged) else [ROWS])
        bad = self._bad(counted)
        unit = problem.common if problem.values else None
        params: dict[str, Any] = {"values": problem.values, "unit": unit}
        parts = engine.materialise(
            "parts",
            "cuts/judge_parts",
            parts=counted,
            bad=bad,
            packs=self._packs,
            columns=kept,
            scheme=cost.scheme,
            **params,
        )
        engine.drop(counted, *(one["relation"] for one in bad))  # all the partitions, as below
        loose = exact and cost.scheme == "vioRec"
        while loose:  # the steps so far let fractions of rows be kept, so one more is needed even where they agree
            shrunk = engine.materialise(
                "parts", "cuts/shrink_parts", parts=parts, columns=[*kept, Identifier("broken")], **params
            )
            engine.drop(parts)
            parts = shrunk
            loose = engine.total(parts, "kept") < engine.total(parts, "once")
        return parts

    def _bad(self, counted: Relation) -> list[dict[str, Any]]:
        """The counts of partitions that violate, where counts are judged."""
        problem = self.problem
        if not problem.judged:
            return []
        packs = judged_packs(problem)[: len(problem.judged)] if self._packs else _single(problem)
        return find_bad(problem.task, problem.judged, packs, [counted])

    def _summed(self) -> list[Identifier]:
        """The columns of partitions that are sums."""
        best = [value.best for value in self.problem.values] if self.problem.cost.both else []
        return [*self._counts, *best]

    def _columns(self, summed: Iterable[Identifier]) -> list[Identifier]:
        """The columns of partitions that stay as they are."""
        differs = [word.differs for word in self.problem.bits]
        others = [Identifier(name) for name in ("cut_loss", "finest", "dearest", "uniform")]
        return [*(word.cut_key for word in self.problem.words), *differs, *summed, *others]


def _ahead(problem: CutProblem, nodes: Sequence[CutNode]) -> list[list[NumberedAxis]]:
    """The quasi-identifiers by the table in which their open values are specialised; the coarsest table comes first.

    A table of several has all combinations of what they specialise to: they stand together where these cannot be
    more than the cells, which are then read once for all of them, and else apart, where each makes few.
    """
    opened = {value[0] for node in nodes for value in node.open}
    tables: list[list[NumberedAxis]] = []
    for axis in problem.axes:
        fitting = (some for some in tables if _finest(problem, nodes, [*some, axis]) <= problem.cell_count)
        if axis.number.value in opened:
            together = next(fitting, None)
            if together is None:
                tables.append(together := [])
            together.append(axis)
    return sorted(tables, key=lambda some: _finest(problem, nodes, some)) or [[]]


def _finest(problem: CutProblem, nodes: Sequence[CutNode], ahead: Sequence[NumberedAxis]) -> int:
    """The most partitions that a cut of the nodes has with the open values of these quasi-identifiers specialised."""
    numbers = {axis.number.value for axis in ahead}
    trees = {tree.number: tree for tree in problem.trees}

    def values(node: CutNode, number: int) -> int:
        own = [value for value in node.cut if value[0] == number]
        opened = [value for value in own if value in node.open and number in numbers]
        return len(own) + sum(len(trees[number].specialised(value)) - 1 for value in opened)

    return max(prod(values(node, number) for number in trees) for node in nodes)


def _packs(problem: CutProblem) -> list[Pack]:
    """The columns that counts travel in."""
    return [pack for packs in judged_packs(problem) for pack in packs] if problem.judged else packs_of(problem)


def _single(problem: CutProblem) -> list[list[Pack]]:
    """The same with a column for each count, by what is judged together."""
    return [
        [Pack(tally.column, (PackedCount(tally.column, Value(0)),), Value(2**62 - 1), Value(n)) for n, tally in counted]
        for counted in (enumerate(one.tallies, 1) for one in problem.judged)
    ]
