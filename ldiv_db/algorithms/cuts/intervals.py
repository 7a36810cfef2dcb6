"""Numbers without a taxonomy as cuts see them: every interval of values that occur is a value that a cut may have.

A cut parts the values, in order, into intervals: n values have 2^(n-1) cuts. An interval is published from its
smallest to its largest value of the whole table, whatever occurs in a class, so that its bounds say no more than the
cut does. NULL is no number: it is published as it is, or with all numbers as `*`.

The node of an interval has two places, that of its first value and that of its last, so that SQL can tell them.

Where every quasi-identifier is in the keys of partitions, and what its values are there (`paths`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby

from ldiv_db.algorithms.cuts.trees import (
    PATH_COLUMNS,
    BitWord,
    CutTree,
    CutValue,
    Word,
    loss_unit,
    number_axis,
    places_of_bits,
    words_of,
)
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
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
    costs_nothing: bool = False

    @property
    def is_free(self) -> bool:
        return self.costs_nothing

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

    @property
    def scale(self) -> int:
        return max(self.axis.scale, 1)

    @property
    def width(self) -> int:
        """The number of bits in a code."""
        return max(1, (self.axis.scale + 1).bit_length())

    def bounds(self, node: int) -> tuple[int, int]:
        """The smallest and the largest code of a node's values."""
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

    def leaves_of(self, unit: int) -> Iterator[tuple[int, int, int]]:
        for code, node in self.leaf_of.items():
            yield code, node, self.loss(*self.bounds(node), unit)

    def climbs(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """NULL and numbers together alone: intervals are counted otherwise."""
        if self.null is None:
            return
        root = self.root[1]
        for place in range(len(self.stretches) + 1):
            leaf = self.node(place, place)
            yield leaf, root, self.loss(*self.bounds(root), unit) - self.loss(*self.bounds(leaf), unit)

    def paths_of(self, nodes: Iterable[int], unit: int, part: int, bit: int) -> Iterator[tuple[int, ...]]:
        """As `paths`, of some nodes, which have no parts."""
        for node in nodes:
            low, high = self.bounds(node)
            lost = self.loss(low, high, unit)
            first, last = self.places(node)
            for code, leaf in self.leaf_of.items():
                if first <= self.places(leaf)[0] <= last:
                    yield self.number, node, code, low, high, low, *(3 * (part * node,)), lost, lost, 2**bit

    def paths(self, unit: int, part: int, bit: int) -> Iterator[tuple[int, ...]]:
        """None: those of the nodes that are asked for follow when they are."""
        yield from ()

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
    def shift(self) -> Value:
        """By how many bits the first place stands above the last."""
        return Value(self.bits)

    @property
    def last_places(self) -> Value:
        """The bits of the last place."""
        return Value((1 << self.bits) - 1)

    @property
    def count(self) -> Value:
        """The number of places that numbers have, which is the place of NULL."""
        return Value(len(self.stretches))

    @property
    def unit_scale(self) -> Value:
        return Value(self.scale)


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


@dataclass(frozen=True)
class KeyLayout:
    """The words of keys and of bits, the unit of losses, and the values of taxonomies by leaf, as `PATH_COLUMNS`.

    `numbers` are the quasi-identifiers without a taxonomy, each with its place value and its lowest bit.
    """

    words: tuple[Word, ...]
    bits: tuple[BitWord, ...]
    loss_unit: int
    paths: Relation
    numbers: tuple[tuple[IntervalTree, int, int], ...]

    def paths_of(self, engine: Engine, values: Iterable[CutValue]) -> list[Relation]:
        """The paths of taxonomies, and of those of the values that are intervals: of all there would be too many."""
        if not self.numbers:
            return [self.paths]
        asked = sorted(set(values))
        rows = [
            row
            for tree, part, bit in self.numbers
            for row in tree.paths_of([node for axis, node in asked if axis == tree.number], self.loss_unit, part, bit)
        ]
        return [self.paths, engine.load("interval_paths", PATH_COLUMNS, rows)]


def lay_out_keys(engine: Engine, trees: Sequence[CutTree]) -> KeyLayout:
    """The layout of some trees; its tables are TEMP."""
    unit, digits, bits = loss_unit(trees), words_of(trees), places_of_bits(trees)
    placed = [(tree, part, bits[tree.number][1]) for word in digits for tree, part in word]
    paths = [row for tree, part, bit in placed for row in tree.paths(unit, part, bit)]
    axes = {tree.number: number_axis(tree, part, bit) for tree, part, bit in placed}
    words = tuple(Word(place, tuple(axes[tree.number] for tree, _ in word)) for place, word in enumerate(digits, 1))
    bit_words = tuple(
        BitWord(place, tuple(axes[number] for number, (word, _) in bits.items() if word == place))
        for place in sorted({word for word, _ in bits.values()})
    )
    numbers = tuple((tree, part, bit) for tree, part, bit in placed if isinstance(tree, IntervalTree))
    return KeyLayout(words, bit_words, unit, engine.load("paths", PATH_COLUMNS, paths), numbers)
