"""The audit of several published tables together: people are told apart by what all their rows show, in all tables.

Each person is read as a sequence, of the rows of all tables in their places. By the first reading tables are joined one
after the other, by the second each along its whole path from people; what follows is the audit of one table, in whose
place the rows of all stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.auditing.audit import Audit, Judging, Observer, audit_table
from ldiv_db.auditing.centres import require_within
from ldiv_db.auditing.check import AuditRequest, check_request, request_problems
from ldiv_db.auditing.kept import warn_of_release
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one
from ldiv_db.database.errors import AuditError, refuse
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.published import open_target
from ldiv_db.policy.reading import GivenRequirement, read_requirements, said_of_one_table
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.sensitive import absent_values
from ldiv_db.policy.tables import named_in
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.links import in_order
from ldiv_db.requirements import ROWS_ALONE, Attribute, Requirement, RequirementSpec


def required_of_people(
    specs: Sequence[RequirementSpec], wanted: Mapping[str, list[Requirement]]
) -> dict[str, list[Requirement]]:
    """What is `wanted` of each sensitive column, and of all people, who may have no value of any, what `specs` say.

    That is what they ask of rows alone, or else, as with `auto`, as many people of a class as its values take. A
    column's own requirements do not imply it if they ask for fewer, or read shares, which a person with several values
    may have alone: then it is asked of the column as well.
    """
    least = max([1, *(one.least_rows for own in wanted.values() for one in own)])
    of_rows = [spec for spec in specs if spec.kind.rows_only] or [RequirementSpec("k", least)]
    of_people = [(spec.settled({"k": max(2, least)}) if spec.is_auto else spec).resolve(None) for spec in of_rows]
    found = {}
    for name, own in wanted.items():
        implied = max([0, *(one.least_rows for one in own if one.on_people == "counts")])
        found[name] = [*own, *(one for one in of_people if one not in own and one.least_rows > implied)]
    return {**found, ROWS_ALONE.name: of_people}


@dataclass(frozen=True)
class PublishedTables:
    """The published tables of a policy that belong to people, each after that which its rows belong to.

    `attributes` are their sensitive columns, by table and column, and `wanted` what is required of each, and of all
    people under an empty name.
    """

    engine: Engine
    policy: Policy
    tables: Sequence[PublishedTable]
    attributes: Mapping[str, Attribute]
    wanted: Mapping[str, Sequence[Requirement]]

    @classmethod
    def open(
        cls,
        engine: Engine,
        policy: Policy,
        folder: Path,
        require: GivenRequirement | Iterable[GivenRequirement] | None = None,
        ends: Sequence[int] = (),
    ) -> PublishedTables:
        """The tables that a policy of several has published, held to its requirements, or to those that are given.

        `ends` are the last numbers of all nights but the newest. Raises PolicyError for tables or columns that are not
        there, and for requirements that lack what they need.
        """
        if require:
            policy = policy.requiring(read_requirements(require))
            refuse(problems_of(policy))
        problems, tables = Problems(), list[PublishedTable]()
        attributes, wanted = dict[str, Attribute](), dict[str, list[Requirement]]()
        for number, (name, given) in enumerate(members_of(policy).items(), 1):
            with problems.collected(f"tables.{name}"):
                rows = open_target(engine, policy, policy.tables[name].target, folder)
                columns = columns_of(engine, rows)
                member = given.settled_by(column.name for column in columns)
                request = replace(check_request(member), folder=folder)
                table = PublishedTable.of(name, number, policy.tables, member.released, rows)
                refuse(missing_columns(engine, rows, table.columns, "published table"))
                refuse(request_problems(request.require, request.sensitive))
                require_within(engine, rows, request.centres)
                found, required = request.requirements(engine, columns)
                with read_as_one(engine, rows, request.same) as read:
                    absent_values(engine, required, {column: (read, column) for column in found})
                tables.append(table.by_nights(engine, ends) if ends and (table.labels or not table.above) else table)
                attributes |= {named_in(name, c): replace(found[c], name=named_in(name, c)) for c in member.sensitive}
                wanted |= {named_in(name, c): required[c] for c in member.sensitive}
        problems.refuse()
        return cls(engine, policy, in_order(tables), attributes, required_of_people(policy.require, wanted))

    def audits(self, twice: bool | None = None, watch: Observer | None = None) -> list[Audit]:
        """The audits of all tables together, with what is to be said of the columns that are kept."""
        first, *others = audit_tables(self.engine, self.tables, self.wanted, twice, watch)
        return [replace(first, warnings=(*first.warnings, *self.warnings())), *others]

    def warnings(self) -> Iterator[str]:
        """The warnings of the columns that are kept, each with its table."""
        for table in self.tables:
            person = None if table.above else table.owner.name
            subject = Subject(table.rows, [label.name for label in table.labels], person=person)
            sensitive, kept = [column.name for column in table.sensitive.values()], self.policy.tables[table.name].keep
            told = warn_of_release(self.engine, subject, sensitive, kept)
            yield from (f"{table.name}: {warning}" for warning in told)

    @contextmanager
    def joined(self) -> Iterator[JoinedTables]:
        """The tables joined; all that is made of them is dropped at the end."""
        with self.engine.scope():
            yield JoinedTables.of(self.engine, self.tables)


def check_tables(
    engine: Engine, policy: Policy, asked: AuditRequest, watch: Observer | None = None, ends: Sequence[int] = ()
) -> list[Audit]:
    """The audits of all published tables together, one a sensitive column of any, and one of people alone.

    Nights, by their `ends`, are told apart. Tables are read twice where that takes little time, or it is asked for.
    Raises PolicyError for what is asked of one table, and for what is not there; AuditError for rows of nobody.
    """
    refuse(said_of_one_table(asked))
    beside = policy.path.parent if policy.path else Path()
    folder = beside if asked.folder is None else Path(asked.folder)
    return PublishedTables.open(engine, policy, folder, asked.require, ends).audits(asked.twice or None, watch)


def judged_of(wanted: Mapping[str, Sequence[Requirement]]) -> dict[str, Sequence[Requirement]]:
    """What is judged of each column of all that is `wanted`, but what is of all people, if there is more.

    People of a class have as many rows everywhere: what is asked of all holds for those with values.
    """
    of_all = wanted[ROWS_ALONE.name]
    return {name: [one for one in own if not name or one not in of_all] or own for name, own in wanted.items()}


def audit_tables(
    engine: Engine,
    tables: Sequence[PublishedTable],
    wanted: Mapping[str, Sequence[Requirement]],
    twice: bool | None = None,
    watch: Observer | None = None,
) -> list[Audit]:
    """The audits of all tables together, one a sensitive column of any, and of people alone under an empty name.

    Each table comes after that which its rows belong to. Raises AuditError if a row belongs to nobody.
    """
    audits, rows = [], {table.name: engine.count(table.rows) for table in tables}
    with engine.scope():
        joined = JoinedTables.of(engine, tables)
        people = joined.people()
        second = _SecondReading.of(engine, tables, joined.count)
        for name, requirements in judged_of(wanted).items():
            own = _with_column(tables, name)
            with engine.scope():
                first = joined.seen(people, name)
                if own is not None and not engine.count(first.table):
                    continue  # nobody has a row of that table
                subject = replace(first, position="place", again=second.again(first, name))
                audit = audit_table(engine, subject, name, requirements, judging=Judging(watch, twice=twice))
            audits.append(replace(audit, rows=rows[own.name] if own else sum(rows.values())))
    return audits


@dataclass(frozen=True)
class JoinedTables:
    """Published tables, and the `rows` of each with whose they are and their places."""

    engine: Engine
    tables: Sequence[PublishedTable]
    rows: Mapping[str, Relation]

    @classmethod
    def of(cls, engine: Engine, tables: Sequence[PublishedTable]) -> JoinedTables:
        """The tables joined; raises AuditError if a row belongs to nobody."""
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
                what = f"{again:,} keys of {table.above} repeat, so that rows of {table.name} belong to several"
                raise AuditError(what)
        return cls(engine, tables, found)

    @property
    def count(self) -> int:
        """How many rows all tables have."""
        return sum(map(self.engine.count, self.rows.values()))

    def people(self, known: Iterable[str] | None = None) -> Relation:
        """(person, labels): who has rows in tables of these names, by default in any, and what those show of them."""
        read = list(self.rows.values()) if known is None else [self.rows[name] for name in known]
        return self.engine.materialise("people", "auditing/tables/show_people", known=read)

    def seen(self, people: Relation, name: str) -> Subject:
        """The people who are shown, each with their values of a sensitive column, or by themselves."""
        own = _with_column(self.tables, name)
        if own is None:
            return Subject(people, ["labels"], person="person")
        told: list[ColumnName] = ["person", "place", (f"v{list(own.sensitive).index(name)}", name)]
        rows = self.rows[own.name]
        seen = self.engine.join("seen", rows, people, "person", left_columns=told, right_columns=["labels"])
        return Subject(seen, ["labels"], person="person", same=own.same)


def _repeated(engine: Engine, joined: Relation) -> int:
    """How many rows have a key that another has as well."""
    keys = engine.select("keys", joined, "key", where=[Where("key", None, "<>")])
    return engine.count(keys) - engine.count(engine.select("keys", keys, "key", distinct=True))


def _with_column(tables: Sequence[PublishedTable], name: str) -> PublishedTable | None:
    """The table that has a sensitive column; None for people alone."""
    return next((table for table in tables if name in table.sensitive), None)


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
