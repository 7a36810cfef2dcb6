"""Labels that could gain at some prices: nodes of all quasi-identifiers together, with the cells below them.

A label has a node of each quasi-identifier and costs each of its rows their losses. It is built node by node: with
another node it costs more and has fewer cells, so its best class gains less. What cannot gain is not built further.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import Cells, Flags, Ints, Nodes

#: The pairs of label and cell that are looked at in one go.
_CHUNK = 2**17


@dataclass(frozen=True)
class Labels:
    """Pairs of label and cell, by label and then by value: `cell` of each, `start` and `cost` of each label."""

    cell: Ints
    start: Ints
    cost: Ints

    @cached_property
    def sizes(self) -> Ints:
        found: Ints = np.diff(np.append(self.start, len(self.cell)))
        return found

    @cached_property
    def label(self) -> Ints:
        """The label of each pair."""
        found: Ints = np.repeat(np.arange(len(self.start)), self.sizes)
        return found

    def having(self, kept: Flags) -> Labels:
        """Some of the labels."""
        sizes = self.sizes
        cell: Ints = self.cell[np.repeat(kept, sizes)]
        return Labels(cell, starts(sizes[kept]), self.cost[kept])


def starts(sizes: Ints) -> Ints:
    """The place at which each of some runs begins."""
    return np.cumsum(sizes) - sizes


def runs(numbers: Ints) -> Ints:
    """For each place the first one of its run of equal numbers."""
    new = np.r_[True, numbers[1:] != numbers[:-1]][: len(numbers)]
    found: Ints = np.flatnonzero(new)[np.cumsum(new) - 1]
    return found


def most_gained(cells: Cells, labels: Labels, price: Ints, need: Need) -> Ints:
    """No less than the best class of each label gains: all that gain, and for those that lack the least loss there is.

    Below zero where a label cannot have what is needed.
    """
    rows, values = need.least
    label, count = labels.label, cells.rows[labels.cell]
    gain = price[labels.cell] - labels.cost[label]
    gains = gain > 0
    gained = np.add.reduceat(np.where(gains, gain * count, 0), labels.start)
    there = np.add.reduceat(count, labels.start)
    got = np.add.reduceat(np.where(gains, count, 0), labels.start)
    lacking = np.maximum(rows - got, 0)
    if values > 1:
        all_values = _different(labels, label, cells.value, slice(None))
        lacking = np.maximum(lacking, values - _different(labels, label, cells.value, gains))
        there = np.where(all_values >= values, there, 0)
    least = np.maximum.reduceat(np.where(gains, -4 * cells.full, gain), labels.start)
    return np.where(there >= rows, gained + lacking * least, -1)


def _different(labels: Labels, label: Ints, value: Ints, of: Flags | slice) -> Ints:
    """How many different values some of the pairs have, by label."""
    label, values = label[of], value[labels.cell[of]]
    new = np.r_[True, (label[1:] != label[:-1]) | (values[1:] != values[:-1])][: len(label)]
    return np.bincount(label[new], minlength=len(labels.start))


def list_labels(cells: Cells, price: Ints, need: Need, most_pairs: int) -> Labels | None:
    """All labels whose best class could gain at these prices; None if they have more pairs than that."""
    order = sorted(cells.nodes, key=lambda nodes: len(nodes.node))
    every = np.arange(len(cells.rows))
    whole = Labels(every, np.zeros(1, np.int64), np.zeros(1, np.int64))
    found, pairs = [Labels(*(np.zeros(0, np.int64),) * 3)], 0
    for one in _refined(cells, price, need, order, whole):
        found.append(one)
        pairs += len(one.cell)
        if pairs > most_pairs:
            return None
    sizes = np.concatenate([one.sizes for one in found])
    cell, cost = (np.concatenate([getattr(one, name) for one in found]) for name in ("cell", "cost"))
    return Labels(cell, starts(sizes), cost)


def _refined(cells: Cells, price: Ints, need: Need, order: list[Nodes], labels: Labels) -> Iterator[Labels]:
    """The labels with a node of each quasi-identifier that is left."""
    if not order:
        yield labels
        return
    nodes, *rest = order
    for some in _chunks(labels, nodes):
        made = _with_nodes(cells, price, nodes, some)
        if len(made.start):
            could = most_gained(cells, made, price, need) > 0
            if could.any():
                yield from _refined(cells, price, need, rest, made.having(could))


def _chunks(labels: Labels, nodes: Nodes) -> Iterator[Labels]:
    """The labels in parts of about one chunk of pairs."""
    sizes, most = labels.sizes, max(_CHUNK // max(len(nodes.node) // max(len(nodes.first) - 1, 1), 1), 1)
    part = (np.cumsum(sizes) - sizes) // most
    for number in np.unique(part):
        of = np.flatnonzero(part == number)
        low, high = labels.start[of[0]], labels.start[of[-1]] + sizes[of[-1]]
        yield Labels(labels.cell[low:high], labels.start[of] - low, labels.cost[of])


def _with_nodes(cells: Cells, price: Ints, nodes: Nodes, labels: Labels) -> Labels:
    """The labels with one node more, each that is cheaper than the dearest cell below the label."""
    label = labels.label
    room = np.maximum.reduceat(price[labels.cell], labels.start) - labels.cost
    place = nodes.place[labels.cell]
    wide = nodes.loss[nodes.node]
    far = cells.full + 1
    of_place = np.repeat(np.arange(len(nodes.first) - 1), np.diff(nodes.first)) * far + wide
    counts = np.searchsorted(of_place, place * far + np.clip(room, 0, far - 1)[label]) - nodes.first[place]
    pair = np.repeat(np.arange(len(place)), counts)
    node = nodes.node[nodes.first[place][pair] + np.arange(len(pair)) - np.repeat(starts(counts), counts)]
    key = label[pair] * len(nodes.loss) + node
    order = np.argsort(key, kind="stable")
    key = key[order]
    start = np.flatnonzero(np.r_[True, key[1:] != key[:-1]][: len(key)])
    cost = labels.cost[key[start] // len(nodes.loss)] + nodes.loss[key[start] % len(nodes.loss)]
    return Labels(labels.cell[pair[order]], start, cost)
