"""Regrouping: two near classes are put together and parted around one of their rows, where that costs less.

A round takes the classes of rows that stand next to each other as near, and pairs of those of which one class costs
least beyond what both cost, with some jitter. The rows of a pair stand around a few of them, its seeds, by what a class
of a row and the seed would cost. Wherever such a ball may end, both sides are measured; of the ends after which they
cost less than the classes did, those that gain most are judged by counts, and the best that leaves two good sides is
taken. So every class stays good, no row is lost, and the cost never rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving, Pass, choose_first, in_orders
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import OneStatement
from ldiv_db.database.table_queries import selection

#: The most rounds, the orders of each in which classes are near, the seeds of a pair, and its balls that are judged.
ROUNDS, ORDERS, SEEDS, RANKED = 32, 4, 4, 32
#: From the second round on a pair stands up to so many places behind where its cost puts it.
JITTER = 6
#: Classes of so many rows take no part: rows of a pair are compared with each other.
LARGE = 64
#: Balls are numbered by their pair, seed and place: there are fewer seeds, and places in a pair, than these.
_NUMBERS = {"seeds": SEEDS + 1, "most": 2 * LARGE}


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round: the changes are the pairs that are parted anew."""
    engine = state.task.engine
    with engine.scope() as scope:
        classes = ClassState(state.task, state.measures, assigned, folder="neighbours/regroup")
        steps, jitter = OneStatement(engine), JITTER if number else 1
        classes.near(orders, number, steps)
        near = choose_first(steps, _part(steps, classes, "near_pairs", "list_near_pairs", large=LARGE, jitter=jitter))
        pairs = selection(near, ["class_id", ("trade", "pair"), "side"])
        classes.know(pairs=steps.keep("pairs", "database/select_rows", **pairs))
        if not engine.count(classes["pairs"]):
            return Changed(assigned)
        classes.drop("members")  # all the rows, while some are compared
        classes.step("placed", "place_rows", seeds=SEEDS)
        parted = _choose(state, classes)
        if not parted:
            return Changed(assigned)
        moved = classes.step("moved", "move_rows")
        renewed = scope.keep(engine.reassign(assigned, moved))
        return Changed(renewed, parted, engine.total(classes["chosen"], "gain"), classes.cost)


def _choose(state: Improving, classes: ClassState) -> int:
    """Make `chosen`: the balls (class_id, the pair; seed, place, gain) by which pairs are parted, and count them."""
    classes.know(least=state.checker.least, ranked=RANKED)
    steps = OneStatement(classes.engine)
    bounds = _part(steps, classes, "bounds", "bound_balls", **_NUMBERS)
    traced = _part(steps, classes, "traced", "bsgi/residue/trace_classes", bounds=bounds)
    rank = classes.params("rank_balls", traced=traced, **_NUMBERS)
    classes.know(balls=steps.keep("balls", classes.path("rank_balls"), **rank))
    if not classes.engine.count(classes["balls"]):
        return 0
    steps = OneStatement(classes.engine)
    margins = state.checker.measured(steps, _part(steps, classes, "trials", "count_balls"))
    choose = classes.params("choose_balls", margins=margins)
    classes.know(chosen=steps.keep("chosen", classes.path("choose_balls"), **choose))
    return classes.engine.count(classes["chosen"])


def _part(steps: OneStatement, classes: ClassState, name: str, template: str, **more: Any) -> Relation:
    return steps.materialise(name, classes.path(template), **classes.params(template, **more))


#: Pairs of near classes are parted around their rows.
REGROUP = Pass("regroup", lambda task: ROUNDS, in_orders(ORDERS, _round), price=8, small_only=True)
