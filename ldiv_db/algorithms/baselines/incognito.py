"""Incognito: the full-domain generalisation of least cost that meets any monotone requirement (LeFevre et al. 2005).

Every quasi-identifier is published at one level of its taxonomy: on level g all values of more than `height - g` steps
below the root are replaced by their ancestor there. The vectors of levels are a lattice. What makes a vector fail makes
all below it fail, and what makes it hold makes all above it hold, as their classes are unions. So subsets of the
quasi-identifiers come first, the others at their top: a vector is looked at only if it holds on all smaller subsets
(a-priori pruning), and within a subset each answer settles all vectors above it (roll-up) or below it. Costs rise with
levels, so the best vector is one of the lowest that hold; it is found exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Literal

from pydantic import Field

from ldiv_db.algorithms.base import Options, Plan, Task
from ldiv_db.algorithms.baselines.monotone_recoding import BATCH, Codings, MonotoneRecoding, make_codings
from ldiv_db.algorithms.cuts.spanned import trees_of
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Relation
from ldiv_db.taxonomies.taxonomy import Node

#: More vectors than this are refused.
MOST_VECTORS = 500_000
#: Rows that one statement may make of cells and vectors.
_MOST_ROWS = 3_000_000

#: A level for each quasi-identifier.
Vector = tuple[int, ...]


class IncognitoOptions(Options):
    """The metric that the best vector costs least by, and the class column of CM."""

    metric: Literal["LM", "DM", "CM"] = "LM"
    label: str | None = Field(default=None, alias="class")


class Incognito(MonotoneRecoding):
    """The vector of levels of least cost that meets all requirements."""

    name = "incognito"
    options_type = IncognitoOptions
    options: IncognitoOptions

    def _option_problems(self, task: Task) -> Iterator[Problem]:
        if self.options.metric == "CM" and task.kept_column(self.options.label) is None:
            what = "is required by CM: name the kept column whose labels are predicted"
            yield Problem("algorithm.class", what, "list it under keep")
        if "set" in task.forms.values() and any(one.named_population for one in task.requirements):
            what = "incognito counts people by the labels of levels, not by sets"
            yield Problem("recode", what, "set recode: tree, or use tds")
        vectors = prod(len(levels_of(tree)) for tree in trees_of(task.engine, task.encoded.axes))
        if vectors > MOST_VECTORS:
            yield Problem("algorithm.name", f"{vectors:,} vectors of levels are more than {MOST_VECTORS:,}", "use tds")

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        label = task.kept_column(self.options.label) if self.options.metric == "CM" else None
        lattice = Lattice(make_codings(task, label))
        holds = lattice.search()
        lowest = [vector for vector in sorted(holds) if not any(below in holds for below in lattice.beside(vector, -1))]
        costs = lattice.costs(lowest, self.options.metric)
        cost, best = min(zip(costs, lowest, strict=True))
        cut = [levels[level] for levels, level in zip(lattice.levels, best, strict=True)]
        search = {
            "metric": self.options.metric,
            "vectors": lattice.size,
            "judged": lattice.judged,
            "lowest": len(lowest),
            "proved": True,
            "cost": cost / (lattice.codings.unit if self.options.metric == "LM" else 1),
            "levels": {tree.axis.name: level for tree, level in zip(lattice.codings.trees, best, strict=True)},
            "cut": lattice.codings.labels(cut),
        }
        assigned, classes = lattice.codings.publish(cut)
        return Plan(assigned, feasible.l, (), search, classes=classes)


def levels_of(tree: CutTree) -> list[list[int]]:
    """The nodes of every level that differs from the one below it, leaves first, the root last."""
    levels: list[list[int]] = []
    for depth in range(tree.taxonomy.height, -1, -1):
        found = [n for n in tree.taxonomy.nodes if n.depth == depth or (n.depth < depth and not tree.children[n.node])]
        if not levels or sorted(map(_span, found)) != [_span(tree.taxonomy.nodes[node]) for node in levels[-1]]:
            levels.append([node.node for node in sorted(found, key=_span)])
    return levels


def _span(node: Node) -> tuple[int, int]:
    return node.low, node.high


@dataclass
class Lattice:
    """The lattice of vectors; `judged` counts those whose classes were counted."""

    codings: Codings
    judged: int = 0

    @cached_property
    def levels(self) -> list[list[list[int]]]:
        """By quasi-identifier and level the nodes of values."""
        return [levels_of(tree) for tree in self.codings.trees]

    @property
    def size(self) -> int:
        return prod(map(len, self.levels))

    @cached_property
    def top(self) -> Vector:
        return tuple(len(levels) - 1 for levels in self.levels)

    @cached_property
    def _loaded(self) -> Relation:
        """(axis, level, code, part): what a code adds to the key of its class."""
        rows: list[tuple[int | None, ...]] = [
            (tree.number, level, code, stride * node)
            for tree, levels, stride in zip(self.codings.trees, self.levels, self.codings.strides, strict=True)
            for level, nodes in enumerate(levels)
            for node in nodes
            for code in (*tree.codes[node], *self.codings.inside(tree, node))
        ]
        rows += self._outside
        columns = {"axis": "INTEGER", "level": "INTEGER", "code": "INTEGER", "part": self.codings.key_type}
        return self.codings.engine.load("levels", columns, rows)

    @property
    def _outside(self) -> list[tuple[int, int, int, None]]:
        """(axis, level, code, None) for the codes of people whose values no node of a level covers."""
        found = []
        for tree, levels in zip(self.codings.trees, self.levels, strict=True):
            every = set(self.codings.inside(tree, 0))
            for level, nodes in enumerate(levels):
                covered = {code for node in nodes for code in self.codings.inside(tree, node)}
                found += [(tree.number, level, code, None) for code in sorted(every - covered)]
        return found

    def beside(self, vector: Vector, step: int) -> Iterator[Vector]:
        """The vectors one level higher on one quasi-identifier, or with a `step` of -1 one level lower."""
        for place, level in enumerate(vector):
            if 0 <= level + step <= self.top[place]:
                yield (*vector[:place], level + step, *vector[place + 1 :])

    def search(self) -> set[Vector]:
        """All vectors that hold; the top, the whole table as one class, is known to."""
        holds = {self.top}
        for subset in sorted(product((False, True), repeat=len(self.top)), key=sum)[1:]:
            unknown = set(self._candidates(subset, holds))
            if unknown:
                holds |= self._settle(unknown, [place for place, taken in enumerate(subset) if taken])
        return holds

    def _candidates(self, subset: Sequence[bool], holds: set[Vector]) -> Iterator[Vector]:
        """The vectors of the subset, the others at their top, that hold with any one more at its top."""
        ranges = [range(top) if taken else (top,) for top, taken in zip(self.top, subset, strict=True)]
        for vector in product(*ranges):
            raised = ((*vector[:p], self.top[p], *vector[p + 1 :]) for p, taken in enumerate(subset) if taken)
            if all(one in holds for one in raised):
                yield vector

    def _settle(self, unknown: set[Vector], places: Sequence[int]) -> set[Vector]:
        """The vectors that hold; each round judges those of the middle height."""
        codings, holds = self.codings, set()
        codes = [codings.trees[place].code.name for place in places]
        cells = self._narrow(codings.cells, codes)
        people = {name: self._narrow(of_people, codes) for name, of_people in codings.people().items()}
        count = codings.engine.count(cells)
        while unknown:
            heights = sorted(map(sum, unknown))
            asked = sorted(vector for vector in unknown if sum(vector) == heights[len(heights) // 2])
            asked = asked[: _at_once(count)]
            failed = self._judge(asked, places, cells, people)
            holds |= self._closed([v for v in asked if v not in failed], unknown, 1)
            unknown -= holds | self._closed(failed, unknown, -1)
        codings.engine.drop(cells, *people.values())
        return holds

    def _narrow(self, cells: Relation, codes: Sequence[str]) -> Relation:
        """The frequency set of a subset of the quasi-identifiers, by sensitive value."""
        return self.codings.engine.group("narrow", cells, *codes, "sensitive", rows=("sum", "rows"))

    def _closed(self, start: Sequence[Vector], among: set[Vector], step: int) -> set[Vector]:
        """The vectors of `among` that are reached from `start` by steps, and these."""
        reached, todo = set(start), list(start)
        while todo:
            fresh = {vector for vector in self.beside(todo.pop(), step) if vector in among} - reached
            reached |= fresh
            todo += fresh
        return reached

    def _judge(
        self, vectors: Sequence[Vector], places: Sequence[int], cells: Relation, people: Mapping[str, Relation]
    ) -> list[Vector]:
        self.judged += len(vectors)
        placed, axes = self._place(vectors, places)
        counting = "baselines/incognito/count_classes"
        histogram, covered = self.codings.count(counting, cells, people, places=placed, axes=axes)
        self.codings.engine.drop(placed)
        return [vectors[number] for number in sorted(self.codings.failed(histogram, covered))]

    def _place(self, vectors: Sequence[Vector], places: Sequence[int]) -> tuple[Relation, list[Any]]:
        """The part of each code of some quasi-identifiers in the key of its class, by vector."""
        engine, trees = self.codings.engine, self.codings.trees
        rows = [
            (number, trees[place].number, vector[place]) for number, vector in enumerate(vectors) for place in places
        ]
        listed = engine.load("vectors", {"node_no": "BIGINT", "axis": "INTEGER", "level": "INTEGER"}, rows)
        columns = {"left_columns": ["node_no", "axis"], "right_columns": ["code", "part"]}
        placed = engine.join("places", listed, self._loaded, "axis", "level", **columns)
        engine.drop(listed)
        return placed, [trees[place] for place in places]

    def costs(self, vectors: Sequence[Vector], metric: str) -> list[int]:
        """The cost of each vector: LM in the units of the codings, DM and CM in their own."""
        if metric == "LM":
            return [sum(of[level] for of, level in zip(self._losses, vector, strict=True)) for vector in vectors]
        codings = self.codings
        costs: dict[int, int] = {}
        most = _at_once(codings.engine.count(codings.cells))
        for start in range(0, len(vectors), most):
            placed, axes = self._place(vectors[start : start + most], range(len(self.top)))
            params = {"cells": codings.cells, "places": placed, "axes": axes, "total": codings.total, "metric": metric}
            rows = codings.engine.rows("baselines/incognito/sum_costs", **params)
            costs |= {start + number: int(cost) for number, cost in rows}
            codings.engine.drop(placed)
        return [costs[number] for number in range(len(vectors))]

    @cached_property
    def _losses(self) -> list[list[int]]:
        """By quasi-identifier and level: what all rows lose."""
        return [
            [sum(self.codings.loss(tree, node) for node in nodes) for nodes in levels]
            for tree, levels in zip(self.codings.trees, self.levels, strict=True)
        ]


def _at_once(cells: int) -> int:
    return max(1, min(BATCH, _MOST_ROWS // max(cells, 1)))
