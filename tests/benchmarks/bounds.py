"""What no local recoding can lose less than: the mean over rows of the cheapest region that a class of theirs can be.

Every row is published as its class is: as a node of each taxonomy and a range of the number. Whatever the class, its
region has at least what the requirement needs, and costs no less than the cheapest region around the row that has it:
l different values (also under entropy and frequency l, which need as many), k rows, or, where shares may differ by t
from those of the table, values that are 1 - t of the table together, as the share of those that lack is in the
difference. That rows share classes, and that each is in one alone, is left out: the bound may be below what is
possible.

All regions are tried: for each choice of a depth in every taxonomy the groups of rows whose nodes are the same there,
in each of them the shortest range that begins at any of its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Value
from ldiv_db.recoding.encoded import Axis, Encoded
from ldiv_db.taxonomies.taxonomy import Taxonomy

_NODES = {"tree": "INTEGER", "depth": "INTEGER", "code": "INTEGER", "node": "INTEGER", "loss": "DOUBLE"}
#: What a class must have so much of, by the name of its requirement.
MEASURES = {
    "distinct": "different",
    "entropy": "different",
    "frequency": "different",
    "k": "rows",
    "t_closeness": "share",
}


@dataclass(frozen=True)
class Need:
    """What the rows of a region must come to: at least so much of a measure; `column` has the bound."""

    column: Identifier
    measure: Identifier
    least: Value


@dataclass(frozen=True)
class Cut:
    """A tree by number and alias, the column of its codes, and the depth at which it is cut."""

    number: Value
    table: Identifier
    code: Identifier
    depth: Value


def lower_bounds(engine: Engine, encoded: Encoded, requirements: Sequence[tuple[str, float]]) -> list[float]:
    """The mean LM of a cell that no local recoding can be below, for each requirement (name, argument).

    The table has one numeric quasi-identifier, the others have taxonomies, all of one weight, and no NULL. A row that
    is left out counts 1, which no bound exceeds.
    """
    trees, number = _parted(encoded)
    needs = [_need(place, *asked, encoded.row_count) for place, asked in enumerate(requirements, 1)]
    with engine.scope():
        cells = engine.materialise(
            "cells",
            "bound_cells",
            rows=encoded.rows,
            number=number.code,
            codes=[axis.code for axis, _ in trees],
            value=encoded.sensitive[0].code,
        )
        totals = engine.materialise("totals", "bound_totals", cells=cells)
        rows = [row for place, (_, tree) in enumerate(trees) for row in _nodes(place, tree)]
        nodes = engine.load("nodes", _NODES, rows)
        bounds = engine.materialise("bounds", "bound_start", cells=cells, needs=needs)
        for depths in product(*(range(tree.height + 1) for _, tree in trees)):
            cuts = [
                _cut(place, axis, depth) for place, ((axis, _), depth) in enumerate(zip(trees, depths, strict=True))
            ]
            regions = engine.materialise("regions", "bound_regions", cells=cells, nodes=nodes, trees=cuts)
            ends = engine.materialise("ends", "bound_ends", regions=regions, totals=totals, needs=needs)
            widths = engine.materialise("widths", "bound_widths", ends=ends, needs=needs)
            better = engine.materialise(
                "bounds",
                "bound_losses",
                bounds=bounds,
                regions=regions,
                widths=widths,
                needs=needs,
                scale=number.scale,
                columns=Value(len(encoded.axes)),
            )
            engine.drop(regions, ends, widths, bounds)
            bounds = better
        (found,) = engine.rows("bound_mean", bounds=bounds, needs=needs)
    return list(found)


def _parted(encoded: Encoded) -> tuple[list[tuple[Axis, Taxonomy]], Axis]:
    """The quasi-identifiers with taxonomies, and the one with numbers."""
    (number,) = (axis for axis in encoded.axes if axis.taxonomy is None)
    return [(axis, axis.taxonomy) for axis in encoded.axes if axis.taxonomy is not None], number


def _need(place: int, name: str, argument: float, rows: int) -> Need:
    least = ceil((1 - Fraction(str(argument))) * rows) if name == "t_closeness" else ceil(argument)
    return Need(Identifier(f"need_{place}"), Identifier(MEASURES[name]), Value(least))


def _cut(place: int, axis: Axis, depth: int) -> Cut:
    return Cut(Value(place), axis.table, axis.code, Value(depth))


def _nodes(place: int, tree: Taxonomy) -> list[tuple[int, int, int, int, float]]:
    """(tree, depth, code, node, loss): for each depth and leaf the node there, the leaf itself where it is higher."""
    leaves = tree.leaves
    found = []
    for depth in range(tree.height + 1):
        for node in tree.nodes:
            if node.depth == depth or (node.depth < depth and node.low == node.high and node in leaves):
                loss = (node.high - node.low) / max(len(leaves) - 1, 1)
                found += [(place, depth, code, node.node, loss) for code in range(node.low, node.high + 1)]
    return found
