"""l+-Optimize: the provably best cut, by branch and bound over the cut enumeration tree (Liu & Wang, 2010).

A node of the search is a cut whose values are open or locked; its subtree has all cuts that specialise open values.
On an open value v the subtree parts in two: cuts that specialise v, and cuts that have it. These are the paper's child
i and its node with v locked "on backtracking", so every cut is visited once, whatever the order of values (Theorem 1).
Both ways are bounded for all open values of a node at once. Where one way's bound reaches the best cost, the other is
taken without branching; a node on one of whose values both do is done. Otherwise it branches on the value whose weaker
way is bounded highest.

All bounds are those of `sql/macros/cut_costs.j2`: Theorems 4 to 6, Corollary 7, homogeneous partitions exactly.

A good cut before the exact search: greedy descent from the top, then local search.

A step of the descent specialises the value that leaves the least cost, also where that costs more than before: a
better cut may lie further down. Where several values save, it tries the best of them together as well. Local search
then takes the best of all cuts that are reached by specialising a value, by generalising siblings to their parent, or
by one of each (a swap), as long as one is better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, Cut, CutNode, Evaluator, Probe
from ldiv_db.algorithms.cuts.trees import CutTree, CutValue
from ldiv_db.database import interrupts


@dataclass(frozen=True)
class SearchOutcome:
    """The end of a search: `bound` is the least that a cut it has not seen can cost, FORBIDDEN if it has seen all."""

    visited: int
    proved: bool
    bound: int


@dataclass(frozen=True)
class SearchProgress:
    """A search under way: cuts visited, the share of all cuts that need not be, the best cost and the bound."""

    visited: int
    pruned: float
    best: int | None
    bound: int


class Search:
    """The search over one problem's cuts; without `prune` it visits every cut, which only a small problem allows."""

    def __init__(
        self,
        evaluator: Evaluator,
        best: Best,
        prune: bool = True,
        deadline: float | None = None,
        progress: Callable[[SearchProgress], None] = lambda progress: None,
    ):
        self._evaluator = evaluator
        self._trees = evaluator.trees
        self._best, self._prune = best, prune
        self._deadline, self._progress = deadline, progress
        self._stack: list[CutNode] = []
        self.visited = 0

    def root(self) -> CutNode:
        """All cuts: the most general one with everything open."""
        return node_of(self._trees, (tree.root for tree in self._trees.values()))

    def run(self, start: Callable[[], None] = lambda: None) -> SearchOutcome:
        """Search everything, or until the deadline or Ctrl-C, after `start` has offered what it found quickly."""
        self._stack = [self.root()]
        self.visited = 1
        batch: list[CutNode] = []
        try:
            start()
            while self._stack and not is_late(self._deadline):
                batch = [node for node in self._take() if self._alive(node.bound)]
                self._expand(batch)
                batch = []
                self._progress(self._standing())
        except KeyboardInterrupt:
            interrupts.settle_twice()
        left = [node for node in [*self._stack, *batch] if self._alive(node.bound)]
        return SearchOutcome(self.visited, not left, self._bound(left))

    def _standing(self) -> SearchProgress:
        total = self._cuts(self.root())
        left = sum(self._cuts(node) for node in self._stack if self._alive(node.bound))
        best = min(self._best.costs.values(), default=None)
        return SearchProgress(self.visited, max(0, total - left - self.visited) / total, best, self._bound(self._stack))

    def _cuts(self, node: CutNode) -> int:
        """The number of cuts in a node's subtree."""
        return prod(self._trees[axis].cuts_below[value] for axis, value in node.open)

    def _bound(self, left: Iterable[CutNode]) -> int:
        return min([self._best.limit, *(node.bound for node in left)])

    def _take(self) -> list[CutNode]:
        """The nodes to be evaluated next: the latest, so that the search is depth first."""
        most = self._evaluator.problem.batch
        taken, self._stack = self._stack[-most:], self._stack[:-most]
        return taken

    def _alive(self, bound: int) -> bool:
        return not self._prune or bound < self._best.limit

    def _expand(self, nodes: list[CutNode]) -> None:
        """Evaluate the nodes and put what remains to be searched of them on the stack, the most promising last."""
        if not nodes:
            return
        probes = self._evaluator.probe(nodes)
        self._evaluator.offer(self._best, dict(self._candidates(zip(nodes, probes, strict=True))))
        for node, probe in zip(nodes, probes, strict=True):
            if node.open and self._alive(probe.bound):
                self._stack += self._branches(node, probe)

    def _candidates(self, probed: Iterable[tuple[CutNode, Probe]]) -> Iterator[tuple[Cut, int]]:
        """The cuts that were evaluated and may be among the best."""
        for node, probe in probed:
            yield node.cut, probe.cost
            for value, cost in sorted(probe.costs.items()):
                if cost < self._best.limit:
                    yield specialise(self._trees, node, value).cut, cost

    def _branches(self, node: CutNode, probe: Probe) -> list[CutNode]:
        """The parts of a node's subtree that remain to be searched, the most promising last."""
        if self._prune:
            kept = {v for v in node.open if not self._alive(probe.specialised[v])}
            gone = {v for v in node.open if not self._alive(probe.locked[v])}
            if kept & gone:
                return []
            if kept or gone:
                return [self._forced(node, probe, kept, gone)]
        value = max(node.open, key=lambda v: (probe.telling.get(v, (0, 0)), v))
        branches = [
            self._lock(node, value, max(node.bound, probe.locked[value])),
            specialise(self._trees, node, value, max(node.bound, probe.specialised[value])),
        ]
        self.visited += 1
        return sorted(branches, key=lambda branch: branch.bound, reverse=True)

    def _forced(self, node: CutNode, probe: Probe, kept: set[CutValue], gone: set[CutValue]) -> CutNode:
        """The node with all values locked that may not be specialised, and those specialised that may not be kept."""
        bounds = [probe.locked[v] for v in kept] + [probe.specialised[v] for v in gone]
        for value in kept:
            node = self._lock(node, value, max(node.bound, *bounds))
        for value in gone:
            node = specialise(self._trees, node, value, max(node.bound, *bounds))
            self.visited += 1
        return node

    def _lock(self, node: CutNode, value: CutValue, bound: int) -> CutNode:
        return CutNode(node.open - {value}, node.locked | {value}, bound)


def specialise(trees: dict[int, CutTree], node: CutNode, value: CutValue, bound: int = 0) -> CutNode:
    """The node with an open value replaced by its children, which are open unless they are leaves."""
    children = node_of(trees, trees[value[0]].specialised(value), node.locked, bound)
    return CutNode(children.open | (node.open - {value}), children.locked, bound)


def node_of(
    trees: dict[int, CutTree], values: Iterable[CutValue], locked: Cut = frozenset(), bound: int = 0
) -> CutNode:
    """The node of some values, open where they have children, and of locked ones."""
    values = list(values)
    inner = frozenset(value for value in values if trees[value[0]].children[value[1]])
    return CutNode(inner, locked | (frozenset(values) - inner), bound)


#: Steps of the descent without a better cut, after which it ends.
_PATIENCE = 6


def find_start(evaluator: Evaluator, best: Best, deadline: float | None = None) -> None:
    """Offer `best` the cuts on the way; no step begins after the deadline."""
    late = partial(is_late, deadline)
    _descend(evaluator, best, late)
    _improve(evaluator, best, late)


def offer_root(evaluator: Evaluator, best: Best) -> None:
    """Offer `best` the most general cut, which is there whenever the search is stopped."""
    cut = frozenset(evaluator.problem.root())
    evaluator.offer(best, {cut: evaluator.costs([cut])[0]})


def is_late(deadline: float | None) -> bool:
    """True if the time is up."""
    return deadline is not None and time.monotonic() >= deadline


def _descend(evaluator: Evaluator, best: Best, late: Callable[[], bool]) -> None:
    """Specialise one value or several after the other, as long as any may be and that leads somewhere."""
    tried = [node_of(evaluator.trees, evaluator.problem.root())]
    seen: list[int] = []
    while tried:
        probes = evaluator.probe(tried, bounds=False)
        probe, node = min(zip(probes, tried, strict=True), key=lambda probed: probed[0].cost)
        seen.append(probe.cost)
        evaluator.offer(best, {node.cut: probe.cost})  # at once: whoever stops it now is to have this one
        if late() or min(seen[-_PATIENCE:]) > min(seen):
            break
        tried = [reduce(partial(specialise, evaluator.trees), values, node) for values in _next_values(probe)]


def _next_values(probe: Probe) -> Iterator[list[CutValue]]:
    """The values to specialise at once: the one of least cost, and with it the 1, 3, 7... next that save too."""
    ranked = sorted((cost, value) for value, cost in probe.costs.items() if cost < FORBIDDEN)
    saving = sum(cost < probe.cost for cost, _ in ranked)
    for exponent in range(max(1, saving).bit_length() if ranked else 0):
        yield [value for _, value in ranked[: 2**exponent]]


def _improve(evaluator: Evaluator, best: Best, late: Callable[[], bool]) -> None:
    """Go from the best cut to its best neighbour, as long as that is better."""
    trees = evaluator.trees
    while best.costs and not late():
        (cut, cost) = best.ranked()[0]
        nodes = [node_of(trees, other) for other in (cut, *generalised(evaluator.problem.trees, cut))]
        costs: dict[Cut, int] = {}
        for node, probe in zip(nodes, evaluator.probe(nodes, bounds=False), strict=True):
            costs[node.cut] = probe.cost
            better = sorted((value, new) for value, new in probe.costs.items() if new < best.limit)
            costs |= {specialise(trees, node, value).cut: new for value, new in better}
        evaluator.offer(best, costs)
        if best.ranked()[0][1] >= cost:
            return


def generalised(trees: Sequence[CutTree], cut: Cut) -> Iterator[Cut]:
    """The cuts in which siblings of the cut are replaced by their parent."""
    for tree in trees:
        for node in tree.children:
            siblings = frozenset(tree.specialised((tree.number, node)))
            if siblings and siblings <= cut:
                yield (cut - siblings) | {(tree.number, node)}
