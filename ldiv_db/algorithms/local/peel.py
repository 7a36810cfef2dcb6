"""Peeling: the rows that can be published cheaply go first, the rest is generalised further, until all are placed.

Ways to generalise (vectors of levels, `hierarchies`) come in rising order of cost, many to a statement. Every row left
goes to the cheapest of them in which it stands in a good class; classes that lost too many rows to cheaper ones
wait. What is good stays good with more rows of its kind, so nothing that was published is ever undone. Where
requirements bound shares, a class that is too one-sided keeps the most rows that are good together, and passes on the
others (`limits`).

Rows that are no good class of their own in the end join classes that can bear them (`Absorption`). In rising order of
cost, rows that are left are dealt out to the classes that have rows in the same place, small ones with slack first. A
class takes as many of the rows offered to it as it can bear, of 1, 2, 4, and so on. Rows that no class takes are merged
with the classes that have the most slack, at the worst with all of them: the whole table is good.

Classes near each other then give and exchange rows where that saves (`TRADES`). Every class is published as the lowest
common ancestors of its own rows, which is mostly less than it was found by.

Where rows are left out, a requirement that compares shares with those of the table means the table as it is published.
Classes that are not good by that join others, at the worst all of them: the whole of it is good.

Guarantee: every class meets every requirement, for requirements that are monotone; all rows are published, unless some
are to be left out where that costs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ldiv_db.algorithms.base import Options, Plan, Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.local.class_checker import (
    CLASS_ID,
    CLASS_NO,
    GOOD,
    ClassChecker,
    ClassedRows,
    LocalAlgorithm,
    count_classes,
    nothing_found,
    require_good,
)
from ldiv_db.algorithms.local.hierarchies import ValueHierarchy, Vector, hierarchies_of, vectors_of
from ldiv_db.algorithms.local.limits import Limits
from ldiv_db.algorithms.neighbours.passes import Course, Improving, asked_within, improve
from ldiv_db.algorithms.neighbours.several import improve_all
from ldiv_db.algorithms.neighbours.trades import TRADES
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.flow import EngineFlow, Flow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.steps import OneStatement, Steps
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import Distribution

#: Candidates of one class are numbered up to this.
POWERS = 40


class Absorption(EngineFlow):
    """Rows without a class (`left`) join classes (`assigned`) that lose no more than a limit by it.

    `standing` is one row a class.
    """

    def __init__(self, state: Peeling, left: Relation, rows: int, limit: int):
        engine = state.task.engine
        super().__init__(engine, "local/peel", waiting=left, limit=limit, most=POWERS)
        self._state, self.left, self.unassigned_rows = state, left, rows
        self.know(hierarchies=state.hierarchies, spread=state.spread)
        with self.scope("costs", "powers", "assigned", "standing"):
            columns = {"vector": "BIGINT"} | {hierarchy.choice.name: "BIGINT" for hierarchy in state.hierarchies}
            costs = [hierarchy.costs for hierarchy in state.hierarchies]
            rows_of = [
                (number, *(cost[level] for cost, level in zip(costs, vector, strict=True)))
                for number, vector in enumerate(state.vectors)
            ]
            powers = [(power, 2**power) for power in range(POWERS)]
            self.know(costs=engine.load("costs", columns, rows_of))
            self.know(powers=engine.load("powers", {"power": "BIGINT", "guests": "BIGINT"}, powers))
            self.know(assigned=engine.number_groups("numbered", state.assigned, "class_id"))
            counts, margins = self._judged(self["assigned"], CLASS_ID)
            self.step("standing", "list_standing", counts=counts, margins=margins, assigned=state.assigned)

    def deal_out(self) -> None:
        """Deal out rows by their places by some vectors, fewer for few that classes passed on, often by the last."""
        state, last, number = self._state, len(self._state.vectors) - 1, 0
        step = last // min(PLACES, FEWEST_PLACES + state.task.encoded.row_count // ROWS_A_PLACE)
        while number < last + LAST_ROUNDS and self.unassigned_rows:
            self._absorb(min(number, last))
            places = max(FEWEST_PLACES, self.unassigned_rows // LEFT_A_PLACE) if state.limits else PLACES
            number += max(1, min(last - number, max(step, (last - number) // places)))

    def _absorb(self, number: int) -> None:
        """Deal out rows by their places by the vector of that number."""
        state, steps = self._state, OneStatement(self.engine)
        with self.scope("standing"):
            self.know(vector=number)
            unassigned, keys = (state.keys([state.vectors[number]], 0, of, steps) for of in (self.left, state.grid))
            params = self.params("list_guests", waiting=unassigned, keys=keys)
            self.know(guests=steps.keep("guests", "local/peel/list_guests", **params))
            if self.engine.count(self["guests"]):
                self._take()

    def _take(self) -> None:
        """Put offered rows into classes, as many as each can bear."""
        self.know(margins=self._judged(self.step("trials", "list_trials"))[1])
        self.step("settled", "settle_trials")
        taken = self.step("taken", "take_guests")
        self.replace("standing", "renew_standing")
        if count := self.engine.count(taken):
            self.unassigned_rows -= count
            self.engine.extend(self["assigned"], taken)
            self.engine.delete_listed(self.left, Identifier("row_id"), taken)

    def merge(self) -> None:
        """Put all rows without a class into one with as many of the classes with most slack as it takes."""
        _, margins = self._judged(self.step("trials", "rank_classes"))
        first = self.engine.least(margins, "class_no", GOOD)
        if first is None:  # of monotone requirements all classes together are good
            what = f"{count_phrase(self.unassigned_rows, 'row fits', 'rows fit')} no class"
            raise nothing_found(self._state.task, "peel", what, "algorithm.residue: suppress leaves them out")
        self.step("assigned", "merge_classes", power=first, merged=0)
        self.unassigned_rows = 0

    def _judged(self, members: Relation, number: Identifier = CLASS_NO) -> tuple[Relation, Relation]:
        """The counts and margins of the classes of these members, by the column of their number."""
        rows = ClassedRows(self._state.grid, members, number)
        counts = count_classes(self.engine, self._state.task.encoded.sensitive, rows)
        return counts, self._state.checker.margins(counts)


#: How many rows times vectors one statement works on, and the most vectors.
BATCH, MOST_AT_ONCE = 4_000_000, 256
#: The same where classes pass on rows, which then look for the cheapest class of all ways after them.
BATCH_FITTED = 1_000_000
#: Then so many rows times vectors are looked at: of more, a share of the vectors.
MOST_FITTED = 80_000_000
#: A batch is tried again as long as it places one row in so many, at most so often.
LEAST_PART, MOST_TRIES = 2_000, 8
#: By how many vectors rows that are left look for a class, of how many rows one, and of those left; how often anywhere.
PLACES, FEWEST_PLACES, ROWS_A_PLACE, LEFT_A_PLACE, LAST_ROUNDS = 100, 8, 200, 4, 8
#: More than any class can lose.
NO_LIMIT = 2**62


class PeelOptions(Options):
    """Rows that are no good class of their own join others, or are left out where that costs less."""

    residue: Literal["incorporate", "suppress"] = "incorporate"


@dataclass
class Peeling:
    """Rows left (`left`, a part of `grid`) and placed (`assigned`), over the hierarchies of a task."""

    task: Task
    checker: ClassChecker
    hierarchies: Sequence[ValueHierarchy]
    #: Ways to generalise, by their number, in rising order of cost; the last suppresses every value.
    vectors: Sequence[Vector]
    grid: Relation
    left: Relation
    assigned: Relation
    unassigned_rows: int
    #: What classes may keep of the rows alike; None if they keep all or nothing.
    limits: Limits | None = None
    steps: list[int] = field(default_factory=list)
    #: The rows of classes that were not good beside the table without the rows that are left out.
    resettled: int = 0

    def peel(self) -> None:
        """Go through the vectors, as many at once as there is room for."""
        first, batch = 0, BATCH_FITTED if self.limits else BATCH
        while first < len(self.vectors) and self.unassigned_rows:
            last = min(len(self.vectors), first + max(1, min(MOST_AT_ONCE, batch // self.unassigned_rows)))
            with self.task.engine.scope():
                self._place_by(self.keys(self.vectors[first:last], first))
            first = last

    def _place_by(self, keys: Relation) -> None:
        """Place rows in the classes of these keys, as long as that yields."""
        engine, least = self.task.engine, self.task.encoded.row_count // LEAST_PART
        good, hopeful = self._fitted(keys, self.checker.least)
        if hopeful:
            every, keys = keys, engine.select_among("keys", keys, hopeful, "class_no")
            engine.drop(every)  # a row for every row and vector
        tries = MOST_TRIES if self.checker.monotone else 1  # a second try adds rows to classes that stand
        while engine.count(good) and self._place(keys, good) > least and self.unassigned_rows and (tries := tries - 1):
            good, _ = self._fitted(keys, self.checker.least)

    def _place(self, keys: Relation, good: Relation) -> int:
        """Place rows in the cheapest of their good classes, if these keep them, and drop their keys; how many rows."""
        engine, encoded, row_id = self.task.engine, self.task.encoded, Identifier("row_id")
        with engine.scope():
            cheapest = engine.materialise("seats", "local/peel/choose_classes", keys=keys, good=good)
            kept, fitted = self._fitted(cheapest, keeps=True)
            if fitted is None:
                named = (row_id.name, ("class_no", "class_id"))
                placed = engine.select_among("placed", cheapest, kept, "class_no", columns=named)
            else:
                params = {"rows": self.left, "seats": cheapest, "fitted": fitted, "good": kept}
                placed = engine.materialise("placed", "local/peel/seat_rows", key=encoded.sensitive[0].code, **params)
            count = engine.count(placed)
            if count:
                engine.extend(self.assigned, placed)
                self.unassigned_rows -= count
                for waiting in (self.left, keys) if self.unassigned_rows else ():  # nothing reads the others
                    engine.delete_listed(waiting, row_id, placed)
                self.steps.append(count)
                self.task.progress(encoded.row_count - self.unassigned_rows, encoded.row_count)
        return count

    def _fitted(self, members: Relation, least: int = 1, keeps: bool = False) -> tuple[Relation, Relation | None]:
        """(class_no): the good classes of these members; and how many rows of each value they keep, if it `keeps` that,
        else those that may be good with fewer rows. None for all.
        """
        if self.limits is None:
            good = self._good(members, self.left, least=least)
            return good, good if self.checker.more_is_better and not keeps else None
        steps = OneStatement(self.task.engine)
        counts = count_classes(steps, self.task.encoded.sensitive, ClassedRows(self.left, members), least)
        bounded = self.limits.bound(steps.materialise if keeps else steps.keep, counts, least)
        if keeps:
            fitted = self.limits.fit(steps.keep, bounded, least)
            return self.checker.good(fitted), fitted
        steps = OneStatement(self.task.engine)
        return self.checker.good(self.limits.fit(steps.materialise, bounded, least), steps), bounded

    def keys(
        self, vectors: Sequence[Vector], first: int = 0, of: Relation | None = None, steps: Steps | None = None
    ) -> Relation:
        """The keys of the rows that are left, or of others, by these vectors, which are numbered from the first."""
        engine = self.task.engine
        columns = {"vector": "BIGINT"} | {hierarchy.choice.name: "INTEGER" for hierarchy in self.hierarchies}
        loaded = engine.load("vectors", columns, [(number, *of_one) for number, of_one in enumerate(vectors, first)])
        flow = Flow(steps or engine, "local/peel", rows=of or self.left, vectors=loaded, spread=self.spread)
        return flow.step("keys", "list_keys", hierarchies=self.hierarchies)

    @property
    def spread(self) -> int:
        """More than any key."""
        return int(2 ** (sum(hierarchy.bits for hierarchy in self.hierarchies) + 1))

    def _good(self, members: Relation, rows: Relation, number: Identifier = CLASS_NO, least: int = 1) -> Relation:
        """(class_no): the classes of these members, of at least so many rows, that violate nothing."""
        steps, sensitive = OneStatement(self.task.engine), self.task.encoded.sensitive
        return self.checker.good(count_classes(steps, sensitive, ClassedRows(rows, members, number), least), steps)

    def absorb(self, suppresses: bool) -> None:
        """Join the remaining rows to classes, or leave those out that would lose more by it, if it suppresses."""
        limit = sum(hierarchy.full for hierarchy in self.hierarchies) if suppresses else None
        self.unassigned_rows = self._absorb(self.left, self.unassigned_rows, limit)

    def _absorb(self, left: Relation, rows: int, limit: int | None) -> int:
        """Have rows without a class join classes, all of them unless there is a limit; how many have none after it."""
        with self.task.engine.scope() as scope:
            absorption = Absorption(self, left, rows, NO_LIMIT if limit is None else limit)
            absorption.deal_out()
            if absorption.unassigned_rows and limit is None:
                absorption.merge()
            self.assigned = scope.keep(absorption["assigned"])
        return absorption.unassigned_rows

    def settle(self) -> None:
        """Mend the classes that fail once the rows that are left out no longer count in the table."""
        engine, encoded = self.task.engine, self.task.encoded
        sensitive = tuple(self._published(axis) for axis in encoded.sensitive)
        self.task = replace(self.task, encoded=replace(encoded, sensitive=sensitive))
        self.checker = ClassChecker(self.task)
        with engine.scope() as scope:
            bad = self._take_bad()
            self.resettled = engine.count(bad)
            if self.resettled:
                self._absorb(bad, self.resettled, None)
                scope.keep(self.assigned)

    def _published(self, axis: SensitiveAxis) -> SensitiveAxis:
        """The attribute whose classes are judged by the shares of the rows that have a class alone."""
        engine = self.task.engine
        params = {"rows": self.grid, "assigned": self.assigned, "dictionary": axis.reference}
        values = engine.materialise("published", "local/peel/count_published", key=axis.code, **params)
        counts = sorted(engine.column(values, "rows"), reverse=True)
        return replace(axis, judged=(values, Distribution(counts)), whole=None)

    def _take_bad(self) -> Relation:
        """The rows of the classes that violate something, which have a class no longer."""
        engine = self.task.engine
        good = self._good(self.assigned, self.grid, CLASS_ID)
        members = engine.select_others("members", self.assigned, good, ("class_id", "class_no"))
        bad = engine.select_among("bad", self.grid, members, "row_id")
        engine.delete_listed(self.assigned, Identifier("row_id"), bad)
        return bad


class Peel(LocalAlgorithm):
    """Local recoding for utility, for any list of monotone requirements."""

    name = "peel"
    options_type = PeelOptions
    options: PeelOptions

    def run(self, task: Task) -> Plan:
        with task.engine.scope() as scope:
            plan, state = self._peeled(task)
            assigned, courses = improve([TRADES], state, plan.assigned, asked_within(task))
            return self._traded(task, plan, scope.keep(assigned), courses)

    def run_all(self, tasks: Sequence[Task]) -> list[Plan]:
        """The plan of each task; they must be able to be strata of one: their classes trade rows at once."""
        with tasks[0].engine.scope() as scope:
            plans = [self._peeled(task)[0] for task in tasks]
            made = improve_all([TRADES], tasks, [plan.assigned for plan in plans], asked_within)
            every = zip(tasks, plans, made, strict=True)
            return [self._traded(task, plan, scope.keep(own), courses) for task, plan, (own, courses) in every]

    def _traded(self, task: Task, plan: Plan, assigned: Relation, courses: Sequence[Course]) -> Plan:
        """The plan with the classes that it has after trades."""
        require_good(task, self.name, assigned)
        return replace(plan, assigned=assigned, search=plan.search | {"trades": courses[0].changes})

    def _peeled(self, task: Task) -> tuple[Plan, Improving]:
        """The plan before rows are traded, and the state in which they are."""
        feasible, engine, rows = self.check(task), task.engine, task.encoded.row_count
        measures = lm_measures(task)
        hierarchies, checker = hierarchies_of(task, measures), ClassChecker(task)
        sensitive, flow = task.encoded.sensitive, EngineFlow(engine, "local", rows=task.encoded.rows)
        grid = flow.step("grid", "generalise_rows", hierarchies=hierarchies, sensitive=sensitive)
        left = engine.copy("left", grid)
        assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
        vectors, limits = vectors_of(hierarchies), Limits.of(task)
        if limits:
            vectors = [*vectors[: -1 : max(1, rows * len(vectors) // MOST_FITTED)], vectors[-1]]
        state = Peeling(task, checker, hierarchies, vectors, grid, left, assigned, rows, limits)
        state.peel()
        left_over = state.unassigned_rows
        if left_over == rows and not checker.monotone:
            raise nothing_found(task, self.name, "no rows alike do", "ask for less")
        if left_over:
            state.absorb(self.options.residue == "suppress")
        # Improvements reckon with the numbers of classes, and keys are too large for that; parts, with numbers from 1.
        state.assigned = engine.number_groups("numbered", state.assigned, "class_id")
        if state.unassigned_rows and task.compares_with_table:
            state.settle()
        engine.drop(grid, left)  # all the rows, while trades are tried
        search: dict[str, Any] = {"vectors": len(state.vectors), "steps": len(state.steps)}
        search |= {"absorbed": left_over - state.unassigned_rows}
        search |= {"resettled": state.resettled} if state.resettled else {}
        plan = Plan(state.assigned, feasible.l, feasible.notes, search)
        return plan, Improving(task, state.checker, measures)
