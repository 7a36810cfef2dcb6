"""Regrouping: two near classes are put together and parted around one of their rows, where that costs less.

A round takes the classes of rows that stand next to each other as near, and pairs of those of which one class costs
least beyond what both cost, with some jitter. The rows of a pair stand around a few of them, its seeds, by what a class
of a row and the seed would cost. Wherever such a ball may end, both sides are measured; of the ends after which they
cost less than the classes did, those that gain most are judged by counts, and the best that leaves two good sides is
taken. So every class stays good, no row is lost, and the cost never rises.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Pass, choose_first, in_orders
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import OneStatement

#: The most rounds, the orders of each in which classes are near, the seeds of a pair, and its balls that are judged.
ROUNDS, ORDERS, SEEDS, RANKED = 32, 4, 4, 32
#: From the second round on a pair stands up to so many places behind where its cost puts it.
JITTER = 6
#: Classes of so many rows take no part: rows of a pair are compared with each other.
LARGE = 64
#: Balls are numbered by their pair, seed and place: there are fewer seeds, and places in a pair, than these.
_NUMBERS = {"seeds": SEEDS + 1, "most": 2 * LARGE}
_FOLDER = "neighbours/regroup"


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round: the changes are the pairs that are parted anew."""
    engine = state.task.engine
    with engine.scope() as scope:
        classes = ClassState(state.task, state.measures, assigned)
        classes.near(orders, number)
        jitter = JITTER if number else 1
        near = choose_first(engine, classes.step("near_pairs", f"{_FOLDER}/list_near_pairs", large=LARGE, jitter=jitter))
        classes.know(pairs=engine.select("pairs", near, "class_id", ("trade", "pair"), "side"))
        classes.drop("members")  # all the rows, while some are compared
        classes.step("placed", f"{_FOLDER}/place_rows", seeds=SEEDS)
        _choose(state, classes)
        moved = classes.step("moved", f"{_FOLDER}/move_rows")
        renewed = scope.keep(engine.reassign(assigned, moved))
        return Changed(renewed, engine.count(classes["chosen"]), engine.total(classes["chosen"], "gain"), classes.cost)


def _choose(state: Improving, classes: ClassState) -> None:
    """Make `chosen`: the balls (class_id, the pair; seed, place, gain) by which pairs are parted."""
    classes.know(axes=state.task.encoded.axes, least=state.checker.least, ranked=RANKED)
    steps = OneStatement(classes.engine)
    bounds = steps.materialise("bounds", f"{_FOLDER}/bound_balls", **classes.params(f"{_FOLDER}/bound_balls", **_NUMBERS))
    traced = steps.materialise("traced", "bsgi/residue/trace_classes", bounds=bounds, measures=state.measures)
    params = classes.params(f"{_FOLDER}/rank_balls", traced=traced, **_NUMBERS)
    classes.know(balls=steps.keep("balls", f"{_FOLDER}/rank_balls", **params))
    steps = OneStatement(classes.engine)
    counts = steps.materialise("trials", f"{_FOLDER}/count_balls", **classes.params(f"{_FOLDER}/count_balls"))
    margins = state.checker.measured(steps, counts)
    chosen = steps.keep("chosen", f"{_FOLDER}/choose_balls", balls=classes["balls"], margins=margins)
    classes.know(chosen=chosen)


#: Pairs of near classes are parted around their rows.
REGROUP = Pass("regroup", lambda task: ROUNDS, in_orders(ORDERS, _round), price=8, small_only=True)
