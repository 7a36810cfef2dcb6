"""Hilbert: rows in the order of a space-filling curve, cut into l-eligible classes (after Ghinita et al., VLDB 2007).

The codes of the quasi-identifiers are the coordinates of a cube, every domain stretched over its side. The Hilbert
curve visits all places of the cube, each next to the one before: rows near on it are near in all quasi-identifiers.
Along it clipped bisection (`bisection`) cuts classes of l rows with l different sensitive values; the fewer than l
rows left over join classes that lack their value. Rows that are l-eligible together give l-eligible classes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi.bisection import bisect
from ldiv_db.algorithms.bsgi.incorporation import incorporate
from ldiv_db.algorithms.bsgi.subtask import subtask_of
from ldiv_db.algorithms.feasibility import quotas
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import Axis

#: Sides of the cube have up to this many bits; codes that then fall together are told apart by themselves.
MOST_BITS = 16


@dataclass(frozen=True)
class Dimension:
    """A quasi-identifier as a coordinate: the column of its code, and that of its place on the side of the cube."""

    code: Identifier
    at: Identifier
    places: Value
    first: bool


@dataclass(frozen=True)
class Bit:
    """One bit of all coordinates, those above it, and the column that counts how often these flip it."""

    value: Value
    above: tuple[Value, ...]
    flips: Identifier


def dimensions_of(axes: Sequence[Axis]) -> tuple[list[Dimension], int]:
    """The dimensions and the bits of their sides; a code of NULL beyond the scale has a place too."""
    places = [max(axis.scale, axis.null_code or 0) + 1 for axis in axes]
    bits = max(1, min(MOST_BITS, max((count - 1).bit_length() for count in places)))
    return [
        Dimension(axis.code, Identifier(f"{axis.code.name}_at"), Value(count), number == 0)
        for number, (axis, count) in enumerate(zip(axes, places, strict=True))
    ], bits


def order(engine: Engine, rows: Relation, dimensions: Sequence[Dimension], bits: int) -> Relation:
    """(codes, position): every combination of codes that the rows have, along the curve of cubes of 2^bits a side."""
    points = engine.materialise("points", "tp/scale_codes", rows=rows, dimensions=dimensions, sides=Value(2**bits))
    for bit in range(bits - 1, 0, -1):
        turned = engine.materialise("points", "tp/turn_cubes", points=points, dimensions=dimensions, bit=Value(2**bit))
        engine.drop(points)  # all combinations of codes, once a bit
        points = turned
    ordered = engine.materialise(
        "ordered", "tp/order_points", points=points, dimensions=dimensions, bits=[_bit(b, bits) for b in _falling(bits)]
    )
    engine.drop(points)
    return ordered


def _falling(bits: int) -> range:
    return range(bits - 1, -1, -1)


def _bit(bit: int, bits: int) -> Bit:
    return Bit(Value(2**bit), tuple(Value(2**above) for above in range(bit + 1, bits)), Identifier(f"flips_{bit}"))


def cut(task: Task, rows: Relation, l: int) -> tuple[Relation, int]:  # noqa: E741 - the field's name for it
    """(row_id, class_id) of rows that are l-eligible together, and how many classes there are, numbered from 1."""
    engine, encoded = task.engine, task.encoded
    dimensions, bits = dimensions_of(encoded.axes)
    ordered = order(engine, rows, dimensions, bits)
    axis = _curve(ordered, engine.count(ordered))
    placed = engine.materialise(
        "placed",
        "tp/place_rows",
        rows=rows,
        ordered=ordered,
        dimensions=dimensions,
        sensitive=encoded.sensitive[0],
        position=axis.code,
    )
    subtask = subtask_of(replace(task, encoded=replace(encoded, axes=(axis,), kept=())), placed, l)
    counts = subtask.task.encoded.sensitive[0].distribution.counts
    assigned = bisect(subtask.task, quotas(counts, l, subtask.classes), l, subtask.classes)
    incorporate(subtask.task, assigned, subtask.task.encoded.keys, subtask.classes)
    engine.drop(ordered)
    return assigned, subtask.classes


def _curve(ordered: Relation, length: int) -> Axis:
    """The place on the curve as the only quasi-identifier."""
    names = {part: Identifier(f"curve_{part}") for part in ("code", "low", "high", "table")}
    return Axis(
        column=Identifier("curve"),
        dictionary=ordered,
        nodes=None,
        taxonomy=None,
        scale=max(length - 1, 0),
        null_code=None,
        weight=1.0,
        **names,
    )
