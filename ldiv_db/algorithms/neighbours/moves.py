"""Trades: classes of any size near each other exchange rows, or one gives a row to the other, where that saves.

A round sorts the classes by their centres, pairs neighbours, works out for all pairs of rows of a pair, and for each
row alone, what its exchange or move saves, and judges the best: the first after which both classes meet every
requirement is carried out. Rounds sort in other orders, as those of `exchange`. Classes that cost nothing, and those of
very many rows, take no part. So every class stays good, no row is lost, and the cost never rises.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import COST_UNIT, Measure
from ldiv_db.algorithms.local.candidate_classes import ClassChecker
from ldiv_db.algorithms.neighbours.rounds import Changed, run_rounds
from ldiv_db.database.templates import Identifier, Relation, Value

#: The most rounds; the trades of a pair that are judged; classes of so many rows take no part.
ROUNDS, RANKED, LARGE = 12, 4, 64
#: More than any gain of a level.
_GAINS = Value(2 * COST_UNIT)


def trade(
    task: Task, checker: ClassChecker, measures: Sequence[Measure], assigned: Relation, rounds: int = ROUNDS
) -> tuple[Relation, list[int]]:
    """The assignment (row_id, class_id) after at most so many rounds, and the trades of each; `assigned` is dropped."""

    def change(assigned: Relation, order: Sequence[Measure], offset: int) -> Changed:
        return _round(task, checker, measures, assigned, order, offset)

    return run_rounds(task, measures, assigned, rounds, change)


def _round(
    task: Task,
    checker: ClassChecker,
    measures: Sequence[Measure],
    assigned: Relation,
    order: Sequence[Measure],
    offset: int,
) -> Changed:
    """One round of trades."""
    engine, sensitive = task.engine, task.encoded.sensitive
    with engine.scope() as scope:
        measured, rests = _measure(task, measures, assigned)
        holes = {"classes": measured, "order": order, "offset": Value(offset)}
        pairs = engine.materialise("pairs", "neighbours/exchange/pair_classes", **holes)
        trades = engine.materialise(
            "trades",
            "neighbours/trade/find_trades",
            rests=rests,
            pairs=pairs,
            costs=measured,
            measures=measures,
            left=Identifier("a"),
            right=Identifier("b"),
            ranked=Value(RANKED),
            gains=_GAINS,
        )
        sides = engine.materialise("sides", "neighbours/trade/list_sides", trades=trades)
        holes = {"sides": sides, "rests": rests, "sensitive": sensitive}
        counted = engine.materialise("counted", "neighbours/trade/count_trades", **holes)
        counts = engine.materialise("counts", "neighbours/trade/sum_counts", counts=counted, sensitive=sensitive)
        margins = checker.margins(counts)
        chosen = engine.materialise("chosen", "neighbours/trade/choose_trades", trades=trades, margins=margins)
        count, gain = engine.rows("neighbours/trade/sum_gains", chosen=chosen)[0]
        holes = {"assigned": assigned, "sides": sides, "chosen": chosen}
        moved = scope.keep(engine.materialise("assigned", "neighbours/trade/move_rows", **holes))
        cost = int(engine.scalar("neighbours/trade/sum_costs", measured=measured))
    return Changed(moved, int(count), int(gain), cost)


def _measure(task: Task, measures: Sequence[Measure], assigned: Relation) -> tuple[Relation, Relation]:
    """What the classes cost, and every member with what its class is without it."""
    engine = task.engine
    members, measured = measured_classes(task, measures, assigned, LARGE)
    rests = engine.materialise(
        "rests",
        "neighbours/trade/list_rests",
        members=members,
        measured=measured,
        measures=measures,
        sensitive=task.encoded.sensitive,
        most=Value(LARGE),
        gains=_GAINS,
    )
    engine.drop(members)  # all the rows, while trades are tried
    return measured, rests


def measured_classes(
    task: Task, measures: Sequence[Measure], assigned: Relation, most: int
) -> tuple[Relation, Relation]:
    """The members of all classes, and costs and centres of the classes of fewer rows that cost something."""
    engine, sensitive = task.engine, task.encoded.sensitive
    holes = {"rows": task.encoded.rows, "assigned": assigned}
    members = engine.materialise(
        "members", "neighbours/trade/list_members", **holes, measures=measures, sensitive=sensitive
    )
    shared = {"measures": measures, "most": Value(most), "gains": _GAINS}
    measured = engine.materialise("measured", "neighbours/trade/measure_classes", members=members, **shared)
    return members, measured
