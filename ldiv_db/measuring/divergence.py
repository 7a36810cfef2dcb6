"""Cells of the source and published combinations as tries, one column a level, the same order for both.

What holds for a prefix of columns is found once for all cells, or combinations, that begin with it.

KL divergence of a published table from its source: `sum F(x) ln(F(x) / F*(x))` over the cells x of the source.

F is the share of the source's rows in a cell, F* what a published table makes of it: each published row spreads
evenly over all cells that its values cover, and a suppressed row over the whole domain. Pairs of a cell and a
published combination that covers it are found level by level of two tries, the column that tells most apart
first, so that most pairs are never formed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.measuring.resolve import ResolvedColumn

#: Masses are whole numbers below two to this power.
_MASS_BITS = 126


@dataclass(frozen=True)
class PrefixStep:
    """A column, one level of the tries, with the names of its working columns."""

    column: ResolvedColumn
    number: int
    earlier: tuple[PrefixStep, ...] = ()

    @property
    def until(self) -> tuple[PrefixStep, ...]:
        """The steps up to this one, itself included."""
        return (*self.earlier, self)

    @property
    def prefix(self) -> Identifier:
        return Identifier(f"prefix_{self.number}")

    @property
    def flag(self) -> Identifier:
        return Identifier(f"flag_{self.number}")

    @property
    def previous(self) -> Identifier:
        return Identifier(f"previous_{self.number}")


@dataclass(frozen=True)
class PrefixTrees:
    """`cells` is (codes, rows, prefixes), `boxes` is (numbers of published values, rows, mass, prefixes).

    `mass` is what a cell gets of the rows of a combination that covers it, in parts of a row, `grain` of them.
    """

    steps: tuple[PrefixStep, ...]
    cells: Relation
    boxes: Relation
    grain: int


def grow_tries(
    engine: Engine, columns: Sequence[ResolvedColumn], cells: Relation, numbered: Relation, rows: int, published: int
) -> PrefixTrees:
    """The tries of the source's `cells` (`rows` rows) and of `numbered` (`published` rows, values by number)."""
    grain = 2 ** (_MASS_BITS - max(rows, published).bit_length())
    boxes = engine.materialise(
        "boxes", "measuring/list_boxes", numbered=numbered, columns=columns, grain=Value(float(grain))
    )
    steps = _steps(engine, columns, rows)
    cell_trie = engine.materialise("cell_trie", "measuring/number_prefixes", rows=cells, steps=steps)
    box_trie = engine.materialise("box_trie", "measuring/number_prefixes", rows=boxes, steps=steps)
    engine.drop(boxes)
    return PrefixTrees(steps, cell_trie, box_trie, grain)


def _steps(engine: Engine, columns: Sequence[ResolvedColumn], rows: int) -> tuple[PrefixStep, ...]:
    """The columns in the order of the levels: first the one whose published cells cover least."""

    def share(column: ResolvedColumn) -> float:
        covered = engine.scalar(
            "measuring/estimate_share",
            values_of=column.values,
            spans=column.spans,
            dictionary=column.dictionary,
            numeric=column.numeric,
        )
        return float(covered / (column.leaves if column.numeric else rows))

    steps: tuple[PrefixStep, ...] = ()
    for number, column in enumerate(sorted(columns, key=share), 1):
        steps += (PrefixStep(column, number, steps),)
    return steps


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
        params = {"everywhere": Value(everywhere), "scale": Value(scale), "unit": Value(float(_UNIT))}
        sums.append(engine.record("measuring/sum_divergence", masses=masses, **params))
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
    params = {"cells": tries.cells, "boxes": tries.boxes}
    pairs = engine.materialise(
        "pairs_1",
        "measuring/start_pairs",
        spans=first.column.spans,
        code=first.column.code,
        prefix=first.prefix,
        **params,
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
            **params,
        )
        engine.drop(pairs)  # a row for every pair of prefixes, once a column
        pairs = longer
    return pairs
