"""Splits anew: classes near each other are put together and split by their own rows, where that costs less.

A round sorts the classes by their centres, pairs neighbours, and splits the rows of each pair as `stratified_splits`
does, without a reserve; pairs that cost less afterwards are replaced. The union of two good classes is good, as
requirements are monotone, and so is what it is split into; of others only what is judged to be good is made. No row is
lost, and the cost never rises.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.local.stratified_splits import StratifiedSplits
from ldiv_db.algorithms.neighbours.moves import measured_classes
from ldiv_db.algorithms.neighbours.rounds import Changed, Improving, Orders, Pass, Round
from ldiv_db.database.templates import Relation, Value

#: The most rounds, unless told otherwise; classes of so many rows take no part.
ROUNDS, LARGE = 16, 4096


def _splitting(state: Improving) -> Round:
    """Rounds of splits anew."""
    task = state.task
    splits = StratifiedSplits(task, state.checker, state.measures, reserved=False)
    orders = Orders(task, state.measures)
    return lambda assigned, number: _round(task, splits, assigned, orders.order(number), number // 2 % 2)


#: Pairs of near classes are put together and split anew.
SPLITS = Pass("resplit", "splitting classes anew", lambda task: ROUNDS, _splitting, small_only=True)


def _round(task: Task, splits: StratifiedSplits, assigned: Relation, order: Sequence[Measure], offset: int) -> Changed:
    """One round: the changes are the pairs that are replaced."""
    engine = task.engine
    with engine.scope() as scope:
        members, measured = measured_classes(task, splits.measures, assigned, LARGE)
        engine.drop(members)  # all the rows, while they are split
        pairs = engine.materialise(
            "pairs", "neighbours/exchange/pair_classes", classes=measured, order=order, offset=Value(offset)
        )
        merged = engine.materialise("merged", "neighbours/resplit/merge_pairs", assigned=assigned, pairs=pairs)
        split = splits.split(merged, last=engine.count(pairs))
        _, traced = splits.traced(split)
        params = {"merged": merged, "split": split}
        better = engine.materialise(
            "better", "neighbours/resplit/list_better", **params, traced=traced, pairs=pairs, measured=measured
        )
        renewed = engine.materialise(
            "assigned", "neighbours/resplit/take_better", **params, assigned=assigned, better=better
        )
        cost = int(engine.scalar("neighbours/trade/sum_costs", measured=measured))
        return Changed(scope.keep(renewed), engine.count(better), engine.total(better, "gain"), cost)
