"""Numbers whose intervals are too many: the best cut on a grid of them, and what no cut costs less than.

On a grid neighbouring values are put together beforehand, by the counts of rows alone. A cut on the grid is a cut, so
that it is published as any other; but finer ones may cost less. `bounding` says how much less at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ldiv_db.algorithms.cuts.intervals import IntervalTree, Stretch, stretched
from ldiv_db.algorithms.cuts.layout import lay_out_keys
from ldiv_db.algorithms.cuts.problem import CutProblem
from ldiv_db.algorithms.cuts.trees import CutTree

#: What becomes of violating partitions where some quasi-identifiers are recoded at no cost.
_BOUNDED_BY = {"none": "none", "vioRec": "vioRec", "allRec": "anyRec"}


def intervals_of(problem: CutProblem) -> list[IntervalTree]:
    """The quasi-identifiers without a taxonomy."""
    return [tree for tree in problem.trees if isinstance(tree, IntervalTree)]


def coarser(problem: CutProblem) -> CutProblem | None:
    """The problem with a quarter fewer values to part, of the numbers that have the most; None if they have but two."""
    finest = max(intervals_of(problem), key=lambda tree: (len(tree.stretches), tree.number))
    if len(finest.stretches) <= 2:
        return None
    grid = replace(finest, stretches=stretched(finest.stretches, len(finest.stretches) * 3 // 4))
    return _with_trees(problem, lambda tree: grid if tree is finest else tree)


def bounding(problem: CutProblem, grid: CutProblem) -> list[CutProblem]:
    """Problems whose least costs add up to no more than any cut of the problem costs, if it is not on the grid either.

    In one the numbers of which the grid is coarse are recoded at no cost, all values as one, and in one everything
    else; by LM alone. A row's labels lose what they lose in both, and a row that is left out costs two for each
    quasi-identifier, which a problem counts for those that cost something in it.

    In each problem a cut costs no more than that of which it is a part, as far as the same quasi-identifiers go. Its
    partitions are unions of the other's, with the same labels. If all rows of one stay, it costs what its labels lose,
    and no row costs less if it is left out. Else the union violates, and what survives the union of classes fails in
    it only if it fails in one of its parts. So under `none` the other cut was not allowed, and under `allRec` it left
    out a row of the union at least, which is what `anyRec` costs. The l-eligible core of `vioRec` has no fewer rows
    than the cores of all parts, which meet the thresholds together.
    """
    scheme = _BOUNDED_BY.get(problem.cost.scheme)
    if problem.cost.metric != "LM" or scheme is None:
        return []
    bounded = replace(problem, cost=replace(problem.cost, scheme=scheme))
    coarse = {tree.number for tree in intervals_of(grid) if tree.is_coarse}
    found = [_with_trees(bounded, lambda tree: _freed(tree) if tree.number in coarse else tree)]
    if not any(tree.is_coarse for tree in intervals_of(problem)):
        found.append(_with_trees(bounded, lambda tree: tree if tree.number in coarse else _freed(tree)))
    return found


def _with_trees(problem: CutProblem, of: Callable[[CutTree], CutTree]) -> CutProblem:
    trees = tuple(of(tree) for tree in problem.trees)
    return replace(problem, trees=trees, layout=lay_out_keys(problem.task.engine, trees))


def _freed(tree: CutTree) -> IntervalTree:
    """All values of a quasi-identifier as one, which loses nothing."""
    everything = Stretch(tuple(sorted(tree.leaf_of)), 0, "", "")
    return IntervalTree(tree.axis, tree.number, (everything,), 1, costs_nothing=True)
