"""What who knows one row of a person sees in published tables: everybody like them who has a row that shows the same.

They know everybody's rows in the tables of people, in which each has one. So people who show the same there are a
class, `C`, and in it those with a row of another table that shows the same, with the rows that it belongs to, `C(L)`:
one class for each such label. Classes have people in common. Each is judged by all rows of its people, of whom some
have none of a table; a requirement on each row by the rows alone that show `L`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ldiv_db.auditing.joined_tables import JoinedTables, code_paths, code_values, value_of, with_column
from ldiv_db.auditing.overlaps import require_disjoint
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.second_reading import CHEAP
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, count_phrase
from ldiv_db.database.names import Identifier, Relation, Value

_SHOWN = "auditing/tables/show_one_row"


@dataclass(frozen=True)
class OneRow:
    """The readings of joined tables by one row: `people` (person, labels) show their class, `shown` one row or none.

    `of_people` are the tables of people. `again` is the second reading, made of the tables anew.
    """

    joined: JoinedTables
    of_people: frozenset[str]
    people: Relation
    shown: Relation
    again: _Again

    @classmethod
    def of(cls, joined: JoinedTables) -> OneRow:
        """The readings of tables whose rows show what their whole paths do."""
        engine, rows = joined.engine, joined.rows
        of_people = tables_of_people(joined)
        told = [{"rows": rows[name], "of_people": name in of_people} for name in rows]
        people = engine.materialise("people", "auditing/tables/show_everybody", tables=told)
        require_disjoint(joined, people, of_people)
        others = [rows[name] for name in rows if name not in of_people]
        shown = engine.materialise("shown", _SHOWN, people=people, others=others)
        return cls(joined, of_people, people, shown, _Again.of(engine, joined.tables, joined.count))

    def knowing(self, names: Iterable[str]) -> OneRow:
        """The same of who knows one row of these tables, which are not of people, or none: to be read once."""
        others = [self.joined.rows[name] for name in names]
        shown = self.joined.engine.materialise("shown", _SHOWN, people=self.people, others=others)
        return replace(self, shown=shown)

    def subject(self, name: str) -> Subject:
        """All people who are shown, each with their values of a sensitive column, or by themselves."""
        own, engine = with_column(self.joined.tables, name), self.joined.engine
        if own is None:
            again = Subject(self.again.known, ["shown"], person="who")
            return Subject(self.shown, ["labels"], person="person", written=self._written, again=again)
        column = {"value": value_of(own, name), "sensitive": Identifier(name)}
        rows = self.joined.rows[own.name]
        seen = engine.materialise("seen", "auditing/tables/see_values", shown=self.shown, rows=rows, **column)
        again = Subject(self.again.bags(own, name), ["shown"], same=own.same, person="who", lacking=True)
        written = self._written
        return Subject(seen, ["labels"], same=own.same, person="person", lacking=True, written=written, again=again)

    def of_rows(self, name: str) -> Subject:
        """The rows of the table of a sensitive column, by what who knows one of them sees."""
        own, engine = with_column(self.joined.tables, name), self.joined.engine
        assert own is not None  # noqa: S101 - rows alone have no requirement on each
        column = {"value": value_of(own, name), "sensitive": Identifier(name), "of_people": own.name in self.of_people}
        given = {"people": self.people, "rows": self.joined.rows[own.name]}
        seen = engine.materialise("seen", "auditing/tables/see_known_rows", **given, **column)
        told = Subject(seen, ["labels"], same=own.same, person="person", of_known_row=True, written=self._written)
        return replace(told, again=self.again.weighed(own, name))

    @property
    def _written(self) -> dict[str, Relation]:
        """What the numbers stand for by which people are shown."""
        told = {"shown": self.shown, "known": self.joined.told}
        return {"labels": self.joined.engine.view("written", "auditing/tables/write_one_row", **told)}


def tables_of_people(joined: JoinedTables) -> frozenset[str]:
    """The tables in which everybody who has a row in any has exactly one."""
    tables = [table for table in joined.tables if not table.above]
    told = [{"rows": joined.rows[table.name], "number": Value(table.number)} for table in tables]
    found = {number for (number,) in joined.engine.rows("auditing/tables/list_of_people", tables=told)}
    return frozenset(table.name for table in tables if table.number in found)


def warn_of_nearly_of_people(engine: Engine, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """A warning for each table in which most people have one row, but not all, where no table is of people."""
    found = _single(engine, tables)
    for name, single, people in found if all(one < every for _, one, every in found) else ():
        if people < 2 * single:
            others = f"{people - single:,} of {count_phrase(people, 'person', 'people')}"
            what = f"{others} have no row there, or several, so that one row of it is known, of one person"
            yield f"{name} is no table of people: {what}"


def require_of_people(engine: Engine, tables: Sequence[PublishedTable], recorded: Collection[str]) -> None:
    """Raise AuditError unless the tables of people are those that were `recorded` when they were published."""
    changed = {*recorded} ^ {*published_of_people(engine, tables)}
    for name in sorted(changed):
        was = "everybody had one row there" if name in recorded else "not everybody had one row there"
        raise AuditError(f"{name} is not what was published: {was}, which its rows now contradict")


def published_of_people(engine: Engine, tables: Sequence[PublishedTable]) -> list[str]:
    """The names of the published tables in which everybody who has a row in any has exactly one."""
    return [name for name, single, people in _single(engine, tables) if single == people]


def _single(engine: Engine, tables: Sequence[PublishedTable]) -> list[tuple[str, int, int]]:
    """The tables that are people's: how many of all people, whose number is last, have exactly one row there."""
    alone = {table.number: table for table in tables if not table.above}
    told = [{"rows": t.rows, "owner": t.owner, "number": Value(number)} for number, t in alone.items()]
    found = engine.rows("auditing/tables/count_single", tables=told)
    return [(alone[number].name, single, people) for number, single, people in found]


@dataclass(frozen=True)
class _Again:
    """The second reading, by the `turns` of the tables of people.

    `people` (who, shown) show their rows in these, and `known` (who, shown) one row more or none.
    """

    engine: Engine
    tables: Sequence[PublishedTable]
    codes: Relation
    turns: Relation
    people: Relation
    known: Relation

    @classmethod
    def of(cls, engine: Engine, tables: Sequence[PublishedTable], rows: int) -> _Again:
        """The reading of tables in which the first found so many rows; raises AuditError if it finds others."""
        every, codes = code_paths(engine, tables, rows, whole=True)
        alone = [table for table in tables if not table.above]
        told = {"rows": every, "codes": codes, "tables": alone}
        turns = engine.materialise("turns", "auditing/tables/list_single_turns", **told)
        own = engine.select_among("own", every, turns, "turn")
        people = engine.materialise("sequences", "auditing/tables/list_sequences", rows=own)
        known = engine.materialise("known", "auditing/tables/list_known", rows=every, people=people, turns=turns)
        engine.drop(own, every)
        return cls(engine, tables, codes, turns, people, known)

    def bags(self, own: PublishedTable, name: str) -> Relation:
        """(shown, who, lacks, the sensitive column): all values of everybody, by what they show."""
        rows = self._values(own, name)
        given = {"known": self.known, "rows": rows, "sensitive": Identifier(name)}
        return self.engine.materialise("again", "auditing/tables/list_bags", **given)

    def weighed(self, own: PublishedTable, name: str) -> Subject | None:
        """The rows of a table by what one of them shows, as often as makes those of everybody count alike.

        None if they are too many.
        """
        engine, sensitive = self.engine, Identifier(name)
        given = {"rows": self._values(own, name), "people": self.people, "turns": self.turns}
        weighed = engine.materialise("weighed", "auditing/tables/weigh_rows", sensitive=sensitive, **given)
        if engine.total(weighed, "units") > CHEAP:
            return None
        table = engine.materialise("again", "auditing/tables/repeat_rows", rows=weighed, sensitive=sensitive)
        return Subject(table, ["shown"], same=own.same)

    def _values(self, own: PublishedTable, name: str) -> Relation:
        """(who, turn, the sensitive column, shown): the rows of a table along their path."""
        return code_values(self.engine, self.tables, own, name, self.codes, whole=True)
