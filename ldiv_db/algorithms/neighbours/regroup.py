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
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Pass, choose_first, in_orders, ties
from ldiv_db.database.names import Relation, Value
from ldiv_db.database.steps import OneStatement

#: The most rounds, the orders of each in which classes are near, the seeds of a pair, and its balls that are judged.
ROUNDS, ORDERS, SEEDS, RANKED = 32, 4, 4, 32
#: From the second round on a pair stands up to so many places behind where its cost puts it.
JITTER = 6
#: Classes of so many rows take no part: rows of a pair are compared with each other.
LARGE = 64
#: Balls are numbered by their pair, seed and place: there are fewer seeds, and places in a pair, than these.
_NUMBERS = {"seeds": Value(SEEDS + 1), "most": Value(2 * LARGE)}


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round: the changes are the pairs that are parted anew."""
    engine = state.task.engine
    with engine.scope() as scope:
        classes = ClassState.of(state.task, state.measures, assigned)
        pairs = _pairs(state, classes, orders, number)
        engine.drop(classes.members)  # all the rows, while some are compared
        encoded = state.task.encoded
        params = {"rows": encoded.rows, "measures": state.measures, "sensitive": encoded.sensitive, **ties(number)}
        params |= {"assigned": assigned, "pairs": pairs, "seeds": Value(SEEDS)}
        placed = state.task.engine.materialise("placed", "neighbours/regroup/place_rows", **params)
        chosen = _choose(state, classes, pairs, placed)
        moved = engine.materialise("moved", "neighbours/regroup/move_rows", placed=placed, chosen=chosen, pairs=pairs)
        renewed = scope.keep(engine.reassign(assigned, moved))
        return Changed(renewed, engine.count(chosen), engine.total(chosen, "gain"), classes.cost)


def _pairs(state: Improving, classes: ClassState, orders: Sequence[Sequence[Measure]], number: int) -> Relation:
    """(class_id, pair, side): near classes, each in one pair."""
    engine = state.task.engine
    params = {"members": classes.members, "measured": classes.measured, "measures": state.measures, **ties(number)}
    near = engine.materialise(
        "near_pairs",
        "neighbours/regroup/list_near_pairs",
        near=classes.near(orders, number),
        large=LARGE,
        jitter=JITTER if number else 1,
        **params,
    )
    chosen = choose_first(engine, near)
    return engine.select("pairs", chosen, "class_id", ("trade", "pair"), "side")


def _choose(state: Improving, classes: ClassState, pairs: Relation, placed: Relation) -> Relation:
    """The balls (class_id, the pair; seed, place, gain) by which pairs are parted."""
    engine, encoded = state.task.engine, state.task.encoded
    steps = OneStatement(engine)
    params = {"placed": placed, "axes": encoded.axes, "least": Value(state.checker.least)}
    bounds = steps.materialise("bounds", "neighbours/regroup/bound_balls", **params, **_NUMBERS)
    traced = steps.materialise("traced", "bsgi/residue/trace_classes", bounds=bounds, measures=state.measures)
    params = {"traced": traced, "pairs": pairs, "measured": classes.measured, "ranked": Value(RANKED)}
    balls = steps.keep("balls", "neighbours/regroup/rank_balls", **params, **_NUMBERS)
    steps = OneStatement(engine)
    params = {"balls": balls, "placed": placed, "sensitive": encoded.sensitive}
    counts = steps.materialise("trials", "neighbours/regroup/count_balls", **params)
    margins = state.checker.measured(steps, counts)
    return steps.keep("chosen", "neighbours/regroup/choose_balls", balls=balls, margins=margins)


#: Pairs of near classes are parted around their rows.
REGROUP = Pass("regroup", lambda task: ROUNDS, in_orders(ORDERS, _round), price=8, small_only=True)
