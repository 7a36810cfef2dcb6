"""Top down where one row is known: groups of people first, then in each of these the rows of each table.

Within a group of people rows of a table start in one group for each group of the rows that they belong to. So labels of
paths are equal or disjoint wherever people have one label. Nobody gives up rows for their number, and whoever has rows
in a group counts there once, with all that is published of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Task, Traits
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.table_queries import Aggregate, ColumnName
from ldiv_db.recoding.people_columns import PeopleColumns, Step
from ldiv_db.recoding.stacked import Member, Stack
from ldiv_db.recoding.units import Units
from ldiv_db.solving.left_out import LeftOut
from ldiv_db.solving.row_groups import Divided, PeopleJudge, RowGroups

#: How many rows are divided in all of the tries.
TRIED_ROWS = 100_000
#: The columns of what is published: each row is a unit of its own.
_MEMBERS: tuple[ColumnName, ...] = ("row_id", ("row_id", "unit_id"), "member", "own_id")


@dataclass(frozen=True, kw_only=True)
class KnownPlan(Plan):
    """A plan of rows, `whose` columns are known, by `people`, (row_id, class_id): the group of whose each row is."""

    whose: PeopleColumns
    people: Relation


class KnownTopDown(Algorithm):
    """Groups of people, and of rows of each of their tables, that never overlap.

    Rows are left out for reasons, each with how many; by counts `fewest_left_out` must be at least.
    """

    name = "topdown"
    traits = Traits(any_class=True, rows_alone=True, harmless=True, bags=True)

    def __init__(self, whose: PeopleColumns, why_left_out: Mapping[str, int], fewest_left_out: int):
        super().__init__({})
        self.whose, self.why_left_out, self.fewest_left_out = whose, why_left_out, fewest_left_out

    def check(self, task: Task) -> Feasibility:
        assert task.units is not None  # noqa: S101 - people are planned
        judge = _judge(task, self.whose.stack)
        return Feasibility(judge.least, len(self.whose.stack.members), task.units.left_out)

    def run(self, task: Task) -> Plan:
        return _Search(task, self.whose).plan()


def known_task(task: Task, stack: Stack, secret: str) -> tuple[Task, KnownTopDown]:
    """The task of the rows that people can publish, and what divides them; raises InfeasibleError if there are none."""
    engine = task.engine
    with engine.scope() as scope:
        left_out = LeftOut(_judge(task, stack), PeopleColumns.of(engine, stack), secret)
        left_out.settle()
        whose, rows = left_out.whose, left_out.whose.stack.encoded.rows
        members = engine.select("members", rows, *_MEMBERS, constants={"turn": 1})
        for relation in (whose.lines, members, rows):
            scope.keep(relation)
    units = Units(stack.encoded, stack.encoded, members, together=True, left_out=sum(left_out.why.values()))
    return replace(task, encoded=stack.encoded, units=units), KnownTopDown(whose, left_out.why, left_out.fewest)


def _judge(task: Task, stack: Stack) -> PeopleJudge:
    return PeopleJudge(task.engine, stack, task.wanted)


class _Groups(NamedTuple):
    """(row_id, class_id) of all rows by the groups of rows, and by those of people.

    `lost` is how many tables tell nothing by their labels, and the share that is lost of all cells.
    """

    assigned: Relation
    people: Relation
    lost: tuple[int, Fraction]


@dataclass
class _Search:
    """The search for groups: `last` is the last number of one.

    The more groups there are of people, the fewer there can be of their rows. So rows are divided within the last
    groups of people, then within those of the round before, as long as fewer tables tell nothing, or less is lost.
    """

    task: Task
    whose: PeopleColumns
    last: int = 1
    rounds: int = 0

    @property
    def _engine(self) -> Engine:
        return self.task.engine

    @cached_property
    def _judged(self) -> PeopleJudge:
        return _judge(self.task, self.whose.stack)

    def plan(self) -> KnownPlan:
        """The plan of all rows."""
        engine = self._engine
        best: _Groups | None = None
        with engine.scope() as scope:
            tries = max(1, TRIED_ROWS // max(1, self.task.encoded.row_count))
            for people in [*reversed(self._people())][:tries]:
                with engine.scope() as tried:
                    found = self._within(people)
                    for relation in (found.assigned, found.people):
                        tried.keep(relation)
                if best is not None and found.lost >= best.lost:
                    break
                best = found
            assert best is not None  # noqa: S101 - people are undivided first
            for relation in (best.assigned, best.people):
                scope.keep(relation)
        search = {"rounds": self.rounds}
        return KnownPlan(best.assigned, l=self._judged.least, search=search, whose=self.whose, people=best.people)

    def _within(self, people: Relation) -> _Groups:
        """The groups of rows within those of `people`, (item, group_no)."""
        engine, groups = self._engine, list[ColumnName]([("group_no", "class_id")])
        of_people = engine.join(
            "of_people",
            self.whose.lines,
            people,
            ("person", "item"),
            left_columns=["row_id", "member"],
            right_columns=groups,
        )
        assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
        for number in sorted(self.whose.registers):
            engine.extend(assigned, of_people, "row_id", "class_id", where=[Where("member", number)])
        for member in self.whose.of_rows:
            settled = self._rows(member, people, assigned)
            engine.extend(assigned, settled, ("item", "row_id"), ("group_no", "class_id"))
            self.task.progress(engine.count(assigned), self.task.encoded.row_count)
        lost = [self._lost(member, assigned, of_people) for member in self.whose.stack.members]
        costs, wholes = zip(*lost, strict=True)
        share = Fraction(sum(costs), sum(wholes) or 1)
        return _Groups(assigned, of_people, (sum(cost == whole > 0 for cost, whole in lost), share))

    def _lost(self, member: Member, assigned: Relation, of_people: Relation) -> tuple[int, int]:
        """What the rows of a member lose, and what they could."""
        engine, stack = self._engine, self.whose.stack
        every = Divided.of(stack.encoded.axes)
        axes = [one for one in every if stack.owners[one.axis.code] == member]
        codes = [one.axis.code.name for one in axes]
        own = engine.select("own", stack.encoded.rows, "row_id", *codes, where=[Where("member", member.number)])
        whole, cost, groups = engine.count(own) * sum(one.full for one in axes), 0, ("class_id", "group_no")
        shared = [one for one in axes if one.axis in self.whose.shared]
        for by, of_them in ((assigned, [one for one in axes if one not in shared]), (of_people, shared)):
            if of_them and whole:
                items = engine.join("items", own, by, "row_id", right_columns=[groups])
                cost += int(engine.scalar("solving/known/sum_costs", items=items, axes=of_them))
        return cost, whole

    def _people(self) -> list[Relation]:
        """(item, group_no) of people, undivided and after each round."""
        engine, axes = self._engine, Divided.of(self.whose.of_people)
        seen = self.whose.seen_of_people()
        everybody = engine.select("everybody", seen, "item", where=[Where("kind", 0)], constants={"group_no": 1})
        if axes:
            least: dict[str, Aggregate] = {one.axis.code.name: ("min", one.axis.code.name) for one in axes}
            codes = engine.group("codes", self.whose.stack.encoded.rows, ("p1", "item"), **least)
            everybody = engine.join("items", codes, everybody, "item", right_columns=["group_no"])
        groups = RowGroups(self._judged, axes, seen, self.last)
        found = groups.divisions(everybody)
        self.last, self.rounds = groups.last, groups.rounds
        return found

    def _rows(self, member: Member, people: Relation, assigned: Relation) -> Relation:
        """(item, group_no) of the rows of a member, which begin in a group for each of people and of rows above."""
        engine, axes = self._engine, Divided.of(self.whose.axes_of(member))
        above: list[ColumnName] = [(Step(member.above).column.name, "above")] if member.above else []
        own = engine.select("own", self.whose.lines, "row_id", "person", *above, where=[Where("member", member.number)])
        by = ["group_no"]
        begun = engine.join("begun", own, people, ("person", "item"), right_columns=["group_no"])
        if above:
            right: list[ColumnName] = [("class_id", "of")]
            begun, by = engine.join("begun", begun, assigned, ("above", "row_id"), right_columns=right), [*by, "of"]
        numbered = engine.number_groups("numbered", begun, *by)
        shifted = engine.materialise("shifted", "bsgi/residue/shift_classes", assigned=numbered, last=self.last)
        self.last = int(engine.most(shifted, "class_id") or self.last)
        left: list[ColumnName] = [("row_id", "item"), *(one.axis.code.name for one in axes)]
        groups: list[ColumnName] = [("class_id", "group_no")]
        items = engine.join(
            "items", self.whose.stack.encoded.rows, shifted, "row_id", left_columns=left, right_columns=groups
        )
        divided = RowGroups(self._judged, axes, self.whose.seen_of(member), self.last)
        settled = divided.settled(items)
        self.last, self.rounds = divided.last, self.rounds + divided.rounds
        return settled
