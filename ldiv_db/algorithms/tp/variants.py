"""What variants of TP do to a table before or instead: coarser quasi-identifiers, and classes along a Hilbert curve.

Coarsening: at level 0 of a taxonomy values are leaves; at level k a value stands for its ancestor k levels above the
deepest leaves, or for itself if that is a leaf nearer to the root. Fewer values make larger QI-groups, and fewer stars
(Xiao, Yi, Tao, EDBT 2010, Section 5.6).

Hilbert (after Ghinita et al., VLDB 2007): the codes of the quasi-identifiers are the coordinates of a cube, every
domain stretched over its side. The Hilbert curve visits all places of the cube, each next to the one before: rows near
on it are near in all quasi-identifiers. Along it bisection (`bisect`) cuts classes of l rows with l different sensitive
values; the fewer than l rows left over join classes that lack their value. Rows that are l-eligible together
give l-eligible classes alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi.bisection import bisect
from ldiv_db.algorithms.bsgi.bsgi import subtask_of
from ldiv_db.algorithms.bsgi.selection import incorporate
from ldiv_db.algorithms.eligibility import quotas
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, nearest, refuse
from ldiv_db.database.names import Identifier, NamedAfter, Relation, Value
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True, kw_only=True)
class Coarse(Axis):
    """A quasi-identifier with its cut: `cut` is (code, low, high), the span of codes that each is published as."""

    cut: Relation | None

    #: The cut once more, for the other end of a span.
    upper = NamedAfter("{0.table.name}_upper")

    @property
    def last(self) -> Value:
        """The last code, NULL's included."""
        return Value(max(self.scale, self.null_code or 0))


def check_levels(axes: Sequence[Axis], levels: Mapping[str, int]) -> None:
    """Raise PolicyError for columns that are no quasi-identifiers with a taxonomy, and levels that it lacks."""
    known, problems = {axis.name: axis.taxonomy for axis in axes}, []
    for name, level in levels.items():
        key = f"algorithm.coarsen.{name}"
        if name not in known:
            problems.append(Problem(key, "is not a quasi-identifier", nearest(name, known)))
            continue
        taxonomy = known[name]
        if taxonomy is None:
            problems.append(Problem(key, "has no taxonomy to coarsen by"))
        elif level > taxonomy.height:
            problems.append(Problem(key, f"the taxonomy has no level {level}", f"the highest is {taxonomy.height}"))
    refuse(problems)


def spans_at(taxonomy: Taxonomy, level: int) -> list[tuple[int, int]]:
    """The spans of leaf numbers of the nodes at a level, in order: together they are all leaves."""
    depth = max(0, taxonomy.height - level)
    return [(node.low, node.high) for node in taxonomy.nodes if node.depth == depth] + [
        (leaf.low, leaf.high) for leaf in taxonomy.leaves if leaf.depth < depth
    ]


def coarsen(task: Task, levels: Mapping[str, int]) -> tuple[Task, list[Coarse]]:
    """The task on coarse codes, the first of what each stands for, and the quasi-identifiers with their cuts."""
    engine, encoded = task.engine, task.encoded
    coarse = [Coarse(**vars(axis), cut=_cut(engine, axis, levels.get(axis.name, 0))) for axis in encoded.axes]
    if all(axis.cut is None for axis in coarse):
        return task, coarse
    rows = engine.materialise(
        "coarse", "tp/coarsen_rows", rows=encoded.rows, axes=coarse, sensitive=encoded.sensitive[0]
    )
    return replace(task, encoded=replace(encoded, rows=rows, kept=(), cells=None)), coarse


def _cut(engine: Engine, axis: Axis, level: int) -> Relation | None:
    if not level or axis.taxonomy is None:
        return None
    rows = [(code, low, high) for low, high in spans_at(axis.taxonomy, level) for code in range(low, high + 1)]
    return engine.load(f"cut_{axis.code.name}", {"code": "BIGINT", "low": "BIGINT", "high": "BIGINT"}, rows)


#: Sides of the cube have up to this many bits; codes that then fall together are told apart by themselves.
MOST_BITS = 16


@dataclass(frozen=True)
class Dimension:
    """A quasi-identifier as a coordinate: the column of its code, and that of its place on the side of the cube."""

    code: Identifier
    at: Identifier
    places: Value
    first: bool


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
    points = engine.materialise("points", "tp/scale_codes", rows=rows, dimensions=dimensions, sides=2**bits)
    for bit in range(bits - 1, 0, -1):
        turned = engine.materialise("points", "tp/turn_cubes", points=points, dimensions=dimensions, bit=2**bit)
        engine.drop(points)  # all combinations of codes, once a bit
        points = turned
    falling = [
        {"value": 2**bit, "above": [2**one for one in range(bit + 1, bits)], "flips": Identifier(f"flips_{bit}")}
        for bit in range(bits - 1, -1, -1)
    ]
    ordered = engine.materialise("ordered", "tp/order_points", points=points, dimensions=dimensions, bits=falling)
    engine.drop(points)
    return ordered


def cut(task: Task, rows: Relation, l: int) -> tuple[Relation, int]:
    """(row_id, class_id) of rows that are l-eligible together, and how many classes there are, numbered from 1."""
    engine, encoded = task.engine, task.encoded
    dimensions, bits = dimensions_of(encoded.axes)
    ordered = order(engine, rows, dimensions, bits)
    axis = _curve(ordered, engine.count(ordered))
    columns = {"left_columns": ["row_id", encoded.sensitive[0].code.name]}
    placed = engine.join(
        "placed", rows, ordered, *encoded.codes, **columns, right_columns=[("position", axis.code.name)]
    )
    subtask = subtask_of(replace(task, encoded=replace(encoded, axes=(axis,), kept=())), placed, l)
    counts = subtask.task.encoded.sensitive[0].distribution.counts
    assigned = bisect(subtask.task, quotas(counts, l, subtask.classes), l, subtask.classes)
    incorporate(subtask.task, assigned, subtask.task.encoded.keys, subtask.classes)
    engine.drop(ordered)
    return assigned, subtask.classes


def _curve(ordered: Relation, length: int) -> Axis:
    """The place on the curve as the only quasi-identifier."""
    return Axis(Identifier("curve"), Identifier("curve_code"), ordered, max(length - 1, 0), None, 1.0)
