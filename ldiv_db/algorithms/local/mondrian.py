"""Mondrian: every node is split at the median of its widest quasi-identifier, as long as both sides are good.

LeFevre, DeWitt & Ramakrishnan (2006), for any monotone requirement, all nodes of a level at once. Where the widest
does not allow a split the next one is tried. `strict` keeps equal values together, so that classes do not overlap;
`relaxed` halves the rows, equal values going to both sides. A taxonomy is ordered by its leaves.

Guarantee: every class meets every requirement, no row is left out, and no class can be split at the median of any
quasi-identifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ldiv_db.algorithms.base import Options, Plan, Task
from ldiv_db.algorithms.local.class_checker import ClassChecker, LocalAlgorithm, count_classes, require_good, start_plan
from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.table_queries import Aggregate
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.recoding.encoded import Axis


class MondrianOptions(Options):
    """`strict` splits keep equal values together, `relaxed` ones need not."""

    split: Literal["strict", "relaxed"] = "strict"


@dataclass(frozen=True)
class Width:
    """A quasi-identifier with its number and the weight of its whole domain."""

    axis: Axis
    number: int
    full: int


def widths_of(axes: Sequence[Axis]) -> list[Width]:
    """All quasi-identifiers that classes should be narrow in."""
    largest = max(axis.weight for axis in axes) or 1.0
    return [Width(axis, number, max(1, round(axis.weight / largest * 10**6))) for number, axis in enumerate(axes, 1)]


class Mondrian(LocalAlgorithm):
    """Recursive median splits, for any list of monotone requirements."""

    name = "mondrian"
    traits = replace(LocalAlgorithm.traits, counts=True)
    options_type = MondrianOptions
    options: MondrianOptions

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        engine, checker = task.engine, ClassChecker(task)
        widths = widths_of(task.encoded.axes)
        last, rounds = 1, 0
        with engine.scope() as scope:
            plan = start_plan(engine, task.encoded, feasible, cells=self._is_strict)
            scope.keep(plan.assigned)
            active = self._start(task)
            while True:
                choices = self._choose(task, checker, active, widths)
                settled = {"active": active, "choices": choices, "dealt": plan.dealt}
                engine.insert(plan.assigned, "local/mondrian/list_settled", **settled)
                if not engine.count(choices):
                    break
                active, last = self._split(task, checker, active, choices, widths, last)
                rounds += 1
                task.progress(plan.row_count(engine), task.encoded.row_count)
            require_good(task, self.name, plan.assigned, plan.dealt)
        return replace(plan, search={"split": self.options.split, "rounds": rounds})

    @property
    def _is_strict(self) -> bool:
        return self.options.split == "strict"

    def _start(self, task: Task) -> Relation:
        """All rows in one node; cells, where equal values stay together."""
        encoded = task.encoded
        rows, weight = (encoded.counted, encoded.weight) if self._is_strict else (encoded.rows, None)
        params = {"rows": rows, "weight": weight, "codes": _codes(task)}
        return task.engine.materialise("active", "local/mondrian/start_nodes", **params)

    def _choose(self, task: Task, checker: ClassChecker, active: Relation, widths: Sequence[Width]) -> Relation:
        """The quasi-identifier that each node is to be split along."""
        engine = task.engine
        with engine.scope() as scope:
            found: dict[str, Aggregate] = {"attempt": ("max", "attempt"), "rows": ("sum", "weight")}
            for axis in task.encoded.axes:
                found |= {axis.low.name: ("min", axis.code.name), axis.high.name: ("max", axis.code.name)}
            bounds = engine.group("bounds", active, "node", **found)
            params = {"bounds": bounds, "widths": widths, "least": 2 * checker.least}
            return scope.keep(engine.materialise("choices", "local/mondrian/choose_axes", **params))

    def _split(
        self, task: Task, checker: ClassChecker, active: Relation, choices: Relation, widths: Sequence[Width], last: int
    ) -> tuple[Relation, int]:
        """The rows of nodes that go on, in sides where both are good, and the last number of a node."""
        engine, sensitive = task.engine, task.encoded.sensitive
        with engine.scope() as scope:
            sides = self._sides(task, active, choices, widths)
            engine.drop(active)  # all the rows, once a level
            counts = count_classes(engine, sensitive, sides, weight=WEIGHT)
            margins = checker.margins(counts)
            splits = engine.materialise("splits", "local/mondrian/list_splits", margins=margins, last=last)
            params = {"sides": sides, "splits": splits, "codes": _codes(task)}
            moved = engine.materialise("active", "local/mondrian/move_rows", **params)
            return scope.keep(moved), last + 2 * engine.count(splits)

    def _sides(self, task: Task, active: Relation, choices: Relation, widths: Sequence[Width]) -> Relation:
        engine, params = task.engine, {"active": active, "choices": choices, "widths": widths}
        medians = None
        if self._is_strict:
            placed = engine.materialise("placed", "local/mondrian/count_places", **params)
            medians = engine.materialise("medians", "local/mondrian/find_medians", placed=placed, weight=WEIGHT)
        return engine.materialise("sides", "local/mondrian/side_rows", medians=medians, **params)


def _codes(task: Task) -> list[Identifier]:
    encoded = task.encoded
    return [*(axis.code for axis in encoded.axes), *(axis.code for axis in encoded.sensitive)]
