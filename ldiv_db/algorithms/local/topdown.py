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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.costs import Measure, lm_measures
from ldiv_db.algorithms.local.candidate_classes import ClassChecker, check_monotone
from ldiv_db.algorithms.local.unsplit_nodes import add_splits, find_splits
from ldiv_db.algorithms.local.unsure import require_good
from ldiv_db.database.templates import Relation, Value

#: The most rows that may be given back to one node, and the numbers that are tried.
MOST = 2**14
SIZES = tuple(sorted({*range(1, 9), *(round(8 * 1.25**power) for power in range(35))} - {0}))


class TopDownOptions(Options):
    """None."""


@dataclass(frozen=True)
class Branch:
    """A quasi-identifier with its number; its cost counts a little even if its weight is 0."""

    measure: Measure
    number: Value
    full: Value


@dataclass
class _Round:
    """What every round needs: the branches and what their nodes save, and the last number of a node."""

    task: Task
    checker: ClassChecker
    branches: Sequence[Branch]
    savings: Relation
    scales: Relation
    sizes: Relation
    children: Value
    last: int = 1
    rounds: int = 0
    given: int = 0

    @property
    def measures(self) -> list[Measure]:
        return [branch.measure for branch in self.branches]

    def run(self, active: Relation, assigned: Relation) -> Relation | None:
        """The rows of the nodes that were split; those of the others are assigned. None if nothing was split."""
        engine = self.task.engine
        with engine.scope() as scope:
            parts = self._parts(active)
            counts = engine.materialise("counts", "local/topdown/count_parts", parts=parts, sensitive=self._sensitive)
            margins = self.checker.margins(counts)
            holes = {"savings": self.savings, "scales": self.scales, "children": self.children}
            measured = engine.materialise(
                "measured", "local/topdown/measure_parts", parts=parts, margins=margins, **holes
            )
            chosen, taken = self._choose(parts, counts, measured)
            splits = find_splits(self.task, self.checker, self.children, counts, measured, chosen)
            measured = add_splits(self.task, splits, parts, measured, chosen, taken)
            engine.insert(assigned, "local/topdown/list_settled", active=active, chosen=chosen)
            moved = self._move(active, parts, measured, chosen, taken)
            self.rounds += 1
            return scope.keep(moved) if moved else None

    @property
    def _sensitive(self) -> Any:
        return self.task.encoded.sensitive

    @property
    def _axes(self) -> Value:
        return Value(len(self.branches) + 1)

    def _parts(self, active: Relation) -> Relation:
        engine = self.task.engine
        least = Value(2 * self.checker.least)
        bounds = engine.materialise(
            "bounds", "local/topdown/bound_nodes", active=active, measures=self.measures, least=least
        )
        return engine.materialise(
            "parts",
            "local/topdown/list_parts",
            active=active,
            bounds=bounds,
            branches=self.branches,
            sensitive=self._sensitive,
            axes=self._axes,
            children=self.children,
        )

    def _choose(self, parts: Relation, counts: Relation, measured: Relation) -> tuple[Relation, Relation]:
        """The splits that are carried out, and the rows that are given back in them (and in others)."""
        engine, sensitive = self.task.engine, self._sensitive
        with engine.scope() as scope:
            rests = engine.materialise(
                "rests", "local/topdown/count_rests", counts=counts, measured=measured, sensitive=sensitive
            )
            margins = self.checker.margins(rests)
            splits = engine.materialise("splits", "local/topdown/list_splits", measured=measured, margins=margins)
            taken = self._take(parts, counts, measured, rests, splits)
            left = engine.materialise(
                "left", "local/topdown/count_givers", counts=counts, taken=taken, sensitive=sensitive
            )
            givers = self.checker.margins(left)
            holes = {"splits": splits, "taken": taken, "givers": givers, "children": self.children}
            chosen = engine.materialise("chosen", "local/topdown/choose_splits", **holes)
            return scope.keep(chosen), scope.keep(taken)

    def _take(
        self, parts: Relation, counts: Relation, measured: Relation, rests: Relation, splits: Relation
    ) -> Relation:
        """The fewest rows that make good what stays, for each node's best split that leaves too little."""
        engine, sensitive, most = self.task.engine, self._sensitive, Value(MOST)
        dirty = engine.materialise("dirty", "local/topdown/list_dirty", splits=splits)
        recruits = engine.materialise(
            "recruits",
            "local/topdown/list_recruits",
            parts=parts,
            dirty=dirty,
            measured=measured,
            counts=counts,
            rests=rests,
            sensitive=sensitive,
            most=most,
        )
        holes = {"rests": rests, "recruits": recruits, "sizes": self.sizes, "most": most}
        trials = engine.materialise("trials", "local/topdown/count_trials", **holes, sensitive=sensitive)
        margins = self.checker.margins(trials)
        holes = {"recruits": recruits, "margins": margins, "most": most}
        return engine.materialise("taken", "local/topdown/take_recruits", **holes, sensitive=sensitive)

    def _move(
        self, active: Relation, parts: Relation, measured: Relation, chosen: Relation, taken: Relation
    ) -> Relation | None:
        engine = self.task.engine
        if not engine.count(chosen):
            return None
        targets = engine.materialise(
            "targets", "local/topdown/number_parts", chosen=chosen, measured=measured, last=Value(self.last)
        )
        rests = engine.materialise("rests", "local/topdown/find_rests", targets=targets, measured=measured)
        holes = {"active": active, "parts": parts, "targets": targets, "taken": taken, "rests": rests}
        moved = engine.materialise(
            "active", "local/topdown/move_rows", **holes, measures=self.measures, sensitive=self._sensitive
        )
        self.last += engine.count(targets)
        return moved


class TopDown(Algorithm):
    """Top-down specialisation with local recoding, for any list of monotone requirements."""

    name = "topdown"
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
    branches = [Branch(m, Value(number), Value(max(1, int(m.full.value)))) for number, m in enumerate(measures, 1)]
    savings = [
        (branch.number.value, node.node, max(1, saved) if saved > 0 or not branch.measure.full.value else 0)
        for branch in branches
        if branch.measure.axis.taxonomy
        for node, saved in _savings(branch)
    ]
    scales = [(branch.number.value, branch.full.value, branch.measure.axis.scale) for branch in branches]
    children = 2 + max([0, *(len(m.axis.taxonomy.nodes) for m in measures if m.axis.taxonomy)])
    return _Round(
        task,
        ClassChecker(task),
        branches,
        engine.load("savings", {"axis": "INTEGER", "child": "BIGINT", "saved": "BIGINT"}, savings),
        engine.load("scales", {"axis": "INTEGER", "full_cost": "BIGINT", "scale": "BIGINT"}, scales),
        engine.load("sizes", {"size": "BIGINT"}, [(size,) for size in SIZES]),
        Value(children),
    )


def _savings(branch: Branch) -> list[tuple[Any, int]]:
    """Every node but the root with what a row saves by going down to it from its parent."""
    axis = branch.measure.axis
    nodes = axis.taxonomy.nodes if axis.taxonomy else ()
    cost = {n.node: (n.high - n.low) * int(branch.full.value) // max(axis.scale, 1) for n in nodes}
    return [(n, cost[n.parent] - cost[n.node]) for n in nodes if n.parent is not None]
