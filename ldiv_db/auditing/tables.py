"""The audit of several published tables together: people are told apart by what all their rows show, in all tables.

Each person is read as a sequence, of the rows of all tables in their places. By the first reading tables are joined one
after the other, by the second each along its whole path from people; what follows is the audit of one table, in whose
place the rows of all stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ldiv_db.auditing.audit import Audit, Watch, audit_table
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Identifier, NamedAfter, Relation, Value
from ldiv_db.database.queries import Where
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.tables import PolicyTable, named_in, numbers_as
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import ROWS_ALONE, Requirement, RequirementSpec


@dataclass(frozen=True)
class PublishedTable:
    """A published table: its `owner` column has the person, or the key of a row of the table `above`.

    `sensitive` are its columns by what an audit calls them, with how their values are read as one.
    """

    name: str
    number: int
    rows: Relation | FileRelation
    owner: Identifier
    above: str
    key: Identifier | None
    position: Identifier | None
    labels: Sequence[Identifier]
    sensitive: Mapping[str, Identifier]
    same: Mapping[str, Reading] = field(default_factory=dict)

    alias = NamedAfter("t{0.number}")

    @classmethod
    def of(
        cls,
        name: str,
        number: int,
        tables: Mapping[str, PolicyTable],
        released: ReleaseColumns,
        rows: Relation | FileRelation,
    ) -> PublishedTable:
        """The table of that name of a policy with these, published with such columns."""
        table = tables[name]
        numbers = numbers_as(tables)
        key = numbers.get((name, table.key or ""))
        return cls(
            name,
            number,
            rows,
            owner=Identifier(numbers[name, table.owner]),
            above=table.above,
            key=Identifier(key) if key else None,
            position=Identifier(released.position) if released.position else None,
            labels=[Identifier(label) for label in released.identifying],
            sensitive={named_in(name, column): Identifier(column) for column in table.sensitive},
            same={named_in(name, column): setting.reading for column, setting in table.sensitive.items()},
        )

    @property
    def called(self) -> Value:
        """Its name, as a statement takes it."""
        return Value(self.name)


def required_of_people(
    specs: Sequence[RequirementSpec], wanted: Mapping[str, list[Requirement]]
) -> dict[str, list[Requirement]]:
    """What is `wanted` of each sensitive column, and of all people, who may have no value of any, what `specs` say.

    That is what they ask of rows alone, or else as many people of a class as its values take. A column's own
    requirements do not imply it if they ask for fewer, or read shares, which a person with several values may have
    alone: then it is asked of the column as well.
    """
    least = max([1, *(one.least_rows for own in wanted.values() for one in own)])
    of_rows = [spec for spec in specs if spec.kind.rows_only] or [RequirementSpec("k", least)]
    of_people = [spec.resolve(None) for spec in of_rows]
    found = {}
    for name, own in wanted.items():
        implied = max([0, *(one.least_rows for one in own if one.on_people == "counts")])
        found[name] = [*own, *(one for one in of_people if one not in own and one.least_rows > implied)]
    return {**found, ROWS_ALONE.name: of_people}


def audit_tables(
    engine: Engine,
    tables: Sequence[PublishedTable],
    wanted: Mapping[str, Sequence[Requirement]],
    twice: bool | None = None,
    watch: Watch | None = None,
) -> list[Audit]:
    """The audits of all tables together, one a sensitive column of any, and of people alone under an empty name.

    Each table comes after that which its rows belong to. Raises AuditError if a row belongs to nobody.
    """
    audits, rows = [], {table.name: engine.count(table.rows) for table in tables}
    with engine.scope():
        joined = joined_rows(engine, tables)
        people = shown_people(engine, joined.values())
        second = _SecondReading.of(engine, tables, sum(map(engine.count, joined.values())))
        for name, requirements in wanted.items():
            own = _with_column(tables, name)
            with engine.scope():
                first = seen_people(engine, tables, joined, people, name)
                if own is not None and not engine.count(first.table):
                    continue  # nobody has a row of that table
                # People of a class have as many rows everywhere: what is asked of all holds for those with values.
                asked = [one for one in requirements if not name or one not in wanted[ROWS_ALONE.name]]
                subject = replace(first, position="place", again=second.again(first, name))
                audit = audit_table(engine, subject, name, asked or requirements, watch=watch, twice=twice)
            audits.append(replace(audit, rows=rows[own.name] if own else sum(rows.values())))
    return audits


def joined_rows(engine: Engine, tables: Sequence[PublishedTable]) -> dict[str, Relation]:
    """The rows of each table with whose they are and their places; raises AuditError if one belongs to nobody."""
    found: dict[str, Relation] = {}
    for table in tables:
        columns = [Renamed(column, Identifier(f"v{i}")) for i, column in enumerate(table.sensitive.values())]
        found[table.name] = engine.materialise(
            "joined",
            "auditing/tables/join_rows",
            published=table.rows,
            above=found.get(table.above),
            number=str(table.number),
            owner=table.owner,
            key=table.key,
            position=table.position,
            labels=table.labels,
            sensitive=columns,
        )
        if left := engine.count(table.rows) - engine.count(found[table.name]):
            raise AuditError(f"{left:,} rows of {table.name} belong to nobody, or to several")
        if table.above and (again := _repeated(engine, found[table.above])):  # which may stand for rows of nobody
            raise AuditError(f"{again:,} keys of {table.above} repeat, so that rows of {table.name} belong to several")
    return found


def _repeated(engine: Engine, joined: Relation) -> int:
    """How many rows have a key that another has as well."""
    keys = engine.select("keys", joined, "key", where=[Where("key", None, "<>")])
    return engine.count(keys) - engine.count(engine.select("keys", keys, "key", distinct=True))


def _with_column(tables: Sequence[PublishedTable], name: str) -> PublishedTable | None:
    """The table that has a sensitive column; None for people alone."""
    return next((table for table in tables if name in table.sensitive), None)


def shown_people(engine: Engine, known: Iterable[Relation]) -> Relation:
    """(person, labels): who has rows in some joined tables, and what all of these show of them."""
    return engine.materialise("people", "auditing/tables/show_people", known=list(known))


def seen_people(
    engine: Engine, tables: Sequence[PublishedTable], joined: Mapping[str, Relation], people: Relation, name: str
) -> Subject:
    """The people who are shown, each with their values of a sensitive column, or by themselves."""
    own = _with_column(tables, name)
    if own is None:
        return Subject(people, ["labels"], person="person")
    told: list[ColumnName] = ["person", "place", (f"v{list(own.sensitive).index(name)}", name)]
    seen = engine.join("seen", joined[own.name], people, "person", left_columns=told, right_columns=["labels"])
    return Subject(seen, ["labels"], person="person", same=own.same)


_PATHS = "auditing/tables/list_paths"


@dataclass(frozen=True)
class _SecondReading:
    """The tables joined along their whole paths from people, and what `people` (who, shown) show in all of them."""

    engine: Engine
    tables: Sequence[PublishedTable]
    people: Relation

    @classmethod
    def of(cls, engine: Engine, tables: Sequence[PublishedTable], rows: int) -> _SecondReading:
        """The reading of tables in which the first found so many rows; raises AuditError if it finds others."""
        paths = [_path(tables, table) for table in tables]
        every = engine.materialise("paths", _PATHS, paths=paths, value=None, sensitive=None)
        if rows != engine.count(every):
            raise AuditError(f"one reading found {rows:,} rows of people, another {engine.count(every):,}")
        return cls(engine, tables, engine.materialise("sequences", "auditing/tables/list_sequences", rows=every))

    def again(self, first: Subject, name: str) -> Subject:
        """What is read in the place of the first reading of a sensitive column, or of people alone."""
        own, table = _with_column(self.tables, name), self.people
        if own is not None:
            told = {"value": own.sensitive[name], "sensitive": Identifier(name)}
            rows = self.engine.materialise("paths", _PATHS, paths=[_path(self.tables, own)], **told)
            known: list[ColumnName] = ["who", "turn", name]
            table = self.engine.join("again", rows, self.people, "who", left_columns=known, right_columns=["shown"])
        return replace(first, table=table, labels=["shown"], person="who", position="turn")


def _path(tables: Sequence[PublishedTable], table: PublishedTable) -> list[PublishedTable]:
    """The tables from people to this one."""
    above = next((other for other in tables if other.name == table.above), None)
    return [*(_path(tables, above) if above else ()), table]
