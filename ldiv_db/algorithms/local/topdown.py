"""Top down: everything starts in one class, which is specialised wherever that leaves good classes.

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
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.costs import Measure, lm_measures
from ldiv_db.algorithms.local.candidate_classes import ClassChecker, check_monotone
from ldiv_db.algorithms.local.unsplit_nodes import Branch, Nodes, Way, add_splits, find_splits
from ldiv_db.algorithms.local.unsure import require_good
from ldiv_db.database.one_statement import OneStatement
from ldiv_db.database.templates import Relation, Value

#: The most rows that may be given back to one node, and the numbers that are tried.
MOST = 2**14
SIZES = tuple(sorted({*range(1, 9), *(round(8 * 1.25**power) for power in range(35))} - {0}))


class TopDownOptions(Options):
    """None."""


@dataclass
class _Round:
    """What every round needs: the branches and what their nodes save, and the last number of a node."""

    task: Task
    checker: ClassChecker
    branches: Sequence[Branch]
    savings: Relation
    sizes: Relation
    children: Value
    last: int = 1
    rounds: int = 0

    def run(self, active: Relation, assigned: Relation) -> Relation | None:
        """The rows of the nodes that were split; those of the others are assigned. None if nothing was split."""
        engine = self.task.engine
        with engine.scope() as scope:
            nodes = self._nodes(active)
            counts = engine.materialise("counts", "local/topdown/count_parts", **nodes.holes)
            measured = self._measure(nodes, counts)
            chosen, taken = self._choose(nodes, counts, measured)
            splits = find_splits(self.task, self.checker, self.children, counts, measured, chosen)
            if splits is not None:
                measured = add_splits(self.task, splits, nodes, measured, chosen, taken)
            engine.insert(assigned, "local/topdown/list_settled", active=active, chosen=chosen)
            moved = self._move(nodes, measured, chosen, taken)
            self.rounds += 1
            return scope.keep(moved) if moved else None

    @property
    def _sensitive(self) -> Any:
        return self.task.encoded.sensitive

    def _nodes(self, active: Relation) -> Nodes:
        """The nodes of these rows that have enough of them to be split."""
        steps, branches = OneStatement(self.task.engine), self.branches
        holes = {"measures": [branch.measure for branch in branches], "least": Value(2 * self.checker.least)}
        bounds = steps.materialise("bounds", "local/topdown/bound_nodes", active=active, **holes)
        axes = Value(len(branches) + 1)
        ways = steps.keep("ways", "local/topdown/list_ways", bounds=bounds, branches=branches, axes=axes)
        return Nodes(active, ways, branches, self._sensitive, self.children)

    def _measure(self, nodes: Nodes, counts: Relation) -> Relation:
        """The parts with their margins and what a row saves in each."""
        steps = OneStatement(self.task.engine)
        margins = self.checker.measured(steps, counts)
        holes = {"savings": self.savings, "branches": self.branches, "children": self.children}
        return steps.keep(
            "measured", "local/topdown/measure_parts", counts=counts, ways=nodes.ways, margins=margins, **holes
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
            holes = {"splits": splits, "taken": taken, "givers": givers, "children": self.children}
            chosen = steps.keep("chosen", "local/topdown/choose_splits", **holes)
            return scope.keep(chosen), scope.keep(taken)

    def _take(self, nodes: Nodes, counts: Relation, measured: Relation, rests: Relation, splits: Relation) -> Relation:
        """The fewest rows that make good what stays, for each node's best split that leaves too little."""
        sensitive, most = self._sensitive, Value(MOST)
        recruits = self._recruit(nodes, counts, measured, rests, splits)
        steps = OneStatement(self.task.engine)
        holes = {"rests": rests, "recruits": recruits, "sizes": self.sizes, "most": most}
        trials = steps.materialise("trials", "local/topdown/count_trials", **holes, sensitive=sensitive)
        margins = self.checker.measured(steps, trials)
        holes = {"recruits": recruits, "margins": margins, "most": most}
        return steps.keep("taken", "local/topdown/take_recruits", **holes, sensitive=sensitive)

    def _recruit(
        self, nodes: Nodes, counts: Relation, measured: Relation, rests: Relation, splits: Relation
    ) -> Relation:
        """The rows that could be given back, for the splits that leave too little, best first."""
        steps = OneStatement(self.task.engine)
        dirty = steps.materialise("dirty", "local/topdown/list_dirty", splits=splits)
        placed = steps.materialise("placed", "local/topdown/place_rows", splits=dirty, **nodes.holes)
        holes = {"placed": placed, "measured": measured, "counts": counts, "rests": rests, "most": Value(MOST)}
        return steps.keep("recruits", "local/topdown/list_recruits", **holes, sensitive=self._sensitive)

    def _move(self, nodes: Nodes, measured: Relation, chosen: Relation, taken: Relation) -> Relation | None:
        engine = self.task.engine
        if not engine.count(chosen):
            return None
        targets = engine.materialise(
            "targets", "local/topdown/number_parts", chosen=chosen, measured=measured, last=Value(self.last)
        )
        steps = OneStatement(engine)
        rests = steps.materialise("rests", "local/topdown/find_rests", targets=targets, measured=measured)
        holes = {"chosen": chosen, "targets": targets, "taken": taken, "rests": rests}
        moved = steps.keep("active", "local/topdown/move_rows", **holes, **nodes.holes)
        self.last += engine.count(targets)
        return moved


class TopDown(Algorithm):
    """Top-down specialisation with local recoding, for any list of monotone requirements."""

    name = "topdown"
    spares_outliers = True
    takes_any_class = takes_rows_alone = takes_harmless = True
    options_type = TopDownOptions
    options: TopDownOptions

    def check(self, task: Task) -> Feasibility:
        """Raises PolicyError if a requirement is not monotone, InfeasibleError if the whole table violates one."""
        return check_monotone(task, self.name)

    def run(self, task: Task) -> Plan:
        feasible, engine = self.check(task), task.engine
        with engine.scope() as scope:
            measures = lm_measures(task)
            rounds = _first_round(task, measures)
            assigned = scope.keep(engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, []))
            holes = {"rows": task.encoded.rows, "measures": measures, "sensitive": task.encoded.sensitive}
            active: Relation | None = engine.materialise("active", "local/topdown/start_nodes", **holes)
            while active is not None:
                moved = rounds.run(active, assigned)
                engine.drop(active)  # all the rows that are not settled, once a round
                active = moved
                task.progress(engine.count(assigned), task.encoded.row_count)
            require_good(task, self.name, assigned)
        return Plan(assigned, feasible.l, feasible.notes, {"rounds": rounds.rounds})


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
    return _Round(
        task,
        ClassChecker(task),
        branches,
        engine.load("savings", {"axis": "INTEGER", "child": "BIGINT", "saved": "BIGINT"}, savings),
        engine.load("sizes", {"size": "BIGINT"}, [(size,) for size in SIZES]),
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
            [Way(Value(next(numbers)), level) for level in (measure.levels if measure.paths else [None])],
        )
        for number, measure in enumerate(measures, 1)
    ]


def _savings(branch: Branch) -> list[tuple[Any, int]]:
    """Every node but the root with what a row saves by going down to it from its parent."""
    axis = branch.measure.axis
    nodes = axis.taxonomy.nodes if axis.taxonomy else ()
    cost = {n.node: (n.high - n.low) * int(branch.full.value) // max(axis.scale, 1) for n in nodes}
    return [(n, cost[n.parent] - cost[n.node]) for n in nodes if n.parent is not None]
