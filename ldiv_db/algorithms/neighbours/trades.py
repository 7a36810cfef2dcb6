"""Passes that improve classes round by round: their one loop, its stop rule, and the orders that find neighbours.

Of the passes trades are here. Classes of any size give rows to the classes of near rows, or exchange rows with them,
where that saves.

A round sorts all rows in several orders, and takes for each row the classes of the rows next to it. What moves of the
row to these classes save, and exchanges with rows of theirs, is worked out for all rows at once. The best of each class
are judged; of those after which both classes meet every requirement the best for both are carried out, at most one a
class. Rows that cost nothing where they are do not ask, but may be asked. So every class stays good, no row is lost,
and the cost never rises.

To follow rows and not the centres of classes is what lets a row find its like in a class that is far from its own
otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import COST_UNIT, Measure, lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.database.templates import Identifier, Relation, Value

#: Rounds end when two in a row lower the cost by less than this part of it.
LEAST_PART = 200
#: The jitter of an order by cardinality, in thousandths of a place.
JITTER = 4000


@dataclass(frozen=True)
class Changed:
    """The result of a round: the assignment (row_id, class_id), the number of changes, what they save, and the cost of
    the classes before.
    """

    assigned: Relation
    changes: int
    gain: int
    cost: int


@dataclass(frozen=True)
class Improving:
    """All that a pass needs besides the classes: the task, its judge of classes, and measures of what they cost."""

    task: Task
    checker: ClassChecker
    measures: Sequence[Measure]

    @staticmethod
    def of(task: Task) -> Improving:
        """The state in which a task's classes are improved by LM."""
        return Improving(task, ClassChecker(task), lm_measures(task))


#: A round: an assignment (row_id, class_id) and the number of the round from 0.
Round = Callable[[Relation, int], Changed]


@dataclass(frozen=True)
class Pass:
    """A pass over all classes in rounds, after which they meet the same requirements and cost no more.

    `name` is its key in the `search` of a plan, `stage` what is shown while it runs. `start` makes its round. With
    `until_idle` it ends also when a round changes nothing; `small_only`: large tables are spared its many rounds.
    """

    name: str
    stage: str
    rounds: Callable[[Task], int]
    start: Callable[[Improving], Round]
    least_part: int = LEAST_PART
    until_idle: bool = False
    small_only: bool = False

    def work(self, task: Task) -> int:
        """The cells that it looks at, as estimates count them."""
        return task.cell_count * (1 if self.small_only else self.rounds(task))


def improve(step: Pass, state: Improving, assigned: Relation, rounds: int | None = None) -> tuple[Relation, list[int]]:
    """The assignment after a pass of at most so many rounds, and the changes of each; `assigned` is dropped.

    It ends when two rounds in a row lower the cost by less than its `least_part`-th part.
    """
    task, changes, before = state.task, list[int](), 0
    rounds, change = step.rounds(task) if rounds is None else rounds, step.start(state)
    task.stage(step.stage)
    while len(changes) < rounds:
        if not task.is_part:  # which says itself how far its algorithm is
            task.progress(len(changes), rounds)
        changed = change(assigned, len(changes))
        task.engine.drop(assigned)  # all the rows, once a round
        assigned = changed.assigned
        changes.append(changed.changes)
        slow = len(changes) > 1 and (before + changed.gain) * step.least_part <= changed.cost
        if slow or (step.until_idle and not changed.changes):
            break
        before = changed.gain
    return assigned, changes


class Orders:
    """The orders of quasi-identifiers by which rounds sort classes."""

    def __init__(self, task: Task, measures: Sequence[Measure]):
        codes = [len(task.engine.tally(m.axis.dictionary, "code")) for m in measures]
        self._coarse_first = [measures[i] for _, i in sorted((count, i) for i, count in enumerate(codes))]
        self._seed = task.seed

    def order(self, number: int) -> list[Measure]:
        """Even rounds take the quasi-identifiers with few codes first, with some jitter; odd ones any order."""
        keyed = []
        for rank, measure in enumerate(self._coarse_first):
            drawn = self._draw(number, measure.axis.code.name)
            keyed.append((drawn if number % 2 else rank * 1000 + drawn % JITTER, rank))
        return [self._coarse_first[rank] for _, rank in sorted(keyed)]

    def several(self, number: int, count: int) -> list[list[Measure]]:
        """The orders of a round that takes so many."""
        return [self.order(count * number + i) for i in range(count)]

    def _draw(self, number: int, name: str) -> int:
        digest = hashlib.sha256(f"{self._seed}:{number}:{name}".encode()).digest()
        return int.from_bytes(digest[:8], "big")


#: The most rounds and the fewest, and how many cells all of them may look at together.
ROUNDS, FEWEST_ROUNDS, CELLS = 16, 2, 12_000_000
#: Rounds end when two in a row lower the cost by less than this part of it.
SLOW_LEAST_PART = 500
#: The orders of a round, and how far a row looks in each on either side.
ORDERS, STEPS = 2, tuple(Value(step) for step in (1, 2))
#: The trades of each kind that are judged of a class, and how many rows of a class, about, a row is exchanged with.
RANKED, TRIED = 4, 4
#: Rows of equal codes stand in the order of their numbers times a stride, which changes, by this modulus.
PRIME, _STRIDE, _LONGER = Value(2**31 - 1), 1_000_003, 7_919
#: Classes have fewer rows, and a level gains less.
MOST, GAINS = 2**31, Value(2 * COST_UNIT)


@dataclass(frozen=True)
class _PassNames:
    """The names of what one pass of choosing trades sees, takes, and leaves to the next."""

    number: int

    @property
    def good(self) -> Identifier:
        return Identifier(f"good_{self.number}")

    @property
    def taken(self) -> Identifier:
        return Identifier(f"taken_{self.number}")

    @property
    def left(self) -> Identifier:
        return _PassNames(self.number + 1).good


PASSES = tuple(map(_PassNames, range(3)))


def _trading(state: Improving) -> Round:
    """Rounds of trades."""
    orders = Orders(state.task, state.measures)
    return lambda assigned, number: _round(state, assigned, orders.several(number, ORDERS), number)


def _rounds(task: Task) -> int:
    """The rounds of a table: all there may be, fewer for tables of many cells; the first of them gain most."""
    return max(FEWEST_ROUNDS, min(ROUNDS, CELLS // max(task.cell_count, 1)))


#: Classes trade rows with those of near rows.
TRADES = Pass("polish", "trading rows", _rounds, _trading, SLOW_LEAST_PART)


def _round(state: Improving, assigned: Relation, orders: Sequence[Sequence[Measure]], number: int) -> Changed:
    """One round of trades."""
    task, measures = state.task, state.measures
    engine, sensitive = task.engine, task.encoded.sensitive
    with engine.scope() as scope:
        measured, rests, near = measured_neighbours(task, measures, assigned, orders, number)
        trades = engine.materialise(
            "trades",
            "neighbours/trade/find_trades",
            rests=rests,
            near=near,
            costs=measured,
            measures=measures,
            sensitive=sensitive,
            left=Identifier("a"),
            right=Identifier("b"),
            ranked=Value(RANKED),
            tried=Value(TRIED),
            turn=Value(number),
            gains=GAINS,
        )
        sides = engine.materialise("sides", "neighbours/trade/list_sides", trades=trades)
        counts = engine.materialise(
            "counts", "neighbours/trade/count_sides", sides=sides, rests=rests, sensitive=sensitive
        )
        margins = state.checker.margins(counts)
        chosen = engine.materialise(
            "chosen", "neighbours/trade/choose_trades", trades=trades, margins=[margins], passes=PASSES
        )
        count, gain = engine.count(chosen), engine.total(chosen, "gain")
        params = {"assigned": assigned, "sides": sides, "chosen": chosen}
        moved = scope.keep(engine.materialise("assigned", "neighbours/trade/move_rows", **params))
        cost = int(engine.scalar("neighbours/trade/sum_costs", measured=measured))
    return Changed(moved, int(count), int(gain), cost)


def stride(number: int) -> Value:
    """The multiplier, modulo `PRIME`, that orders rows of equal codes in a round by their numbers."""
    return Value(_STRIDE + _LONGER * number)


def measured_neighbours(
    task: Task,
    measures: Sequence[Measure],
    assigned: Relation,
    orders: Sequence[Sequence[Measure]],
    number: int,
) -> tuple[Relation, Relation, Relation]:
    """The costs of classes, every member with the measures of its class without it, and the classes near each."""
    members, measured = measured_classes(task, measures, assigned, MOST, least=0)
    near = task.engine.materialise(
        "near",
        "neighbours/trade/list_near_classes",
        members=members,
        costs=measured,
        orders=orders,
        steps=STEPS,
        stride=stride(number),
        prime=PRIME,
    )
    return measured, rests_of(task, measures, members, measured, MOST), near


def measured_classes(
    task: Task, measures: Sequence[Measure], assigned: Relation, most: int, least: int = 1
) -> tuple[Relation, Relation]:
    """The members of all classes, and costs and centres of the classes of fewer rows than `most` that cost `least` or
    more.
    """
    engine, sensitive = task.engine, task.encoded.sensitive
    params = {"rows": task.encoded.rows, "assigned": assigned}
    members = engine.materialise(
        "members", "neighbours/trade/list_members", **params, measures=measures, sensitive=sensitive
    )
    shared = {"measures": measures, "most": Value(most), "gains": GAINS, "least": Value(least)}
    measured = engine.materialise("measured", "neighbours/trade/measure_classes", members=members, **shared)
    return members, measured


def rests_of(task: Task, measures: Sequence[Measure], members: Relation, measured: Relation, most: int) -> Relation:
    """Every member of the measured classes, of fewer rows than `most`, with what its class is without it, and every
    such class as it is; `members` is dropped.
    """
    engine = task.engine
    rests = engine.materialise(
        "rests",
        "neighbours/trade/list_rests",
        members=members,
        measured=measured,
        measures=measures,
        sensitive=task.encoded.sensitive,
        most=Value(most),
        gains=GAINS,
    )
    engine.drop(members)  # all the rows, while what classes are without one is looked at
    return rests
