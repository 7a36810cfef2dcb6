"""Cells of cross-tables: no class has rows of two, and all rows of one are published under its label.

So a cell's rows, by any other column of the release, are those of whole classes: whoever adds them up has the counts of
the source. A cell that was merged with others stands under a label above its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Axis, Encoded

#: The column of rows that has the number of what no class has several of, from 1.
STRATUM = Identifier("stratum")


@dataclass(frozen=True)
class CrossTable:
    """A cross-table of quasi-identifiers: of how many `cells` that occur the counts are `exact`."""

    columns: Sequence[str]
    cells: int
    exact: int

    def as_dict(self) -> dict[str, Any]:
        """The entry on the table for the result."""
        return {"columns": list(self.columns), "cells": self.cells, "exact": self.exact}

    def __str__(self) -> str:
        return f"{self.exact:,} of {count_phrase(self.cells, 'cell', 'cells')} of {' x '.join(self.columns)} are exact"


@dataclass(frozen=True)
class CrossTables:
    """The cells of several cross-tables together, some merged: `placed` is (row_id, class_id), each row's cell.

    The numbers of cells are 1 to `count`; `bounds` is (class_id, rows, the smallest and the largest code by axis) of
    each, and `lost` the LM of all rows by quasi-identifier. `merged` cells of the tables are in `parts` others.
    """

    axes: tuple[Axis, ...]
    placed: Relation
    bounds: Relation
    count: int
    lost: Mapping[str, float]
    tables: Sequence[CrossTable]
    merged: int = 0
    parts: int = 0

    @property
    def told(self) -> tuple[str, ...]:
        """What a plan says of the counts that its release answers exactly."""
        if not self.merged:
            return tuple(f"tables_of: {table}" for table in self.tables)
        alone = f"{self.merged:,} cells that cannot meet the policy, or joined one that cannot"
        return (*(f"tables_of: {table}" for table in self.tables), f"tables_of: {alone}, are {self.parts:,}")

    def as_dict(self) -> dict[str, Any]:
        """The entry on the cells for the result."""
        tables = [table.as_dict() for table in self.tables]
        return {"cells": self.count, "merged": self.merged, "merged_into": self.parts, "tables": tables}

    def rows_of(self, engine: Engine, encoded: Encoded) -> Encoded:
        """The rows with the number of their cell, and the quasi-identifiers that vary within cells."""
        numbers = [("class_id", STRATUM.name)]
        rows = engine.join("rows", encoded.rows, self.placed, "row_id", right_columns=numbers)
        names = {axis.code for axis in self.axes}
        return replace(encoded, rows=rows, axes=tuple(a for a in encoded.axes if a.code not in names), cells=None)

    def classes(self, engine: Engine, encoded: Encoded, assigned: Relation) -> Relation:
        """(class_id, rows, cell, bounds) of what is assigned, by its cell: raises AssertionError if it has two."""
        own = encoded.bound_classes(engine, assigned, "own")
        params = {"assigned": assigned, "placed": self.placed, "bounds": self.bounds, "axes": self.axes}
        others = [axis for axis in encoded.axes if axis not in self.axes]
        found = engine.materialise("classes", "recoding/publish/widen_classes", classes=own, others=others, **params)
        assert engine.count(found) == engine.count(own), "a class has rows of several cells"  # noqa: S101
        return found
