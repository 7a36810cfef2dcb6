"""Trades: classes of any size give rows to the classes of near rows, or exchange rows with them, where that saves.

A round sorts all rows in several orders, and takes for each row the classes of the rows next to it. So a row finds its
like in a class whose centre is far from that of its own. After a trade both classes meet every requirement, so every
class stays good, no row is lost, and the cost never rises.

`TRADES`: what moves of a row to these classes save, and exchanges with rows of theirs, is worked out for all rows at
once. The best of each class are judged; of the good ones the best for both classes are carried out, at most one a
class. Rows that cost nothing where they are do not ask, but may be asked.

`FLOWS`, before them: rows go to classes that cover them and cost less, and stay as they are with them. In turns each
class is judged as it would be with one row more or less of the sensitive values that are asked of it: there are few
such changes of many flows, which leaves time for more of them than other trades. At most one flow a class and turn is
made. Then rows of equal sensitive values that stand next to each other change places, if the classes of both cover
both: that costs nothing, and brings rows near to other classes for the next round.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.passes import (
    Changed,
    ClassState,
    Improving,
    Pass,
    choose,
    choose_good,
    in_orders,
    margins_of,
    sides_of,
    stride_of,
)
from ldiv_db.database.names import Identifier, Relation

#: The most rounds and the fewest, and how many cells all of them may look at together.
ROUNDS, FEWEST_ROUNDS, CELLS = 16, 2, 12_000_000
#: The orders of a round, the trades of each kind that are judged of a class, and how many rows of a class, about, a row
#: is exchanged with.
ORDERS, RANKED, TRIED = 2, 4, 4


def _rounds(task: Task) -> int:
    """The rounds of a table: all there may be, fewer for tables of many cells; the first of them gain most."""
    return max(FEWEST_ROUNDS, min(ROUNDS, CELLS // max(task.cell_count, 1)))


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    task, engine = state.task, state.task.engine
    with engine.scope() as scope:
        classes = ClassState(task, state.measures, assigned, grouped=task.encoded.cells is not None)
        classes.near(orders, number)
        classes.rests(whole=True)
        classes.know(left="a", right="b", turn=number, ranked=RANKED, tried=TRIED)
        trades = classes.step("trades", "find_trades")
        chosen, count, gain = choose_good(state, trades, assigned) if engine.count(trades) else (trades, 0, 0)
        if not count:
            return Changed(assigned)
        return Changed(scope.keep(engine.reassign(assigned, chosen)), count, gain, classes.cost)


#: Classes trade rows with those of near rows.
TRADES = Pass("polish", _rounds, in_orders(ORDERS, _round), price=6)

#: The most rounds of flows, the turns of each, and the flows of a class that are compared with those of others.
FLOW_ROUNDS, TURNS, FLOWS_RANKED = 32, 4, 16


def _flow_round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round: flows in turns, then swaps, unless nothing flows."""
    engine = state.task.engine
    with engine.scope() as scope:
        classes = ClassState(state.task, state.measures, assigned)
        classes.near(orders, number)
        classes.rests()
        flows = classes.step("flows", "find_flows")
        sides = sides_of(engine, flows, state.task.encoded.sensitive)
        count, gain, moved, margins = 0, 0, assigned, margins_of(state, sides, assigned)
        for _ in range(TURNS):
            moved, made, saved = _turn(state, sides, moved, margins)
            count, gain = count + made, gain + saved
            if not made:
                break
        if not count:
            return Changed(assigned)
        return Changed(scope.keep(_swap(state, moved, orders, number)), count, gain, classes.cost)


def _turn(state: Improving, sides: Relation, assigned: Relation, margins: Relation) -> tuple[Relation, int, int]:
    """The assignment after the best flows, at most one a class; how many these are, and what they save.

    `sides` has rows that have not moved; `margins` are worked out again of the classes that change, and of no others.
    """
    engine = state.task.engine
    with engine.scope() as scope:
        chosen, count, gain = choose(engine, sides, margins=margins, ranked=FLOWS_RANKED)
        moved = scope.keep(engine.reassign(assigned, chosen))
        if count:
            engine.delete_listed(sides, Identifier("trade"), engine.select_among("gone", sides, chosen, "row_id"))
            changed = engine.select_among("changed", sides, chosen, "class_id")
            members = engine.select_among("members", moved, chosen, "class_id")
            engine.delete_listed(margins, Identifier("class_no"), changed)
            engine.extend(margins, margins_of(state, changed, members))
        return moved, count, gain


def _swap(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Relation:
    """The assignment after rows of equal sensitive values changed places, in each order those next to each other."""
    engine, swapped = state.task.engine, assigned
    with engine.scope() as scope:
        classes = ClassState(state.task, state.measures, assigned)
        classes.know(offset=number % 2, stride=stride_of(number))
        for order in orders:
            swaps = classes.step("swaps", "find_swaps", assigned=swapped, order=order)
            swapped = engine.reassign(swapped, swaps)
        return scope.keep(swapped)


#: Rows flow to near classes that cost less.
FLOWS = Pass("flows", lambda task: FLOW_ROUNDS, in_orders(ORDERS, _flow_round), price=10, small_only=True)
