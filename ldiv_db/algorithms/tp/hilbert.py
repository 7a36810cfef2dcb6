"""Hilbert: rows in classes along a space-filling curve (after Ghinita et al., VLDB 2007).

The codes of the quasi-identifiers are the coordinates of a cube, every domain stretched over its side. The Hilbert
curve visits all places of the cube, each next to the one before: rows near on it are near in all quasi-identifiers.
Along it bisection (`bisect`) cuts classes of l rows with l different sensitive values; the fewer than l rows left over
join classes that lack their value. Rows that are l-eligible together give l-eligible classes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Task, Traits
from ldiv_db.algorithms.bsgi.bisection import bisect
from ldiv_db.algorithms.bsgi.bsgi import among_rows
from ldiv_db.algorithms.bsgi.selection import incorporate
from ldiv_db.algorithms.eligibility import class_count, quotas
from ldiv_db.algorithms.tp.tp import Tp, kept_rows
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.recoding.encoded import Axis

#: Sides of the cube have up to this many bits; codes that then fall together are told apart by themselves.
MOST_BITS = 16


@dataclass(frozen=True)
class Dimension:
    """A quasi-identifier as a coordinate: the column of its code, and how many places the side of the cube has."""

    code: Identifier
    places: int
    first: bool

    #: The column of its place.
    at = NamedAfter("{0.code.name}_at")


def order(engine: Engine, rows: Relation, dimensions: Sequence[Dimension]) -> Relation:
    """(codes, position): every combination of codes that the rows have, along the curve."""
    bits = max(1, min(MOST_BITS, max((dimension.places - 1).bit_length() for dimension in dimensions)))
    flow = EngineFlow(engine, "tp", rows=rows, dimensions=dimensions, sides=2**bits)
    flow.step("points", "scale_codes")
    for bit in range(bits - 1, 0, -1):
        flow.replace("points", "turn_cubes", bit=2**bit)  # all combinations of codes, once a bit
    falling = [
        {"value": 2**bit, "above": [2**one for one in range(bit + 1, bits)], "flips": Identifier(f"flips_{bit}")}
        for bit in range(bits - 1, -1, -1)
    ]
    ordered = flow.step("ordered", "order_points", bits=falling)
    flow.drop("points")
    return ordered


def _cut(task: Task, rows: Relation, l: int) -> tuple[Relation, int]:
    """(row_id, class_id) of rows that are l-eligible together, and how many classes there are, numbered from 1."""
    engine, encoded = task.engine, task.encoded
    places = [max(axis.scale, axis.null_code or 0) + 1 for axis in encoded.axes]  # NULL beyond the scale has one too
    sides = [Dimension(axis.code, places[i], not i) for i, axis in enumerate(encoded.axes)]
    ordered = order(engine, rows, sides)
    last = max(engine.count(ordered) - 1, 0)
    curve = Axis(Identifier("curve"), Identifier("curve_code"), ordered, last, None, 1.0)
    columns = {"left_columns": ["row_id", encoded.sensitive[0].code.name]}
    right = [("position", curve.code.name)]
    placed = engine.join("placed", rows, ordered, *encoded.codes, **columns, right_columns=right)
    along = among_rows(replace(task, encoded=replace(encoded, axes=(curve,), kept=())), placed)
    classes = class_count(along.encoded, l)
    shares = quotas(along.encoded.sensitive[0].distribution.counts, l, classes)
    assigned = bisect(along, shares, l, classes)
    incorporate(along, assigned, along.encoded.keys, classes)
    engine.drop(ordered)
    return assigned, classes


class TpPlus(Tp):
    """TP, the removed rows being cut into classes along a Hilbert curve: never more stars."""

    name = "tp_plus"

    def _split(self, task: Task, assigned: Relation, l: int) -> Relation:
        engine, rows = task.engine, task.encoded.rows
        kept = kept_rows(engine, assigned)
        removed = engine.select_others("removed", rows, kept, "row_id")
        classes, last = _cut(task, removed, l)
        engine.insert(classes, "bsgi/residue/shift_classes", assigned=kept, last=last)
        engine.drop(removed, kept, assigned)  # all the rows, before classes are bounded
        return classes


class Hilbert(Tp):
    """The paper's baseline: the whole table cut into classes along a Hilbert curve."""

    name = "hilbert"
    traits = Traits()

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:
        return _cut(task, task.encoded.rows, l)[0], {}
