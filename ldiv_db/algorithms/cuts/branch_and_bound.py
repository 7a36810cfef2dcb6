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

A taxonomy with very many cuts is decided after those with few, and its cuts are not all made. With the others recoded
locally each of its values costs something by itself, and the bound of a cut is the sum over its values: so cuts come
one after the other, cheapest first, until none can be better (`CutTree.cheapest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice, repeat, takewhile
from math import prod

from ldiv_db.algorithms.cuts.boxes import Digit, blow_up, key_type, lay_out, make_boxes
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, Evaluator, is_late
from ldiv_db.algorithms.cuts.intervals import IntervalTree
from ldiv_db.algorithms.cuts.trees import CutCost
from ldiv_db.database import interrupts
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation

#: The cuts of a taxonomy that are all made; those of numbers are, so that there may be no more.
MOST_CUTS = 2_000
#: Prefixes that a group of quasi-identifiers makes of one, and those that are followed at once.
_MOST_PREFIXES, _AT_ONCE = 300, 32
#: Rows of a join beyond which a quasi-identifier is taken out before cuts are summed: the bound is weaker, but cheaper.
_MOST_JOINED = 25_000_000

#: A prefix: its bound, and the cuts as digits of a key.
Prefix = tuple[int, int]


@dataclass(frozen=True)
class SearchOutcome:
    """The end of a search: `bound` is the least that a cut it has not seen can cost, FORBIDDEN if it has seen all."""

    visited: int
    proved: bool
    bound: int


class Sweep:
    """The search over one problem's cuts by boxes; if it `reports` it says how it stands as it goes."""

    def __init__(self, evaluator: Evaluator, best: Best, deadline: float | None = None, reports: bool = False):
        self._evaluator, self._best, self._deadline, self._reports = evaluator, best, deadline, reports
        self._problem, self._engine = evaluator.problem, evaluator.problem.task.engine
        trees = sorted(self._problem.trees, key=lambda tree: (tree.cuts, tree.number))
        self._digits = lay_out(trees, MOST_CUTS, _AT_ONCE) or []
        #: The digit whose best cut needs no branches; where several cuts are wanted all are told apart.
        self._free = self._digits[-1:] if best.most == 1 else []
        self._decided = self._digits[: len(self._digits) - len(self._free)]
        self._open: list[tuple[int, list[Prefix]]] = [(0, [(0, 0)])]
        #: The cuts of taxonomies by the numbers that they have in keys.
        self._cuts = {digit.tree.number: digit.tree.all_cuts for digit in self._decided if _has_few(digit)}
        #: Sums end at what is refused: they are no cut's.
        self._flow = EngineFlow(self._engine, "cuts", refused=self._problem.refused)
        self.visited = 0

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
            self._engine.drop(boxes)
            self._flow.drop("links", "members")
        except _Late:
            pass
        except KeyboardInterrupt:
            interrupts.settle_twice()
        left = [bound for _, bound in self._left()]
        return SearchOutcome(self.visited, not left, min([self._best.limit, *left]))

    @property
    def _limit(self) -> int:
        """The cost below which a cut is of use: that of the best cut, or of one that is not allowed."""
        return min(self._best.limit, self._problem.refused)

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

    def _report(self) -> None:
        """Say how many cuts were visited, the share of all that need not be, the best cost and the bound."""
        if not self._reports:
            return
        left, total = self._left(), prod(digit.tree.cuts for digit in self._digits)
        pruned = max(0, total - sum(cuts for cuts, _ in left) - self.visited) / total
        best, bound = min(self._best.costs.values(), default=None), min([self._best.limit, *(cost for _, cost in left)])
        said = "none yet" if best is None else f"{best / self._problem.scale:,.6g}"
        bounded = "none" if bound >= FORBIDDEN else f"{bound / self._problem.scale:,.6g}"
        line = f"{self.visited:,} cuts visited, {pruned:.2%} pruned, best {said}, bound {bounded}"
        self._problem.task.report(line)

    def _load(self) -> None:
        """The steps between values, and the values of cuts."""
        columns = dict.fromkeys(("axis", "node", "height", "above"), "INTEGER") | {"up": key_type(self._digits)}
        self._flow.know(links=self._engine.load("links", columns, list(_links(self._digits))))
        self._flow.know(members=self._members([digit for digit in self._decided if _has_few(digit)]))

    def _members(self, digits: Sequence[Digit]) -> Relation:
        """(axis, cut, node, shift) of the values of each cut that has a number."""
        columns = dict.fromkeys(("axis", "cut", "node"), "INTEGER") | {"shift": key_type(self._digits)}
        rows = [
            (digit.tree.number, number, node, (number - node) * 2**digit.lowest)
            for digit in digits
            for number, cut in enumerate(self._cuts[digit.tree.number])
            for node in cut
        ]
        return self._engine.load("members", columns, rows)

    # -- prefixes ------------------------------------------------------------------------------------

    def _follow(self, boxes: Relation, start: int, parents: int) -> None:
        """Search all cuts of the first open prefixes, whose boxes these are and which have decided `start` digits."""
        if start < len(self._decided) and not _has_few(self._decided[start]):
            self._follow_many(boxes, start)
            del self._open[-1][1][:parents]
            return
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
        self._report()
        if not last:
            self._open.append((end, prefixes))
            self._branch(boxes, start, end)
            self._open.pop()

    def _follow_many(self, boxes: Relation, start: int) -> None:
        """Search the cuts of prefixes that go through a taxonomy with very many, the cheapest by their bounds first."""
        digit, end = self._decided[start], start + 1
        ways = takewhile(lambda way: way[0][0] < self._limit, self._cheapest(boxes, start))
        while listed := list(islice(ways, _AT_ONCE)):
            self._check_time()
            self.visited += len(listed)
            self._cuts[digit.tree.number] = [nodes for (_, nodes), _ in listed]
            prefixes = [(cost, key + (place << digit.lowest)) for place, ((cost, _), key) in enumerate(listed)]
            members = self._members([digit])
            gathered = self._gather(boxes, prefixes, start, end, members)
            self._open.append((end, prefixes))
            if end == len(self._decided):
                self._offer(gathered, self._bound(gathered, self._digits[end:]))
            else:
                self._follow(gathered, end, len(prefixes))
            self._open.pop()
            self._engine.drop(gathered, members)
            self._report()

    def _cheapest(self, boxes: Relation, start: int) -> Iterator[tuple[CutCost, int]]:
        """((bound, nodes), prefix) of the cuts through one taxonomy under each prefix, the least bound first."""
        digit, costs = self._decided[start], dict[int, dict[int, int]]()
        for cost, key in self._bound(boxes, self._digits[start + 1 :]):
            costs.setdefault(key - (digit.of(key) << digit.lowest), {})[digit.of(key)] = cost
        every = not self._free
        found = (zip(digit.tree.cheapest(own, every), repeat(prefix)) for prefix, own in sorted(costs.items()))
        return merge(*found, key=lambda way: way[0][0])

    def _branch(self, boxes: Relation, start: int, end: int) -> None:
        """Follow the open prefixes that may have a cut that is better, the cheapest first and alone."""
        prefixes, most = self._open[-1][1], 1
        while prefixes and prefixes[0][0] < self._limit:
            self._check_time()
            batch = [prefix for prefix in prefixes[:most] if prefix[0] < self._limit]
            gathered = self._gather(boxes, batch, start, end, self._flow["members"])
            self._follow(gathered, end, len(batch))
            self._engine.drop(gathered)
            most = _AT_ONCE

    def _group(self, start: int) -> int:
        """The end of the group of quasi-identifiers that begins there: they are decided together."""
        few = [digit.tree.cuts for digit in self._decided if _has_few(digit)]
        end = min(start + 1, len(few))
        while end < len(few) and prod(few[start : end + 1]) <= _MOST_PREFIXES:
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
            work = self._replace(work, "sum_cuts", digit=digit)
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
            work = self._replace(work, "raise_boxes", digit=digit, height=height)
        return work

    def _divide(self, work: Relation, digit: Digit, tree: IntervalTree) -> Relation:
        """The boxes with the best division of the digit's numbers for each choice of the other values."""
        flow = self._flow
        with flow.scope("summed"):
            flow.know(boxes=work, digit=digit, has_null=tree.null is not None)
            sums = [flow.step("divided", "start_division")]
            for place in range(len(tree.stretches)):
                sums.append(flow.step("divided", "divide_boxes", sums=sums, before=sums[-1], place=place))
            return self._replace(work, "end_division")

    def _replace(self, work: Relation, template: str, **params: object) -> Relation:
        """The table that the template makes of the boxes, which are dropped."""
        replaced = self._flow.step("summed", template, boxes=work, **params)
        self._engine.drop(work)
        return replaced

    def _gather(self, boxes: Relation, prefixes: Sequence[Prefix], start: int, end: int, members: Relation) -> Relation:
        """The boxes of some prefixes, which decide the digits from `start` to `end`."""
        keys = self._engine.load("prefixes", {"key": key_type(self._digits)}, [(key,) for _, key in prefixes])
        below = 2 ** sum(digit.width for digit in self._digits[:end]) - 1
        of = {"boxes": boxes, "prefixes": keys, "members": members}
        gathered = self._flow.step("gathered", "gather_boxes", digits=self._decided[start:end], below=below, **of)
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
            cut = {(d.tree.number, node) for d in self._decided for node in self._cuts[d.tree.number][d.of(prefix)]}
            for digit in self._free:
                rows = self._flow.rows("list_boxes", boxes=summed, prefix=prefix, below=below)
                costs = {digit.of(key): cost for key, cost in rows}
                cut |= {(digit.tree.number, node) for node in digit.tree.best_cut(costs)}
            self._best.offer(frozenset(cut), cost)


class _Late(Exception):
    """The time is up."""


def _largest_first(digits: Sequence[Digit]) -> list[Digit]:
    return sorted(digits, key=lambda digit: (-digit.tree.node_count, digit.tree.number))


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


def _has_few(digit: Digit) -> bool:
    """True if all cuts have numbers."""
    return digit.tree.cuts <= MOST_CUTS
