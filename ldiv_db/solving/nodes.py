"""Rows in nodes, each of which is split until it is a part, or until nothing that is required allows another split.

All is decided by counts: of the values of a quasi-identifier one by one, or in grains where they are many.

A node is split as Mondrian does, at the median of its widest quasi-identifier where both sides, each as one class, meet
every requirement; else along the next one. So a part can be published by itself, and the first levels of Mondrian are
these. Where equal values need not stay together a node that no boundary splits is cut through one value, or through all
of its rows, each combination of sensitive values giving its share to both sides. A node that cannot be split is a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi.bisection import Position
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.local.mondrian import widths_of
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import NUMBER_SCALE

#: The values of a quasi-identifier that are counted one by one, and about the grains that more are counted in.
GRAINS = 1024


@dataclass(frozen=True)
class Grained(Position):
    """A quasi-identifier by its number; `grains` is (code, grain) where it is counted in grains."""

    grains: Relation | None = None


def _positions(task: Task) -> list[Grained]:
    """All quasi-identifiers of a task; grains have about as many rows each, or one value."""
    positions, params = [], {"grains": GRAINS}
    for number, axis in enumerate(task.encoded.axes, 1):
        listed = {"dictionary": axis.dictionary, "null_code": axis.null_code}
        grains = task.engine.materialise("grains", "solving/list_grains", **listed, **params)
        if task.engine.count(grains) > GRAINS:
            positions.append(Grained(number, axis, None, Identifier(f"{axis.code.name}_grain"), grains))
        else:
            task.engine.drop(grains)
            positions.append(Grained(number, axis))
    return positions


class Nodes(EngineFlow):
    """The `nodes` that are still to be split, at first one that has all the rows, perhaps of so many `classes`.

    `parts` is all that is settled, with the number of its `node`.
    """

    def __init__(self, task: Task, rows: Relation, classes: int | None = None) -> None:
        super().__init__(task.engine, "solving", positions=_positions(task), sensitive=task.encoded.sensitive)
        self.step("nodes", "start_nodes", rows=rows, classes=classes)
        self.parts: Relation | None = None

    def settle(self, numbers: Sequence[int]) -> None:
        """These nodes are parts: their rows are not counted or moved any more."""
        if not numbers:
            return
        listed = self.engine.load("listed", {"node": "BIGINT"}, [(node,) for node in numbers])
        settled = self.params("list_settled", listed=listed, others=False)
        if self.parts:
            self.engine.insert(self.parts, "solving/list_settled", **settled)
        else:
            self.parts = self.engine.materialise("parts", "solving/list_settled", **settled)
        self.replace("nodes", "list_settled", listed=listed, others=True)
        self.engine.drop(listed)


@dataclass
class _Splits:
    """The nodes that are split: where their rows go (`sides`, `cells`), and the nodes that come of them with rows."""

    sides: Relation | None = None
    cells: Relation | None = None
    nodes: set[int] = field(default_factory=set)
    children: dict[int, int] = field(default_factory=dict)

    @property
    def tables(self) -> list[Relation]:
        return [table for table in (self.sides, self.cells) if table]


class HalvedNodes:
    """A division of nodes under way: what is asked of sides, and the nodes that are parts already, (node, rows)."""

    def __init__(self, task: Task, nodes: Nodes, part_rows: int, cuts: bool) -> None:
        self._task, self._nodes, self._part_rows, self._cuts = task, nodes, part_rows, cuts
        self._checker, widths = ClassChecker(task), widths_of(task.encoded.axes)
        self._attempts, self._last = range(1, len(widths) + 1), 1
        self._parts = list[tuple[int, int]]()
        numbers = [(position.number,) for position in nodes["positions"]]
        scales = nodes.engine.load("scales", {"axis": "INTEGER"}, numbers)
        nodes.know(widths=widths, scales=scales, least=2 * self._checker.least, weight="found")

    def divide(self) -> list[tuple[int, int]]:
        """The parts of the rows, all in node 1 at first."""
        nodes = {1: self._task.encoded.row_count}
        while nodes:
            self._task.progress(sum(rows for _, rows in self._parts), self._task.encoded.row_count)
            nodes = self._level(nodes)
        return sorted(self._parts)

    def _level(self, nodes: Mapping[int, int]) -> dict[int, int]:
        """The nodes of the next level that are to be split, with their rows; the others are settled."""
        splits = self._split(nodes)
        self._settle([(node, rows) for node, rows in nodes.items() if node not in splits.nodes])
        if splits.tables:
            self._nodes.replace("nodes", "move_rows", sides=splits.sides, cells=splits.cells)
            self._nodes.engine.drop(*splits.tables)
        self._settle([(node, rows) for node, rows in splits.children.items() if rows <= self._part_rows])
        return {node: rows for node, rows in splits.children.items() if rows > self._part_rows}

    def _settle(self, nodes: Sequence[tuple[int, int]]) -> None:
        self._nodes.settle([node for node, _ in nodes])
        self._parts += nodes

    def _split(self, nodes: Mapping[int, int]) -> _Splits:
        """The splits of nodes: each way in turn splits those that no earlier way could."""
        flow, engine, splits = self._nodes, self._nodes.engine, _Splits()
        with engine.scope() as scope:
            flow.step("counts", "count_codes")
            flow.know(trying=engine.load("trying", {"node": "BIGINT"}, [(node,) for node in nodes]))
            for attempt, way in self._ways():
                if len(splits.nodes) == len(nodes):
                    break
                with engine.scope() as tried:
                    if engine.count(self._sides(attempt, way)):
                        self._try(splits)
                    for table in splits.tables:
                        tried.keep(table)
            for table in splits.tables:
                scope.keep(table)
        return splits

    def _ways(self) -> Iterator[tuple[int, str]]:
        """The ways to split a node, as (which quasi-identifier from the widest on, how)."""
        yield from ((attempt, "median") for attempt in self._attempts)
        if self._cuts:
            yield from ((attempt, "cut") for attempt in self._attempts)
            yield 1, "whole"

    def _sides(self, attempt: int, way: str) -> Relation:
        """The sides to which the rows of each node would go."""
        flow = self._nodes
        flow.step("bounds", "bound_nodes", attempt=attempt)
        if way == "whole":
            return flow.step("sides", "list_whole_sides", beyond=2 * NUMBER_SCALE)
        flow.step("choices", "local/mondrian/choose_axes")
        if flow.engine.count(flow.step("grains", "find_grains")):
            flow.step("inside", "count_grain")
        else:
            columns = dict.fromkeys(("node", "position", "rows"), "BIGINT")
            flow.know(inside=flow.engine.load("inside", columns, []))
        flow.step("placed", "list_positions")
        flow.step("medians", "find_cells" if way == "cut" else "local/mondrian/find_medians")
        return flow.step("sides", "list_sides", cut=way == "cut")

    def _try(self, splits: _Splits) -> None:
        """Split the nodes both of whose sides are good; they are tried no longer."""
        flow, engine = self._nodes, self._nodes.engine
        counts = flow.step("sided", "count_sides")
        flow.step("cells", "share_cells", counts=counts)
        halves = flow.step("halves", "count_halves", counts=counts)
        good = flow.step("splits", "local/mondrian/list_splits", margins=self._checker.margins(halves), last=self._last)
        self._last += 2 * engine.count(good)
        children = flow.step("children", "list_children")
        kept = [engine.join(f"split_{name}", flow[name], good, "node", right_columns=["first"]) for name in _KEPT]
        if splits.sides and splits.cells:
            engine.extend(splits.sides, kept[0])
            engine.extend(splits.cells, kept[1])
        else:
            splits.sides, splits.cells = kept
        splits.nodes |= set(engine.column(good, "node"))
        splits.children |= dict(engine.columns(children, "node", "rows"))
        engine.delete_listed(flow["trying"], Identifier("node"), good)


#: What is kept of the nodes that are split.
_KEPT = ("sides", "cells")
