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
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Pass, choose_good, in_orders, ties
from ldiv_db.database.names import Relation, Value

#: The most rounds, the orders of each in which classes are near, and the turns in which flows are made.
ROUNDS, ORDERS, TURNS = 32, 2, 4
#: The flows of a class that are compared with those of others.
RANKED = 16


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round: flows in turns, then swaps, unless nothing flows."""
    task, measures, engine = state.task, state.measures, state.task.engine
    with engine.scope() as scope:
        classes = ClassState.of(task, measures, assigned)
        near = classes.near(orders, number)
        by = {"measures": measures, "sensitive": task.encoded.sensitive}
        params = {"rests": classes.rests(), "near": near, "measured": classes.measured, **by}
        flows = engine.materialise("flows", "neighbours/find_flows", **params)
        count, gain, moved = 0, 0, engine.copy("assigned", assigned)
        for _ in range(TURNS if engine.count(flows) else 0):
            moved, made, saved = _turn(task, state, flows, moved)
            count, gain = count + made, gain + saved
            if not made:
                break
        moved = _swap(task, measures, moved, orders, number) if count else moved
        return Changed(scope.keep(moved), count, gain, classes.cost)


def _turn(task: Task, state: Improving, flows: Relation, assigned: Relation) -> tuple[Relation, int, int]:
    """The assignment after the best flows, at most one a class; how many these are, and what they save."""
    engine = task.engine
    with engine.scope() as scope:
        possible = engine.select_among("possible", flows, assigned, "row_id", "class_id")  # their rows have not moved
        chosen, count, gain = choose_good(state, possible, assigned, ranked=Value(RANKED))
        return scope.keep(engine.reassign(assigned, chosen)), count, gain


def _swap(
    task: Task, measures: Sequence[Measure], assigned: Relation, orders: Sequence[Sequence[Measure]], number: int
) -> Relation:
    """The assignment after rows of equal sensitive values changed places, in each order those next to each other."""
    engine, swapped = task.engine, assigned
    with engine.scope() as scope:
        classes = ClassState.of(task, measures, assigned)
        params = {"members": classes.members, "measured": classes.measured, "measures": measures, **ties(number)}
        params |= {"sensitive": task.encoded.sensitive, "offset": Value(number % 2)}
        for order in orders:
            swaps = engine.materialise("swaps", "neighbours/find_swaps", assigned=swapped, order=order, **params)
            swapped = engine.reassign(swapped, swaps)
        return scope.keep(swapped)


#: Rows flow to near classes that cost less.
FLOWS = Pass("flows", lambda task: ROUNDS, in_orders(ORDERS, _round), price=9, small_only=True)
