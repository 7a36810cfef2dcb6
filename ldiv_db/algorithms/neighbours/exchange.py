"""Exchanges: classes of neighbouring centres change rows where that lowers the loss.

A round sorts the classes by their centres, pairs neighbours, tries all l * l exchanges of a row for a row
in each pair and carries out the best that gains. An exchange is allowed if both classes keep different
sensitive values; so classes keep their sizes and stay distinct, and the loss never rises. Rounds sort by
the quasi-identifiers in other orders, drawn by the seed, so that each class meets many neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.passes import ClassState, Orders, Spared, choose
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.steps import OneStatement

#: Rounds end when two in a row lower the cost by less than this part of it.
LEAST_PART = 200
#: How far the classes are that each is paired with on either side, within parts.
STEPS = (1, 2, 3, 4)


def exchange_rows(
    task: Task, measures: Sequence[Measure], assigned: Relation, l: int, rounds: int, parts: Relation | None = None
) -> tuple[Relation, tuple[int, ...]]:
    """The assignment after at most `rounds` rounds, and the exchanges of each.

    `assigned` is (row_id, class_id) with classes of exactly l rows. With `parts`, (class_id, part), only classes of one
    part exchange rows, and all of a part have the same sensitive values.
    """
    engine = task.engine
    with engine.scope() as scope:
        free = Spared(least=1)  # no exchange with a class that costs nothing gains
        classes = ClassState(task, measures, assigned, free)
        classes.rests()
        classes.know(l=l, square=l**2, sensitive=task.encoded.sensitive[0], common=None)
        exchanges = _run_rounds(classes, Orders(task, measures), rounds, parts)
        return scope.keep(engine.reassign(assigned, classes["rests"])), tuple(exchanges)


def _run_rounds(classes: ClassState, orders: Orders, rounds: int, parts: Relation | None) -> list[int]:
    """The exchanges made in each round, until two in a row gain too little: even and odd rounds pair differently."""
    cost = gained_before = classes.engine.total(classes["measured"], "cost")
    exchanges: list[int] = []
    while len(exchanges) < rounds:
        count, gain = _round(classes, orders.order(len(exchanges)), len(exchanges) // 2 % 2, parts)
        exchanges.append(count)
        cost -= gain
        if (gained_before + gain) * LEAST_PART < cost or cost == 0:
            break
        gained_before = gain
    return exchanges


def _round(classes: ClassState, order: Sequence[Measure], offset: int, parts: Relation | None) -> tuple[int, int]:
    """Carry out the best exchange of each pair of classes, if one gains; how many there were and what they gained."""
    engine = classes.engine
    with classes.scope():
        steps, common, best = OneStatement(engine), "list_common_values", "find_exchanges"
        classes.pairs(order, offset, steps, parts=parts, steps=STEPS)
        classes.know(members=classes["rests"], left="a", right="b")
        if not parts:
            classes.know(common=steps.materialise("common", classes.path(common), **classes.params(common)))
        exchanges = steps.keep("exchanges", classes.path(best), **classes.params(best))
        if parts:  # where a class is in several pairs
            exchanges, count, gain = choose(engine, exchanges, passes=1)
        else:
            count = engine.count(exchanges) // 2
            gain = engine.total(exchanges, "gain") // 2 if count else 0
        if count:
            _apply(classes, exchanges)
        return count, gain


def _apply(classes: ClassState, exchanges: Relation) -> None:
    """Carry out exchanges; only the classes that they touch are measured anew."""
    classes.know(exchanges=exchanges)
    moved = classes.step("moved", "exchange_rows")
    for relation in (classes["rests"], classes["measured"]):
        classes.engine.delete_listed(relation, Identifier("class_id"), exchanges)
    measured = classes["measured"]
    classes.know(members=moved, least=0)
    changed = classes.step("measured", "measure_classes")
    classes.insert("rests", "list_rests", whole=False)
    classes.engine.extend(measured, changed)
