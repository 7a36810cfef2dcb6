"""Quasi-identifiers as the statements that grow classes see them: IL (NCP by weight) as integers.

The cost of a span of a taxonomy is its root's cost less the gains of all levels at which its rows share
their node; that of numbers is the share of their domain.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import Axis

#: The unit of costs: weighted NCP per row in millionths, so that cost and row number fit one integer.
COST_UNIT = 10**6


@dataclass(frozen=True)
class PenaltyLevel:
    """One level of a quasi-identifier's taxonomy: a row's node there, and the cost saved if a class shares it."""

    node: Identifier
    gain: Identifier
    depth: Value


@dataclass(frozen=True)
class Penalty:
    """A quasi-identifier: the levels of its taxonomy with `paths`, one row a leaf; none for plain numbers."""

    axis: Axis
    levels: tuple[PenaltyLevel, ...]
    full_cost: Value
    null_code: Value
    paths: Relation | None = None

    @property
    def table(self) -> Identifier:
        return self.axis.table

    @property
    def high_table(self) -> Identifier:
        """The alias of the path of a class's greatest code, beside `table` for its smallest."""
        return Identifier(f"{self.axis.table.name}_high")


def penalties_of(task: Task) -> tuple[Penalty, ...]:
    """All quasi-identifiers."""
    return tuple(_penalty(task, axis) for axis in task.encoded.axes)


def _penalty(task: Task, axis: Axis) -> Penalty:
    full = Value(round(axis.weight * COST_UNIT))
    null_code = Value(axis.null_code)
    if axis.nodes is None or axis.taxonomy is None:
        return Penalty(axis, (), full, null_code)
    name = axis.code.name
    levels = tuple(
        PenaltyLevel(Identifier(f"{name}_node_{depth}"), Identifier(f"{name}_gain_{depth}"), Value(depth))
        for depth in range(1, axis.taxonomy.height + 1)
    )
    paths = task.engine.materialise(
        f"paths_{name}",
        "bsgi/trace_paths",
        nodes=axis.nodes,
        levels=levels,
        leaves=Value(axis.leaves),
        unit=full,
    )
    return Penalty(axis, levels, full, null_code, paths)
