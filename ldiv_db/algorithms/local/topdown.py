"""Top down: everything starts in one class, which is specialised wherever that leaves good classes.

Algorithm 1 of the (l,alpha) paper, for any number of quasi-identifiers and any monotone requirement, all nodes of a
round at once. A node's lowest common ancestors say what it is; along each quasi-identifier its rows part into the
children of that ancestor, or into halves of a range. Good children become nodes, the rows of the others stay; if
what stays violates, the fewest rows of children with slack are given back to it, or that split is not made. Of a
node's splits the one that lowers the loss most is carried out. What stays is a node like any other.

A node without such a split is tried once more, part by part. If good classes of some parts can leave a node so that
what stays is good, the class of one part can: the others, good as they are, make what stays no worse. So each part is
tried by itself. A retention says how many of its rows of each combination of sensitive values stay in the node. Where
more rows are never worse (`k`, `distinct`) bad parts have no good class, and the fewest rows of a good one have been
tried before, so that only the retention of nothing is left, of parts beside which others are good too; otherwise all
are tried, as far as there are no more than `MOST` for a part and `BUDGET` for all of a round, beyond that again the
retention of nothing.

Guarantee: every class meets every requirement, no row is left out, and the result is locally minimal: along no
quasi-identifier can rows of one child leave their class so that they and the rest are good, as far as retentions are
tried.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import Measure, lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker, LocalAlgorithm, require_good, start_plan
from ldiv_db.algorithms.local.strata import Strata, joined
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.steps import OneStatement
from ldiv_db.database.table_queries import selection
from ldiv_db.recoding.encoded import DEALT, Axis

#: The most retentions that are tried for one part, and for all parts of a round; of several strata twice as many.
MOST, BUDGET = 1024, 2**20
#: The most rows that may be given back to one node, and the numbers that are tried.
MOST_RECRUITS = 2**14
SIZES = tuple(sorted({*range(1, 9), *(round(8 * 1.25**power) for power in range(35))} - {0}))


class _Rounds:
    """The rounds of all strata: the rows of their nodes are `active` in its flow; `last` is the last number of a node.

    In the first round a stratum is a node.
    """

    def __init__(self, strata: Strata):
        task = strata.task
        engine, encoded, measures = task.engine, task.encoded, lm_measures(task)
        self.task, self.checker, self.last, self.rounds = task, ClassChecker(task), strata.count, 0
        self.budget = BUDGET * min(2, strata.count)
        branches = _branches(measures)
        self.flow = flow = EngineFlow(engine, "local/topdown", sensitive=encoded.sensitive, branches=branches)
        flow.know(rows=encoded.counted, weight=encoded.weight, measures=measures, stratum=strata.column)
        flow.know(words=max((measure.words for measure in measures), key=len))
        flow.know(axes=len(branches) + 1, least=2 * self.checker.least)
        flow.know(children=2 + max([0, *(len(m.axis.tree.nodes) for m in measures if m.axis.tree)]))
        #: The most rows that may be given back to one node.
        flow.know(most=next((size for size in SIZES if size >= self.checker.enough), MOST_RECRUITS))
        numbers = {branch["measure"].axis.code: branch["number"] for branch in branches}
        costs = {(n, numbers[axis.code], _full(axis, full)): (axis, full) for n, axis, full in strata.full_costs()}
        columns = {"stratum": "BIGINT", "axis": "INTEGER", "full_cost": "BIGINT"}
        flow.know(costs=engine.load("costs", columns, list(costs)))
        savings = {
            (number, full, node.node): max(1, saved) if saved > 0 or not own else 0
            for (_, number, full), (axis, own) in costs.items()
            for node, saved in _savings(axis, full)
        }
        columns = {"axis": "INTEGER", "full_cost": "BIGINT", "child": "BIGINT", "saved": "BIGINT"}
        listed = [(*key, saved) for key, saved in savings.items()]
        flow.know(savings=engine.load("savings", columns, listed) if listed else None)  # none of numbers
        flow.know(sizes=json.dumps(SIZES))

    def run(self, assigned: Relation) -> bool:
        """Split the active nodes, whose rows are active then; those of other nodes are assigned. False if none was."""
        flow, engine, active = self.flow, self.flow.engine, self.flow["active"]
        with flow.scope("active"):
            ways = flow.step("ways", "list_ways")
            if engine.count(ways):
                flow.step("counts", "count_parts")
                self._judge("measured", "measure_parts", flow["counts"])
                if self._choose() or not self.checker.more_is_better:
                    self._try_parts()
            else:
                flow.know(chosen=ways)
            dealt: list[tuple[str, str]] = [("weight", DEALT.name)] if self.task.encoded.cells else []
            engine.extend_others(assigned, active, flow["chosen"], "node", "row_id", ("node", "class_id"), *dealt)
            splits = engine.count(flow["chosen"])
            if splits:
                targets = flow.step("targets", "number_parts", last=self.last)
                flow.step("active", "move_rows")
                self.last += engine.count(targets)
            self.rounds += 1
        engine.drop(active)  # all the rows that are not settled, once a round
        return splits > 0

    def _judge(self, name: str, template: str, counts: Relation | tuple[str, str]) -> None:
        """The relation that a template makes of the margins of classes, counted by a template in the same statement."""
        flow, steps = self.flow, OneStatement(self.flow.engine)
        if isinstance(counts, tuple):
            counted, counting = counts
            counts = steps.materialise(counted, flow.path(counting), **flow.params(counting))
        margins = self.checker.measured(steps, counts)
        made = steps.keep(name, flow.path(template), **flow.params(template, margins=margins))
        flow.know(**{name: made})

    def _choose(self) -> bool:
        """The splits that are carried out, and the rows that are given back in them (and in others).

        False if no split has good parts and bad ones: of a node that is not split then no part saves anything.
        """
        flow, engine = self.flow, self.flow.engine
        with flow.scope("chosen", "taken"):
            mixed = engine.count(flow.step("rests", "count_rests")) > 0
            if mixed:
                self._judge("splits", "list_splits", flow["rests"])
                # The fewest rows that make good what stays, for each node's best split that leaves too little.
                flow.step("recruits", "list_recruits")
                if engine.count(flow["recruits"]):
                    self._judge("taken", "take_recruits", ("trials", "count_trials"))
                    self._judge("chosen", "choose_splits", ("left", "count_givers"))
                else:
                    best = [Where("clean", 1), Where("place", 1)]
                    chosen = engine.select("chosen", flow["splits"], "split", "node", where=best)
                    flow.know(chosen=chosen, taken=None)
            else:  # nothing is given back
                steps = OneStatement(engine)
                splits = steps.materialise(
                    "splits", flow.path("list_splits"), **flow.params("list_splits", margins=None)
                )
                first = selection(splits, ["split", "node"], [Where("place", 1)])
                flow.know(chosen=steps.keep("chosen", "database/select_rows", **first), taken=None)
        return mixed

    def _try_parts(self) -> None:
        """Try the nodes without a split once more, part by part; splits that are found are carried out too."""
        flow, engine, only = self.flow, self.flow.engine, self.checker.more_is_better
        with flow.scope("measured", "taken"):
            unsplit = flow.step("unsplit", "list_unsplit", good_only=only)
            parts = engine.count(unsplit)
            if not parts:
                return
            most = 1 if only else max(1, min(MOST, self.budget // parts))
            flow.step("retentions", "list_retentions", most=most, fewest=self.checker.least)
            if not only:  # few keep a good class: only of these it is asked what stays in the node, which has more rows
                self._judge("retentions", "keep_good", ("trials", "count_kept"))
            if not engine.count(flow["retentions"]):
                return
            self._judge("part_splits", "choose_retentions", ("trials", "count_retentions"))
            if engine.count(flow["part_splits"]):
                flow.step("measured", "keep_parts")
                if flow["taken"]:
                    engine.delete_listed(flow["taken"], Identifier("split"), flow["part_splits"])
                    flow.insert("taken", "list_given")
                else:
                    flow.step("taken", "list_given")
                engine.extend(flow["chosen"], flow["part_splits"], "split", "node")


class TopDown(LocalAlgorithm):
    """Top-down specialisation with local recoding, for any list of monotone requirements."""

    name = "topdown"
    traits = replace(LocalAlgorithm.traits, counts=True)

    def run(self, task: Task) -> Plan:
        return self.run_all([task])[0]

    def run_all(self, tasks: Sequence[Task]) -> list[Plan]:
        """The plan of each task, all made at once; there are several only if they are strata of one."""
        feasible, engine = [self.check(task) for task in tasks], tasks[0].engine
        with engine.scope() as scope:
            strata = joined(tasks)
            rounds, task = _Rounds(strata), strata.task
            plan = start_plan(engine, task.encoded, feasible[0])
            rounds.flow.step("active", "start_nodes")
            goes_on = True
            while goes_on:
                goes_on = rounds.run(plan.assigned)
                task.progress(plan.row_count(engine), task.encoded.row_count)
            require_good(task, self.name, plan.assigned, plan.dealt)
            assigned = [scope.keep(own) for own in strata.parted(plan.assigned)]
        search = {"rounds": rounds.rounds}
        return [
            replace(plan, assigned=own, l=found.l, notes=found.notes, search=search)
            for own, found in zip(assigned, feasible, strict=True)
        ]


def _branches(measures: Sequence[Measure]) -> list[dict[str, Any]]:
    """The quasi-identifiers, and all ways in which nodes part, numbered from 1: by a level, or into halves."""
    numbers, found = itertools.count(1), []
    for number, measure in enumerate(measures, 1):
        levels = measure.levels if measure.paths else [None]
        ways = [{"number": next(numbers), "level": level} for level in levels]
        found.append({"measure": measure, "number": number, "ways": ways})
    return found


def _full(axis: Axis, full: int) -> int:
    """The cost of full generalisation, with that of the quasi-identifiers that become narrower with this one.

    It counts a little even if the weight is 0.
    """
    return max(1, round(full * axis.alike))


def _savings(axis: Axis, full: int) -> list[tuple[Any, int]]:
    """Every node but the root with what a row saves by going down to it from its parent; none of numbers."""
    nodes = axis.tree.nodes if axis.tree else ()
    cost = {n.node: (n.high - n.low) * full // max(axis.scale, 1) for n in nodes}
    return [(n, cost[n.parent] - cost[n.node]) for n in nodes if n.parent is not None]
