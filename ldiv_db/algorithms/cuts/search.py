"""The way to the best cut: the search of a problem, and what is done where it cannot have all of it.

Numbers whose intervals are too many are searched on a grid: neighbouring values are put together beforehand, by the
counts of rows alone. A cut on the grid is a cut, so that it is published as any other; but finer ones may cost less.
`bounding` says how much less at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.cuts.boxes import MOST_BOXES, lay_out
from ldiv_db.algorithms.cuts.branch_and_bound import MOST_CUTS, SearchOutcome, Sweep
from ldiv_db.algorithms.cuts.evaluation import Best, Cut, Evaluator, descend, offer_root
from ldiv_db.algorithms.cuts.intervals import IntervalTree, Stretch, interval_tree, stretched
from ldiv_db.algorithms.cuts.problem import CutProblem, intervals_of
from ldiv_db.algorithms.cuts.spanned import trees_of
from ldiv_db.algorithms.cuts.trees import CutTree, loss_unit
from ldiv_db.database.errors import PolicyError, Problem, UnprovedError

#: What becomes of violating partitions where some quasi-identifiers are recoded at no cost.
_BOUNDED_BY = {"none": "none", "vioRec": "vioRec", "allRec": "anyRec"}
#: What is published where boxes are too many, of numbers or not.
_PUBLISHES = {True: ", which puts values together", False: ", for a good cut without a proof"}
#: What takes the place of numbers that have too many cuts.
_RANGES = "taxonomy: {ranges: [5, 10, 20]}"


@dataclass(frozen=True)
class SearchResult:
    """The best cuts of a problem, by whom they were evaluated, and how the search ended."""

    evaluator: Evaluator
    best: Best
    outcome: SearchOutcome


@dataclass(frozen=True)
class Finder:
    """A search for the `most` best cuts: whether one without a proof would be published (`publishes`), the deadline."""

    most: int
    publishes: bool
    deadline: float | None

    def find(self, problem: CutProblem) -> SearchResult:
        """The best cuts, of numbers on a grid where boxes are too many.

        Raises UnprovedError where boxes are too many and no cut without a proof would be published, and PolicyError
        where no grid is coarse enough.
        """
        evaluator, best, outcome = Evaluator(problem), Best(self.most), None
        if not (is_coarse := any(tree.is_coarse for tree in intervals_of(problem))):
            sweep = Sweep(evaluator, best, self.deadline, reports=True)
            first = partial(descend, deadline=self.deadline) if self.publishes else offer_root
            # A sweep needs no good cut to be fast: one is found first only if the policy would have it published.
            outcome = sweep.run(partial(first, evaluator, best))
        if outcome is None and not self.publishes:
            raise UnprovedError(
                f"{_too_many(problem)}; or set algorithm.unproved: publish{_PUBLISHES[bool(intervals_of(problem))]}"
            )
        if outcome is None and intervals_of(problem):
            return self._on_grid(problem, problem if is_coarse else coarser(problem))
        return _offered(SearchResult(evaluator, best, outcome or SearchOutcome(0, False, 0)))

    def _on_grid(self, problem: CutProblem, grid: CutProblem | None) -> SearchResult:
        """On the finest grid from this one on whose boxes are not too many, with a bound on all cuts of the problem."""
        while grid is not None:
            evaluator, best = Evaluator(grid), Best(self.most)
            sweep = Sweep(evaluator, best, self.deadline, reports=True)
            outcome = sweep.run(partial(offer_root, evaluator, best))
            if outcome is not None:
                found = _offered(SearchResult(evaluator, best, outcome))
                return replace(found, outcome=self._bounded(problem, found))
            grid = coarser(grid)
        raise PolicyError([_too_many(problem)])

    def _bounded(self, problem: CutProblem, found: SearchResult) -> SearchOutcome:
        """The outcome of a search on a grid as one of the whole problem."""
        bound = min(found.outcome.bound, sum(map(self._least, bounding(problem, found.evaluator.problem))))
        cost = found.best.limit
        return SearchOutcome(found.outcome.visited, bound >= cost, min(bound, cost))

    def _least(self, problem: CutProblem) -> int:
        """A bound: no cut of the problem costs less."""
        outcome = Sweep(Evaluator(problem), Best(), self.deadline).run()
        return 0 if outcome is None else outcome.bound


def _offered(found: SearchResult) -> SearchResult:
    """The same with a cut at least: one is allowed, or the policy had been refused."""
    if not found.best.costs:  # stopped before any cut was offered
        offer_root(found.evaluator, found.best)
    return found


def _too_many(problem: CutProblem) -> Problem:
    """Names the quasi-identifier with the most values, of numbers if there are any."""
    if numbers := intervals_of(problem):
        tree: CutTree = max(numbers, key=lambda tree: (tree.values, tree.number))
        values, hint = f"the intervals of {max(tree.values for tree in numbers):,} values", _RANGES
    else:
        tree = max(problem.trees, key=lambda tree: (tree.node_count, tree.number))
        values, hint = f"{tree.node_count:,} values", "fewer levels, or fewer quasi-identifiers"
    what = f"{values} make more than {MOST_BOXES:,} partitions with the others'"
    return Problem(f"quasi_identifiers.{tree.axis.name}", what, hint)


def number_problems(task: Task, most: int) -> Iterator[Problem]:
    """The problems of numbers without a taxonomy.

    All quasi-identifiers but the one with the most cuts are told apart cut by cut, and that one too if several cuts are
    wanted.
    """
    trees = sorted(trees_of(task.engine, task.encoded.axes, interval_tree), key=lambda tree: (tree.cuts, tree.number))
    numbers = [tree for tree in trees if isinstance(tree, IntervalTree)]
    for tree in trees[:-1] if most == 1 else trees:
        if numbers and tree.cuts > MOST_CUTS:
            yield _untold(tree, numbers[-1], most)
    if lay_out(trees, MOST_CUTS, 1) is None:
        yield Problem(
            f"quasi_identifiers.{[*trees, *numbers][-1].axis.name}", "has too many values beside the others", _RANGES
        )


def _untold(tree: CutTree, largest: IntervalTree, most: int) -> Problem:
    if isinstance(tree, IntervalTree):
        what = f"{tree.values:,} values without a taxonomy have too many cuts"
        which = "as top asks for several" if most > 1 else f"beside those of {largest.axis.name}"
        return Problem(f"quasi_identifiers.{tree.axis.name}", f"{what} {which}", _RANGES)
    what = f"has no taxonomy, and that of {tree.axis.name} has {tree.cuts:,} cuts, more than {MOST_CUTS:,}"
    return Problem(f"quasi_identifiers.{largest.axis.name}", what, _RANGES)


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
    found = [_with_trees(bounded, lambda tree: _lossless_tree(tree) if tree.number in coarse else tree)]
    if not any(tree.is_coarse for tree in intervals_of(problem)):
        found.append(_with_trees(bounded, lambda tree: tree if tree.number in coarse else _lossless_tree(tree)))
    return found


def _with_trees(problem: CutProblem, of: Callable[[CutTree], CutTree]) -> CutProblem:
    trees = tuple(of(tree) for tree in problem.trees)
    return replace(problem, trees=trees, loss_unit=loss_unit(trees))


def _lossless_tree(tree: CutTree) -> IntervalTree:
    """All values of a quasi-identifier as one, which loses nothing."""
    everything = Stretch(tuple(sorted(tree.leaf_of)), 0, "", "")
    return IntervalTree(tree.axis, tree.number, (everything,), 1, is_free=True)


def labels_of(trees: tuple[CutTree, ...], cut: Cut) -> dict[str, list[str]]:
    """The labels of a cut by quasi-identifier, in the order of the leaves, as they are published."""
    return {tree.axis.name: tree.labels([node for number, node in cut if number == tree.number]) for tree in trees}
