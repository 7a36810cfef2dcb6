"""KL divergence of a published table from its source: `sum F(x) ln(F(x) / F*(x))` over the cells x of the source.

F is the share of the source's rows in a cell, F* what a published table makes of it: each published row spreads
evenly over all cells that its values cover, and a suppressed row over the whole domain. Pairs of a cell and a
published combination that covers it are found level by level of two tries, the column that tells most apart
first, so that most pairs are never formed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.measuring.prefix_trees import PrefixTrees

#: Divergence is summed in this many parts of one, as whole numbers.
_UNIT = 10**12


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
    pairs = _pairs(engine, tries)
    holes = {"pairs": pairs, "boxes": tries.boxes, "prefix": tries.steps[-1].prefix}
    masses = engine.materialise("masses", "measuring/sum_masses", cells=tries.cells, **holes)
    sums = engine.record(
        "measuring/sum_divergence",
        masses=masses,
        everywhere=Value(everywhere),
        scale=Value(float(tries.grain) * total / rows),
        unit=Value(float(_UNIT)),
    )
    unmatched = engine.scalar("measuring/count_unmatched", **holes)
    engine.drop(pairs, masses)
    kl = None if sums["divergence"] is None else sums["divergence"] / (_UNIT * rows)
    return Divergence(kl, int(sums["uncovered"]), int(unmatched))


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
