"""What generalising costs, as integers that statements can add: a quasi-identifier's levels, or its range.

The cost of a span is its weighted LM. For a taxonomy it is the root's cost less the gains of all levels
at which both ends share their node; for numbers it is the share of the domain. No table grows with the
square of a taxonomy's leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: The cost of full generalisation of the quasi-identifier with the largest weight.
COST_UNIT = 10**6


@dataclass(frozen=True)
class CostLevel:
    """One level of a taxonomy: `node` and `gain` of a row's path there, and columns of a class's rows."""

    name: str
    depth: Value

    @property
    def node(self) -> Identifier:
        return Identifier(f"{self.name}_node")

    @property
    def gain(self) -> Identifier:
        return Identifier(f"{self.name}_gain")

    @property
    def low(self) -> Identifier:
        return Identifier(f"{self.name}_low")

    @property
    def high(self) -> Identifier:
        return Identifier(f"{self.name}_high")

    @property
    def total(self) -> Identifier:
        return Identifier(f"{self.name}_total")

    @property
    def rest(self) -> Identifier:
        """The node that all other rows of a class share, none if they share no node of the level."""
        return Identifier(f"{self.name}_rest")


@dataclass(frozen=True)
class Measure:
    """A quasi-identifier's costs: the levels of its taxonomy that change the cost, none for plain numbers.

    `full` is the cost of full generalisation; `paths` has one row a leaf, None for plain numbers.
    """

    axis: Axis
    levels: tuple[CostLevel, ...]
    full: Value
    paths: Relation | None = None

    @property
    def table(self) -> Identifier:
        return self.axis.table

    @property
    def null_code(self) -> Value:
        return Value(self.axis.null_code)

    @property
    def centre(self) -> Identifier:
        return Identifier(f"{self.axis.code.name}_centre")

    @property
    def rest_low(self) -> Identifier:
        return Identifier(f"{self.axis.code.name}_rest_low")

    @property
    def rest_high(self) -> Identifier:
        return Identifier(f"{self.axis.code.name}_rest_high")


def measures_of(task: Task) -> tuple[Measure, ...]:
    """The measures of all quasi-identifiers; weights are relative to the largest."""
    largest = max(axis.weight for axis in task.encoded.axes) or 1.0
    return tuple(_measure(task, axis, round(COST_UNIT * axis.weight / largest)) for axis in task.encoded.axes)


def _measure(task: Task, axis: Axis, full: int) -> Measure:
    if axis.nodes is None or axis.taxonomy is None:
        return Measure(axis, (), Value(full))
    if axis.scale == 0:  # a taxonomy of one leaf cannot be generalised
        full = 0
    name = axis.code.name
    levels = tuple(CostLevel(f"{name}_{depth}", Value(depth)) for depth in _depths(axis.taxonomy))
    paths = task.engine.materialise(
        f"levels_{name}",
        "neighbours/exchange/trace_levels",
        nodes=axis.nodes,
        levels=levels,
        scale=axis.scale_value,
        full=Value(full),
    )
    return Measure(axis, levels, Value(full), paths)


def _depths(taxonomy: Taxonomy) -> list[int]:
    """The depths at which some node has fewer leaves than its parent; at least one, for the order of leaves."""
    sizes = {node.node: node.high - node.low for node in taxonomy.nodes}
    narrower = {n.depth for n in taxonomy.nodes if n.parent is not None and sizes[n.node] < sizes[n.parent]}
    return sorted(narrower) or [0]
