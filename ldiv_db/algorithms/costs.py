"""The costs of generalising, as integers that statements can add: by levels of taxonomies or by shares of a range.

The cost of a taxonomy's span is the root's cost less the gains of all levels at which both ends share their node; that
of numbers is the share of their domain, and that of a set by LM the share of the values, which a class has as bits of
numbers: what a union costs is to count bits. No table grows with the square of a taxonomy's leaves. What is compared
between quasi-identifiers is LM, relative to the largest weight; BSGI's own IL, and what works beside it, is NCP by
weight, and of sets that of the spans of their codes.
`sql/macros/costs.j2` has the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.set_words import SetWord
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: The cost of full generalisation of a quasi-identifier: by LM of that with the largest weight, by NCP of weight 1.
COST_UNIT = 10**6
#: More than all quasi-identifiers cost together, of any number of rows that are looked at.
UNPAYABLE = 2**36


@dataclass(frozen=True)
class CostLevel:
    """One level of a taxonomy: `node` and `gain` of a row's path there, and columns of a class's rows."""

    name: str
    depth: int

    node = NamedAfter("{0.name}_node")
    gain = NamedAfter("{0.name}_gain")
    low = NamedAfter("{0.name}_low")
    high = NamedAfter("{0.name}_high")
    low_gain = NamedAfter("{0.name}_low_gain")
    high_gain = NamedAfter("{0.name}_high_gain")
    total = NamedAfter("{0.name}_total")
    #: The first leaf of a row's node.
    first = NamedAfter("{0.name}_first")
    #: The last leaf of a row's node.
    last = NamedAfter("{0.name}_last")
    #: The column with the cost of a row's node, or of the node of a span's first code.
    cost = NamedAfter("{0.name}_cost")
    #: The column with the cost of the node of a span's last code.
    last_cost = NamedAfter("{0.name}_last_cost")
    #: The node that all other rows of a class share, -1 if they share no node of the level.
    rest = NamedAfter("{0.name}_rest")
    #: The gain of that node, 0 if there is none.
    rest_gain = NamedAfter("{0.name}_rest_gain")


@dataclass(frozen=True)
class WideNode:
    """A node that has more leaves than a set may have values: how many, and of each word the bits of all other codes.

    A class of too many values is published as the smallest of these that holds them.
    """

    leaves: int
    others: tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """A quasi-identifier's costs: the levels of its taxonomy that change the cost, none for plain numbers and sets.

    `full` is the cost of full generalisation; `paths` has one row a leaf, None for plain numbers and sets. Sets have
    `words`, unless they are measured by the spans of their codes, and where they are limited the nodes that are `wide`,
    the smallest first; the root goes without saying.
    """

    axis: Axis
    levels: tuple[CostLevel, ...]
    full: int
    paths: Relation | None = None
    words: tuple[SetWord, ...] = ()
    wide: tuple[WideNode, ...] = ()

    @property
    def table(self) -> Identifier:
        return self.axis.table

    #: The alias of the path of a class's greatest code, beside `table` for its smallest.
    high_table = NamedAfter("{0.axis.table.name}_high")

    centre = NamedAfter("{0.axis.code.name}_centre")
    #: The place in its class of the row with the smallest code.
    low_slot = NamedAfter("{0.axis.code.name}_low_slot")
    high_slot = NamedAfter("{0.axis.code.name}_high_slot")
    rest_low = NamedAfter("{0.axis.code.name}_rest_low")
    rest_high = NamedAfter("{0.axis.code.name}_rest_high")


def lm_measures(task: Task) -> tuple[Measure, ...]:
    """All quasi-identifiers by LM; weights are relative to the largest, and only levels that change the cost count."""
    axes = task.encoded.axes
    return tuple(
        _measure(task, axis, full, _depths(axis.tree) if axis.tree else [], axis.scale, ncp=False)
        for axis, full in zip(axes, full_costs(axes), strict=True)
    )


def full_costs(axes: Sequence[Axis]) -> list[int]:
    """The cost of full generalisation of each, by LM; a taxonomy of one leaf cannot be generalised."""
    largest = max(axis.weight for axis in axes) or 1.0
    return [0 if axis.taxonomy and axis.scale == 0 else round(COST_UNIT * axis.weight / largest) for axis in axes]


def ncp_measures(task: Task) -> tuple[Measure, ...]:
    """All quasi-identifiers by NCP times their weight, in COST_UNIT: a cost and a row number fit one integer."""
    depths = [range(1, axis.tree.height + 1) if axis.tree else [] for axis in task.encoded.axes]
    return tuple(
        _measure(task, axis, round(COST_UNIT * axis.weight), of_axis, axis.leaves, ncp=True)
        for axis, of_axis in zip(task.encoded.axes, depths, strict=True)
    )


def span_costs(task: Task, measures: Sequence[Measure]) -> dict[str, Any]:
    """What templates take for the costs of spans of all quasi-identifiers in one statement.

    `scales` is (axis, levels, full_cost, scale, null_code), a row a quasi-identifier by its number from 1; `levels` has
    each leaf's path in its taxonomy, by `columns` that hold the levels of all of them; None without
    a taxonomy.
    """
    scales = task.engine.load(
        "scales",
        {"axis": "INTEGER", "levels": "INTEGER", "full_cost": "BIGINT", "scale": "BIGINT", "null_code": "INTEGER"},
        [(number, len(m.levels), m.full, m.axis.scale, m.axis.null_apart) for number, m in enumerate(measures, 1)],
    )
    columns = tuple(CostLevel(f"level_{i}", i) for i in range(max(len(m.levels) for m in measures)))
    trees = [
        # A column holds a level, the columns beyond the last one again: so every column says what a node costs.
        {"number": number, "measure": m, "levels": [(c, m.levels[:i]) for i, c in enumerate(columns, 1)]}
        for number, m in enumerate(measures, 1)
        if m.levels
    ]
    known = {"trees": trees, "columns": columns}
    levels = task.engine.materialise("levels", "neighbours/list_levels", **known) if trees else None
    return {"scales": scales, "columns": columns, "levels": levels}


def _measure(task: Task, axis: Axis, full: int, depths: Sequence[int], domain: int, ncp: bool) -> Measure:
    if axis.nodes is None or axis.tree is None:
        words = () if ncp else axis.words
        return Measure(axis, (), full, words=words, wide=_wide(axis, words))
    name = axis.code.name
    levels = tuple(CostLevel(f"{name}_{depth}", depth) for depth in depths)
    paths = task.engine.materialise(
        f"levels_{name}", "neighbours/trace_levels", nodes=axis.nodes, levels=levels, domain=domain, full=full, ncp=ncp
    )
    return Measure(axis, levels, full, paths)


def _wide(axis: Axis, words: Sequence[SetWord]) -> tuple[WideNode, ...]:
    if axis.taxonomy is None or not words:
        return ()
    spans = {(node.high - node.low + 1, node.low, node.high) for node in axis.taxonomy.nodes}
    return tuple(
        WideNode(leaves, tuple(word.bits_beyond(low, high) for word in words))
        for leaves, low, high in sorted(spans)
        if axis.sets < leaves < axis.leaves
    )


def _depths(taxonomy: Taxonomy) -> list[int]:
    """The depths at which some node has fewer leaves than its parent; at least one, for the order of leaves."""
    sizes = {node.node: node.high - node.low for node in taxonomy.nodes}
    narrower = {n.depth for n in taxonomy.nodes if n.parent is not None and sizes[n.node] < sizes[n.parent]}
    return sorted(narrower) or [0]
