"""Rows in nodes that are counted and moved: where they lie is not known to those who plan.

What a division decides it decides on counts alone, in the planner's database; so that rows may lie in another one.

Quasi-identifiers as a division counts them: value by value, or in grains where there are many values.

The division for requirements of any kind: nodes are split as Mondrian does, as long as both sides are good.

A node is split at the median of its widest quasi-identifier where both sides, each as one class, meet every
requirement; else along the next one. So a part can be published by itself, and the first levels of Mondrian are these.
Where equal values need not stay together a node that no boundary splits is cut through one value, or through all of
its rows, each combination of sensitive values giving its share to both sides. A node that cannot be split is one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi.bisection import Position
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.local.mondrian import Width, widths_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import NUMBER_SCALE


class Movable(Protocol):
    """The rows of the nodes that are still to be split; each template reads them as its relation `nodes`."""

    def count(self, name: str, template: str, **params: Any) -> Relation:
        """Count the rows by a template with the parameter `weight`, into a table of the planner's database."""

    def move(self, template: str, **params: Any) -> None:
        """Move the rows to other nodes, as the template says."""

    def settle(self, nodes: Sequence[int]) -> None:
        """These nodes are parts: their rows are not counted or moved any more."""


class RowsHere:
    """Rows in the planner's own database. `parts` is all that is settled, with the number of its `node`."""

    def __init__(self, engine: Engine, nodes: Relation):
        self._engine = engine
        self._nodes: Relation | None = nodes
        self.parts: Relation | None = None

    def count(self, name: str, template: str, **params: Any) -> Relation:
        return self._engine.materialise(name, template, nodes=self._nodes, weight=None, **params)

    def move(self, template: str, **params: Any) -> None:
        self._replace(self._engine.materialise("node", template, nodes=self._nodes, **params))

    def settle(self, nodes: Sequence[int]) -> None:
        if not nodes:
            return
        engine, params = self._engine, {"nodes": self._nodes}
        listed = engine.load("listed", {"node": "BIGINT"}, [(node,) for node in nodes])
        if self.parts:
            engine.insert(self.parts, "solving/list_settled", listed=listed, others=False, **params)
        else:
            self.parts = engine.materialise("parts", "solving/list_settled", listed=listed, others=False, **params)
        self._replace(engine.materialise("node", "solving/list_settled", listed=listed, others=True, **params))
        engine.drop(listed)

    def close(self) -> None:
        """Drop what is left of the nodes: nothing, once all are settled."""
        self._replace(None)

    def _replace(self, nodes: Relation | None) -> None:
        if self._nodes:
            self._engine.drop(self._nodes)  # all the rows, once a level
        self._nodes = nodes


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
        params = {"grains": Value(GRAINS), "null_code": Value(axis.null_code)}
        grains = task.engine.materialise("grains", "solving/list_grains", dictionary=axis.dictionary, **params)
        if task.engine.count(grains) > GRAINS:
            positions.append(Grained(Value(number), axis, None, Identifier(f"{axis.code.name}_grain"), grains))
        else:
            task.engine.drop(grains)
            positions.append(Grained(Value(number), axis))
    return tuple(positions)


_NODE = Identifier("node")


@dataclass
class HalvedNodes:
    """A division under way: what is asked of sides, and the nodes that are parts already, (node, rows)."""

    task: Task
    rows: Movable
    positions: Sequence[Grained]
    part_rows: int
    cuts: bool
    parts: list[tuple[int, int]] = field(default_factory=list)
    last: int = 1

    def __post_init__(self) -> None:
        self._checker = ClassChecker(self.task)
        self._widths: Sequence[Width] = widths_of(self.task.encoded.axes)
        scales = [(position.number.value,) for position in self.positions]
        self._scales = self.task.engine.load("scales", {"axis": "INTEGER"}, scales)

    def divide(self) -> list[tuple[int, int]]:
        """The parts of the rows, all in node 1 at first."""
        nodes = {1: self.task.encoded.row_count}
        while nodes:
            self.task.progress(sum(rows for _, rows in self.parts), self.task.encoded.row_count)
            nodes = self._level(nodes)
        return sorted(self.parts)

    def _level(self, nodes: dict[int, int]) -> dict[int, int]:
        """The nodes of the next level that are to be split, with their rows; the others are settled."""
        engine, sensitive = self.task.engine, self.task.encoded.sensitive
        with engine.scope() as scope:
            planned = self._plan(nodes)
            for table in planned.tables:
                scope.keep(table)
        self._settle([(node, rows) for node, rows in nodes.items() if node not in planned.split])
        if not planned.tables:
            return {}
        params = {"sides": planned.sides, "cells": planned.cells, "positions": self.positions}
        self.rows.move("solving/move_rows", sensitive=sensitive, **params)
        engine.drop(*planned.tables)
        self._settle([(node, rows) for node, rows in planned.children.items() if rows <= self.part_rows])
        return {node: rows for node, rows in planned.children.items() if rows > self.part_rows}

    def _settle(self, nodes: Sequence[tuple[int, int]]) -> None:
        self.rows.settle([node for node, _ in nodes])
        self.parts += nodes

    def _plan(self, nodes: dict[int, int]) -> _SplitPlan:
        """Plan the splits: each way in turn splits the nodes that no earlier way could."""
        engine, planned = self.task.engine, _SplitPlan()
        counts = self.rows.count("counts", "solving/count_codes", scales=self._scales, positions=self.positions)
        trying = engine.load("trying", {"node": "BIGINT"}, [(node,) for node in nodes])
        for attempt, way in self._ways():
            if len(planned.split) == len(nodes):
                break
            with engine.scope() as scope:
                sides = self._sides(counts, trying, attempt, way)
                if engine.count(sides):
                    self._try(planned, trying, sides)
                for table in planned.tables:
                    scope.keep(table)
        return planned

    def _ways(self) -> Iterator[tuple[int, str]]:
        """The ways to split a node, as (which quasi-identifier from the widest on, how)."""
        attempts = range(1, len(self._widths) + 1)
        yield from ((attempt, "median") for attempt in attempts)
        if self.cuts:
            yield from ((attempt, "cut") for attempt in attempts)
            yield 1, "whole"

    def _sides(self, counts: Relation, trying: Relation, attempt: int, way: str) -> Relation:
        """The sides to which the rows of each node would go."""
        engine = self.task.engine
        params: dict[str, Any] = {"counts": counts, "trying": trying, "widths": self._widths, "attempt": Value(attempt)}
        bounds = engine.materialise("bounds", "solving/bound_nodes", **params)
        if way == "whole":
            beyond = Value(2 * NUMBER_SCALE)
            return engine.materialise("sides", "solving/list_whole_sides", bounds=bounds, beyond=beyond)
        params = {"bounds": bounds, "widths": self._widths, "least": Value(2 * self._checker.least)}
        choices = engine.materialise("choices", "local/mondrian/choose_axes", **params)
        placed = self._placed(counts, choices)
        if way == "cut":
            medians = engine.materialise("medians", "solving/find_cells", placed=placed)
        else:
            medians = engine.materialise("medians", "local/mondrian/find_medians", placed=placed, weight="found")
        return engine.materialise("sides", "solving/list_sides", choices=choices, medians=medians, cut=way == "cut")

    def _placed(self, counts: Relation, choices: Relation) -> Relation:
        """The rows at each position of the quasi-identifier chosen, value by value around the median."""
        engine = self.task.engine
        grains = engine.materialise("grains", "solving/find_grains", counts=counts, choices=choices)
        if engine.count(grains):
            inside = self.rows.count("inside", "solving/count_grain", grains=grains, positions=self.positions)
        else:
            inside = engine.load("inside", {"node": "BIGINT", "position": "BIGINT", "rows": "BIGINT"}, [])
        params = {"counts": counts, "choices": choices, "grains": grains, "inside": inside}
        return engine.materialise("placed", "solving/list_positions", **params)

    def _try(self, planned: _SplitPlan, trying: Relation, sides: Relation) -> None:
        """Split the nodes both of whose sides are good; they are tried no longer."""
        engine, sensitive = self.task.engine, self.task.encoded.sensitive
        params = {"sides": sides, "positions": self.positions}
        counts = self.rows.count("sided", "solving/count_sides", sensitive=sensitive, **params)
        cells = engine.materialise("cells", "solving/share_cells", counts=counts, sides=sides, sensitive=sensitive)
        halves = engine.materialise("halves", "solving/count_halves", counts=counts, cells=cells, sensitive=sensitive)
        margins = self._checker.margins(halves)
        splits = engine.materialise("splits", "local/mondrian/list_splits", margins=margins, last=self.last)
        self.last += 2 * engine.count(splits)
        children = engine.materialise("children", "solving/list_children", halves=halves, splits=splits)
        kept = [
            engine.join(name, table, splits, "node", right_columns=["first"])
            for name, table in (("split_sides", sides), ("split_cells", cells))
        ]
        planned.add(engine, kept, children, splits)
        engine.delete_listed(trying, _NODE, splits)


class _SplitPlan:
    """A plan of splits: where rows go (`sides`, `cells`), and the nodes that result."""

    def __init__(self) -> None:
        self.sides: Relation | None = None
        self.cells: Relation | None = None
        self.split: set[int] = set()
        self.children: dict[int, int] = {}

    @property
    def tables(self) -> list[Relation]:
        return [table for table in (self.sides, self.cells) if table]

    def add(self, engine: Any, kept: Sequence[Relation], children: Relation, splits: Relation) -> None:
        """Take in more nodes that are split."""
        if self.sides and self.cells:
            engine.extend(self.sides, kept[0])
            engine.extend(self.cells, kept[1])
        else:
            self.sides, self.cells = kept
        self.split |= set(engine.column(splits, "node"))
        self.children |= dict(engine.columns(children, "node", "rows"))
