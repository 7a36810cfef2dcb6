"""Taxonomies as cuts see them: values with children."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from heapq import heappop, heappush, merge
from itertools import chain, islice, product
from math import lcm
from operator import itemgetter

from ldiv_db.database.names import Identifier, NamedAfter
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: Losses are whole numbers: multiples of the common fraction of all trees, or of this one where that is finer.
_FINEST = 10**6

#: A value of a cut: the number of its quasi-identifier, from 1, and of its node.
CutValue = tuple[int, int]
#: What some cut costs, and its nodes.
CutCost = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class CutTree:
    """One quasi-identifier's taxonomy: for each node its children, its leaves `low..high`."""

    axis: Axis
    number: int

    #: Columns of baselines: the value that is tried, and what it changes in a key.
    candidate = NamedAfter("{0.axis.code.name}_candidate")
    shift = NamedAfter("{0.axis.code.name}_shift")

    @property
    def taxonomy(self) -> Taxonomy:
        assert self.axis.taxonomy is not None  # noqa: S101 - `check_task` lets none through without
        return self.axis.taxonomy

    @property
    def code(self) -> Identifier:
        return self.axis.code

    @property
    def table(self) -> Identifier:
        return self.axis.table

    @cached_property
    def children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {node.node: [] for node in self.taxonomy.nodes}
        for node in self.taxonomy.nodes:
            if node.parent is not None:
                children[node.parent].append(node.node)
        return children

    @cached_property
    def leaf_of(self) -> dict[int, int]:
        """By code the node that is its leaf."""
        return {self.taxonomy.code_of(node): node.node for node in self.taxonomy.leaves}

    @cached_property
    def codes(self) -> dict[int, list[int]]:
        """By node the codes below it."""
        codes: dict[int, list[int]] = {node.node: [] for node in self.taxonomy.nodes}
        for code, node in self.leaf_of.items():
            codes[node].append(code)
        for below in reversed(self.taxonomy.nodes):  # children stand after their parent
            if below.parent is not None:
                codes[below.parent] += codes[below.node]
        return codes

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
    def scale(self) -> int:
        """Losses are whole multiples of one over this."""
        return max(self.axis.scale, 1)

    def specialised(self, value: CutValue) -> list[CutValue]:
        """The values that replace `value`; none for a leaf."""
        return [(self.number, child) for child in self.children[value[1]]]

    def bounds(self, node: int) -> tuple[int, int]:
        """The smallest and the largest code of a node's values."""
        return self.taxonomy.nodes[node].low, self.taxonomy.nodes[node].high

    def spans(self, nodes: Iterable[int], unit: int) -> Iterator[tuple[int, ...]]:
        """The rows of `SPAN_COLUMNS`, one a value and code below it."""
        for node in nodes:
            low, high = self.bounds(node)
            for code in self.codes[node]:
                yield self.number, node, code, low, high, self.loss(low, high, unit)

    def loss(self, low: int, high: int, unit: int) -> int:
        """LM of one cell, in units of one over `unit` (rounded where the unit is no multiple).

        NULL among numbers, whose code is beyond them, loses all.
        """
        return min(unit, round((high - low) * unit / self.scale))

    def leaves_of(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """(code, node, loss) of each leaf."""
        for code, node in self.leaf_of.items():
            yield code, node, self.loss(*self.bounds(node), unit)

    def climbs(self, unit: int) -> Iterator[tuple[int, int, int]]:
        """(leaf, node, loss) of each value above a leaf, with what it adds to the leaf's loss."""
        own = {leaf: loss for _, leaf, loss in self.leaves_of(unit)}
        for node in (node for node, children in self.children.items() if children):
            loss = self.loss(*self.bounds(node), unit)
            for leaf in (self.leaf_of[code] for code in self.codes[node]):
                yield leaf, node, loss - own[leaf]

    def labels(self, nodes: Sequence[int]) -> list[str]:
        """The labels of a cut's nodes in the order of the leaves, as they are published; of a chain of only children
        the lowest's. Values of people who have several below are not of the cut.
        """
        deepest = {self.bounds(node.node): node.label for node in self.taxonomy.nodes}
        return [deepest[span] for span in sorted(self.bounds(node) for node in nodes if not self._spans(node))]

    def _spans(self, node: int) -> bool:
        """True of a leaf of people who have several of the values below its parent."""
        found, is_leaf = self.taxonomy.nodes[node], not self.children[node]
        return is_leaf and found.low < found.high and self.bounds(node) == self.bounds(found.parent or 0)

    def cheapest(self, costs: Mapping[int, int], every: bool, node: int = 0) -> Iterator[CutCost]:
        """The cuts through a node's subtree by the sums of their nodes' costs, cheapest first.

        Unless it is to be `every` cut, values without rows, which have no cost, are not specialised, and those whose
        rows are all of one child are: another cut of the same partitions would cost no less.
        """
        whole, below = (costs.get(node, 0), (node,)), self.children[node]
        if not below or not (every or node in costs):
            yield whole
            return
        is_one = sum(child in costs for child in below) == 1
        parts = reduce(_sums, (self.cheapest(costs, every, child) for child in below))
        yield from parts if is_one and not every else merge([whole], parts, key=itemgetter(0))

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


SPAN_COLUMNS = dict.fromkeys(("axis", "value", "code", "cut_low", "cut_high"), "INTEGER") | {"loss": "BIGINT"}


def loss_unit(trees: Sequence[CutTree]) -> int:
    """The number of units in the loss of one cell: such that all losses are whole, or a million."""
    exact = lcm(*(tree.scale for tree in trees))
    return exact if exact <= _FINEST else _FINEST


def _sums(left: Iterator[CutCost], right: Iterator[CutCost]) -> Iterator[CutCost]:
    """Each of the one with each of the other, cheapest first as they are; neither is read further than it must."""
    lefts, rights = _Read(left), _Read(right)
    waiting = [(lefts[0][0] + rights[0][0], 0, 0)]
    while waiting:
        cost, place, other = heappop(waiting)
        yield cost, lefts[place][1] + rights[other][1]
        for after in [(place, other + 1), *([(place + 1, 0)] if not other else [])]:
            if lefts.has(after[0]) and rights.has(after[1]):
                heappush(waiting, (lefts[after[0]][0] + rights[after[1]][0], *after))


class _Read(list[CutCost]):
    """What was read of an iterator."""

    def __init__(self, left: Iterator[CutCost]):
        self._left = left
        self.has(0)

    def has(self, place: int) -> bool:
        """Read as far as this place, if there is so much."""
        self.extend(islice(self._left, max(0, place + 1 - len(self))))
        return place < len(self)
