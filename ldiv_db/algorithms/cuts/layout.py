"""Where every quasi-identifier is in the keys of partitions, and what its values are there (`paths`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.cuts.intervals import IntervalTree
from ldiv_db.algorithms.cuts.trees import (
    PATH_COLUMNS,
    BitWord,
    CutTree,
    CutValue,
    Word,
    loss_unit,
    number_axis,
    places_of_bits,
    words_of,
)
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation


@dataclass(frozen=True)
class Layout:
    """The words of keys and of bits, the unit of losses, and the values of taxonomies by leaf, as `PATH_COLUMNS`.

    `numbers` are the quasi-identifiers without a taxonomy, each with its place value and its lowest bit.
    """

    words: tuple[Word, ...]
    bits: tuple[BitWord, ...]
    loss_unit: int
    paths: Relation
    numbers: tuple[tuple[IntervalTree, int, int], ...]

    def paths_of(self, engine: Engine, values: Iterable[CutValue]) -> list[Relation]:
        """The paths of taxonomies, and of those of the values that are intervals: of all there would be too many."""
        if not self.numbers:
            return [self.paths]
        asked = sorted(set(values))
        rows = [
            row
            for tree, part, bit in self.numbers
            for row in tree.paths_of([node for axis, node in asked if axis == tree.number], self.loss_unit, part, bit)
        ]
        return [self.paths, engine.load("interval_paths", PATH_COLUMNS, rows)]


def lay_out_keys(engine: Engine, trees: Sequence[CutTree]) -> Layout:
    """The layout of some trees; its tables are TEMP."""
    unit, digits, bits = loss_unit(trees), words_of(trees), places_of_bits(trees)
    placed = [(tree, part, bits[tree.number][1]) for word in digits for tree, part in word]
    paths = [row for tree, part, bit in placed for row in tree.paths(unit, part, bit)]
    axes = {tree.number: number_axis(tree, part, bit) for tree, part, bit in placed}
    words = tuple(Word(place, tuple(axes[tree.number] for tree, _ in word)) for place, word in enumerate(digits, 1))
    bit_words = tuple(
        BitWord(place, tuple(axes[number] for number, (word, _) in bits.items() if word == place))
        for place in sorted({word for word, _ in bits.values()})
    )
    numbers = tuple((tree, part, bit) for tree, part, bit in placed if isinstance(tree, IntervalTree))
    return Layout(words, bit_words, unit, engine.load("paths", PATH_COLUMNS, paths), numbers)
