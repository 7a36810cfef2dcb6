"""Stratified: classes by splits that keep shares of sensitive values, and splits anew of classes near each other.

Stratified splits: both sides keep as much of the shares of their node as requirements ask for.

A round splits all nodes at once. Along each quasi-identifier the ends of a node's quarters are tried, and the
boundaries between codes that are nearest to them. The rows of a stratum (a combination of sensitive values) go left in
the order of their codes: as many as stand before the cut, or as many as the node's shares make of the rows there, or
some of both. Of these mixes the one nearest to where rows stand is taken that leaves two good sides; of a node's cuts
that which lowers the cost most is carried out.

If the shares of a node meet a requirement, those of sides with the same shares do, but for rounding: that is why nodes
can be split until they have few rows, where splits that follow the codes alone end as soon as one side violates. Nodes
that have used up what a requirement allows cannot be split by rounded shares, so large sides keep a reserve: they are
judged as if they were farther from the shares of the whole table.

Splits anew: classes near each other are put together and split by their own rows, where that costs less.

A round sorts the classes by their centres, pairs neighbours, and splits the rows of each pair as above,
without a reserve; pairs that cost less afterwards are replaced. The union of two good classes is good, as
requirements are monotone, and so is what it is split into; of others only what is judged to be good is made. No row is
lost, and the cost never rises.

Stratified: everything starts in one class, which is cut so that both sides keep its shares of sensitive values.

For requirements that compare classes with the whole table, as `t_closeness`, under which classes that follow the
quasi-identifiers alone stay large. The idea is that of BUREL's ECTree, which halves every bucket of sensitive values
(Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee, 2012), and of SABRE (Cao, Karras, Kalnis & Tan,
2011); what is ours is where nodes are cut, and that shares are kept only as far as requirements ask for it
. In the end classes near each other are put together and split anew where that loses less.

Guarantee: every class meets every requirement, no row is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.local.class_checker import ClassChecker, LocalAlgorithm, require_good
from ldiv_db.algorithms.local.mondrian import Width, widths_of
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Orders, Pass, Round, improve
from ldiv_db.database.templates import Relation, Value

#: The mixes of codes and shares that are tried, besides that of shares alone.
MIXES = 2
#: Nodes are cut where so many parts of as many rows end, and at the boundaries nearest to there.
PARTS = 4
#: A side of n rows may be as far from the shares of the whole table as it is allowed, times KEPT % + SPARE / n.
KEPT, SPARE = 90, 5
#: The units in which the counts are rounded that are judged in place of a side's.
UNIT = 1000


@dataclass
class StratifiedSplits:
    """Splits nodes round by round; `reserved` if large sides keep a reserve."""

    task: Task
    checker: ClassChecker
    measures: Sequence[Measure]
    reserved: bool = True

    def __post_init__(self) -> None:
        engine, encoded = self.task.engine, self.task.encoded
        codes = [axis.code.name for axis in encoded.sensitive]
        with engine.scope() as scope:
            counted = engine.count_groups("counted", encoded.rows, *codes)
            self.strata = scope.keep(engine.number_groups("strata", counted, *codes, number="stratum", columns=()))
        self.mixes = engine.load("mixes", {"mix": "BIGINT"}, [(mix,) for mix in range(MIXES + 1)])
        self.widths: Sequence[Width] = widths_of(encoded.axes)
        self.rounds = 0

    def split(self, classes: Relation, last: int) -> Relation:
        """The assignment (row_id, class_id) of the rows of `classes`, which is one, after all splits that gain.

        `last` is the greatest class_id of `classes`.
        """
        engine, encoded = self.task.engine, self.task.encoded
        with engine.scope() as scope:
            assigned = scope.keep(engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, []))
            params = {"rows": encoded.rows, "assigned": classes, "strata": self.strata}
            active = engine.materialise(
                "active", "local/stratified/start_nodes", **params, axes=encoded.axes, sensitive=encoded.sensitive
            )
            nodes = self._nodes(classes)
            while True:
                moved = self._round(active, nodes, assigned, last)
                engine.drop(active, nodes)  # all the rows that are not settled, once a round
                if moved is None:
                    return assigned
                active, nodes, splits = moved
                last += 2 * splits
                if self.reserved:  # of all rows, and not of some that are split anew
                    self.task.progress(engine.count(assigned), encoded.row_count)

    def _round(
        self, active: Relation, nodes: Relation, assigned: Relation, last: int
    ) -> tuple[Relation, Relation, int] | None:
        """The rows of the nodes that were split, these nodes, and their number; the rows of the others are assigned."""
        engine, axes = self.task.engine, self.task.encoded.axes
        self.rounds += 1
        with engine.scope() as scope:
            sides, cuts = self._try(active, nodes)
            bounds, traced = self.traced(sides)
            chosen = engine.materialise(
                "chosen", "local/stratified/choose_cuts", traced=traced, cuts=cuts, nodes=nodes, last=last
            )
            engine.extend_others(assigned, active, chosen, "node", "row_id", ("node", "class_id"))
            splits = engine.count(chosen)
            if not splits:
                return None
            moved = engine.materialise(
                "active", "local/stratified/move_rows", active=active, sides=sides, chosen=chosen, axes=axes
            )
            params = {"bounds": bounds, "traced": traced, "chosen": chosen}
            renewed = engine.materialise("nodes", "local/stratified/list_nodes", **params, axes=axes)
            return scope.keep(moved), scope.keep(renewed), splits

    def _try(self, active: Relation, nodes: Relation) -> tuple[Relation, Relation]:
        """The rows on their sides of the cuts that leave good ones, and all cuts."""
        engine, sensitive, last = self.task.engine, self.task.encoded.sensitive, Value(MIXES)
        with engine.scope() as scope:
            params = {"active": active, "nodes": nodes, "widths": self.widths}
            placed = engine.materialise("placed", "local/stratified/place_rows", **params, least=2 * self.checker.least)
            counted = engine.count_groups("counted", placed, "node", "axis", "code", "stratum")
            cuts = engine.materialise("cuts", "local/stratified/list_cuts", counted=counted, parts=PARTS)
            mixed = engine.materialise(
                "mixed", "local/stratified/mix_shares", cuts=cuts, counted=counted, mixes=self.mixes, last=last
            )
            trials = engine.materialise(
                "trials",
                "local/stratified/count_trials",
                mixed=mixed,
                strata=self.strata,
                sensitive=sensitive,
                total=self.task.encoded.row_count,
                kept=KEPT,
                spare=SPARE,
                unit=UNIT,
                reserved=self.reserved,
            )
            margins = self.checker.margins(trials)
            params = {"placed": placed, "cuts": cuts, "margins": margins, "mixed": mixed}
            sides = engine.materialise("sides", "local/stratified/side_rows", **params, last=last)
            return scope.keep(sides), scope.keep(cuts)

    def _nodes(self, classes: Relation) -> Relation:
        """The nodes of the first round, with their bounds and costs."""
        engine, axes = self.task.engine, self.task.encoded.axes
        with engine.scope() as scope:
            bounds, traced = self.traced(classes)
            params = {"bounds": bounds, "traced": traced, "chosen": None}
            return scope.keep(engine.materialise("nodes", "local/stratified/list_nodes", **params, axes=axes))

    def traced(self, classes: Relation) -> tuple[Relation, Relation]:
        """The bounds of classes, given as (row_id, class_id), and what they cost."""
        engine, encoded = self.task.engine, self.task.encoded
        bounds = encoded.bound_classes(engine, classes)
        traced = engine.materialise("traced", "bsgi/residue/trace_classes", bounds=bounds, measures=self.measures)
        return bounds, traced


#: The most rounds, unless told otherwise; classes of so many rows take no part.
ROUNDS, LARGE = 16, 4096


def _splitting(state: Improving) -> Round:
    """Rounds of splits anew."""
    task = state.task
    splits = StratifiedSplits(task, state.checker, state.measures, reserved=False)
    orders = Orders(task, state.measures)
    return lambda assigned, number: _round(task, splits, assigned, orders.order(number), number // 2 % 2)


#: Pairs of near classes are put together and split anew.
SPLITS = Pass("resplit", lambda task: ROUNDS, _splitting, price=14, small_only=True)


def _round(task: Task, splits: StratifiedSplits, assigned: Relation, order: Sequence[Measure], offset: int) -> Changed:
    """One round: the changes are the pairs that are replaced."""
    engine = task.engine
    with engine.scope() as scope:
        classes = ClassState.of(task, splits.measures, assigned, least=1, most=LARGE)
        engine.drop(classes.members)  # all the rows, while they are split
        pairs = classes.pairs(order, offset, by_gain=True)
        merged = engine.materialise("merged", "neighbours/resplit/merge_pairs", assigned=assigned, pairs=pairs)
        split = splits.split(merged, last=engine.count(pairs))
        _, traced = splits.traced(split)
        params = {"merged": merged, "split": split}
        better = engine.materialise(
            "better", "neighbours/resplit/list_better", **params, traced=traced, pairs=pairs, measured=classes.measured
        )
        renewed = engine.materialise(
            "assigned", "neighbours/resplit/take_better", **params, assigned=assigned, better=better
        )
        return Changed(scope.keep(renewed), engine.count(better), engine.total(better, "gain"), classes.cost)


#: The rounds in which its classes are split anew.
STRATIFIED_ROUNDS = 2


class Stratified(LocalAlgorithm):
    """Cuts that keep the shares of sensitive values, for any list of monotone requirements."""

    name = "stratified"

    def run(self, task: Task) -> Plan:
        feasible, engine = self.check(task), task.engine
        with engine.scope() as scope:
            state = Improving.of(task)
            splits = StratifiedSplits(task, state.checker, state.measures)
            whole = engine.select("whole", task.encoded.rows, "row_id", constants={"class_id": 1})
            assigned, (again,) = improve([SPLITS], state, splits.split(whole, last=1), rounds=STRATIFIED_ROUNDS)
            scope.keep(assigned)
            require_good(task, self.name, assigned)
        return Plan(assigned, feasible.l, feasible.notes, {"rounds": splits.rounds, "resplit": again.changes})
