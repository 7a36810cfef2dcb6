"""Groups of items that never overlap: divided as long as the people of every part, by all that they have, are good.

An item is a person or a row. It leads to rows of tables: a row to itself and to those that belong to it. Whoever has
rows of a table in a part is a class, whatever labels these rows have: who knows one of them knows that its person is
there. All groups are divided at once, each in the way that loses least of those whose parts are good by people, with
the whole bag of each, counted as the audit counts them. Items with equal codes stay together, so that labels of parts
are disjoint on the quasi-identifier along which they were divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.costs import full_costs
from ldiv_db.auditing.counting import counted
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Members
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Axis, SensitiveAxis
from ldiv_db.recoding.stacked import Stack
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.verdict import measure_table

#: How many places of a group are tried as cuts along numbers and sets, and of few items.
CUTS, MANY_CUTS, FEW = 8, 16, 20_000


@dataclass(frozen=True)
class Divided:
    """A quasi-identifier by its `number`, what all of it costs, and the form in which parts are told apart along it."""

    number: int
    axis: Axis
    full: int
    form: str

    @classmethod
    def of(cls, axes: Sequence[Axis]) -> list[Divided]:
        """The axes by their numbers, in their order."""
        costs = full_costs(axes) if axes else []
        return [cls(n, a, c, _form(a)) for n, (a, c) in enumerate(zip(axes, costs, strict=True), 1)]


def _form(axis: Axis) -> str:
    if axis.tree is None:
        return "set" if axis.sets else "number"
    return "flat" if axis.tree.height == 1 else "tree"


@dataclass(frozen=True)
class PeopleJudge:
    """Judges candidates, people by what they have in the rows of all tables, by what is wanted of each column."""

    engine: Engine
    stack: Stack
    wanted: Mapping[str, Sequence[Requirement]]

    @property
    def least(self) -> int:
        """The fewest people that a good candidate can have."""
        return max([1, *(one.least_rows for own in self.wanted.values() for one in own if not one.each)])

    def bad(self, candidates: Relation, dealt: Relation, seen: Relation) -> Relation:
        """(candidate) of those that violate something; `dealt` and `seen` lead to the rows of each."""
        bad = self.engine.load("bad", {"candidate": "BIGINT"}, [])
        for axis, requirement, violating in self.violations(candidates, dealt, seen):
            del axis, requirement
            self.engine.extend(bad, violating, "candidate")
        return bad

    def violations(
        self, candidates: Relation, dealt: Relation, seen: Relation
    ) -> Iterator[tuple[SensitiveAxis, Requirement, Relation]]:
        """(candidate, reached) of those that violate a requirement on a column, for each of them."""
        known = {"candidates": candidates, "dealt": dealt, "seen": seen, "rows": self.stack.encoded.rows}
        flow = EngineFlow(self.engine, "solving/known", **known)
        for axis in self.stack.encoded.sensitive:
            asked = self.wanted[axis.column.name]
            of_bags, of_rows = [one for one in asked if not one.each], [one for one in asked if one.each]
            for requirements, by_row in ((of_bags, False), (of_rows, True)):
                if requirements:
                    with self.engine.scope():
                        yield from self._violating(flow, axis, requirements, by_row)

    def _violating(
        self, flow: EngineFlow, axis: SensitiveAxis, requirements: Sequence[Requirement], by_row: bool
    ) -> Iterator[tuple[SensitiveAxis, Requirement, Relation]]:
        engine = self.engine
        subject, name = self._subject(flow, axis, by_row)
        if not engine.count(subject.table):
            return
        with counted(engine, subject, name, as_it_lies=True) as found:
            for requirement in requirements:
                measures = measure_table(engine, replace(requirement, each=""), found.classes)
                violating = engine.select("violating", measures, "class_no", where=[Where("margin", 0, "<")])
                columns = [("c1", "candidate")]
                listed = engine.select_among("listed", found.listed, violating, "class_no", columns=columns)
                yield axis, requirement, listed

    def _subject(self, flow: EngineFlow, axis: SensitiveAxis, by_row: bool) -> tuple[Subject, str]:
        """The candidates with the values that people have, or with those of each row, and the column of values."""
        owner = self.stack.own(axis)
        if owner is None:
            return Subject(flow["candidates"], ["candidate"], person="person"), ""
        known = {"code": axis.code, "dictionary": axis.written}
        same = {axis.code.name: [Members()]} if axis.bags else {}
        if by_row:
            table = flow.step("values", "list_known_rows", kind=owner.number, **known)
            return Subject(table, ["candidate"], person="person", of_known_row=True), axis.code.name
        table = flow.step("values", "list_values", **known)
        return Subject(table, ["candidate"], person="person", same=same, lacking=True), axis.code.name


@dataclass
class RowGroups:
    """The division of items, (item, group_no, codes), in rounds; `last` is the last number of a group.

    `seen` is (item, kind, person, row_id): whose rows of which table an item leads to.
    """

    judge: PeopleJudge
    axes: Sequence[Divided]
    seen: Relation
    last: int
    rounds: int = 0

    def settled(self, items: Relation) -> Relation:
        """(item, group_no) of all items, in groups that nothing good divides."""
        settled, active = list(self._rounds(items))[-1]
        self.judge.engine.extend(settled, active, "item", "group_no")
        return settled

    def divisions(self, items: Relation) -> list[Relation]:
        """(item, group_no) of all items, undivided and after each round that divides some."""
        engine, found = self.judge.engine, list[Relation]()
        for settled, active in self._rounds(items):
            if found and not engine.count(active):
                break  # nothing was divided
            found.append(engine.copy("division", settled))
            engine.extend(found[-1], active, "item", "group_no")
        return found

    def _rounds(self, items: Relation) -> Iterator[tuple[Relation, Relation]]:
        """(item, group_no) of those that nothing divides, and items that may be divided, before and after each round.

        Those of a round are dropped after the next one.
        """
        engine = self.judge.engine
        settled = engine.load("settled", {"item": "BIGINT", "group_no": "BIGINT"}, [])
        columns = [one.axis.code.name for one in self.axes]
        active = engine.select("items", items, "item", "group_no", *columns)
        yield settled, active
        while self.axes and engine.count(active):
            self.rounds += 1
            with engine.scope() as scope:
                moved = scope.keep(self._divided(active, settled))
            engine.drop(active)
            active = moved
            yield settled, active

    def _divided(self, items: Relation, settled: Relation) -> Relation:
        """The items of groups that are divided, in the new ones; those of the others are `settled`."""
        engine, least = self.judge.engine, self.judge.least
        flow = EngineFlow(engine, "solving/known", items=items, axes=self.axes, seen=self.seen, least=least)
        ways = flow.step("ways", "list_ways", cuts=MANY_CUTS if engine.count(items) < FEW else CUTS)
        if not engine.count(ways):
            engine.extend(settled, items, "item", "group_no")
            return engine.select("items", items, where=[Where("item", None, "=")])
        dealt = flow.step("dealt", "deal_items")
        flow.step("weighed", "weigh_ways")
        candidates = flow.step("candidates", "list_candidates")
        flow.know(bad=self.judge.bad(candidates, dealt, self.seen))
        chosen = flow.step("chosen", "choose_ways")
        engine.extend_others(settled, items, chosen, "group_no", "item", "group_no")
        moved = flow.step("moved", "move_items", last=self.last)
        self.last = max(self.last, int(engine.most(moved, "group_no") or 0))
        return moved
