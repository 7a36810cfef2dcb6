"""Unsplit nodes: those of which no split was found are tried once more, part by part, with rows given back.

If good classes of some parts can leave a node so that what stays is good, the class of one part can: the others, good
as they are, make what stays no worse. So each part of an unsplit node is tried by itself. A retention says how many of
its rows of each combination of sensitive values stay in the node. Where more rows are never worse (`k`, `distinct`)
bad parts have no good class, and the fewest rows of a good one have been tried before, so that only the retention of
nothing is left, of parts beside which others are good too; otherwise all are tried, as far as there are no more than
`MOST` for a part and `BUDGET` for all of a round, beyond that again the retention of nothing.

Top down: everything starts in one class, which is specialised wherever that leaves good classes.

Algorithm 1 of the (l,alpha) paper, for any number of quasi-identifiers and any monotone requirement, all nodes of a
round at once. A node's lowest common ancestors say what it is; along each quasi-identifier its rows part into the
children of that ancestor, or into halves of a range. Good children become nodes, the rows of the others stay; if
what stays violates, the fewest rows of children with slack are given back to it, or that split is not made. Of a
node's splits the one that lowers the loss most is carried out. What stays is a node like any other. A node without
such a split is tried once more, part by part (`unsplit_nodes`).

Guarantee: every class meets every requirement, no row is left out, and the result is locally minimal: along no
quasi-identifier can rows of one child leave their class so that they and the rest are good, as far as
`unsplit_nodes` tries.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import Measure, lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker, LocalAlgorithm, require_good, start_plan
from ldiv_db.database.steps import OneStatement
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import DEALT, SensitiveAxis

#: The most retentions that are tried for one part, and for all parts of a round.
MOST, BUDGET = 1024, 2**20


@dataclass(frozen=True)
class Branch:
    """A quasi-identifier with its number and the ways it has; its cost counts a little even if its weight is 0."""

    measure: Measure
    number: Value
    full: Value
    #: By the nodes of a level, or into halves of a range.
    ways: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Nodes:
    """The nodes of a round: their rows, and the ways in which those with enough of them can be split."""

    active: Relation
    ways: Relation
    branches: Sequence[Branch]
    sensitive: Sequence[SensitiveAxis]
    children: Value

    @property
    def params(self) -> dict[str, Any]:
        return dict(vars(self))


def find_splits(
    task: Task, checker: ClassChecker, children: Value, counts: Relation, measured: Relation, chosen: Relation
) -> tuple[Relation, Relation] | None:
    """The possible splits of the unsplit nodes, (node, split, part, retention), and all retentions that were tried."""
    engine, only = task.engine, checker.more_is_better
    with engine.scope() as scope:
        unsplit = engine.materialise(
            "unsplit", "local/topdown/list_unsplit", measured=measured, chosen=chosen, good_only=only
        )
        parts = engine.count(unsplit)
        if not parts:
            return None
        retentions = _retain(task, counts, unsplit, 1 if only else max(1, min(MOST, BUDGET // parts)))
        steps, sensitive = OneStatement(engine), task.encoded.sensitive
        params = {"retentions": retentions, "counts": counts, "sensitive": sensitive, "children": children}
        margins = checker.measured(steps, steps.materialise("trials", "local/topdown/count_retentions", **params))
        params = {"retentions": retentions, "unsplit": unsplit, "margins": margins}
        splits = steps.keep("part_splits", "local/topdown/choose_retentions", **params)
        return (scope.keep(splits), scope.keep(retentions)) if engine.count(splits) else None


def _retain(task: Task, counts: Relation, unsplit: Relation, tried: int) -> Relation:
    """The retentions that are tried, at most so many of a part."""
    params = {"sensitive": task.encoded.sensitive, "most": Value(tried)}
    return task.engine.materialise(
        "retentions", "local/topdown/list_retentions", counts=counts, unsplit=unsplit, **params
    )


def add_splits(
    task: Task, found: tuple[Relation, Relation], nodes: Nodes, measured: Relation, chosen: Relation, taken: Relation
) -> Relation:
    """The parts as measured, the splits found being added to those `chosen` and their rows to those `taken`."""
    engine, (splits, retentions) = task.engine, found
    kept = engine.materialise("measured", "local/topdown/keep_parts", measured=measured, part_splits=splits)
    engine.delete_listed(taken, Identifier("split"), splits)
    params = {"part_splits": splits, "retentions": retentions, "measured": measured}
    engine.insert(taken, "local/topdown/list_given", **params, **nodes.params)
    engine.extend(chosen, splits, "split", "node")
    return kept


#: The most rows that may be given back to one node, and the numbers that are tried.
MOST_RECRUITS = 2**14
SIZES = tuple(sorted({*range(1, 9), *(round(8 * 1.25**power) for power in range(35))} - {0}))


@dataclass
class _Round:
    """The state of rounds: the branches, the savings of their nodes, and the last number of a node."""

    task: Task
    checker: ClassChecker
    branches: Sequence[Branch]
    savings: Relation
    sizes: Relation
    #: The most rows that may be given back to one node.
    most: Value
    children: Value
    last: int = 1
    rounds: int = 0

    def run(self, active: Relation, assigned: Relation) -> Relation | None:
        """The rows of the nodes that were split; those of the others are assigned. None if nothing was split."""
        engine = self.task.engine
        with engine.scope() as scope:
            params = {"axes": Value(len(self.branches) + 1), "least": Value(2 * self.checker.least)}
            ways = self.task.engine.materialise(
                "ways", "local/topdown/list_ways", active=active, branches=self.branches, **params
            )
            nodes = Nodes(active, ways, self.branches, self._sensitive, self.children)
            counts = engine.materialise("counts", "local/topdown/count_parts", **nodes.params)
            measured = self._measure(nodes, counts)
            chosen, taken = self._choose(nodes, counts, measured)
            splits = find_splits(self.task, self.checker, self.children, counts, measured, chosen)
            if splits is not None:
                measured = add_splits(self.task, splits, nodes, measured, chosen, taken)
            dealt: list[tuple[str, str]] = [("weight", DEALT.name)] if self.task.encoded.cells else []
            engine.extend_others(assigned, active, chosen, "node", "row_id", ("node", "class_id"), *dealt)
            moved = self._move(nodes, measured, chosen, taken)
            self.rounds += 1
            return scope.keep(moved) if moved else None

    @property
    def _sensitive(self) -> Any:
        return self.task.encoded.sensitive

    def _measure(self, nodes: Nodes, counts: Relation) -> Relation:
        """The parts with their margins and what a row saves in each."""
        steps = OneStatement(self.task.engine)
        margins = self.checker.measured(steps, counts)
        params = {"savings": self.savings, "branches": self.branches, "children": self.children}
        return steps.keep(
            "measured", "local/topdown/measure_parts", counts=counts, ways=nodes.ways, margins=margins, **params
        )

    def _choose(self, nodes: Nodes, counts: Relation, measured: Relation) -> tuple[Relation, Relation]:
        """The splits that are carried out, and the rows that are given back in them (and in others)."""
        engine, sensitive = self.task.engine, self._sensitive
        with engine.scope() as scope:
            rests = engine.materialise(
                "rests", "local/topdown/count_rests", counts=counts, measured=measured, sensitive=sensitive
            )
            steps = OneStatement(engine)
            margins = self.checker.measured(steps, rests)
            splits = steps.keep("splits", "local/topdown/list_splits", measured=measured, margins=margins)
            taken = self._take(nodes, counts, measured, rests, splits)
            steps = OneStatement(engine)
            left = steps.materialise(
                "left", "local/topdown/count_givers", counts=counts, taken=taken, sensitive=sensitive
            )
            givers = self.checker.measured(steps, left)
            params = {"splits": splits, "taken": taken, "givers": givers, "children": self.children}
            chosen = steps.keep("chosen", "local/topdown/choose_splits", **params)
            return scope.keep(chosen), scope.keep(taken)

    def _take(self, nodes: Nodes, counts: Relation, measured: Relation, rests: Relation, splits: Relation) -> Relation:
        """The fewest rows that make good what stays, for each node's best split that leaves too little."""
        sensitive, most = self._sensitive, self.most
        recruits = self.task.engine.materialise(
            "recruits",
            "local/topdown/list_recruits",
            splits=splits,
            measured=measured,
            counts=counts,
            rests=rests,
            most=most,
            **nodes.params,
        )
        steps = OneStatement(self.task.engine)
        params = {"rests": rests, "recruits": recruits, "sizes": self.sizes, "most": most}
        trials = steps.materialise("trials", "local/topdown/count_trials", **params, sensitive=sensitive)
        margins = self.checker.measured(steps, trials)
        params = {"recruits": recruits, "margins": margins, "most": most}
        return steps.keep("taken", "local/topdown/take_recruits", **params, sensitive=sensitive)

    def _move(self, nodes: Nodes, measured: Relation, chosen: Relation, taken: Relation) -> Relation | None:
        engine = self.task.engine
        if not engine.count(chosen):
            return None
        targets = engine.materialise(
            "targets", "local/topdown/number_parts", chosen=chosen, measured=measured, last=self.last
        )
        params = {"chosen": chosen, "targets": targets, "taken": taken, "measured": measured}
        moved = engine.materialise("active", "local/topdown/move_rows", **params, **nodes.params)
        self.last += engine.count(targets)
        return moved


class TopDown(LocalAlgorithm):
    """Top-down specialisation with local recoding, for any list of monotone requirements."""

    name = "topdown"
    traits = replace(LocalAlgorithm.traits, counts=True)

    def run(self, task: Task) -> Plan:
        feasible, engine = self.check(task), task.engine
        with engine.scope() as scope:
            measures = lm_measures(task)
            rounds = _first_round(task, measures)
            encoded = task.encoded
            plan = start_plan(engine, encoded, feasible)
            scope.keep(plan.assigned)
            params = {"rows": encoded.counted, "weight": encoded.weight, "measures": measures}
            active: Relation | None = engine.materialise(
                "active", "local/topdown/start_nodes", sensitive=encoded.sensitive, **params
            )
            while active is not None:
                moved = rounds.run(active, plan.assigned)
                engine.drop(active)  # all the rows that are not settled, once a round
                active = moved
                task.progress(plan.row_count(engine), encoded.row_count)
            require_good(task, self.name, plan.assigned, plan.dealt)
        return replace(plan, search={"rounds": rounds.rounds})


def _first_round(task: Task, measures: Sequence[Measure]) -> _Round:
    """The state of the first round: what a row saves by going down to each node of a taxonomy."""
    engine = task.engine
    branches = _branches(measures)
    savings = [
        (branch.number.value, node.node, max(1, saved) if saved > 0 or not branch.measure.full.value else 0)
        for branch in branches
        if branch.measure.axis.taxonomy
        for node, saved in _savings(branch)
    ]
    children = 2 + max([0, *(len(m.axis.taxonomy.nodes) for m in measures if m.axis.taxonomy)])
    checker = ClassChecker(task)
    return _Round(
        task,
        checker,
        branches,
        engine.load("savings", {"axis": "INTEGER", "child": "BIGINT", "saved": "BIGINT"}, savings),
        engine.load("sizes", {"size": "BIGINT"}, [(size,) for size in SIZES]),
        Value(next((size for size in SIZES if size >= checker.enough), MOST_RECRUITS)),
        Value(children),
    )


def _branches(measures: Sequence[Measure]) -> list[Branch]:
    """The quasi-identifiers, and all ways in which nodes part, numbered from 1."""
    numbers = itertools.count(1)
    return [
        Branch(
            measure,
            Value(number),
            Value(max(1, int(measure.full.value))),
            [
                {"number": Value(next(numbers)), "level": level}
                for level in (measure.levels if measure.paths else [None])
            ],
        )
        for number, measure in enumerate(measures, 1)
    ]


def _savings(branch: Branch) -> list[tuple[Any, int]]:
    """Every node but the root with what a row saves by going down to it from its parent."""
    axis = branch.measure.axis
    nodes = axis.taxonomy.nodes if axis.taxonomy else ()
    cost = {n.node: (n.high - n.low) * int(branch.full.value) // max(axis.scale, 1) for n in nodes}
    return [(n, cost[n.parent] - cost[n.node]) for n in nodes if n.parent is not None]
