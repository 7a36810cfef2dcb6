"""The search over boxes: branch and bound by whole cuts through taxonomies, bounded by recoding the rest locally.

Quasi-identifiers are decided in groups. A prefix is a choice of cuts for those decided so far; its table has, for each
choice of values of the others, the sum of costs over the boxes that its cuts have (`sum_cuts`). The bound of a prefix
lets the other quasi-identifiers recode locally: one after the other is taken out by `f(v) = min(cost(v), sum of f over
the children of v)`, which is the best cut through its taxonomy for each choice of values of those still in.

The bound holds: in any cut of the prefix, the rows with given values of the quasi-identifiers still in are cut alike
in the one taken out, so they cost no less than what is best for them; summed over the values of the cut this holds for
the table without it, and so on. With one quasi-identifier left nothing is decided twice: the bound is the cost of the
best cut, and no branches are needed there. Every cut belongs to one prefix of each length (Theorem 1).

The cheapest prefix is followed to its end first, for a cut to compare with; then those that are bounded below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from ldiv_db.algorithms.cuts.boxes import Digit, blow_up, lay_out, make_boxes, refused_cost
from ldiv_db.algorithms.cuts.enumeration import SearchOutcome, SearchProgress, is_late
from ldiv_db.algorithms.cuts.evaluation import Best, Evaluator
from ldiv_db.algorithms.cuts.intervals import IntervalTree
from ldiv_db.database import interrupts
from ldiv_db.database.templates import Relation, Value

#: Cuts through one taxonomy that are told apart.
MOST_CUTS = 2_000
#: Prefixes that a group of quasi-identifiers makes of one, and those that are followed at once.
_MOST_PREFIXES, _AT_ONCE = 300, 32
#: Rows of a join beyond which a quasi-identifier is taken out before cuts are summed: the bound is weaker, but cheaper.
_MOST_JOINED = 25_000_000

#: A prefix: its bound, and the cuts as digits of a key.
Prefix = tuple[int, int]


class Sweep:
    """The search over one problem's cuts by boxes; `fits` says whether it can be."""

    def __init__(
        self,
        evaluator: Evaluator,
        best: Best,
        deadline: float | None = None,
        progress: Callable[[SearchProgress], None] = lambda progress: None,
    ):
        self._evaluator, self._best, self._deadline, self._progress = evaluator, best, deadline, progress
        self._problem, self._engine = evaluator.problem, evaluator.problem.task.engine
        trees = sorted(self._problem.trees, key=lambda tree: (tree.cuts, tree.number))
        self._digits = lay_out(trees, MOST_CUTS) or []
        #: The digit whose best cut needs no branches; where several cuts are wanted all are told apart.
        self._free = self._digits[-1:] if best.most == 1 else []
        self._decided = self._digits[: len(self._digits) - len(self._free)]
        self._open: list[tuple[int, list[Prefix]]] = [(0, [(0, 0)])]
        #: Where sums end: they are no cut's.
        self._refused = Value(refused_cost(self._problem))
        self.visited = 0

    @property
    def fits(self) -> bool:
        """True if keys are small enough, and cuts few enough to be told apart."""
        return bool(self._digits) and all(digit.tree.cuts <= MOST_CUTS for digit in self._decided)

    def run(self, start: Callable[[], None] = lambda: None) -> SearchOutcome | None:
        """Search everything, or until the deadline or Ctrl-C, after `start`; None if there are too many boxes."""
        try:
            start()
            self._check_time()
            boxes = make_boxes(self._problem, self._digits)
            if boxes is None:
                return None
            self._load()
            self._follow(boxes, 0, 1)
            self._engine.drop(boxes, self._links, self._members)
        except _Late:
            pass
        except KeyboardInterrupt:
            interrupts.settle_twice()
        left = [bound for _, bound in self._left()]
        return SearchOutcome(self.visited, not left, min([self._best.limit, *left]))

    @property
    def _limit(self) -> int:
        """The cost below which a cut is of use: that of the best cut, or of one that is not allowed."""
        return min(self._best.limit, int(self._refused.value))

    def _check_time(self) -> None:
        if is_late(self._deadline):
            raise _Late

    def _left(self) -> list[tuple[int, int]]:
        """The number of cuts of each prefix that is still to be searched, and its bound."""
        limit = self._limit
        return [
            (prod(digit.tree.cuts for digit in self._digits[end:]), bound)
            for end, prefixes in self._open
            for bound, _ in prefixes
            if bound < limit
        ]

    def _standing(self) -> SearchProgress:
        left, total = self._left(), prod(digit.tree.cuts for digit in self._digits)
        pruned = max(0, total - sum(cuts for cuts, _ in left) - self.visited) / total
        best = min(self._best.costs.values(), default=None)
        return SearchProgress(self.visited, pruned, best, min([self._best.limit, *(bound for _, bound in left)]))

    def _load(self) -> None:
        """The steps between values, and the values of cuts."""
        columns = dict.fromkeys(("axis", "node", "height", "above"), "INTEGER") | {"up": "BIGINT"}
        self._links = self._engine.load("links", columns, list(_links(self._digits)))
        columns = dict.fromkeys(("axis", "cut", "node"), "INTEGER") | {"shift": "BIGINT"}
        self._members = self._engine.load("members", columns, list(_members(self._decided)))

    # -- prefixes ------------------------------------------------------------------------------------

    def _follow(self, boxes: Relation, start: int, parents: int) -> None:
        """Search all cuts of the first open prefixes, whose boxes these are and which have decided `start` digits."""
        end = self._group(start)
        group, rest = self._decided[start:end], self._digits[end:]
        last = end == len(self._decided)
        summed = self._sum(boxes, group, [] if last else rest)  # exact costs are sums over all boxes
        prefixes = self._bound(summed, rest)
        self.visited += len(prefixes)
        if last:
            self._offer(summed, prefixes)
        self._engine.drop(summed)
        del self._open[-1][1][:parents]
        self._progress(self._standing())
        if not last:
            self._open.append((end, prefixes))
            self._branch(boxes, start, end)
            self._open.pop()

    def _branch(self, boxes: Relation, start: int, end: int) -> None:
        """Follow the open prefixes that may have a cut that is better, the cheapest first and alone."""
        prefixes, most = self._open[-1][1], 1
        while prefixes and prefixes[0][0] < self._limit:
            self._check_time()
            batch = [prefix for prefix in prefixes[:most] if prefix[0] < self._limit]
            gathered = self._gather(boxes, batch, start, end)
            self._follow(gathered, end, len(batch))
            self._engine.drop(gathered)
            most = _AT_ONCE

    def _group(self, start: int) -> int:
        """The end of the group of quasi-identifiers that begins there: they are decided together."""
        end = min(start + 1, len(self._decided))
        cuts = [digit.tree.cuts for digit in self._decided]
        while end < len(cuts) and prod(cuts[start : end + 1]) <= _MOST_PREFIXES:
            end += 1
        return end

    def _sum(self, boxes: Relation, group: Sequence[Digit], rest: Sequence[Digit]) -> Relation:
        """The boxes with the group's digits those of cuts, some of the rest taken out first if there are too many."""
        work = self._engine.copy("summed", boxes, "key", "cost")
        rows = self._engine.count(work)
        for digit in _largest_first(rest):
            if rows * blow_up(group) <= _MOST_JOINED:
                break
            work = self._take_out(work, digit)
            rows = self._engine.count(work)
        for digit in group:
            work = self._replace(work, "cuts/sum_cuts", members=self._members, digit=digit)
        return work

    def _bound(self, summed: Relation, rest: Sequence[Digit]) -> list[Prefix]:
        """The bounds of prefixes, lowest first."""
        work = self._engine.copy("summed", summed, "key", "cost")
        for digit in _largest_first(rest):
            work = self._take_out(work, digit)
        prefixes = sorted(self._engine.columns(work, "cost", "key"))
        self._engine.drop(work)
        return prefixes

    def _take_out(self, work: Relation, digit: Digit) -> Relation:
        """The boxes with the best cut of the digit's values for each choice of the other values."""
        if isinstance(digit.tree, IntervalTree):
            return self._divide(work, digit, digit.tree)
        for height in range(1, digit.tree.taxonomy.height + 1):
            work = self._replace(work, "cuts/raise_boxes", links=self._links, digit=digit, height=Value(height))
        return work

    def _divide(self, work: Relation, digit: Digit, tree: IntervalTree) -> Relation:
        """The boxes with the best division of the digit's numbers for each choice of the other values."""
        engine = self._engine
        with engine.scope() as scope:
            sums = [engine.materialise("divided", "cuts/start_division", boxes=work, digit=digit)]
            for place in range(len(tree.stretches)):
                params = {"sums": sums, "before": sums[-1], "digit": digit, "place": Value(place)}
                sums.append(engine.materialise("divided", "cuts/divide_boxes", boxes=work, **params))
            has_null = tree.null is not None
            return scope.keep(
                self._replace(work, "cuts/end_division", divided=sums[-1], digit=digit, has_null=has_null)
            )

    def _replace(self, work: Relation, template: str, **params: Any) -> Relation:
        """The table that the template makes of the boxes, which are dropped."""
        replaced = self._engine.materialise("summed", template, boxes=work, refused=self._refused, **params)
        self._engine.drop(work)
        return replaced

    def _gather(self, boxes: Relation, prefixes: Sequence[Prefix], start: int, end: int) -> Relation:
        """The boxes of some prefixes, which decide the digits from `start` to `end`."""
        keys = self._engine.load("prefixes", {"key": "BIGINT"}, [(key,) for _, key in prefixes])
        below = 2 ** sum(digit.width for digit in self._digits[:end]) - 1
        gathered = self._engine.materialise(
            "gathered",
            "cuts/gather_boxes",
            boxes=boxes,
            prefixes=keys,
            members=self._members,
            digits=self._decided[start:end],
            below=below,
            refused=self._refused,
        )
        self._engine.drop(keys)
        return gathered

    # -- cuts ----------------------------------------------------------------------------------------

    def _offer(self, summed: Relation, prefixes: Sequence[Prefix]) -> None:
        """Offer the cuts that are better, where all but at most one quasi-identifier are decided."""
        self._evaluator.evaluated += len(prefixes) * prod(digit.tree.cuts for digit in self._free)
        below = 2 ** sum(digit.width for digit in self._decided) - 1
        for cost, prefix in prefixes:
            if cost >= self._limit:
                break
            cut = {(d.tree.number, node) for d in self._decided for node in d.tree.all_cuts[d.of(prefix)]}
            for digit in self._free:
                rows = self._engine.rows("cuts/list_boxes", boxes=summed, prefix=prefix, below=below)
                costs = {digit.of(key): cost for key, cost in rows}
                cut |= {(digit.tree.number, node) for node in digit.tree.best_cut(costs)}
            self._best.offer(frozenset(cut), cost)


class _Late(Exception):
    """The time is up."""


def _largest_first(digits: Sequence[Digit]) -> list[Digit]:
    return sorted(digits, key=lambda digit: (-digit.nodes, digit.tree.number))


def _links(digits: Sequence[Digit]) -> Iterator[tuple[int, ...]]:
    """(axis, node, height, above, up) of each value; the root has nothing above."""
    for digit in digits:
        if isinstance(digit.tree, IntervalTree):
            continue
        heights = digit.tree.taxonomy.heights
        for node in digit.tree.taxonomy.nodes:
            above = 0 if node.parent is None else heights[node.parent]
            up = 0 if node.parent is None else (node.parent - node.node) * 2**digit.lowest
            yield digit.tree.number, node.node, heights[node.node], above, up


def _members(digits: Sequence[Digit]) -> Iterator[tuple[int, ...]]:
    """(axis, cut, node, shift) of the values of each cut."""
    for digit in digits:
        for number, cut in enumerate(digit.tree.all_cuts):
            for node in cut:
                yield digit.tree.number, number, node, (number - node) * 2**digit.lowest
