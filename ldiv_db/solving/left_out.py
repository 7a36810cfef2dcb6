"""Rows that are left out where one row is known: of the fewest people who make good whom a division begins with.

These are all people, and those who have rows of each table. Where too few have any, the table gives up its rows. Where
a value is too frequent, as many of who has it give up the rows that have it as are beyond its bound, by a secret choice
among equals. Nobody gives up rows for their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.recoding.people_columns import PeopleColumns
from ldiv_db.requirements import Requirement
from ldiv_db.solving.row_groups import PeopleJudge

#: The number that stands for all people among those who have rows of a table.
EVERYBODY = 0
#: The one way in which all people are one part.
_ONE_PART = {"way_no": 1, "child": 0}


class Violation(NamedTuple):
    """What people who have rows of a table, or all, violate on a column."""

    kind: int
    axis: SensitiveAxis
    requirement: Requirement


@dataclass
class LeftOut:
    """The rows of people without those that are left out, and `why` these are, in words, with how many by each reason.

    `whose` are the columns of the rows that are left, judged by `judge`. By counts `fewest` must be left out at least.
    """

    judge: PeopleJudge
    whose: PeopleColumns
    secret: str
    why: dict[str, int] = field(default_factory=dict)
    fewest: int = 0

    @property
    def _engine(self) -> Engine:
        return self.judge.engine

    def settle(self) -> None:
        """Leave out as few rows as are known to do; raises InfeasibleError if none are left, or all people violate."""
        while found := list(_violations(self.judge, self.whose)):
            if not self.why:
                self.fewest = self._fewest(found)
            # What all people violate first: what they give up those of a table do not have.
            first = min(found, key=lambda one: (one.kind, one.axis.code.name, str(one.requirement)))
            self._leave_out(first, "\n".join(map(self._told, found)))

    def _told(self, found: Violation) -> str:
        of = f" of {found.axis.column.name}" if found.axis.is_said else ""
        return f"{self._name(found.kind)} violate {found.requirement.label}{of}"

    def _name(self, kind: int) -> str:
        names = {member.number: f"people with rows of {member.name}" for member in self.whose.stack.members}
        return names.get(kind, "all people")

    def _leave_out(self, found: Violation, message: str) -> None:
        engine = self._engine
        before = engine.count(self.whose.lines)
        with engine.scope() as scope:
            rows, reason = self._given_up(found) or self._whole_table(found, message)
            whose = self.whose.without(rows)
            for relation in (whose.lines, whose.stack.encoded.rows):
                scope.keep(relation)
        after = engine.count(whose.lines)
        if before == after or after <= len(whose.registers) * engine.count(_people_of(whose, EVERYBODY)):
            raise InfeasibleError(message)
        self.why[reason] = self.why.get(reason, 0) + before - after
        self.whose, self.judge = whose, replace(self.judge, stack=whose.stack)

    def _fewest(self, violations: Sequence[Violation]) -> int:
        """How many rows must be left out at least: one of each person beyond a bound, all of who are too few.

        Whoever gives up a value gives up a row that has it, and rows have one value of a column. So what values are
        beyond adds up within a column, and so do tables.
        """
        fewest = dict[int, int]()
        for found in violations:
            owner, kind = self.whose.stack.own(found.axis), found.kind
            if owner is not None and not found.axis.bags and kind in (EVERYBODY, owner.number):
                size, having = self._counted(found, owner.number)
                beyond = (math.ceil(n - self._most(found, code, size)) for code, n in having.items())
                fewest[owner.number] = max(fewest.get(owner.number, 0), sum(n for n in beyond if n > 0))
            if kind != EVERYBODY and self._engine.count(_people_of(self.whose, kind)) < self.judge.least:
                fewest[kind] = self._engine.count(self._rows_of(kind))
        return sum(fewest.values())

    def _counted(self, found: Violation, member: int) -> tuple[int, Mapping[int, Fraction]]:
        """How many people there are of those who violate something, and how many of them have each value."""
        people = _people_of(self.whose, found.kind)
        return self._engine.count(people), self._having(found.axis, member, people, found.requirement.each == "row")

    def _given_up(self, found: Violation) -> tuple[Relation, str] | None:
        """The rows that people give up who have the value that is most above its bound; None if none is."""
        axis, owner = found.axis, self.whose.stack.own(found.axis)
        if owner is None or axis.bags:
            return None
        by_share, whole = found.requirement.each == "row", owner.number in self.whose.registers
        size, having = self._counted(found, owner.number)
        beyond = {code: n - self._most(found, code, size) for code, n in having.items()}
        value = max(beyond, key=lambda code: (beyond[code], -code), default=None)
        if value is None or beyond[value] <= 0:
            return None
        most, people = self._givers(found, value, having[value], size, whole), _people_of(self.whose, found.kind)
        known = {"value": value, "member": owner.number, "kind": found.kind, "most": most, "secret": self.secret}
        given = {"rows": self.whose.stack.encoded.rows, "people": people, "code": axis.code}
        rows = self._engine.materialise(
            "given", "solving/known/choose_rows", **given, **known, by_share=by_share, whole=whole
        )
        among = f"is too frequent among {self._name(found.kind)} for {found.requirement.label}"
        return rows, f"a value of {axis.column.name} {among}"

    def _having(self, axis: SensitiveAxis, member: int, people: Relation, by_share: bool) -> Mapping[int, Fraction]:
        """How many people have each value, or their shares of rows that have it, by its code."""
        engine, code, rows = self._engine, axis.code.name, self.whose.stack.encoded.rows
        with engine.scope():
            own = engine.select("own", rows, ("p1", "person"), code, where=[Where("member", member)])
            counts = engine.count_groups("counts", engine.select_among("own", own, people, "person"), "person", code)
            if not by_share:
                return {value: Fraction(n) for value, n in engine.tally(counts, code)}
            sizes = engine.group("sizes", counts, "person", size=("sum", "rows"))
            both = engine.join("both", counts, sizes, "person", left_columns=[code, "rows"], right_columns=["size"])
            found = dict[int, Fraction]()
            for value, had, size, several in engine.tally(both, code, "rows", "size"):
                found[value] = found.get(value, Fraction(0)) + Fraction(had * several, size)
            return found

    def _most(self, found: Violation, code: int, size: int) -> Fraction:
        """How many of so many people may have a value."""
        promise = found.requirement.promise().exempting(found.requirement.harmless)
        share = promise.share
        if promise.shares:
            value = dict(self._engine.columns(found.axis.written, "code", "value"))[code]
            share = promise.share_of(None if value is None else str(value))
        if found.requirement.each == "row":
            return share * size
        return Fraction(min(math.floor(share * size), size - promise.values + 1))

    def _givers(self, found: Violation, code: int, having: Fraction, size: int, leave: bool) -> int:
        """How many people are to give up a value, who `leave` the others or stay among them."""
        givers, zero = 0, Fraction(0)
        while having - givers > max(zero, self._most(found, code, size - givers * leave)):
            givers += 1
        return givers

    def _whole_table(self, found: Violation, message: str) -> tuple[Relation, str]:
        """All rows of a table, of all people that of the column; raises InfeasibleError where everybody has a row."""
        owner = self.whose.stack.own(found.axis)
        kind = found.kind or (owner.number if owner else EVERYBODY)
        if kind in {EVERYBODY, *self.whose.registers}:
            raise InfeasibleError(message)
        return self._rows_of(kind), self._told(found)

    def _rows_of(self, member: int) -> Relation:
        """(row_id) of a table."""
        return self._engine.select("given", self.whose.lines, "row_id", where=[Where("member", member)])


def _violations(judge: PeopleJudge, whose: PeopleColumns) -> Iterator[Violation]:
    """What all people violate, or those who have rows of each table."""
    engine = judge.engine
    with engine.scope():
        seen = whose.seen_of_people()
        dealt = engine.select("dealt", seen, "item", where=[Where("kind", EVERYBODY)], constants=_ONE_PART)
        known = {"dealt": dealt, "seen": seen, "least": 1}
        candidates = engine.materialise("candidates", "solving/known/list_candidates", **known)
        kinds = {candidate: kind for candidate, kind, _ in engine.tally(candidates, "candidate", "kind")}
        for axis, requirement, violating in judge.violations(candidates, dealt, seen):
            for candidate in engine.column(violating, "candidate"):
                yield Violation(kinds[candidate], axis, requirement)


def _people_of(whose: PeopleColumns, kind: int) -> Relation:
    """(person): all people, or those who have rows of a table."""
    where = [] if kind == EVERYBODY else [Where("member", kind)]
    return whose.engine.select("people", whose.lines, "person", where=where, distinct=True)
