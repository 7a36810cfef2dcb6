"""Exchanges: classes of neighbouring centres change rows where that lowers the loss.

A round sorts the classes by their centres, pairs neighbours, tries all l * l exchanges of a row for a row
in each pair and carries out the best that gains. An exchange is allowed if both classes keep different
sensitive values; so classes keep their sizes and stay distinct, and the loss never rises. Rounds sort by
the quasi-identifiers in other orders, drawn by the seed, so that each class meets many neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.passes import ClassState, Orders, choose
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.steps import OneStatement

#: Rounds end when two in a row lower the cost by less than this part of it.
LEAST_PART = 200
#: How far the classes are that each is paired with on either side, within parts.
STEPS = (1, 2, 3, 4)


@dataclass(frozen=True)
class _Exchangeable:
    """Classes of l rows that cost something, the members of which have what their classes are without them."""

    classes: ClassState
    l: int
    parts: Relation | None


def exchange_rows(
    task: Task, measures: Sequence[Measure], assigned: Relation, l: int, rounds: int, parts: Relation | None = None
) -> tuple[Relation, tuple[int, ...]]:
    """The assignment after at most `rounds` rounds, and the exchanges of each.

    `assigned` is (row_id, class_id) with classes of exactly l rows. With `parts`, (class_id, part), only classes of one
    part exchange rows, and all of a part have the same sensitive values.
    """
    engine = task.engine
    with engine.scope() as scope:
        found = ClassState.of(task, measures, assigned, least=1)  # no exchange with a class that costs nothing gains
        state = _Exchangeable(ClassState(task, measures, found.rests(), found.measured), l, parts)
        exchanges = _run_rounds(state, rounds)
        return scope.keep(engine.reassign(assigned, state.classes.members)), tuple(exchanges)


def _run_rounds(state: _Exchangeable, rounds: int) -> list[int]:
    """The exchanges made in each round, until two in a row gain too little: even and odd rounds pair differently."""
    classes = state.classes
    orders, cost = Orders(classes.task, classes.measures), classes.task.engine.total(classes.measured, "cost")
    exchanges: list[int] = []
    gained_before = cost
    while len(exchanges) < rounds:
        count, gain = _round(state, orders.order(len(exchanges)), len(exchanges) // 2 % 2)
        exchanges.append(count)
        cost -= gain
        if (gained_before + gain) * LEAST_PART < cost or cost == 0:
            break
        gained_before = gain
    return exchanges


def _round(state: _Exchangeable, order: Sequence[Measure], offset: int) -> tuple[int, int]:
    """One round: the exchanges made and what they gained."""
    engine = state.classes.task.engine
    with engine.scope():
        exchanges = _find(state, order, offset)
        if state.parts:  # where a class is in several pairs
            exchanges, count, gain = choose(engine, exchanges, passes=1)
        else:
            count, gain = engine.count(exchanges) // 2, engine.total(exchanges, "gain") // 2
        if count:
            _apply(state, exchanges)
        return count, gain


def _find(state: _Exchangeable, order: Sequence[Measure], offset: int) -> Relation:
    """Both sides of the best exchange of each pair of classes, if one gains."""
    classes = state.classes
    pairs = classes.pairs(order, offset, parts=state.parts, steps=STEPS)
    steps = OneStatement(classes.task.engine)
    flow = Flow(steps, "neighbours", members=classes.members, pairs=pairs, measures=classes.measures)
    flow.know(sensitive=classes.task.encoded.sensitive[0], common=None, l=state.l, square=state.l**2)
    if not state.parts:
        flow.step("common", "list_common_values")
    best = "find_exchanges"
    return steps.keep("exchanges", flow.path(best), **flow.params(best, left="a", right="b"))


def _apply(state: _Exchangeable, exchanges: Relation) -> None:
    """Carry out exchanges; only the classes that they touch are measured anew."""
    classes = state.classes
    engine, task = classes.task.engine, classes.task
    by = {"measures": classes.measures, "keys": task.encoded.sensitive}
    moved = engine.materialise("moved", "neighbours/exchange_rows", members=classes.members, exchanges=exchanges, **by)
    for relation in (classes.members, classes.measured):
        engine.delete_listed(relation, Identifier("class_id"), exchanges)
    changed = ClassState.of_members(task, classes.measures, moved)
    engine.insert(classes.members, "neighbours/list_rests", **changed.rest_params())
    engine.extend(classes.measured, changed.measured)
