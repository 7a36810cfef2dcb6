"""Trades: classes of any size give rows to the classes of near rows, or exchange rows with them, where that saves.

A round sorts all rows in several orders, and takes for each row the classes of the rows next to it. What moves of the
row to these classes save, and exchanges with rows of theirs, is worked out for all rows at once. The best of each class
are judged; of those after which both classes meet every requirement the best for both are carried out, at most one a
class. Rows that cost nothing where they are do not ask, but may be asked. So every class stays good, no row is lost,
and the cost never rises.

To follow rows and not the centres of classes is what lets a row find its like in a class that is far from its own
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Pass, choose_good, in_orders
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation

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
        classes = ClassState.of(task, state.measures, assigned, grouped=task.encoded.cells is not None)
        near = classes.near(orders, number)
        flow = EngineFlow(engine, "neighbours", near=near, measures=state.measures, sensitive=task.encoded.sensitive)
        flow.know(rests=classes.rests(whole=True), ranked=RANKED, tried=TRIED)
        trades = flow.step("trades", "find_trades", left="a", right="b", turn=number)
        chosen, count, gain = choose_good(state, trades, assigned)
        return Changed(scope.keep(engine.reassign(assigned, chosen)), count, gain, classes.cost)


#: Classes trade rows with those of near rows.
TRADES = Pass("polish", _rounds, in_orders(ORDERS, _round), price=6)
