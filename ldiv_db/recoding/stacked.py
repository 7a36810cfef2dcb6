"""The encoded rows of several tables as one, in which those of a person stand together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.policy.tables import named_in
from ldiv_db.recoding.encoded import Axis, Encoded, SensitiveAxis
from ldiv_db.requirements import ROWS_ALONE, Distribution, RequirementSpec

#: The columns of a person in the rows of all tables, and of what all rows have alike.
PERSON, ALIKE = Identifier("p1"), Identifier("s0")
#: The column of encoded rows by which those of a person are put into their order.
ORDER = Identifier("o1")
#: By how many bits of turns labels differ: of each row, of runs (1, ..., 7, 8 and 9, ..., 16 to 19, ...), of which
#: there are few of however many rows, and of none.
EACH, RUNS, ALL = 64, 3, 0


def bits_of(rows: str | None, specs: Iterable[RequirementSpec]) -> int:
    """By how many bits labels of rows differ, as a policy says it of a table, or where something is asked of each."""
    is_each = rows == "aligned" or any(spec.each for spec in specs)
    return EACH if is_each else ALL if rows == "together" else RUNS


@dataclass(frozen=True)
class Member:
    """One of several tables, `encoded` with numbers of people and rows among the columns that it keeps.

    `person`, `key` and `parent` are these columns of its rows, `above` is the number of the member whose rows these
    belong to, 0 for people; `before` is how many rows members before it have. `order` has its rows in their order.
    Those of one person, or row above, have one label if their turns agree in as many of their highest `bits`.
    """

    number: int
    name: str
    encoded: Encoded
    person: Identifier
    key: Identifier | None
    parent: Identifier | None
    above: int
    order: Identifier | None
    before: int
    bits: int = EACH

    @property
    def rows(self) -> Relation:
        return self.encoded.rows


@dataclass(frozen=True)
class Stack:
    """All members as one table; `owners` says whose column each code of it is, and `codes` how its own rows call it."""

    members: Sequence[Member]
    encoded: Encoded
    owners: Mapping[Identifier, Member]

    @property
    def people(self) -> int:
        """How many people have rows."""
        return self.encoded.individual.distribution.distinct if self.encoded.individual else 0

    def by_depth(self) -> Iterator[list[Member]]:
        """The members whose rows are people's, those whose rows belong to these, and so on."""
        found = [member for member in self.members if not member.above]
        while found:
            yield found
            above = {member.number for member in found}
            found = [member for member in self.members if member.above in above]

    def classes_of(self, engine: Engine, member: Member, classes: Relation, assigned: Relation) -> Relation:
        """The classes of a member's rows, which are assigned to them, with the bounds that those of all are given."""
        mine = (axis for axis in self.encoded.axes if self.owners[axis.code] == member)
        pairs = zip(mine, member.encoded.axes, strict=True)
        bounds = [(a.name, b.name) for of, own in pairs for a, b in ((of.low, own.low), (of.high, own.high))]
        counts = engine.count_groups("counts", assigned, "class_id")
        columns: list[ColumnName] = ["class_id", *bounds]
        return engine.join("classes", classes, counts, "class_id", left_columns=columns, right_columns=["rows"])

    def own(self, sensitive: SensitiveAxis) -> Member | None:
        """The member whose column it is; None of what all rows have alike."""
        return self.owners.get(sensitive.code)


def stacked(engine: Engine, members: Sequence[Member]) -> Stack:
    """The rows of all members as one table, each column under the name of its table and its own."""
    owners: dict[Identifier, Member] = {}
    codes: list[dict[Identifier, Identifier]] = []
    axes, sensitive = list[Axis](), list[SensitiveAxis]()
    for member in members:
        own: dict[Identifier, Identifier] = {}
        for axis in member.encoded.axes:
            code = Identifier(f"q{len(axes) + 1}")
            axes.append(replace(axis, column=Identifier(named_in(member.name, axis.name)), code=code))
            owners[code], own[code] = member, axis.code
        for attribute in member.encoded.told:
            code = Identifier(f"s{len(sensitive) + 1}")
            named = Identifier(named_in(member.name, attribute.column.name))
            sensitive.append(replace(attribute, column=named, code=code, own=None))
            owners[code], own[code] = member, attribute.code
        codes.append(own)
    listed = [{"member": member, "codes": own} for member, own in zip(members, codes, strict=True)]
    rows = engine.materialise("stacked", "recoding/tables/stack_rows", members=listed, codes=list(owners))
    alone = engine.load(
        "alone", {"value": "INTEGER", "rows": "BIGINT", "code": "INTEGER"}, [(1, engine.count(rows), 1)]
    )
    alike = SensitiveAxis(Identifier(ROWS_ALONE.name), ALIKE, alone, Distribution([engine.count(rows)]))
    people = engine.count_groups("people", rows, (PERSON.name, "code"))
    known = Distribution(sorted(engine.column(people, "rows"), reverse=True))
    whose = SensitiveAxis(Identifier("person"), PERSON, people, known)
    count = engine.count(rows)
    return Stack(members, Encoded(rows, tuple(axes), (*sensitive, alike), (), count, 0, whose), owners)


def stack_of_one(engine: Engine, rows: Encoded) -> Stack:
    """The rows of one table of people; its columns are called as they are."""
    assert rows.individual is not None  # noqa: S101 - the caller has looked
    member = Member(1, "", rows, rows.individual.code, None, None, 0, ORDER, 0)
    codes = [*(axis.code for axis in rows.axes), *(axis.code for axis in rows.sensitive)]
    listed = [{"member": member, "codes": {code: code for code in codes}}]
    table = engine.materialise("stacked", "recoding/tables/stack_rows", members=listed, codes=codes)
    whose = replace(rows.individual, code=PERSON)
    count = rows.row_count
    known = replace(rows, rows=table, kept=(), rows_in=count, left_out=0, individual=whose, cells=None)
    return Stack([member], known, dict.fromkeys(codes, member))
