"""Exchanges: classes of neighbouring centres change rows where that lowers the loss.

A round sorts the classes by their centres, pairs neighbours, tries all l * l exchanges of a row for a row
in each pair and carries out the best that gains. An exchange is allowed if both classes keep different
sensitive values; so classes keep their sizes and stay distinct, and the loss never rises. Rounds sort by
the quasi-identifiers in other orders, drawn by the seed, so that each class meets many neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.algorithms.neighbours.trades import LEAST_PART, Orders
from ldiv_db.database.templates import Identifier, Relation, Value

_LEFT, _RIGHT = Identifier("a"), Identifier("b")


@dataclass(frozen=True)
class _Step:
    """A distance between classes in a round's order, and the column of the class at that distance."""

    number: Value
    column: Identifier


#: The classes that each is paired with on either side, within parts.
FOLLOWING = 4
_STEPS = [_Step(Value(step), Identifier(f"next_{step}")) for step in range(1, FOLLOWING + 1)]


@dataclass(frozen=True)
class _Exchangeable:
    """The members of classes that cost something with their classes without them, and those classes."""

    members: Relation
    classes: Relation
    measures: Sequence[Measure]
    l: Value  # noqa: E741 - the field's name for it
    last: Value
    parts: Relation | None


def exchange_rows(
    task: Task,
    measures: Sequence[Measure],
    assigned: Relation,
    l: int,  # noqa: E741
    rounds: int,
    parts: Relation | None = None,
) -> tuple[Relation, tuple[int, ...]]:
    """The assignment after at most `rounds` rounds, and the exchanges of each.

    `assigned` is (row_id, class_id) with classes of exactly l rows. With `parts`, (class_id, part), only classes of one
    part exchange rows.
    """
    engine = task.engine
    with engine.scope() as scope:
        members = engine.materialise(
            "members",
            "neighbours/exchange/list_members",
            rows=task.encoded.rows,
            assigned=assigned,
            measures=measures,
            sensitive=task.encoded.sensitive[0],
        )
        state = _first_state(task, members, measures, l, parts)
        engine.drop(members)  # all the rows, as long as exchanges go on
        exchanges = _run_rounds(task, state, rounds)
        result = engine.reassign(assigned, state.members)
        return scope.keep(result), tuple(exchanges)


def _run_rounds(task: Task, state: _Exchangeable, rounds: int) -> list[int]:
    """The exchanges made in each round, until two in a row gain too little: even and odd rounds pair differently."""
    orders = Orders(task, state.measures)
    cost = task.engine.total(state.classes, "cost")
    exchanges: list[int] = []
    gained_before = cost
    while len(exchanges) < rounds:
        count, gain = _round(task, state, orders.order(len(exchanges)), len(exchanges) // 2 % 2)
        exchanges.append(count)
        cost -= gain
        if (gained_before + gain) * LEAST_PART < cost or cost == 0:
            break
        gained_before = gain
    return exchanges


def _round(task: Task, state: _Exchangeable, order: Sequence[Measure], offset: int) -> tuple[int, int]:
    """One round: the exchanges made and what they gained."""
    engine = task.engine
    with engine.scope():
        exchanges = _find(task, state, order, offset) if state.parts is None else _find_within_parts(task, state, order)
        count, gain = engine.rows("neighbours/exchange/count_exchanges", exchanges=exchanges)[0]
        if count:
            _apply(task, state, exchanges)
        return count, gain


def _find(task: Task, state: _Exchangeable, order: Sequence[Measure], offset: int) -> Relation:
    """The best exchange of each pair of neighbours, if one gains."""
    engine = task.engine
    pairs = engine.materialise(
        "pairs", "neighbours/exchange/pair_classes", classes=state.classes, order=order, offset=Value(offset)
    )
    common = engine.materialise("common", "neighbours/exchange/list_common_values", members=state.members, pairs=pairs)
    return engine.materialise(
        "exchanges",
        "neighbours/exchange/find_exchanges",
        members=state.members,
        pairs=pairs,
        common=common,
        measures=state.measures,
        left=_LEFT,
        right=_RIGHT,
        l=state.l,
        square=Value(state.l.value**2),
    )


def _find_within_parts(task: Task, state: _Exchangeable, order: Sequence[Measure]) -> Relation:
    """The exchanges of rows of equal value that are the best for both of their classes, of several that each tries."""
    engine = task.engine
    params: dict[str, Any] = {"classes": state.classes, "parts": state.parts, "order": order, "steps": _STEPS}
    pairs = engine.materialise("pairs", "neighbours/exchange/pair_within_parts", **params)
    params = {"members": state.members, "measures": state.measures, "left": _LEFT, "right": _RIGHT}
    ranked = engine.materialise("ranked", "neighbours/exchange/rank_equal_values", pairs=pairs, **params)
    return engine.materialise("exchanges", "neighbours/exchange/settle_exchanges", ranked=ranked)


def _apply(task: Task, state: _Exchangeable, exchanges: Relation) -> None:
    """Carry out exchanges; only the classes that they touch are measured anew."""
    engine, class_id = task.engine, Identifier("class_id")
    moved = engine.materialise(
        "moved",
        "neighbours/exchange/exchange_rows",
        members=state.members,
        exchanges=exchanges,
        measures=state.measures,
    )
    for relation in (state.members, state.classes):
        engine.delete_listed(relation, class_id, exchanges)
    measured = _measure_classes(task, moved, state.measures, state.l)
    engine.insert(
        state.members,
        "neighbours/exchange/measure_rests",
        **_rests(moved, measured, state.measures, state.l, state.last),
    )
    engine.insert(state.classes, "neighbours/exchange/list_centres", measured=measured, measures=state.measures)


def _first_state(
    task: Task,
    members: Relation,
    measures: Sequence[Measure],
    l: int,  # noqa: E741
    parts: Relation | None,
) -> _Exchangeable:
    """The state of the first round; classes that cost nothing stay out of it, since no exchange with them gains."""
    engine, size, last = task.engine, Value(l), Value(l - 1)
    measured = _measure_classes(task, members, measures, size, least=1)
    classes = engine.materialise("classes", "neighbours/exchange/list_centres", measured=measured, measures=measures)
    params = _rests(members, measured, measures, size, last)
    rests = engine.materialise("rests", "neighbours/exchange/measure_rests", **params)
    return _Exchangeable(rests, classes, measures, size, last, parts)


def _measure_classes(
    task: Task,
    members: Relation,
    measures: Sequence[Measure],
    l: Value,  # noqa: E741
    least: int = 0,
) -> Relation:
    """The bounds and costs of the members' classes, as far as they cost `least` or more."""
    return task.engine.materialise(
        "measured", "neighbours/exchange/measure_classes", members=members, measures=measures, l=l, least=Value(least)
    )


def _rests(
    members: Relation,
    measured: Relation,
    measures: Sequence[Measure],
    l: Value,  # noqa: E741
    last: Value,
) -> dict[str, Any]:
    """The parameters of the statement that finds what classes are without each of their members."""
    return {"members": members, "measured": measured, "measures": measures, "l": l, "last": last}
