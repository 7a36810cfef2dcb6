"""A good cut before the exact search: greedy descent from the top, then local search.

A step of the descent specialises the value that leaves the least cost, also where that costs more than before: a
better cut may lie further down. Where several values save, it tries the best of them together as well. Local search
then takes the best of all cuts that are reached by specialising a value, by generalising siblings to their parent, or
by one of each (a swap), as long as one is better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from ldiv_db.algorithms.cuts.enumeration import node_of, specialise
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, Cut, Evaluator, Probe
from ldiv_db.algorithms.cuts.trees import CutTree, CutValue

#: Steps of the descent without a better cut, after which it ends.
_PATIENCE = 6


def find_start(evaluator: Evaluator, trees: Sequence[CutTree], best: Best, deadline: float | None = None) -> None:
    """Offer `best` the cuts on the way; no step begins after the deadline."""
    late = partial(_is_late, deadline)
    _descend(evaluator, trees, best, late)
    _improve(evaluator, trees, best, late)


def offer_root(evaluator: Evaluator, best: Best) -> None:
    """Offer `best` the most general cut, which is there whenever the search is stopped."""
    cut = frozenset(evaluator.problem.root())
    evaluator.offer(best, {cut: evaluator.costs([cut])[0]})


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _descend(evaluator: Evaluator, trees: Sequence[CutTree], best: Best, late: Callable[[], bool]) -> None:
    """Specialise one value or several after the other, as long as any may be and that leads somewhere."""
    numbered = {tree.number: tree for tree in trees}
    tried = [node_of(numbered, (tree.root for tree in trees))]
    seen: list[int] = []
    while tried:
        probes = evaluator.probe(tried, bounds=False)
        probe, node = min(zip(probes, tried, strict=True), key=lambda probed: probed[0].cost)
        seen.append(probe.cost)
        evaluator.offer(best, {node.cut: probe.cost})  # at once: whoever stops it now is to have this one
        if late() or min(seen[-_PATIENCE:]) > min(seen):
            break
        tried = [reduce(partial(specialise, numbered), values, node) for values in _further(probe)]


def _further(probe: Probe) -> Iterator[list[CutValue]]:
    """What to specialise at once: the value that leaves the least cost, with it the 1, 3, 7... next that save too."""
    ranked = sorted((cost, value) for value, cost in probe.costs.items() if cost < FORBIDDEN)
    saving = sum(cost < probe.cost for cost, _ in ranked)
    for exponent in range(max(1, saving).bit_length() if ranked else 0):
        yield [value for _, value in ranked[: 2**exponent]]


def _improve(evaluator: Evaluator, trees: Sequence[CutTree], best: Best, late: Callable[[], bool]) -> None:
    """Go from the best cut to its best neighbour, as long as that is better."""
    numbered = {tree.number: tree for tree in trees}
    while best.costs and not late():
        (cut, cost) = best.ranked()[0]
        nodes = [node_of(numbered, other) for other in (cut, *generalised(trees, cut))]
        costs: dict[Cut, int] = {}
        for node, probe in zip(nodes, evaluator.probe(nodes, bounds=False), strict=True):
            costs[node.cut] = probe.cost
            better = sorted((value, new) for value, new in probe.costs.items() if new < best.limit)
            costs |= {specialise(numbered, node, value).cut: new for value, new in better}
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
