"""A good cut before the exact search: greedy descent from the top, then local search.

A step of the descent specialises the value that leaves the least cost, also where that costs more than before: a
better cut may lie further down. Local search then takes the best of all cuts that are reached by specialising a value,
by generalising siblings to their parent, or by one of each (a swap), as long as one is better.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ldiv_db.algorithms.cut_evaluation import FORBIDDEN, Best, Cut, Evaluator
from ldiv_db.algorithms.cut_search import opened, specialise
from ldiv_db.algorithms.cut_trees import CutTree

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
    """Specialise one value after the other, as long as one may be and that leads somewhere."""
    numbered = {tree.number: tree for tree in trees}
    node = opened(numbered, (tree.root for tree in trees))
    seen: dict[Cut, int] = {}
    while True:
        (probe,) = evaluator.probe([node], bounds=False)
        seen[node.cut] = probe.cost
        evaluator.offer(best, {node.cut: probe.cost})  # at once: whoever stops it now is to have this one
        allowed = {value: cost for value, cost in probe.costs.items() if cost < FORBIDDEN}
        if not allowed or late() or min(list(seen.values())[-_PATIENCE:]) > min(seen.values()):
            break
        node = specialise(numbered, node, min(allowed, key=lambda value: (allowed[value], value)))


def _improve(evaluator: Evaluator, trees: Sequence[CutTree], best: Best, late: Callable[[], bool]) -> None:
    """Go from the best cut to its best neighbour, as long as that is better."""
    numbered = {tree.number: tree for tree in trees}
    while best.costs and not late():
        (cut, cost) = best.ranked()[0]
        nodes = [opened(numbered, other) for other in (cut, *generalised(trees, cut))]
        found: dict[Cut, int] = {}
        size = evaluator.problem.batch
        for start in range(0, len(nodes), size):
            batch = nodes[start : start + size]
            for node, probe in zip(batch, evaluator.probe(batch, bounds=False), strict=True):
                found[node.cut] = probe.cost
                better = sorted((value, new) for value, new in probe.costs.items() if new < best.limit)
                found |= {specialise(numbered, node, value).cut: new for value, new in better}
        evaluator.offer(best, found)
        if best.ranked()[0][1] >= cost:
            return


def generalised(trees: Sequence[CutTree], cut: Cut) -> Iterator[Cut]:
    """The cuts in which siblings of the cut are replaced by their parent."""
    for tree in trees:
        for node in tree.children:
            siblings = frozenset(tree.specialised((tree.number, node)))
            if siblings and siblings <= cut:
                yield (cut - siblings) | {(tree.number, node)}
