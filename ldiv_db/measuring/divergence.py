"""KL divergence of a published table from its source: `sum F(x) ln(F(x) / F*(x))` over the cells x of the source.

F is the share of the source's rows in a cell, F* what a published table makes of it: each published row spreads
evenly over all cells that its values cover, and a suppressed row over the whole domain. Pairs of a cell and a
published combination that covers it are found level by level of two tries, the column that tells most apart
first, so that most pairs are never formed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.measuring.prefix_trees import PrefixTrees

#: Divergence is summed in this many parts of one, as whole numbers.
_UNIT = 10**12
#: Cells times published combinations of a part at most; few of them are pairs.
_MOST_PAIRS = 12_000_000_000


@dataclass(frozen=True)
class Divergence:
    """KL in nats, None if no published row covers some row of the source; how many rows of either miss each other."""

    kl: float | None
    rows_uncovered: int
    rows_unmatched: int


def measure_divergence(engine: Engine, tries: PrefixTrees, rows: int, published: int) -> Divergence:
    """The divergence of the `published` rows from the `rows` of the source."""
    suppressed, total = max(0, rows - published), max(rows, published)
    domain = math.prod(step.column.leaves for step in tries.steps)
    everywhere = max(1, suppressed * tries.grain // domain) if suppressed else 0
    scale = float(tries.grain) * total / rows
    last = tries.steps[-1].prefix
    matched = engine.load("matched", {"box": "BIGINT"}, [])
    sums = []
    for cells in _parts(engine, tries):
        pairs = _pairs(engine, replace(tries, cells=cells))
        masses = engine.materialise(
            "masses", "measuring/sum_masses", cells=cells, pairs=pairs, boxes=tries.boxes, prefix=last
        )
        holes = {"everywhere": Value(everywhere), "scale": Value(scale), "unit": Value(float(_UNIT))}
        sums.append(engine.record("measuring/sum_divergence", masses=masses, **holes))
        engine.insert(matched, "measuring/list_matched", pairs=pairs)
        engine.drop(pairs, masses, cells)
    unmatched = engine.scalar("measuring/count_unmatched", pairs=matched, boxes=tries.boxes, prefix=last)
    engine.drop(matched)
    found = [part["divergence"] for part in sums]
    kl = None if None in found else sum(found) / (_UNIT * rows)
    return Divergence(kl, sum(int(part["uncovered"]) for part in sums), int(unmatched))


def _parts(engine: Engine, tries: PrefixTrees) -> Iterator[Relation]:
    """The cells in parts, neighbours in the trie together, so that no part has too many pairs."""
    cells = engine.count(tries.cells)
    most = max(1, _MOST_PAIRS // max(1, engine.count(tries.boxes)))
    for first in range(1, max(cells, 1) + 1, most):
        yield engine.materialise(
            "part_of_cells",
            "measuring/take_cells",
            cells=tries.cells,
            prefix=tries.steps[-1].prefix,
            first=Value(first),
            last=Value(first + most - 1),
        )


def _pairs(engine: Engine, tries: PrefixTrees) -> Relation:
    """The TEMP table (cell, box) of all pairs of which the second covers the first."""
    first = tries.steps[0]
    holes = {"cells": tries.cells, "boxes": tries.boxes}
    pairs = engine.materialise(
        "pairs_1",
        "measuring/start_pairs",
        spans=first.column.spans,
        code=first.column.code,
        prefix=first.prefix,
        **holes,
    )
    for parent, step in itertools.pairwise(tries.steps):
        longer = engine.materialise(
            f"pairs_{step.number}",
            "measuring/extend_pairs",
            pairs=pairs,
            spans=step.column.spans,
            code=step.column.code,
            parent=parent.prefix,
            prefix=step.prefix,
            **holes,
        )
        engine.drop(pairs)  # a row for every pair of prefixes, once a column
        pairs = longer
    return pairs
