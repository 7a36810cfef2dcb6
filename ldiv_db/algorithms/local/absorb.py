"""Absorbing: rows that are no good class of their own join classes that stay good with them.

In rising order of cost, rows that are left are dealt out to the classes that have rows in the same place, small
ones with slack first. A class takes as many of its guests as it can bear, of 1, 2, 4, and so on. What nobody
takes in the end is merged with the classes that have the most slack, at the worst with all of them: the whole
table is good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.candidate_classes import ClassChecker
from ldiv_db.algorithms.local.hierarchies import ValueHierarchy, Vector
from ldiv_db.algorithms.local.unsure import nothing_found
from ldiv_db.database.templates import Identifier, Relation, Value

#: Candidates of one class are numbered up to this.
POWERS = 40


@dataclass
class Absorption:
    """Rows that wait (`left`) and classes (`assigned`), both of `grid`; `standing` says what each class could bear."""

    task: Task
    checker: ClassChecker
    grid: Relation
    left: Relation
    assigned: Relation
    waiting: int
    hierarchies: Sequence[ValueHierarchy]
    vectors: Sequence[Vector]
    spread: Value
    limit: int

    def __post_init__(self) -> None:
        engine = self.task.engine
        powers = [(power, 2**power) for power in range(POWERS)]
        with engine.scope() as scope:
            origins = engine.materialise(
                "origins", "local/peel/list_origins", assigned=self.assigned, spread=self.spread
            )
            self.costs = scope.keep(self._load_costs())
            self.powers = scope.keep(engine.load("powers", {"power": "BIGINT", "guests": "BIGINT"}, powers))
            self.assigned = scope.keep(engine.materialise("numbered", "local/number_classes", assigned=self.assigned))
            members = engine.materialise("members", "local/name_classes", assigned=self.assigned)
            counts, margins = self._judged(members)
            holes = {"counts": counts, "margins": margins, "origins": origins, "costs": self.costs}
            self.standing = scope.keep(
                engine.materialise("standing", "local/peel/list_standing", **holes, hierarchies=self.hierarchies)
            )

    def _load_costs(self) -> Relation:
        """What each vector costs on each hierarchy."""
        columns = {"vector": "BIGINT"} | {hierarchy.choice.name: "BIGINT" for hierarchy in self.hierarchies}
        costs = [hierarchy.costs for hierarchy in self.hierarchies]
        rows = [
            (number, *(cost[level] for cost, level in zip(costs, vector, strict=True)))
            for number, vector in enumerate(self.vectors)
        ]
        return self.task.engine.load("costs", columns, rows)

    def absorb(self, number: int, keys: Callable[[Relation], Relation]) -> int:
        """Deal out rows by their places (row_id, class_no) by a vector, as `keys` has them; how many found a class."""
        engine = self.task.engine
        with engine.scope() as scope:
            waiting, all_keys = keys(self.left), keys(self.grid)
            by = {"costs": self.costs, "hierarchies": self.hierarchies, "vector": Value(number)}
            holes = {"keys": all_keys, "waiting": waiting, "assigned": self.assigned, "standing": self.standing}
            homes = engine.materialise("homes", "local/peel/list_homes", **holes, **by, limit=Value(self.limit))
            guests = engine.materialise("guests", "local/peel/list_guests", waiting=waiting, homes=homes)
            engine.drop(waiting, all_keys, homes)  # all the rows
            taken = self._settle(guests, by) if engine.count(guests) else 0
            scope.keep(self.standing)
        return taken

    def _settle(self, guests: Relation, by: dict[str, Any]) -> int:
        """Seat the guests that the classes can bear; how many."""
        engine, most = self.task.engine, Value(POWERS)
        holes = {"assigned": self.assigned, "guests": guests, "powers": self.powers, "most": most}
        trials = engine.materialise("trials", "local/peel/list_trials", **holes)
        _, margins = self._judged(trials)
        settled = engine.materialise(
            "settled", "local/peel/settle_trials", margins=margins, powers=self.powers, most=most
        )
        taken = engine.materialise("taken", "local/peel/take_guests", guests=guests, settled=settled)
        holes = {"standing": self.standing, "settled": settled, "guests": guests, "margins": margins, "most": most}
        renewed = engine.materialise("standing", "local/peel/renew_standing", **holes, **by)
        engine.drop(self.standing)
        self.standing = renewed
        return self._seat(taken)

    def _seat(self, taken: Relation) -> int:
        engine = self.task.engine
        count = engine.count(taken)
        engine.extend(self.assigned, taken)
        engine.delete_listed(self.left, Identifier("row_id"), taken)
        self.waiting -= count
        return count

    def merge(self) -> None:
        """Put all rows that wait into one class with as many of the classes with most slack as it takes."""
        engine = self.task.engine
        holes = {"assigned": self.assigned, "standing": self.standing, "waiting": self.left, "powers": self.powers}
        trials = engine.materialise("trials", "local/peel/rank_classes", **holes)
        _, margins = self._judged(trials)
        first = engine.scalar("local/find_first", margins=margins)
        if first is None:  # of monotone requirements all classes together are good
            what = f"{self.waiting:,} rows fit no class"
            raise nothing_found(self.task, "peel", what, "algorithm.residue: suppress leaves them out")
        numbers = {"power": Value(first), "merged": Value(0)}
        holes = {"assigned": self.assigned, "trials": trials}
        self.assigned = engine.materialise("assigned", "local/peel/merge_classes", **holes, **numbers)
        self.waiting = 0

    def _judged(self, members: Relation) -> tuple[Relation, Relation]:
        """The counts and margins of the classes of (row_id, class_no)."""
        engine = self.task.engine
        listed = engine.materialise("listed", "local/list_classes", members=members)
        holes = {"members": members, "rows": self.grid, "listed": listed, "sensitive": self.task.encoded.sensitive}
        counts = engine.materialise("counts", "local/count_members", **holes)
        return counts, self.checker.margins(counts)
