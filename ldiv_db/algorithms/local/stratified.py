"""Stratified: everything starts in one class, which is split so that both sides keep its shares of sensitive values.

For requirements that compare classes with the whole table, as `t_closeness`, under which classes that follow the
quasi-identifiers alone stay large. The idea is that of BUREL's ECTree, which halves every bucket of sensitive values
(Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee, 2012), and of SABRE (Cao, Karras, Kalnis & Tan,
2011); what is ours is where nodes are cut, and that shares are kept only as far as requirements ask for it.

A round splits all nodes at once. Along each quasi-identifier the ends of a node's quarters are tried, and the
boundaries between codes that are nearest to them. The rows of a stratum (a combination of sensitive values) go left in
the order of their codes: as many as stand before the cut, or as many as the node's shares make of the rows there, or
some of both. Of these mixes the one nearest to where rows stand is taken that leaves two good sides; of a node's cuts
that which lowers the cost most is carried out.

If the shares of a node meet a requirement, those of sides with the same shares do, but for rounding: that is why nodes
can be split until they have few rows, where splits that follow the codes alone end as soon as one side violates. Nodes
that have used up what a requirement allows cannot be split by rounded shares, so large sides keep a reserve: they are
judged as if they were farther from the shares of the whole table.

In the end classes are split anew. A round sorts them by their centres, pairs neighbours, and splits the rows of each
pair as above, without a reserve; pairs that cost less afterwards are replaced. The union of two good classes is good,
as requirements are monotone, and so is what it is split into; of others only what is judged to be good is made. No row
is lost, and the cost never rises.

Guarantee: every class meets every requirement, no row is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.local.class_checker import ClassChecker, LocalAlgorithm, require_good
from ldiv_db.algorithms.local.mondrian import widths_of
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Orders, Pass, Round, Spared, improve
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation

#: The mixes of codes and shares that are tried, besides that of shares alone.
MIXES = 2
#: Nodes are cut where so many parts of as many rows end, and at the boundaries nearest to there.
PARTS = 4
#: A side of n rows may be as far from the shares of the whole table as it is allowed, times KEPT % + SPARE / n.
KEPT, SPARE = 90, 5
#: The units in which the counts are rounded that are judged in place of a side's.
UNIT = 1000


class StratifiedSplits:
    """Splits nodes round by round; `reserved` if large sides keep a reserve."""

    def __init__(self, task: Task, checker: ClassChecker, measures: Sequence[Measure], reserved: bool = True):
        engine, encoded = task.engine, task.encoded
        self.task, self.measures, self.rounds = task, measures, 0
        self._checker, self._reserved = checker, reserved
        codes = [axis.code.name for axis in encoded.sensitive]
        self._flow = flow = EngineFlow(engine, "local/stratified", rows=encoded.rows, axes=encoded.axes)
        with engine.scope() as scope:
            counted = engine.count_groups("counted", encoded.rows, *codes)
            flow.know(strata=scope.keep(engine.number_groups("strata", counted, *codes, number="stratum", columns=())))
        flow.know(mixes=engine.load("mixes", {"mix": "BIGINT"}, [(mix,) for mix in range(MIXES + 1)]), parts=PARTS)
        flow.know(sensitive=encoded.sensitive, widths=widths_of(encoded.axes), least=2 * checker.least)
        flow.know(total=encoded.row_count, kept=KEPT, spare=SPARE, unit=UNIT, reserved=reserved)

    def split(self, classes: Relation, last: int) -> Relation:
        """The assignment (row_id, class_id) of the rows of `classes`, which is one, after all splits that gain.

        `last` is the greatest class_id of `classes`.
        """
        flow, engine = self._flow, self.task.engine
        with flow.scope("assigned"):
            assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
            flow.step("active", "start_nodes", assigned=classes)
            flow.know(assigned=assigned)
            with flow.scope("nodes"):
                flow.step("nodes", "list_nodes", chosen=None, **self.traced(classes))
            while splits := self._round(last):
                last += 2 * splits
                if self._reserved:  # of all rows, and not of some that are split anew
                    self.task.progress(engine.count(assigned), self.task.encoded.row_count)
        return assigned

    def _round(self, last: int) -> int:
        """Split nodes, and assign the rows of those without a split; how many were split."""
        flow, engine = self._flow, self.task.engine
        active, nodes = flow["active"], flow["nodes"]
        self.rounds += 1
        with flow.scope("active", "nodes"):
            self._try()
            flow.know(**self.traced(flow["sides"]))
            chosen = flow.step("chosen", "choose_cuts", last=last)
            engine.extend_others(flow["assigned"], active, chosen, "node", "row_id", ("node", "class_id"))
            splits = engine.count(chosen)
            if splits:
                flow.step("active", "move_rows")
                flow.step("nodes", "list_nodes")
        engine.drop(active, nodes)  # all the rows that are not settled, once a round
        return splits

    def _try(self) -> None:
        """The rows on their `sides` of the `cuts` that leave good ones."""
        flow = self._flow
        with flow.scope("sides", "cuts"):
            placed = flow.step("placed", "place_rows")
            counted = flow.engine.count_groups("counted", placed, "node", "axis", "code", "stratum")
            flow.know(counted=counted, last=MIXES)
            flow.step("cuts", "list_cuts")
            flow.step("mixed", "mix_shares")
            flow.know(margins=self._checker.margins(flow.step("trials", "count_trials")))
            flow.step("sides", "side_rows")

    def traced(self, classes: Relation) -> dict[str, Relation]:
        """The `bounds` of classes, given as (row_id, class_id), and what they cost (`traced`)."""
        engine = self.task.engine
        bounds = self.task.encoded.bound_classes(engine, classes)
        params = {"bounds": bounds, "measures": self.measures}
        return {"bounds": bounds, "traced": engine.materialise("traced", "bsgi/residue/trace_classes", **params)}


#: The most rounds, unless told otherwise; classes of so many rows take no part.
ROUNDS, LARGE = 16, 4096


def _splitting(state: Improving) -> Round:
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
        flow = ClassState(task, splits.measures, assigned, Spared(1, LARGE), folder="neighbours/resplit")
        flow.drop("members")  # all the rows, while they are split
        flow.pairs(order, offset, by_gain=True)
        merged = flow.step("merged", "merge_pairs")
        split = splits.split(merged, last=engine.count(flow["pairs"]))
        flow.know(split=split, traced=splits.traced(split)["traced"])
        better = flow.step("better", "list_better")
        if not engine.count(better):
            return Changed(assigned)
        renewed = scope.keep(flow.step("assigned", "take_better"))
        return Changed(renewed, engine.count(better), engine.total(better, "gain"), flow.cost)


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
