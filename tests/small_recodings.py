"""Tiny tables whose best local recoding is known: all of them are tried."""

from __future__ import annotations

import random
from functools import cache

import numpy as np

from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import UNIT, Cells, Span, numbered_cells

#: Two trees of five and four leaves by their nodes, root first; a leaf of the second hangs from the root.
TREES = (
    [(0, 4), (0, 2), (3, 4), (0, 1), *((i, i) for i in range(5))],
    [(0, 3), (0, 2), *((i, i) for i in range(4))],
)
NEEDS = [
    Need(2),
    Need(3),
    Need(1, 2),
    Need(1, 3),
    Need(3, 2),
    Need(1, 1, 2),
    Need(1, 1, 3),
    Need(3, 1, 2),
    Need(1, 3, 2),
]
Row = tuple[int, ...]


def nodes_of(tree: list[tuple[int, int]]) -> list[Span]:
    leaves = tree[0][1]
    return [Span(low, high, (high - low) * UNIT // leaves) for low, high in tree]


def drawn(draw: random.Random, rows: int) -> list[Row]:
    """Rows of a leaf of each tree and a value, of which some recur."""
    return [(draw.randrange(5), draw.randrange(4), draw.randrange(3)) for _ in range(rows)]


def cells_of(rows: list[Row], spans: list[list[Span]] | None = None) -> Cells:
    columns = np.array(rows, np.int64).T
    nodes = spans or [nodes_of(tree) for tree in TREES]
    return numbered_cells(list(zip(columns[:-1], nodes, strict=True)), columns[-1], np.ones(len(rows), np.int64))[0]


def meets(need: Need, values: list[int]) -> bool:
    """The definitions: so many rows, different values, and no value in more than 1/parts of them."""
    most = max(values.count(value) for value in values)
    return len(values) >= need.rows and len(set(values)) >= need.values and most * need.parts <= len(values)


def least_cost(rows: list[Row], need: Need, spans: list[list[Span]]) -> int:
    """What the best of all local recodings costs: rows in classes, each in its cheapest nodes, or left out."""

    def cost(members: list[Row]) -> int:
        each = zip(zip(*members, strict=True), spans, strict=False)
        return len(members) * sum(
            min(s.loss for s in of if s.low <= min(codes) and max(codes) <= s.high) for codes, of in each
        )

    @cache
    def best(left: int) -> int:
        if not left:
            return 0
        first = left & -left
        rest, found = left ^ first, best(left ^ first) + UNIT * len(spans)
        part = rest
        while True:
            members = [row for i, row in enumerate(rows) if (part | first) >> i & 1]
            if meets(need, [row[-1] for row in members]):
                found = min(found, cost(members) + best(rest ^ part))
            if not part:
                return found
            part = (part - 1) & rest

    return best(2 ** len(rows) - 1)
