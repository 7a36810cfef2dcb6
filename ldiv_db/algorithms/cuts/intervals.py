"""Numbers without a taxonomy as cuts see them: every interval of values that occur is a value that a cut may have.

A cut parts the values, in order, into intervals: n values have 2^(n-1) cuts. An interval is published from its
smallest to its largest value of the whole table, whatever occurs in a class, so that its bounds say no more than the
cut does. NULL is no number: it is published as it is, or with all numbers as `*`.

The node of an interval has two places, that of its first value and that of its last, so that SQL can tell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby

from ldiv_db.algorithms.cuts.trees import CutTree, CutValue
from ldiv_db.database.engine import Engine
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import NULL_LABEL, ROOT_LABEL, range_label

#: More values than this are put together before a search.
MOST_VALUES = 1_000


@dataclass(frozen=True)
class Stretch:
    """Neighbouring values that no cut of a search parts: their codes, their rows, the texts of the first and last."""

    codes: tuple[int, ...]
    rows: int
    first: str
    last: str


@dataclass(frozen=True)
class IntervalTree(CutTree):
    """One quasi-identifier's numbers; `values` counts those that occur, `null` is the code of NULL, if that does."""

    stretches: tuple[Stretch, ...]
    values: int
    null: int | None = None
    is_free: bool = False

    @property
    def is_coarse(self) -> bool:
        """True if some values are not parted by any cut."""
        return len(self.stretches) < self.values

    @property
    def bits(self) -> int:
        """The number of bits in the place of a value."""
        return max(1, (len(self.stretches) - (self.null is None)).bit_length())

    def node(self, first: int, last: int) -> int:
        """The node of the values from one place to another."""
        return (first << self.bits) + last

    def places(self, node: int) -> tuple[int, int]:
        return node >> self.bits, node & ((1 << self.bits) - 1)

    @property
    def root(self) -> CutValue:
        return self.number, self.node(0, len(self.stretches) - (self.null is None))

    @property
    def size(self) -> int:
        return 1 << (2 * self.bits)

    @property
    def node_count(self) -> int:
        count = len(self.stretches)
        return count * (count + 1) // 2 + (0 if self.null is None else 2)

    @property
    def cuts(self) -> int:
        numbers: int = 2 ** (len(self.stretches) - 1)
        return numbers + (self.null is not None)

    @cached_property
    def all_cuts(self) -> list[tuple[int, ...]]:
        """Every cut as its nodes, by the places after which an interval ends; only where they are few."""
        count = len(self.stretches)
        nulls = () if self.null is None else (self.node(count, count),)
        found: list[tuple[int, ...]] = [] if self.null is None else [(self.root[1],)]
        for ends in range(2 ** (count - 1)):
            last = [place for place in range(count - 1) if ends >> place & 1] + [count - 1]
            first = [0, *(place + 1 for place in last[:-1])]
            found.append((*(self.node(*span) for span in zip(first, last, strict=True)), *nulls))
        return found

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """None: an interval has no parts of its own, but is one of many ways to put values together."""
        return _Childless()

    @cached_property
    def leaf_of(self) -> dict[int, int]:
        found = {code: self.node(place, place) for place, own in enumerate(self.stretches) for code in own.codes}
        count = len(self.stretches)
        return found if self.null is None else found | {self.null: self.node(count, count)}

    def bounds(self, node: int) -> tuple[int, int]:
        first, last = self.places(node)
        ends = [*self.stretches] if self.null is None else [*self.stretches, Stretch((self.null,), 0, "", "")]
        return ends[first].codes[0], ends[last].codes[-1]

    def loss(self, low: int, high: int, unit: int) -> int:
        """LM of one cell: the share of the range of all numbers, rounded; all of it where NULL is among numbers."""
        if self.is_free or low == high:
            return 0
        if high == self.null:
            return unit
        return (2 * (high - low) * unit + self.scale) // (2 * self.scale)

    def edges(self) -> Iterator[tuple[int, int, int, int]]:
        """(axis, place, low, high) of the numbers at each place; all alike where they lose nothing."""
        for place, own in enumerate(self.stretches):
            yield self.number, place, *((0, 0) if self.is_free else (own.codes[0], own.codes[-1]))

    def climbs(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """NULL and numbers together alone: intervals are counted otherwise."""
        if self.null is None:
            return
        root = self.root[1]
        for place in range(len(self.stretches) + 1):
            leaf = self.node(place, place)
            yield leaf, root, self.loss(*self.bounds(root), unit) - self.loss(*self.bounds(leaf), unit)

    def spans(self, nodes: Iterable[int], unit: int) -> Iterator[tuple[int, ...]]:
        for node in nodes:
            (low, high), (first, last) = self.bounds(node), self.places(node)
            for code, leaf in self.leaf_of.items():
                if first <= self.places(leaf)[0] <= last:
                    yield self.number, node, code, low, high, self.loss(low, high, unit)

    def labels(self, nodes: Sequence[int]) -> list[str]:
        return [self._label(*self.places(node)) for node in sorted(nodes)]

    def _label(self, first: int, last: int) -> str:
        if last == len(self.stretches):  # NULL, after all numbers
            return NULL_LABEL if first == last else ROOT_LABEL
        low, high = self.stretches[first].first, self.stretches[last].last
        return low if low == high else range_label(low, high)

    def best_cut(self, costs: Mapping[int, int]) -> tuple[int, ...]:
        """The cut whose nodes cost least, longer intervals where equal: F(j) = min over i of F(i - 1) + cost(i..j)."""
        sums, begins = [0], []
        for last in range(len(self.stretches)):
            ways = [sums[first] + costs.get(self.node(first, last), 0) for first in range(last + 1)]
            begins.append(min(range(last + 1), key=ways.__getitem__))
            sums.append(ways[begins[-1]])
        nodes, last = [], len(self.stretches) - 1
        while last >= 0:
            nodes.append(self.node(begins[last], last))
            last = begins[last] - 1
        if self.null is None:
            return tuple(reversed(nodes))
        null = self.leaf_of[self.null]
        whole = costs.get(self.root[1], 0) <= sums[-1] + costs.get(null, 0)
        return (self.root[1],) if whole else (*reversed(nodes), null)

    # -- in SQL ----------------------------------------------------------------------------------------

    @property
    def last_places(self) -> int:
        """The bits of the last place."""
        return (1 << self.bits) - 1

    @property
    def count(self) -> int:
        """The number of places that numbers have, which is the place of NULL."""
        return len(self.stretches)


class _Childless(dict[int, list[int]]):
    def __missing__(self, node: int) -> list[int]:
        return []


def interval_tree(engine: Engine, axis: Axis, number: int, most: int = MOST_VALUES) -> IntervalTree:
    """The tree of a numeric quasi-identifier, its values in no more than so many stretches."""
    values = [Stretch((code,), *rest) for code, *rest in engine.rows("cuts/list_numbers", axis=axis)]
    numbers = tuple(value for value in values if value.codes[0] != axis.null_code)
    if not numbers:  # NULL is all there is
        return IntervalTree(axis, number, (Stretch(values[0].codes, values[0].rows, NULL_LABEL, NULL_LABEL),), 1)
    null = axis.null_code if len(numbers) < len(values) else None
    return IntervalTree(axis, number, stretched(numbers, most), len(numbers), null)


def stretched(values: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """The values in no more than so many stretches of about as many rows each; as they are if they are no more.

    Rows are counted whatever their sensitive values: where stretches end says nothing of these.
    """
    if len(values) <= most:
        return tuple(values)
    rows = sum(value.rows for value in values)
    before = accumulate((value.rows for value in values), initial=0)
    placed = [(most * count // rows, value) for count, value in zip(before, values, strict=False)]
    return tuple(_joined([value for _, value in group]) for _, group in groupby(placed, key=lambda pair: pair[0]))


def _joined(values: Sequence[Stretch]) -> Stretch:
    codes = tuple(code for value in values for code in value.codes)
    return Stretch(codes, sum(value.rows for value in values), values[0].first, values[-1].last)
