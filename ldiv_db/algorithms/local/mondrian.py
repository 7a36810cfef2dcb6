"""Mondrian: every node is split at the median of its widest quasi-identifier, as long as both sides are good.

LeFevre, DeWitt & Ramakrishnan (2006), for any monotone requirement, all nodes of a level at once. Where the widest
does not allow a split the next one is tried; of few rows many are tried at once, and the first that allows one is
taken. `strict` keeps equal values together, so that classes do not overlap; `relaxed` halves the rows, equal values
going to both sides. A taxonomy is ordered by its leaves.

Guarantee: every class meets every requirement, no row is left out, and no class can be split at the median of any
quasi-identifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from ldiv_db.algorithms.base import Options, Plan, Task
from ldiv_db.algorithms.local.class_checker import (
    ClassChecker,
    ClassedRows,
    LocalAlgorithm,
    count_classes,
    require_good,
    start_plan,
)
from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.table_queries import Aggregate
from ldiv_db.recoding.encoded import Axis


class MondrianOptions(Options):
    """`strict` splits keep equal values together, `relaxed` ones need not."""

    split: Literal["strict", "relaxed"] = "strict"


#: The most rows that a round looks at, each once for every quasi-identifier that is tried, unless one is.
_LOOKED_AT = 200_000


def widths_of(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """All quasi-identifiers that classes should be narrow in, with their numbers and the weights of whole domains."""
    largest = max(axis.weight for axis in axes) or 1.0
    full = [max(1, round(axis.weight / largest * 10**6)) for axis in axes]
    return [{"axis": axis, "number": number, "full": full[number - 1]} for number, axis in enumerate(axes, 1)]


class Mondrian(LocalAlgorithm):
    """Recursive median splits, for any list of monotone requirements."""

    name = "mondrian"
    traits = replace(LocalAlgorithm.traits, counts=True)
    options_type = MondrianOptions
    options: MondrianOptions

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        engine, encoded, checker = task.engine, task.encoded, ClassChecker(task)
        last, rounds = 1, 0
        with engine.scope() as scope:
            plan = start_plan(engine, encoded, feasible, cells=self._is_strict)
            scope.keep(plan.assigned)
            codes = [*(axis.code for axis in encoded.axes), *(axis.code for axis in encoded.sensitive)]
            flow = EngineFlow(engine, "local/mondrian", dealt=plan.dealt, codes=codes)
            flow.know(widths=widths_of(encoded.axes), least=2 * checker.least, assigned=plan.assigned, key="choice")
            # All rows in one node; cells, where equal values stay together.
            rows, weight = (encoded.counted, encoded.weight) if self._is_strict else (encoded.rows, None)
            flow.step("active", "start_nodes", rows=rows, weight=weight)
            while True:
                self._choose(task, flow)
                flow.insert("assigned", "list_settled")
                if not engine.count(flow["choices"]):
                    break
                last = self._split(task, checker, flow, last)
                rounds += 1
                task.progress(plan.row_count(engine), encoded.row_count)
            require_good(task, self.name, plan.assigned, plan.dealt)
        return replace(plan, search={"split": self.options.split, "rounds": rounds})

    @property
    def _is_strict(self) -> bool:
        return self.options.split == "strict"

    def _choose(self, task: Task, flow: EngineFlow) -> None:
        """The quasi-identifiers along which each node may be split."""
        most = _LOOKED_AT // max(1, flow.engine.count(flow["active"]))
        flow.know(most=max(1, min(most, len(task.encoded.axes))))
        with flow.scope("choices"):
            found: dict[str, Aggregate] = {"attempt": ("max", "attempt"), "rows": ("sum", "weight")}
            for axis in task.encoded.axes:
                found |= {axis.low.name: ("min", axis.code.name), axis.high.name: ("max", axis.code.name)}
            flow.know(bounds=flow.engine.group("bounds", flow["active"], "node", **found))
            flow.step("choices", "choose_axes")

    def _split(self, task: Task, checker: ClassChecker, flow: EngineFlow, last: int) -> int:
        """Go on with the nodes that have sides which are both good; the last number of a node."""
        active = flow["active"]
        with flow.scope("active"):
            flow.know(medians=None)
            if self._is_strict:
                flow.step("placed", "count_places")
                flow.step("medians", "find_medians", weight=WEIGHT)
            sides = flow.step("sides", "side_rows")
            flow.engine.drop(active)  # all the rows, once a level
            counts = count_classes(flow.engine, task.encoded.sensitive, ClassedRows(sides, weight=WEIGHT))
            flow.know(margins=checker.margins(counts))
            splits = flow.step("splits", "list_splits", last=last)
            flow.step("active", "move_rows")
            return last + 2 * flow.engine.count(splits)
