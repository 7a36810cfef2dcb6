"""Cells as arrays of codes and counts, and the nodes that each quasi-identifier may be published as, with their losses.

Losses are whole numbers, rounded down, so that sums are exact and a bound made of them is never too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: The LM of a fully generalised value.
UNIT = 10**6
#: Numbers of more different values than this are taken in so many groups of neighbours, each as if it were one value.
MOST_NUMBERS = 72


@dataclass(frozen=True)
class Span:
    """Codes from `low` to `high`, both included, that may be published as one, and what that loses."""

    low: int
    high: int
    loss: int


@dataclass(frozen=True)
class Nodes:
    """The nodes of one quasi-identifier: `loss` of each; those around a value by its place, the cheapest first.

    `place` is that of every cell's value; `node[first[i] : first[i + 1]]` are around the values of place i.
    """

    place: Ints
    first: Ints
    node: Ints
    loss: Ints


@dataclass(frozen=True)
class Cells:
    """How many `rows` have each combination of places and a sensitive `value`, in the order of values.

    A row of each loses `most` at most: left out, or published where nothing is asked of it.
    """

    nodes: Sequence[Nodes]
    value: Ints
    rows: Ints
    most: Ints

    @property
    def full(self) -> int:
        """The loss of a row that is left out."""
        return UNIT * len(self.nodes)

    @property
    def never(self) -> int:
        """More than a row more of every value could gain."""
        return self.full * (int(self.value[-1]) + 2)


def numbered_cells(
    axes: Sequence[tuple[Ints, Sequence[Span]]], value: Ints, rows: Ints, most: Ints | None = None
) -> tuple[Cells, Ints]:
    """The cells of rows by codes, and the number of the cell of each.

    `axes` are of each quasi-identifier the codes, and the spans that it may be published as.
    """
    placed = [_placed(*axis) for axis in axes]
    most = np.full(len(rows), UNIT * len(axes)) if most is None else most
    listed, which = np.unique(np.stack([value, most, *(nodes.place for nodes in placed)]), axis=1, return_inverse=True)
    counts = np.zeros(listed.shape[1], np.int64)
    np.add.at(counts, which.ravel(), rows)
    nodes = [Nodes(place, n.first, n.node, n.loss) for n, place in zip(placed, listed[2:], strict=True)]
    return Cells(nodes, listed[0], counts, listed[1]), which.ravel()


def _placed(codes: Ints, spans: Sequence[Span]) -> Nodes:
    """The nodes, of which those around the same values are one, as cheap as the cheapest."""
    ends = np.array([(span.low, span.high, span.loss) for span in spans], np.int64)
    known = np.unique(codes)
    cut = np.unique(np.r_[ends[:, 0], ends[:, 1] + 1])  # values between two cuts are in the same spans
    group = np.searchsorted(cut, known, "right")
    groups, place_of = np.unique(group, return_inverse=True)
    first_code = known[np.r_[True, group[1:] != group[:-1]]]
    low = np.searchsorted(first_code, ends[:, 0])
    high = np.searchsorted(first_code, ends[:, 1], "right")  # the place after the last one
    order = np.lexsort((ends[:, 2], high, low))
    order = order[(high > low)[order]]
    kept = order[np.r_[True, (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])]]
    low, wide, loss = low[kept], (high - low)[kept], ends[kept, 2]
    node = np.repeat(np.arange(len(kept)), wide)
    place = low[node] + np.arange(len(node)) - np.repeat(np.cumsum(wide) - wide, wide)
    by_place = np.lexsort((loss[node], place))
    first = np.searchsorted(place[by_place], np.arange(len(groups) + 1))
    return Nodes(place_of[np.searchsorted(known, codes)], first, node[by_place], loss)


def ranges(codes: Ints, scale: int, slip: int = 0) -> list[Span]:
    """All ranges of numbers, or of groups of them: a range loses what is between its first and its last group.

    Two codes may be nearer to each other by `slip`.
    """
    known = np.unique(codes)
    if not len(known):
        return []
    groups = [(int(group[0]), int(group[-1])) for group in np.array_split(known, min(len(known), MOST_NUMBERS))]
    return [
        Span(groups[i][0], groups[j][1], max(groups[j][0] - groups[i][1] - slip, 0) * UNIT // max(scale, 1))
        for i in range(len(groups))
        for j in range(i, len(groups))
    ]
