"""Passes that improve classes round by round: their one loop and stop rule, and the state of classes that they share.

A round works out once the members of all classes, the bounds and costs of each, what each is without any one of its
rows, and the classes near each row; what moves is found in these relations (`ClassState`). Where requirements ask for
it, the classes of what moves are judged as they would be afterwards, all at once; of the good moves those that are the
best for both of their classes are carried out, at most one a class.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, lm_measures
from ldiv_db.algorithms.local.class_checker import CLASS_ID, ClassChecker, ClassedRows, count_classes
from ldiv_db.algorithms.local.strata import Strata, joined
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.steps import OneStatement, Steps
from ldiv_db.recoding.cross_tables import STRATUM
from ldiv_db.recoding.encoded import SensitiveAxis

#: What is shown while classes are improved.
IMPROVING = "improving classes"
#: Gains are counted in so many parts of what all classes cost, for each tenth of the work of the quickest algorithm.
GAIN_UNIT = 10**6
#: What such a tenth must gain, if nothing else is asked.
ASKED = 200
#: The jitter of an order by cardinality, in thousandths of a place.
JITTER = 4000
#: How far a row looks in an order on either side.
STEPS = (1, 2)
#: Rows of equal codes stand in the order of their numbers times a stride, which changes, by this modulus.
PRIME, _STRIDE, _LONGER = 2**31 - 1, 1_000_003, 7_919
#: More than any gain of LM, and than the rows of any class.
MOST = 2**31


@dataclass(frozen=True)
class Changed:
    """The result of a round: the assignment (row_id, class_id), the number of changes, what they save, and the cost of
    the classes before. Without a change it is the assignment that there was.
    """

    assigned: Relation
    changes: int = 0
    gain: int = 0
    cost: int = 0


@dataclass(frozen=True)
class Improving:
    """All that a pass needs besides the classes: the task, its judge of classes, and measures of what they cost."""

    task: Task
    checker: ClassChecker
    measures: Sequence[Measure]

    @staticmethod
    def of(task: Task) -> Improving:
        """The state in which a task's classes are improved by LM."""
        if task.cross:
            return Improving.of_strata(joined([task], filled=True))
        return Improving(task, ClassChecker(task), lm_measures(task))

    @staticmethod
    def of_strata(strata: Strata) -> Improving:
        """The state in which classes of several tasks are improved at once."""
        return Improving(strata.task, ClassChecker(strata.task), strata.measures())


def asked_within(task: Task) -> int:
    """What trades within an algorithm must gain: where other passes go on with its classes, as much."""
    return 2 * ASKED if task.goes_on else ASKED


#: A round: an assignment (row_id, class_id) and the number of the round from 0.
Round = Callable[[Relation, int], Changed]


@dataclass(frozen=True)
class Pass:
    """A pass over all classes in rounds, after which they meet the same requirements and cost no more.

    `name` is its key in the `search` of a plan. `start` makes its round, which is so many tenths of the work of the
    quickest algorithm on the table (`price`). `small_only`: large tables are spared its many rounds, which look at each
    cell so many times (`looks`).
    """

    name: str
    rounds: Callable[[Task], int]
    start: Callable[[Improving], Round]
    price: int
    small_only: bool = False
    looks: int = 1

    def work(self, task: Task) -> int:
        """The cells that it looks at, as estimates count them."""
        return task.cell_count * (self.looks if self.small_only else self.rounds(task))


class Course:
    """A pass under way: the most `rounds`, the `changes` of those done, and what these gained by themselves."""

    def __init__(self, step: Pass, state: Improving, rounds: int | None):
        self.step = step
        self.changes = list[int]()
        self.rounds = step.rounds(state.task) if rounds is None else rounds
        self._round = step.start(state)
        self._gains = list[int]()

    def go_on(self, assigned: Relation) -> Changed:
        """One more round."""
        changed = self._round(assigned, len(self.changes))
        self.changes.append(changed.changes)
        self._gains.append(changed.gain * GAIN_UNIT // max(changed.cost, 1))
        return changed

    def promises(self, asked: int) -> int:
        """What a tenth of work may gain: what it did in the last two rounds; -1 for less than is asked, or no round.

        A pass that was not tried promises more than any other.
        """
        if len(self.changes) >= self.rounds:
            return -1
        if not self._gains:
            return GAIN_UNIT
        last = self._gains[-2:]
        found = sum(last) // (len(last) * self.step.price)
        return found if found >= max(asked, 1) else -1

    def as_dict(self) -> dict[str, Any]:
        """The entry on the pass for the result: its rounds, their work, and the part of the cost that they gained."""
        left = math.prod(1 - gain / GAIN_UNIT for gain in self._gains)
        work = len(self.changes) * self.step.price / 10
        return {"step": self.step.name, "rounds": len(self.changes), "work": work, "gained": 1 - left}


def improve(
    steps: Sequence[Pass], state: Improving, assigned: Relation, asked: int = ASKED, rounds: int | None = None
) -> tuple[Relation, list[Course]]:
    """The assignment after passes of at most so many rounds each, and their courses: `assigned` itself, or another.

    Each round is one of the pass that promises most for its work. It ends when none promises what is `asked`: parts of
    `GAIN_UNIT` of the cost, for a tenth of the work of the quickest algorithm.
    """
    task, courses, done, first = state.task, [Course(step, state, rounds) for step in steps], 0, assigned
    task.stage(IMPROVING)
    while (course := max(courses, key=lambda one: one.promises(asked))).promises(asked) >= 0:
        if not task.is_part:  # which says itself how far its algorithm is
            task.progress(done, sum(one.rounds for one in courses))
        done += 1
        changed = course.go_on(assigned)
        if assigned not in (first, changed.assigned):
            task.engine.drop(assigned)  # all the rows, once a round
        assigned = changed.assigned
    return assigned, courses


def _count_codes(engine: Engine, dictionary: Relation) -> int:
    return len(engine.tally(dictionary, "code"))


class Orders:
    """The orders of quasi-identifiers by which rounds sort classes."""

    def __init__(self, task: Task, measures: Sequence[Measure]):
        self._strata, measures = ([m for m in measures if (m.axis.code == STRATUM) is of] for of in (True, False))
        engine, read = task.engine, [m.axis.dictionary for m in measures]
        codes = [engine.remembered(one, partial(_count_codes, engine, one), _count_codes) for one in read]
        self._coarse_first = [measures[i] for _, i in sorted((count, i) for i, count in enumerate(codes))]
        self._seed = task.seed

    def order(self, number: int) -> list[Measure]:
        """Even rounds take the quasi-identifiers with few codes first, with some jitter; odd ones any order.

        Rows of a stratum stand together in all of them.
        """
        keyed = []
        for rank, measure in enumerate(self._coarse_first):
            digest = hashlib.sha256(f"{self._seed}:{number}:{measure.axis.code.name}".encode()).digest()
            drawn = int.from_bytes(digest[:8], "big")
            keyed.append((drawn if number % 2 else rank * 1000 + drawn % JITTER, rank))
        return [*self._strata, *(self._coarse_first[rank] for _, rank in sorted(keyed))]


def in_orders(
    count: int, round_of: Callable[[Improving, Relation, Sequence[Sequence[Measure]], int], Changed]
) -> Callable[[Improving], Round]:
    """The start of a pass whose rounds take so many orders each: `round_of` has state, assignment, orders, number."""

    def start(state: Improving) -> Round:
        orders = Orders(state.task, state.measures)
        return lambda assigned, number: round_of(
            state, assigned, [orders.order(count * number + i) for i in range(count)], number
        )

    return start


@dataclass(frozen=True)
class Spared:
    """The classes that a round does not measure: those that cost less than `least`, or have `most` rows."""

    least: int = 0
    most: int = MOST


class ClassState(EngineFlow):
    """The classes as a round finds them: their `members`, and in `measured` the bounds and costs of each.

    Of classes that are `spared` it has the members alone. If `grouped` one of equal
    members stands for all of them, where a class gives one row a round. Its own steps are those of `neighbours`;
    others are in the `folder`.
    """

    def __init__(
        self,
        task: Task,
        measures: Sequence[Measure],
        assigned: Relation,
        spared: Spared = Spared(),
        grouped: bool = False,
        folder: str = "neighbours",
    ):
        super().__init__(task.engine, folder, rows=task.encoded.rows, assigned=assigned, measures=measures)
        self.know(sensitive=task.encoded.sensitive, keys=task.encoded.sensitive, prime=PRIME)
        self.step("members", "neighbours/list_members", slots=True, grouped=grouped)
        self.know(least=spared.least, most=spared.most, packed=MOST)
        self.step("measured", "neighbours/measure_classes")

    def rests(self, whole: bool = False) -> None:
        """Make `rests`: members of measured classes, each with what its class is without it; `whole` classes as well.

        `members` is dropped: all the rows, as long as what classes are without one is looked at.
        """
        self.step("rests", "neighbours/list_rests", whole=whole)
        self.drop("members")

    def near(self, orders: Sequence[Sequence[Measure]], number: int, at: Steps | None = None) -> None:
        """Make `near` (row_id, near_class_id): the classes of the rows that stand near each in these orders.

        Rows of equal codes stand in an order of their numbers, another in each round. It is a part of the statement
        `at`, if one is given.
        """
        self.know(stride=stride_of(number))
        listing = "neighbours/list_near_classes"
        params = self.params(listing, orders=orders, steps=STEPS)
        self.know(near=(at or self.engine).materialise("near", listing, **params))

    def pairs(self, order: Sequence[Measure], offset: int, at: Steps | None = None, **within: Any) -> None:
        """Make `pairs` (class_id, pair, side): classes next to each other by their centres.

        `within` says of which `parts`, and how far; they are a part of the statement `at`, if one is given.
        """
        params = {"parts": None, "steps": (), "by_gain": False, "order": order, "offset": offset} | within
        pairing = "neighbours/pair_classes"
        self.know(pairs=(at or self.engine).materialise("pairs", pairing, **self.params(pairing, **params)))

    @property
    def cost(self) -> int:
        """The cost of all rows of the classes that are measured."""
        return self.engine.total(self["measured"], "total_cost")


def stride_of(number: int) -> int:
    """The stride by which rows of equal codes are ordered in a round."""
    return _STRIDE + _LONGER * number


def sides_of(engine: Engine, trades: Relation, keys: Sequence[SensitiveAxis] = ()) -> Relation:
    """Both classes of every trade (trade, row_id, class_id, other_row_id, other_class_id, gain, codes of the keys)."""
    return engine.materialise("sides", "neighbours/list_sides", trades=trades, keys=keys)


def choose(engine: Engine, sides: Relation, passes: int = 3, **among: Any) -> tuple[Relation, int, int]:
    """The sides of trades that are the best for both of their classes, how many trades, and what they save.

    `among` with `margins` (class_no, margin) are trades whose classes violate nothing, with `taken` those with none of
    its classes. A side has the row that its class takes: (row_id, class_id) is where rows move.
    """
    chosen = choose_first(engine, sides, passes, **among)
    count = engine.count(chosen) // 2
    return chosen, count, engine.total(chosen, "gain") // 2 if count else 0


def choose_first(steps: Steps, sides: Relation, passes: int = 3, **among: Any) -> Relation:
    """The sides of trades, or of pairs, that are the first for both of their classes."""
    good, taken = ([Identifier(f"{name}_{number}") for number in range(passes + 1)] for name in ("good", "taken"))
    listed = [{"good": good[i], "taken": taken[i], "left": good[i + 1]} for i in range(passes)]
    params = {"margins": None, "taken": None, "ranked": None, "few": "ranked" in among} | among
    return steps.materialise("chosen", "neighbours/choose_trades", sides=sides, passes=listed, **params)


def choose_good(state: Improving, trades: Relation, assigned: Relation, **few: Any) -> tuple[Relation, int, int]:
    """As `choose`, of the trades after which both classes meet every requirement."""
    sides = sides_of(state.task.engine, trades, state.task.encoded.sensitive)
    return choose(state.task.engine, sides, margins=margins_of(state, sides, assigned), **few)


def margins_of(state: Improving, sides: Relation, assigned: Relation) -> Relation:
    """(class_no, margin): how far classes are from violating after what their sides say that they give and take."""
    steps, encoded = OneStatement(state.task.engine), state.task.encoded
    counts = count_classes(steps, encoded.sensitive, ClassedRows(encoded.rows, assigned, CLASS_ID))
    params = {"sides": sides, "counts": counts, "sensitive": encoded.sensitive}
    return state.checker.margins(steps.materialise("changed", "neighbours/count_sides", **params), steps)
