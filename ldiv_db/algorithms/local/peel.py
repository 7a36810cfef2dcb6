"""Peeling: the rows that can be published cheaply go first, the rest is generalised further, until all are placed.

Ways to generalise (vectors of levels, `hierarchies`) come in rising order of cost, many to a statement. Every row left
goes to the cheapest of them in which it stands in a good class; classes that lost too many rows to cheaper ones
wait. What is good stays good with more rows of its kind, so nothing that was published is ever undone.

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
    LocalAlgorithm,
    count_classes,
    nothing_found,
    require_good,
)
from ldiv_db.algorithms.local.hierarchies import ValueHierarchy, Vector, generalise_rows, hierarchies_of, vectors_of
from ldiv_db.algorithms.neighbours.passes import ASKED, Improving, improve
from ldiv_db.algorithms.neighbours.trades import TRADES
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import Distribution

#: Candidates of one class are numbered up to this.
POWERS = 40


class Absorption:
    """Rows without a class (`left`) join classes (`assigned`) that lose no more than a limit by it.

    `standing` is one row a class.
    """

    def __init__(self, state: Peeling, left: Relation, rows: int, vectors: Sequence[Vector], limit: int):
        self._state, self._engine = state, state.task.engine
        self.left, self.unassigned_rows = left, rows
        by_key, powers = state.assigned, [(power, 2**power) for power in range(POWERS)]
        self._flow = flow = EngineFlow(self._engine, "local/peel", waiting=left, limit=limit, most=POWERS)
        flow.know(hierarchies=state.hierarchies, spread=state.spread)
        with flow.scope("costs", "powers", "assigned", "standing"):
            flow.know(costs=self._load_costs(vectors))
            flow.know(powers=self._engine.load("powers", {"power": "BIGINT", "guests": "BIGINT"}, powers))
            flow.know(assigned=self._engine.number_groups("numbered", by_key, "class_id"))
            counts, margins = self._judged(self.assigned, CLASS_ID)
            flow.step("standing", "list_standing", counts=counts, margins=margins, assigned=by_key)

    @property
    def assigned(self) -> Relation:
        """(row_id, class_id) of the classes."""
        assigned: Relation = self._flow["assigned"]
        return assigned

    def _load_costs(self, vectors: Sequence[Vector]) -> Relation:
        hierarchies = self._state.hierarchies
        columns = {"vector": "BIGINT"} | {hierarchy.choice.name: "BIGINT" for hierarchy in hierarchies}
        costs = [hierarchy.costs for hierarchy in hierarchies]
        rows = [
            (number, *(cost[level] for cost, level in zip(costs, vector, strict=True)))
            for number, vector in enumerate(vectors)
        ]
        return self._engine.load("costs", columns, rows)

    def absorb(self, number: int, vector: Vector) -> None:
        """Deal out rows by their places by the vector of that number."""
        flow = self._flow
        with flow.scope("standing"):
            unassigned, keys = (self._state.keys(range(1), [vector], of) for of in (self.left, self._state.grid))
            flow.know(vector=number)
            offered = flow.step("guests", "list_guests", waiting=unassigned, keys=keys)
            self._engine.drop(unassigned, keys)  # all the rows
            if self._engine.count(offered):
                self._take()

    def _take(self) -> None:
        """Put offered rows into classes, as many as each can bear."""
        flow, standing = self._flow, self._flow["standing"]
        _, margins = self._judged(flow.step("trials", "list_trials"))
        flow.know(margins=margins)
        flow.step("settled", "settle_trials")
        taken = flow.step("taken", "take_guests")
        flow.step("standing", "renew_standing")
        self._engine.drop(standing)
        self._assign(taken)

    def _assign(self, taken: Relation) -> None:
        self.unassigned_rows -= self._engine.count(taken)
        self._engine.extend(self.assigned, taken)
        self._engine.delete_listed(self.left, Identifier("row_id"), taken)

    def merge(self) -> None:
        """Put all rows without a class into one with as many of the classes with most slack as it takes."""
        _, margins = self._judged(self._flow.step("trials", "rank_classes"))
        first = self._engine.least(margins, "class_no", GOOD)
        if first is None:  # of monotone requirements all classes together are good
            what = f"{count_phrase(self.unassigned_rows, 'row fits', 'rows fit')} no class"
            raise nothing_found(self._state.task, "peel", what, "algorithm.residue: suppress leaves them out")
        self._flow.step("assigned", "merge_classes", power=first, merged=0)
        self.unassigned_rows = 0

    def _judged(self, members: Relation, number: Identifier = CLASS_NO) -> tuple[Relation, Relation]:
        """The counts and margins of the classes of these members, by the column of their number."""
        sensitive, grid = self._state.task.encoded.sensitive, self._state.grid
        counts = count_classes(self._engine, sensitive, grid, members, number)
        return counts, self._state.checker.margins(counts)


#: How many rows times vectors one statement works on, and the most vectors.
BATCH, MOST_AT_ONCE = 4_000_000, 256
#: A batch is tried again as long as it places one row in so many, at most so often.
LEAST_PART, MOST_TRIES = 2_000, 8
#: By how many vectors rows that are left look for a class, at most, and of how many rows one; how often anywhere.
PLACES, ROWS_A_PLACE, LAST_ROUNDS = 100, 200, 8
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
    grid: Relation
    left: Relation
    assigned: Relation
    unassigned_rows: int
    steps: list[int] = field(default_factory=list)
    #: The rows of classes that were not good beside the table without the rows that are left out.
    resettled: int = 0

    def peel(self, numbers: range, vectors: Sequence[Vector]) -> int:
        """Place what can be placed by these vectors, which have these numbers; how many rows."""
        engine = self.task.engine
        with engine.scope():
            keys = self.keys(numbers, vectors)
            good = self._good(keys, self.left, least=self.checker.least)
            cheapest = engine.materialise("seats", "local/peel/choose_classes", keys=keys, good=good)
            engine.drop(keys)  # a row for every row and vector
            columns = ("row_id", ("class_no", "class_id"))
            kept = self._good(cheapest, self.left)
            return self._place(engine.select_among("placed", cheapest, kept, "class_no", columns=columns))

    def keys(self, numbers: range, vectors: Sequence[Vector], of: Relation | None = None) -> Relation:
        engine = self.task.engine
        columns = {"vector": "BIGINT"} | {hierarchy.choice.name: "INTEGER" for hierarchy in self.hierarchies}
        rows = [(number, *vector) for number, vector in zip(numbers, vectors, strict=True)]
        with engine.scope() as scope:
            loaded = engine.load("vectors", columns, rows)
            flow = EngineFlow(engine, "local/peel", rows=of or self.left, vectors=loaded, spread=self.spread)
            return scope.keep(flow.step("keys", "list_keys", hierarchies=self.hierarchies))

    @property
    def spread(self) -> int:
        """More than any key."""
        return int(2 ** (sum(hierarchy.places.bit_length() for hierarchy in self.hierarchies) + 1))

    def _good(self, members: Relation, rows: Relation, number: Identifier = CLASS_NO, least: int = 1) -> Relation:
        """(class_no): the classes of these members, of at least so many rows, that violate nothing."""
        engine = self.task.engine
        with engine.scope() as scope:
            counts = count_classes(engine, self.task.encoded.sensitive, rows, members, number, least=least)
            return scope.keep(self.checker.good(counts))

    def compare_with_published(self) -> None:
        """Judge classes from here on by the shares of the rows that have a class alone."""
        encoded = self.task.encoded
        sensitive = tuple(self._published(axis) for axis in encoded.sensitive)
        self.task = replace(self.task, encoded=replace(encoded, sensitive=sensitive))
        self.checker = ClassChecker(self.task)

    def _published(self, axis: SensitiveAxis) -> SensitiveAxis:
        engine = self.task.engine
        params = {"rows": self.grid, "assigned": self.assigned, "dictionary": axis.reference}
        values = engine.materialise("published", "local/peel/count_published", key=axis.code, **params)
        counts = sorted(engine.column(values, "rows"), reverse=True)
        return replace(axis, judged=(values, Distribution(counts)), whole=None)

    def take_bad(self) -> Relation:
        """The rows of the classes that violate something, which have a class no longer."""
        engine = self.task.engine
        good = self._good(self.assigned, self.grid, CLASS_ID)
        members = engine.select_others("members", self.assigned, good, ("class_id", "class_no"))
        bad = engine.select_among("bad", self.grid, members, "row_id")
        engine.delete_listed(self.assigned, Identifier("row_id"), bad)
        return bad

    def _place(self, placed: Relation) -> int:
        engine = self.task.engine
        count = engine.count(placed)
        if count:
            engine.extend(self.assigned, placed)
            engine.delete_listed(self.left, Identifier("row_id"), placed)
            self.unassigned_rows -= count
            self.steps.append(count)
            self.task.progress(self.task.encoded.row_count - self.unassigned_rows, self.task.encoded.row_count)
        return count


class Peel(LocalAlgorithm):
    """Local recoding for utility, for any list of monotone requirements."""

    name = "peel"
    options_type = PeelOptions
    options: PeelOptions

    def run(self, task: Task) -> Plan:
        feasible, engine = self.check(task), task.engine
        with engine.scope() as scope:
            measures = lm_measures(task)
            hierarchies, checker = hierarchies_of(task, measures), ClassChecker(task)
            grid = generalise_rows(task, hierarchies)
            left = engine.copy("left", grid)
            assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
            state = Peeling(task, checker, hierarchies, grid, left, assigned, task.encoded.row_count)
            vectors = vectors_of(hierarchies)
            self._peel(state, vectors)
            left_over = state.unassigned_rows
            if left_over == task.encoded.row_count and not checker.monotone:
                raise nothing_found(task, self.name, "no rows alike do", "ask for less")
            if left_over:
                self._absorb(state, vectors)
            else:  # improvements reckon with the numbers of classes, and keys are too large for that
                state.assigned = engine.number_groups("numbered", state.assigned, "class_id")
            if state.unassigned_rows and task.compares_with_table:
                self._settle(state, vectors)
            engine.drop(grid, left)  # all the rows, while trades are tried
            by = Improving(task, state.checker, measures)
            assigned, (trades,) = improve([TRADES], by, state.assigned, ASKED)
            scope.keep(assigned)
            require_good(task, self.name, assigned)
        search = self._search(state, vectors, left_over) | {"trades": trades.changes}
        return Plan(assigned, feasible.l, feasible.notes, search)

    def _peel(self, state: Peeling, vectors: Sequence[Vector]) -> None:
        """Go through the vectors, as many at once as there is room for, each batch as long as it yields."""
        least = state.task.encoded.row_count // LEAST_PART
        tries = MOST_TRIES if state.checker.monotone else 1  # a second try adds rows to classes that stand
        first = 0
        while first < len(vectors) and state.unassigned_rows:
            last = min(len(vectors), first + max(1, min(MOST_AT_ONCE, BATCH // state.unassigned_rows)))
            batch = range(first, last)
            for _ in range(tries):
                if state.peel(batch, vectors[first:last]) <= least or not state.unassigned_rows:
                    break
            first = last

    def _absorb(self, state: Peeling, vectors: Sequence[Vector]) -> None:
        """Join the remaining rows to classes, by some of the vectors, the last of which suppresses every value."""
        suppresses = self.options.residue == "suppress"
        limit = sum(hierarchy.full for hierarchy in state.hierarchies) if suppresses else NO_LIMIT
        with state.task.engine.scope() as scope:
            absorption = Absorption(state, state.left, state.unassigned_rows, vectors, limit)
            self._deal_out(state, absorption, vectors)
            if absorption.unassigned_rows and self.options.residue == "incorporate":
                absorption.merge()
            state.assigned, state.unassigned_rows = scope.keep(absorption.assigned), absorption.unassigned_rows

    def _deal_out(self, state: Peeling, absorption: Absorption, vectors: Sequence[Vector]) -> None:
        last = len(vectors) - 1
        places = max(1, min(PLACES, 8 + state.task.encoded.row_count // ROWS_A_PLACE))
        for number in [*range(0, last, max(1, last // places)), *[last] * LAST_ROUNDS]:
            if absorption.unassigned_rows:
                absorption.absorb(number, vectors[number])

    def _settle(self, state: Peeling, vectors: Sequence[Vector]) -> None:
        """Mend the classes that fail once the rows that are left out no longer count in the table."""
        engine = state.task.engine
        state.compare_with_published()
        with engine.scope() as scope:
            bad = state.take_bad()
            state.resettled = engine.count(bad)
            if not state.resettled:
                return
            absorption = Absorption(state, bad, state.resettled, vectors, NO_LIMIT)
            self._deal_out(state, absorption, vectors)
            if absorption.unassigned_rows:
                absorption.merge()
            state.assigned = scope.keep(absorption.assigned)

    def _search(self, state: Peeling, vectors: Sequence[Vector], left_over: int) -> dict[str, Any]:
        search = {"vectors": len(vectors), "steps": len(state.steps), "absorbed": left_over - state.unassigned_rows}
        return search | ({"resettled": state.resettled} if state.resettled else {})
