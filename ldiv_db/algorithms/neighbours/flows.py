"""Flows: rows go to near classes that cost less and stay as they are with them, before classes trade.

A round looks for near classes that cover a row and cost less than its own. In turns each class is judged as it would be
with one row more or less of the sensitive values that are asked of it: there are few such changes of many flows, which
leaves time for more of them than trades can judge. The flows that are best for both of their classes are made, at most
one a class and turn. Then rows of equal sensitive values that stand next to each other change places, if the classes of
both cover both: that costs nothing, and brings rows near to other classes for the next round.

So every class stays good, no row is lost, and the cost never rises: a class covers more than it has to after a flow.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.neighbours.trades import (
    GAINS,
    MOST,
    PASSES,
    PRIME,
    SLOW_LEAST_PART,
    Changed,
    Improving,
    Orders,
    Pass,
    Round,
    measured_classes,
    measured_neighbours,
    stride,
)
from ldiv_db.database.templates import Relation, Value

#: The most rounds, the orders of each in which classes are near, and the turns in which flows are made.
ROUNDS, ORDERS, TURNS = 32, 2, 4
#: The flows of a class that are compared with those of others.
RANKED = 16


def _flowing(state: Improving) -> Round:
    """Rounds of flows."""
    orders = Orders(state.task, state.measures)
    return lambda assigned, number: _round(state, assigned, orders.several(number, ORDERS), number)


#: Rows flow to near classes that cost less.
FLOWS = Pass(
    "flows",
    "letting rows flow between classes",
    lambda task: ROUNDS,
    _flowing,
    SLOW_LEAST_PART,
    until_idle=True,
    small_only=True,
)


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round: flows in turns, then swaps, unless nothing flows."""
    task, measures, engine = state.task, state.measures, state.task.engine
    with engine.scope() as scope:
        measured, rests, near = measured_neighbours(task, measures, assigned, orders, number)
        flows = engine.materialise(
            "flows",
            "neighbours/flow/list_flows",
            near=near,
            rests=rests,
            measured=measured,
            measures=measures,
            sensitive=task.encoded.sensitive,
            gains=GAINS,
            most=Value(MOST),
        )
        count, gain, moved = 0, 0, assigned
        for _ in range(TURNS if engine.count(flows) else 0):
            moved, made, saved = _turn(task, state.checker, flows, moved)
            count, gain = count + made, gain + saved
            if not made:
                break
        cost = int(engine.scalar("neighbours/trade/sum_costs", measured=measured))
        moved = _swap(task, measures, moved, orders, number) if count else engine.copy("assigned", assigned)
        scope.keep(moved)
    return Changed(moved, count, gain, cost)


def _turn(task: Task, checker: ClassChecker, flows: Relation, assigned: Relation) -> tuple[Relation, int, int]:
    """The assignment after the best flows, at most one a class; how many these are, and what they save."""
    engine, sensitive = task.engine, task.encoded.sensitive
    with engine.scope() as scope:
        counts = engine.materialise(
            "counts", "neighbours/flow/count_values", rows=task.encoded.rows, assigned=assigned, sensitive=sensitive
        )
        changes = engine.materialise(
            "changes", "neighbours/flow/list_changes", flows=flows, assigned=assigned, sensitive=sensitive
        )
        changed = engine.materialise(
            "changed", "neighbours/flow/count_changes", changes=changes, counts=counts, sensitive=sensitive
        )
        good = engine.materialise(
            "good",
            "neighbours/flow/list_good",
            flows=flows,
            changes=changes,
            margins=checker.margins(changed),
            assigned=assigned,
            sensitive=sensitive,
            ranked=Value(RANKED),
        )
        chosen = engine.materialise("chosen", "neighbours/trade/choose_trades", trades=good, margins=[], passes=PASSES)
        count, gain = engine.count(chosen), engine.total(chosen, "gain")
        moved = engine.materialise("assigned", "neighbours/flow/move_rows", assigned=assigned, good=good, chosen=chosen)
        return scope.keep(moved), int(count), int(gain)


def _swap(
    task: Task, measures: Sequence[Measure], assigned: Relation, orders: Sequence[Sequence[Measure]], number: int
) -> Relation:
    """The assignment after rows of equal sensitive values changed places, in each order those next to each other."""
    engine, swapped = task.engine, assigned
    with engine.scope() as scope:
        members, measured = measured_classes(task, measures, assigned, MOST, least=0)
        for order in orders:
            swaps = engine.materialise(
                "swaps",
                "neighbours/flow/list_swaps",
                members=members,
                assigned=swapped,
                measured=measured,
                measures=measures,
                sensitive=task.encoded.sensitive,
                order=order,
                gains=GAINS,
                most=Value(MOST),
                stride=stride(number),
                prime=PRIME,
                offset=Value(number % 2),
            )
            swapped = engine.reassign(swapped, swaps)
        return scope.keep(swapped)
