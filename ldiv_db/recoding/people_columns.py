"""Whose columns are: of people, who are known by them, or of rows, of which one is known of whoever is sought.

The tables of people are those in which everybody has one row. A quasi-identifier of another table that never varies
within a person would tell more than its row: who knows a row with one value would exclude whoever has rows with
another label. So all rows of a group of people have one label there. People are told apart by it where everybody has
rows of that table, and nothing is told of people by rows of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.names import NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.stacked import PERSON, Member, Stack


@dataclass(frozen=True)
class Step:
    """The column of the row of a member that leads to a row."""

    number: int

    column = NamedAfter("row_{0.number}")


@dataclass(frozen=True)
class PeopleColumns:
    """The rows of a stack that are published, their `lines`, and whose each column is.

    `lines` are (row_id, member, person, own_key, the row of each member that leads there), `registers` the numbers of
    the members that are tables of people, `shared` are the axes of other members that never vary within a person.
    """

    engine: Engine
    stack: Stack
    lines: Relation
    registers: frozenset[int]
    shared: Sequence[Axis] = field(repr=False)

    @classmethod
    def of(cls, engine: Engine, stack: Stack) -> PeopleColumns:
        """Those of a stack; raises PolicyError for a column that never varies within the row that others belong to."""
        lines = _lines(engine, stack)
        counts = engine.count_groups("counts", lines, "member", "person")
        people = _count(engine, lines, "person")
        most = dict(engine.grouped(counts, "member", most=("max", "rows")))
        found = dict(engine.tally(counts, "member"))
        registers = frozenset(
            member.number
            for member in stack.members
            if not member.above and found.get(member.number) == people and most[member.number] == 1
        )
        several = {number for number, rows in most.items() if rows > 1}
        shared = [
            axis
            for axis in stack.encoded.axes
            if stack.owners[axis.code].number in several and not _varies(engine, stack.encoded.rows, axis, PERSON.name)
        ]
        refuse(_alike(engine, stack, several, shared))
        return cls(engine, stack, lines, registers, shared)

    def without(self, given: Relation) -> PeopleColumns:
        """The same without the rows of `given`, (row_id), and those that belong to them."""
        engine, out = self.engine, self.engine.load("out", {"row_id": "BIGINT"}, [])
        for member in self.stack.members:
            under = (Step(member.number).column.name, "row_id")
            engine.extend(out, engine.select_among("under", self.lines, given, under), "row_id")
        encoded = self.stack.encoded
        left = replace(encoded, rows=engine.select_others("stacked", encoded.rows, out, "row_id"))
        lines = engine.select_others("lines", self.lines, out, "row_id")
        return replace(self, stack=replace(self.stack, encoded=left), lines=lines)

    @property
    def of_rows(self) -> list[Member]:
        """The members whose rows are known one by one, each after that which its rows belong to."""
        return [one for level in self.stack.by_depth() for one in level if one.number not in self.registers]

    def axes_of(self, member: Member) -> list[Axis]:
        """The axes by which rows of a member are told apart."""
        return [a for a in self.stack.encoded.axes if self.stack.owners[a.code] == member and a not in self.shared]

    def shared_by(self, member: Member) -> list[Axis]:
        """The axes of a member that never vary within a person, as its own rows have them."""
        mine = (axis for axis in self.stack.encoded.axes if self.stack.owners[axis.code] == member)
        return [own for axis, own in zip(mine, member.encoded.axes, strict=True) if axis in self.shared]

    @cached_property
    def of_people(self) -> list[Axis]:
        """The axes by which people are told apart."""
        own = [a for a in self.stack.encoded.axes if self.stack.owners[a.code].number in self.registers]
        return [*own, *(axis for axis in self.shared if self._tells_people_apart(self.stack.owners[axis.code]))]

    def _tells_people_apart(self, member: Member) -> bool:
        """Whether everybody has rows of a member to which all others belong that tell anything of rows."""
        rows = self.engine.select("own", self.lines, "person", where=[Where("member", member.number)])
        everybody = _count(self.engine, rows, "person") == _count(self.engine, self.lines, "person")
        return everybody and all(member in self._path(other) for other in self.of_rows)

    def _path(self, member: Member) -> list[Member]:
        above = next((one for one in self.stack.members if one.number == member.above), None)
        return [*(self._path(above) if above else ()), member]

    def seen_of(self, member: Member) -> Relation:
        """(item, kind, person, row_id): each row of a member leads to itself, and to those that belong to it."""
        step = Step(member.number).column.name
        columns: list[ColumnName] = [(step, "item"), ("member", "kind"), "person", "row_id"]
        return self.engine.select("seen", self.lines, *columns, where=[Where(step, None, "<>")])

    def seen_of_people(self) -> Relation:
        """(item, kind, person, row_id): each person leads to itself, of kind 0, and to rows by which they are judged.

        These are of all tables but those of people that have no sensitive column.
        """
        engine = self.engine
        everybody = engine.select("everybody", self.lines, "person", distinct=True)
        seen = engine.select("seen", everybody, ("person", "item"), "person", constants={"kind": 0, "row_id": 0})
        columns: list[ColumnName] = [("person", "item"), "person", ("member", "kind"), "row_id"]
        judged = {member.number for member in self.of_rows}
        judged |= {owner.number for axis in self.stack.encoded.sensitive if (owner := self.stack.own(axis))}
        for number in sorted(judged):
            engine.extend(seen, self.lines, *columns, where=[Where("member", number)])
        return seen


def _lines(engine: Engine, stack: Stack) -> Relation:
    """The lines of all rows: those of people, then those that belong to these, and so on."""
    params = {"rows": stack.encoded.rows, "steps": [Step(member.number) for member in stack.members]}
    lines: Relation | None = None
    for members in stack.by_depth():
        known = {"members": members, "lines": lines, **params}
        if lines is None:
            lines = engine.materialise("lines", "recoding/tables/place_lines", **known)
        else:
            engine.insert(lines, "recoding/tables/place_lines", **known)
    assert lines is not None  # noqa: S101 - some table is of people
    return lines


def _count(engine: Engine, rows: Relation, *columns: str) -> int:
    """How many combinations of values there are, but for those of rows with NULL in the last column."""
    with engine.scope():
        where = [Where(columns[-1], None, "<>")]
        return engine.count(engine.select("different", rows, *columns, where=where, distinct=True))


def _varies(engine: Engine, rows: Relation, axis: Axis, within: str) -> bool:
    """Whether rows that have one value of a column `within` differ on an axis."""
    code = axis.code.name
    with engine.scope():
        own = engine.select("own", rows, within, code, where=[Where(code, None, "<>")])
        return _count(engine, own, within, code) > _count(engine, own, within)


def _alike(engine: Engine, stack: Stack, several: set[int], shared: Sequence[Axis]) -> list[Problem]:
    """The columns that vary within people, and never within the row that several rows of their table belong to."""
    problems = []
    for axis in stack.encoded.axes:
        member = stack.owners[axis.code]
        if not member.above or member.number not in several or axis in shared:
            continue
        rows = engine.select("own", stack.encoded.rows, where=[Where("member", member.number)])
        if engine.most(engine.count_groups("counts", rows, "parent_key"), "rows") == 1:
            continue
        if not _varies(engine, rows, axis, "parent_key"):
            of = next(one.name for one in stack.members if one.number == member.above)
            what = f"never varies within a row of {of}, so that one row tells of the others that belong to it"
            key = f"tables.{member.name}.quasi_identifiers.{axis.name.removeprefix(member.name + '.')}"
            problems.append(Problem(key, what, f"move it to {of} in a query as the source"))
    return problems
