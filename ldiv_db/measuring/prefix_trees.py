"""Cells of the source and published combinations as tries, one column a level, the same order for both.

What holds for a prefix of columns is found once for all cells, or combinations, that begin with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
