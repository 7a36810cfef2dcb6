"""Taxonomies as cuts see them: values with children, and how many digits of a key they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from math import lcm, prod

from ldiv_db.database.templates import Identifier, NamedAfter, Value
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: Losses are whole numbers: multiples of the common fraction of all trees, or of this one where that is finer.
_FINEST = 10**6
#: The key of a partition is a sum of its values' parts; a column holds keys below this.
_WORD = 2**62

#: A column holds bits up to this, the sign aside.
_BITS = 62

#: A value of a cut: the number of its quasi-identifier, from 1, and of its node.
CutValue = tuple[int, int]


@dataclass(frozen=True)
class CutTree:
    """One quasi-identifier's taxonomy: for each node its children, its leaves `low..high`."""

    axis: Axis
    number: int

    @property
    def taxonomy(self) -> Taxonomy:
        assert self.axis.taxonomy is not None  # noqa: S101 - `check_task` lets none through without
        return self.axis.taxonomy

    @cached_property
    def children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {node.node: [] for node in self.taxonomy.nodes}
        for node in self.taxonomy.nodes:
            if node.parent is not None:
                children[node.parent].append(node.node)
        return children

    @cached_property
    def cuts_below(self) -> dict[int, int]:
        """For each node the number of cuts through its subtree."""
        cuts: dict[int, int] = {}
        for node in reversed(self.taxonomy.nodes):  # children stand after their parent
            below = self.children[node.node]
            cuts[node.node] = 1 + prod(cuts[child] for child in below) if below else 1
        return cuts

    @cached_property
    def leaf_of(self) -> dict[int, int]:
        """By code the node that is its leaf."""
        return {node.low: node.node for node in self.taxonomy.nodes if not self.children[node.node]}

    @cached_property
    def all_cuts(self) -> list[tuple[int, ...]]:
        """Every cut as its nodes; only where they are few."""
        cuts: dict[int, list[tuple[int, ...]]] = {}
        for node in reversed(self.taxonomy.nodes):  # children stand after their parent
            below = [cuts[child] for child in self.children[node.node]]
            parts = [tuple(chain.from_iterable(choice)) for choice in product(*below)] if below else []
            cuts[node.node] = [(node.node,), *parts]
        return cuts[0]

    @property
    def root(self) -> CutValue:
        return (self.number, 0)

    @property
    def is_free(self) -> bool:
        """True if its values lose nothing, for a bound."""
        return False

    @property
    def cuts(self) -> int:
        """The number of cuts."""
        return self.taxonomy.cuts

    @property
    def node_count(self) -> int:
        """The number of values that a cut may have."""
        return len(self.taxonomy.nodes)

    @property
    def size(self) -> int:
        """All nodes are numbered below this."""
        return self.node_count

    @property
    def leaves(self) -> int:
        return self.taxonomy.nodes[0].high + 1

    @property
    def scale(self) -> int:
        """Losses are whole multiples of one over this."""
        return max(self.leaves - 1, 1)

    def specialised(self, value: CutValue) -> list[CutValue]:
        """The values that replace `value`; none for a leaf."""
        return [(self.number, child) for child in self.children[value[1]]]

    @property
    def width(self) -> int:
        """The number of bits in a code."""
        return max(1, (self.leaves - 1).bit_length())

    def paths(self, unit: int, part: int, bit: int) -> Iterator[tuple[int, ...]]:
        """The rows of `PATH_COLUMNS`, one a value and leaf below it; `child` is the value's child on the way there."""
        nodes = {node.node: node for node in self.taxonomy.nodes}
        for node in nodes.values():
            below = [nodes[child] for child in self.children[node.node]] or [node]
            for child in below:
                for code in range(child.low, child.high + 1):
                    parts = (part * node.node, part * child.node, part * self.leaf_of[code])
                    losses = (self.loss(node.low, node.high, unit), self.loss(child.low, child.high, unit))
                    yield (self.number, node.node, code, node.low, node.high, child.low, *parts, *losses, 2**bit)

    def loss(self, low: int, high: int, unit: int) -> int:
        """LM of one cell, in units of one over `unit` (rounded where the unit is no multiple)."""
        return round((high - low) * unit / self.scale)

    def leaves_of(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """(code, node, loss) of each leaf."""
        for code, node in self.leaf_of.items():
            yield code, node, 0

    def climbs(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """(leaf, node, loss) of each value above a leaf, with what it adds to the leaf's loss."""
        for node in self.taxonomy.nodes:
            if self.children[node.node]:
                for code in range(node.low, node.high + 1):
                    yield self.leaf_of[code], node.node, self.loss(node.low, node.high, unit)

    def labels(self, nodes: Sequence[int]) -> list[str]:
        """The labels of a cut's nodes in the order of the leaves, as they are published."""
        return self.labels_of([(self.taxonomy.nodes[node].low, self.taxonomy.nodes[node].high) for node in nodes])

    def labels_of(self, spans: Iterable[tuple[int, int]]) -> list[str]:
        """The labels of nodes by their leaves, in the order of these; of a chain of only children the lowest's."""
        deepest = {(node.low, node.high): node.label for node in self.taxonomy.nodes}
        return [deepest[span] for span in sorted(spans)]

    def best_cut(self, costs: Mapping[int, int]) -> tuple[int, ...]:
        """The cut whose nodes cost least, more general ones where equal; a node that has no cost has no rows."""
        return self._best_below(costs, 0)[1]

    def _best_below(self, costs: Mapping[int, int], node: int) -> tuple[int, tuple[int, ...]]:
        """The least that the node's rows cost, and the values that cost it."""
        whole = costs.get(node, 0), (node,)
        if not self.children[node]:
            return whole
        parts = [self._best_below(costs, child) for child in self.children[node]]
        below = sum(cost for cost, _ in parts), tuple(value for _, values in parts for value in values)
        return min(whole, below, key=lambda choice: choice[0])


PATH_COLUMNS = dict.fromkeys(("axis", "value", "code", "low", "high", "child_low"), "INTEGER") | dict.fromkeys(
    ("part", "child_part", "leaf_part", "loss", "child_loss", "bit"), "BIGINT"
)


def loss_unit(trees: Sequence[CutTree]) -> int:
    """The number of units in the loss of one cell: such that all losses are whole, or a million."""
    exact = lcm(*(tree.scale for tree in trees))
    return exact if exact <= _FINEST else _FINEST


def words_of(trees: Sequence[CutTree]) -> list[list[tuple[CutTree, int]]]:
    """The trees by the column of a key that they share, each with the place value of its digit there."""
    words: list[list[tuple[CutTree, int]]] = [[]]
    for tree in trees:
        taken = prod(other.size for other, _ in words[-1])
        if taken * tree.size >= _WORD:
            words.append([])
            taken = 1
        words[-1].append((tree, taken))
    return words


def places_of_bits(trees: Sequence[CutTree]) -> dict[int, tuple[int, int]]:
    """By a tree's number the column of bits that its codes are in, and the place of its lowest bit there."""
    places: dict[int, tuple[int, int]] = {}
    word, taken = 1, 0
    for tree in trees:
        if taken + tree.width >= _BITS:
            word, taken = word + 1, 0
        places[tree.number] = word, taken
        taken += tree.width
    return places


@dataclass(frozen=True)
class NumberedAxis:
    """A quasi-identifier by number, the column of its codes, and an alias of these codes' places.

    In the key of a partition its value is a digit: `part` is the place value, and digits are below `size`.
    """

    number: Value
    code: Identifier
    table: Identifier
    part: Value
    size: Value
    #: All bits of its word but its own.
    others: Value


def number_axis(tree: CutTree, part: int, bit: int) -> NumberedAxis:
    """The quasi-identifier of a tree whose digit has this place value, and its lowest bit this place."""
    own_bits = (2**tree.width - 1) << bit
    others = Value((2**_BITS - 1) & ~own_bits)
    return NumberedAxis(Value(tree.number), tree.axis.code, tree.axis.table, Value(part), Value(tree.size), others)


@dataclass(frozen=True)
class BitWord:
    """A column of bits, some for each quasi-identifier; of several rows those of all, of any, and not of all."""

    place: int
    axes: tuple[NumberedAxis, ...]

    bits = NamedAfter("bits_{0.place}")
    both = NamedAfter("both_{0.place}")
    either = NamedAfter("either_{0.place}")
    differs = NamedAfter("differs_{0.place}")


@dataclass(frozen=True)
class Word:
    """A column of keys: of the partition in the cut, in that with every open value specialised once, and in
    the most specific cut of the subtree."""

    place: int
    axes: tuple[NumberedAxis, ...]

    cut_key = NamedAfter("cut_key_{0.place}")
    next_key = NamedAfter("next_key_{0.place}")
    leaf_key = NamedAfter("leaf_key_{0.place}")
