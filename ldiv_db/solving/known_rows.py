"""Top down where one row is known: groups of people first, then in each of these the rows of each table.

Within a group of people rows of a table start in one group for each group of the rows that they belong to. So labels of
paths are equal or disjoint wherever people have one label. Nobody gives up rows for their number, and whoever has rows
in a group counts there once, with all that is published of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

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

#: The columns of what is published: each row is a unit of its own.
_MEMBERS: tuple[ColumnName, ...] = ("row_id", ("row_id", "unit_id"), "member", "own_id")


@dataclass(frozen=True, kw_only=True)
class KnownPlan(Plan):
    """A plan of rows, `whose` columns are known, by `people`, (row_id, class_id): the group of whose each row is."""

    whose: PeopleColumns
    people: Relation


class KnownTopDown(Algorithm):
    """Groups of people, and of rows of each of their tables, that never overlap."""

    name = "topdown"
    traits = Traits(any_class=True, rows_alone=True, harmless=True, bags=True)

    def __init__(self, whose: PeopleColumns, why_left_out: Mapping[str, int]):
        super().__init__({})
        self.whose, self.why_left_out = whose, why_left_out

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
    return replace(task, encoded=stack.encoded, units=units), KnownTopDown(whose, left_out.why)


def _judge(task: Task, stack: Stack) -> PeopleJudge:
    return PeopleJudge(task.engine, stack, task.wanted)


@dataclass
class _Search:
    """The search for groups: `last` is the last number of one."""

    task: Task
    whose: PeopleColumns
    last: int = 0
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
        with engine.scope() as scope:
            people = self._people()
            of_rows = engine.join(
                "of_rows", self.whose.lines, people, ("person", "item"), left_columns=["row_id", "member"],
                right_columns=[("group_no", "class_id")],
            )  # fmt: skip
            assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
            for number in sorted(self.whose.registers):
                engine.extend(assigned, of_rows, "row_id", "class_id", where=[Where("member", number)])
            for member in self.whose.of_rows:
                groups = self._rows(member, people, assigned)
                engine.extend(assigned, groups, ("item", "row_id"), ("group_no", "class_id"))
                self.task.progress(engine.count(assigned), self.task.encoded.row_count)
            scope.keep(assigned)
            scope.keep(of_rows)
        search = {"rounds": self.rounds}
        return KnownPlan(assigned, l=self._judged.least, search=search, whose=self.whose, people=of_rows)

    def _people(self) -> Relation:
        """(item, group_no) of people."""
        engine, axes = self._engine, Divided.of(self.whose.of_people, self.task.forms)
        seen = self.whose.seen_of_people()
        everybody = engine.select("everybody", seen, "item", where=[Where("kind", 0)], constants={"group_no": 1})
        if axes:
            least: dict[str, Aggregate] = {one.axis.code.name: ("min", one.axis.code.name) for one in axes}
            codes = engine.group("codes", self.whose.stack.encoded.rows, ("p1", "item"), **least)
            everybody = engine.join("items", codes, everybody, "item", right_columns=["group_no"])
        self.last = 1
        return self._settled(axes, seen, everybody)

    def _rows(self, member: Member, people: Relation, assigned: Relation) -> Relation:
        """(item, group_no) of the rows of a member, which begin in a group for each of people and of rows above."""
        engine, axes = self._engine, Divided.of(self.whose.axes_of(member), self.task.forms)
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
        return self._settled(axes, self.whose.seen_of(member), items)

    def _settled(self, axes: list[Divided], seen: Relation, items: Relation) -> Relation:
        groups = RowGroups(self._judged, axes, seen, self.last)
        settled = groups.settled(items)
        self.last, self.rounds = groups.last, self.rounds + groups.rounds
        return settled
