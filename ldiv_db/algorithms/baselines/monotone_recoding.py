"""Global recodings of any monotone requirement: cells, keys of classes, who judges them, and how they are published.

A value of a recoding is a node of the taxonomy, and its digit the node's number. The key of a class is the sum of its
digits, each times the product of the numbers of nodes before; classes of many recodings are told apart by the
recoding's number times the number of keys, so that one statement judges them all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Task, Traits
from ldiv_db.algorithms.cuts.spanned import in_nodes, trees_of
from ldiv_db.algorithms.cuts.trees import SPAN_COLUMNS, CutTree, loss_unit
from ldiv_db.algorithms.infeasible import cannot_promise, explain
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.taxonomies.taxonomy import SpannedTaxonomy

#: Keys from here on take integers of 16 bytes, and none may reach the second number.
_WORD, _MOST = 2**62, 2**126
#: Recodings whose classes one statement may tell apart.
BATCH = 1_000

#: The nodes of a cut, by quasi-identifier.
Nodes = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Codings:
    """The cells of a task (the codes, sensitive, label if `labelled`, rows), and the keys of its classes."""

    task: Task
    trees: tuple[CutTree, ...]
    cells: Relation
    labelled: bool = False

    @property
    def engine(self) -> Engine:
        return self.task.engine

    @cached_property
    def strides(self) -> list[int]:
        """The place value of each quasi-identifier's digit in a key."""
        return list(accumulate([1, *(tree.node_count for tree in self.trees[:-1])], mul))

    @property
    def total(self) -> int:
        """The number of keys; the last is that of people whom no value of a recoding covers."""
        return prod(tree.node_count for tree in self.trees) + 1

    @cached_property
    def everybody(self) -> Relation:
        """(value, code): what people have in the place of a sensitive value."""
        return self.engine.load("everybody", {"value": "VARCHAR", "code": "INTEGER"}, [("", 1)])

    def people(self) -> dict[str, Relation]:
        """The people of each population in cells as those of the task are."""
        return dict(self.task.people.cells) if self.task.people else {}

    def inside(self, tree: CutTree, node: int) -> list[int]:
        """The codes of people whose values a node covers."""
        if self.task.people is None:
            return []
        low, high = tree.bounds(node)
        numbered = enumerate(self.task.people.spans[tree.code], 1)
        return [-number for number, own in numbered if low <= own[0] and own[1] <= high]

    def loss(self, tree: CutTree, node: int) -> int:
        """What all rows lose that are published as a node."""
        rows = sum(sum(self.counts[tree.number - 1].get(code, {}).values()) for code in tree.codes[node])
        return rows * tree.loss(*tree.bounds(node), self.unit)

    @property
    def key_type(self) -> str:
        return "BIGINT" if self.total * BATCH < _WORD else "HUGEINT"

    @cached_property
    def counts(self) -> list[dict[int, dict[int, int]]]:
        """By quasi-identifier, code and label (0 without labels): the rows."""
        by_axis: list[dict[int, dict[int, int]]] = []
        for tree in self.trees:
            by_code: dict[int, dict[int, int]] = {}
            columns = [tree.code.name, *(["label"] if self.labelled else [])]
            for code, *label, rows in self.engine.grouped(self.cells, *columns, rows=("sum", "rows")):
                by_code.setdefault(code, {})[label[0] if label else 0] = rows
            by_axis.append(by_code)
        return by_axis

    @cached_property
    def unit(self) -> int:
        """The number of units in the loss of one cell."""
        return loss_unit(self.trees)

    def count(
        self, template: str, cells: Relation, people: Mapping[str, Relation], **params: Any
    ) -> tuple[Relation, dict[str, Relation]]:
        """The classes of recodings with their sensitive values, as a template counts them, and with their people."""
        params |= {"axes": params.get("axes", self.trees), "total": self.total}

        def of(cells: Relation, dictionary: Relation) -> Relation:
            return self.engine.materialise("histogram", template, cells=cells, dictionary=dictionary, **params)

        everybody = self.everybody
        with self.engine.scope() as scope:
            histogram = scope.keep(of(cells, self.task.encoded.sensitive[0].reference))
            if not self.sets:
                return histogram, {name: scope.keep(of(covered, everybody)) for name, covered in people.items()}
            seen = {tree.code: of(*self._by(cells, tree.code.name)) for tree in self.sets}
            return histogram, {name: scope.keep(self._covered(of, seen, own)) for name, own in people.items()}

    @cached_property
    def sets(self) -> list[CutTree]:
        """The quasi-identifiers of which classes publish sets, where these cover people of a population."""
        return _sets(self.task, self.trees)

    def _by(self, cells: Relation, column: str) -> tuple[Relation, Relation]:
        """The cells with a column in place of the sensitive value, and its values by themselves, (value, code)."""
        codes = [tree.code.name for tree in self.trees]
        values = self.engine.select("values", cells, (column, "value"), (column, "code"), distinct=True)
        return self.engine.select("cells", cells, *codes, (column, "sensitive"), "rows"), values

    def _covered(
        self, of: Callable[[Relation, Relation], Relation], seen: Mapping[Identifier, Relation], cells: Relation
    ) -> Relation:
        """The people of classes whose sets have their values, (class_no, rows)."""
        codes = [tree.code.name for tree in self.trees]
        named = self.engine.number_groups("numbered", cells, *codes, number="number", columns=(*codes, "rows"))
        people = of(*self._by(named, "number"))
        return _cover_sets(self.task, seen, people, named, self.sets)

    def failed(self, histogram: Relation, people: Mapping[str, Relation]) -> set[int]:
        """The numbers of the recodings that have a class which violates a requirement; drops what it is given.

        `people` are the histograms of populations.
        """
        engine, failed = self.engine, set[int]()
        classes = self.task.encoded.sensitive[0].classes(engine, histogram)
        classes.place_people(people)
        for requirement in self.task.requirements:
            for read in requirement.readings(classes):
                measures = requirement.measure(engine, read)
                rows = engine.rows("baselines/incognito/list_failed", measures=measures, total=self.total)
                failed |= {number for (number,) in rows}
                engine.drop(measures)
        classes.drop()
        engine.drop(histogram, *people.values())
        return failed

    def publish(self, cut: Nodes) -> tuple[Relation, Relation]:
        """(row_id, class_id) of all rows, and the classes with their bounds, under a node for every code."""
        pairs = zip(self.trees, cut, strict=True)
        listed = [row for tree, nodes in pairs for row in tree.spans(nodes, self.unit)]
        flow = EngineFlow(self.engine, "cuts", rows=self.task.encoded.rows, axes=self.trees)
        flow.know(places=self.engine.load("places", SPAN_COLUMNS, listed))
        assigned = flow.step("assigned", "assign_classes")
        classes = flow.step("classes", "bound_classes", bounds=[tree.axis for tree in self.trees])
        self.engine.drop(flow["places"], self.cells, *self.people().values())
        return assigned, classes

    def labels(self, cut: Nodes) -> dict[str, list[str]]:
        """The labels of the nodes by quasi-identifier, as they are published."""
        return {tree.axis.name: tree.labels(own) for tree, own in zip(self.trees, cut, strict=True)}


def make_codings(task: Task, label: Renamed | None = None) -> Codings:
    """The codings of a task that `MonotoneRecoding.check` has let through; `label` is the class column."""
    engine, encoded = task.engine, task.encoded
    trees = trees_of(engine, encoded.axes)
    with engine.scope() as scope:
        named = [label.alias.name] if label else []
        cells = encoded.count_cells(engine, (encoded.sensitive[0].code.name, "sensitive"), *named)
        if label:
            cells = engine.number_groups("cells", cells, *named, number="label", columns=())
        return Codings(task, trees, scope.keep(cells), label is not None)


class MonotoneRecoding(Algorithm):
    """A global recoding under any monotone requirement, by the nodes of taxonomies."""

    traits = Traits(
        recodes_globally=True, rows_alone=True, harmless=True, counts=True, populations=True, explains=True, bags=True
    )

    def seen(self, task: Task) -> Task:
        return in_nodes(task)

    def check(self, task: Task) -> Feasibility:
        """Raises PolicyError for what the recoding cannot do, InfeasibleError if its most general one fails."""
        refuse([*self._option_problems(task), *_problems(self.name, task)])
        (axis,) = task.encoded.sensitive
        failed = explain(task.engine, axis, task.requirements, any_class=True, people=_all_people(task))
        if failed:
            raise InfeasibleError("\n".join(failed))
        sizes = [requirement.unique_class_size() or 1 for requirement in task.requirements]
        return Feasibility(max(sizes), 1, task.encoded.left_out)

    @abstractmethod
    def _option_problems(self, task: Task) -> Iterator[Problem]:
        """The problems of the options."""


def _sets(task: Task, trees: Sequence[CutTree]) -> list[CutTree]:
    """The quasi-identifiers of which classes publish sets, where these cover people of a population."""
    forms = task.forms if task.people else {}
    return [tree for tree in trees if forms.get(tree.axis.name) == "set"]


def _cover_sets(
    task: Task, seen: Mapping[Identifier, Relation], people: Relation, cells: Relation, sets: Sequence[CutTree]
) -> Relation:
    """The `people` (class_no, value: the number of a cell, rows) whose values their class has, (class_no, rows).

    `seen` is (class_no, value), the codes that rows of a class have of each quasi-identifier.
    """
    assert task.people is not None  # noqa: S101 - the caller has looked
    axes, types = list[dict[str, Any]](), {"code": "INTEGER", "leaf": "INTEGER"}
    for tree in sets:
        of_leaf = {leaf.low: tree.taxonomy.code_of(leaf) for leaf in tree.taxonomy.leaves if leaf.low == leaf.high}
        numbered = enumerate(task.people.spans[tree.code], 1)
        leaves = task.engine.load("leaves", types, [(-number, of_leaf[low]) for number, (low, _) in numbered])
        axes.append({"code": tree.code, "table": tree.table, "seen": seen[tree.code], "leaves": leaves})
    return task.engine.materialise("covered", "baselines/tds/cover_sets", people=people, cells=cells, axes=axes)


def _all_people(task: Task) -> dict[str, Relation]:
    """The people of each population that the table as one class covers, (class_no, rows)."""
    if task.people is None:
        return {}
    columns = {"class_no": "BIGINT", "rows": "BIGINT"}
    sets = _sets(task, trees_of(task.engine, task.encoded.axes))
    return {
        name: task.engine.load("people", columns, [(1, _covered(task, sets, cells)), *([(0, left)] if left else [])])
        for name, cells in task.people.cells.items()
        for left in [task.people.left_out[name]]
    }


def _covered(task: Task, sets: Sequence[CutTree], cells: Relation) -> int:
    """How many people the table as one class covers: with sets those whose values occur."""
    engine, codes = task.engine, [tree.code.name for tree in sets]
    if not sets:
        return engine.total(cells, "rows")
    columns = {"class_no": "BIGINT", "value": "INTEGER"}
    with engine.scope():
        seen = {
            tree.code: engine.load(
                "seen", columns, [(1, code) for (code,) in engine.grouped(task.encoded.counted, tree.code.name)]
            )
            for tree in sets
        }
        named = engine.number_groups("numbered", cells, *codes, number="number", columns=(*codes, "sensitive", "rows"))
        people = engine.select("people", named, ("sensitive", "class_no"), ("number", "value"), "rows")
        one = engine.select("cells", named, "number", *codes, distinct=True)
        return engine.total(_cover_sets(task, seen, people, one, sets), "rows")


def _problems(name: str, task: Task) -> Iterator[Problem]:
    encoded = task.encoded
    if len(encoded.sensitive) > 1:
        yield Problem("sensitive", f"{name} takes one sensitive attribute", "keep the others, or use bsgi")
    is_spanned = any(isinstance(axis.taxonomy, SpannedTaxonomy) for axis in encoded.axes)
    for requirement in task.requirements:
        if requirement.parts_people and is_spanned:
            what = f"{requirement.label} takes classes that part people, and labels of several values cover others' too"
            yield Problem("individual.rows", what, "give one row a person in a view")
        if requirement.parts_people and "set" in task.forms.values():
            what = f"{requirement.label} takes classes that cover everybody, and sets leave out who has other values"
            yield Problem("recode", what, "set recode: tree")
        if not requirement.monotone:
            yield cannot_promise(name, requirement, "the union of good classes may be bad", "distinct or frequency")
    if prod(tree.node_count for tree in trees_of(task.engine, encoded.axes)) * BATCH >= _MOST:
        yield Problem("quasi_identifiers", f"{name}: too many, with too many leaves, to number their classes")
