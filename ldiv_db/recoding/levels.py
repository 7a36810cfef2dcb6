"""Levels: people who publish equally many rows, each level a table of its own with an axis for each position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Axis, Encoded

#: What the name of the axis of highest codes has after that of the quasi-identifier.
HIGHEST = " (highest)"


def name_at(name: str, position: int) -> str:
    """The name of a quasi-identifier at a position, among the axes of a level."""
    return name if position == 1 else f"{name} (row {position})"


#: The positions of a person's rows that have each column, by its code: one as often as rows stand together there.
Positions = Mapping[Identifier, Sequence[int]]


@dataclass(frozen=True)
class Level:
    """The people who publish so many `rows`, a table of their own: `encoded` has an axis a quasi-identifier that varies
    within none of them, else one for each of its `positions`. `numbers` is (row_id, whole_id): the number of each among
    all.
    """

    rows: int
    encoded: Encoded
    numbers: Relation
    positions: Positions

    @property
    def last(self) -> int:
        """The last position of their rows."""
        return max(position for own in self.positions.values() for position in own)

    def at(self, axis: Axis, position: int) -> Axis | None:
        """The axis of a quasi-identifier of rows at one position; None if rows there do not have it."""
        turns = list(dict.fromkeys(self.positions[axis.code]))
        if position not in turns:
            return None
        named = {one.name: one for one in self.encoded.axes}
        return named.get(name_at(axis.name, 1 + turns.index(position)), named[axis.name])

    @property
    def tables(self) -> list[Relation]:
        """All that it refers to."""
        return [self.numbers, *self.encoded.tables]


def place_classes(
    engine: Engine, axes: Sequence[Axis], level: Level, classes: Relation, width: int, last: int
) -> Relation:
    """The classes of a level, numbered after the last one, as those of rows at each position, with their bounds.

    `axes` are those of rows; their classes are numbered as `Units.assign_rows` does it, `width` apart.
    """
    positions = sorted({position for own in level.positions.values() for position in own})
    places = [
        {"number": number, "axes": [{"axis": axis, "own": level.at(axis, number)} for axis in axes]}
        for number in positions
    ]
    params = {"classes": classes, "places": places, "width": width, "last": last}
    return engine.materialise("classes", "recoding/input/place_classes", **params)
