"""Quasi-identifiers as a division counts them: value by value, or in grains where there are many values."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi.boundaries import Position
from ldiv_db.database.templates import Identifier, Relation, Value

#: The values of a quasi-identifier that are counted one by one, and about the grains that more are counted in.
GRAINS = 1024


@dataclass(frozen=True)
class Grained(Position):
    """A quasi-identifier by its number; `grains` is (code, grain) where it is counted in grains."""

    grains: Relation | None = None


def positions_of(task: Task) -> tuple[Grained, ...]:
    """All quasi-identifiers of a task; grains have about as many rows each, or one value."""
    positions = []
    for number, axis in enumerate(task.encoded.axes, 1):
        holes = {"grains": Value(GRAINS), "null_code": Value(axis.null_code)}
        grains = task.engine.materialise("grains", "distributing/list_grains", dictionary=axis.dictionary, **holes)
        if task.engine.count(grains) > GRAINS:
            positions.append(Grained(Value(number), axis, None, Identifier(f"{axis.code.name}_grain"), grains))
        else:
            task.engine.drop(grains)
            positions.append(Grained(Value(number), axis))
    return tuple(positions)
