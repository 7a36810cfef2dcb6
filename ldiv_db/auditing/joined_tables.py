"""Published tables joined, by two readings that share no text, and what people and rows show in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.recoding.encoded import Renamed


@dataclass(frozen=True)
class JoinedTables:
    """Published tables, and the `rows` of each with whose they are, their places and what they show, as numbers.

    `texts` are what these numbers stand for, by table.
    """

    engine: Engine
    tables: Sequence[PublishedTable]
    rows: Mapping[str, Relation]
    texts: Mapping[str, Relation]

    @classmethod
    def of(cls, engine: Engine, tables: Sequence[PublishedTable], whole: bool = False) -> JoinedTables:
        """The tables joined; rows show their `whole` paths. Raises AuditError if a row belongs to nobody."""
        found, texts = dict[str, Relation](), dict[str, Relation]()
        for table in tables:
            columns = [Renamed(column, value_of(table, called)) for called, column in table.sensitive.items()]
            with engine.scope() as scope:
                told = engine.view(
                    "told",
                    "auditing/tables/join_rows",
                    published=table.rows,
                    above=found.get(table.above),
                    texts=texts.get(table.above),
                    number=str(table.number),
                    owner=table.owner,
                    key=table.key,
                    position=table.position,
                    labels=table.labels,
                    sensitive=columns,
                    whole=whole,
                )
                start = sum(map(engine.count, texts.values()))
                own = engine.materialise("texts", "auditing/tables/number_texts", rows=told, start=start)
                params = {"rows": told, "texts": own, "sensitive": columns}
                rows = engine.materialise("joined", "auditing/tables/number_rows", **params)
                texts[table.name], found[table.name] = scope.keep(own), scope.keep(rows)
            if left := engine.count(table.rows) - engine.count(rows):
                raise AuditError(f"{left:,} rows of {table.name} belong to nobody, or to several")
            if table.above and (again := _repeated(engine, found[table.above])):  # which may stand for rows of nobody
                what = f"{again:,} keys of {table.above} repeat, so that rows of {table.name} belong to several"
                raise AuditError(what)
        return cls(engine, tables, found, texts)

    @property
    def told(self) -> list[dict[str, Relation]]:
        """The rows of each table with their texts."""
        return [{"rows": rows, "texts": self.texts[name]} for name, rows in self.rows.items()]

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
        own = with_column(self.tables, name)
        if own is None:
            return Subject(people, ["labels"], person="person")
        told: list[ColumnName] = ["person", "place", (value_of(own, name).name, name)]
        rows = self.rows[own.name]
        seen = self.engine.join("seen", rows, people, "person", left_columns=told, right_columns=["labels"])
        return Subject(seen, ["labels"], person="person", same=own.same)


def _repeated(engine: Engine, joined: Relation) -> int:
    """How many rows have a key that another has as well."""
    keys = engine.select("keys", joined, "key", where=[Where("key", None, "<>")])
    return engine.count(keys) - engine.count(engine.select("keys", keys, "key", distinct=True))


def value_of(table: PublishedTable, name: str) -> Identifier:
    """What a sensitive column of a table is called among its joined rows."""
    return Identifier(f"v{list(table.sensitive).index(name)}")


def with_column(tables: Sequence[PublishedTable], name: str) -> PublishedTable | None:
    """The table that has a sensitive column; None for people alone."""
    return next((table for table in tables if name in table.sensitive), None)


@dataclass(frozen=True)
class EveryRow:
    """The readings of joined tables by all rows of people, which they show in their places."""

    joined: JoinedTables
    people: Relation
    again: _Again

    @classmethod
    def of(cls, joined: JoinedTables) -> EveryRow:
        """The readings of tables."""
        return cls(joined, joined.people(), _Again.of(joined.engine, joined.tables, joined.count))

    def subject(self, name: str) -> Subject:
        """All people, each with their values of a sensitive column, or by themselves."""
        first, engine, known = self.joined.seen(self.people, name), self.joined.engine, self.joined.told
        written = {
            "labels": engine.view("written", "auditing/tables/write_people", people=self.people, known=known),
            "place": engine.view("places", "auditing/tables/write_places", known=known),
        }
        return replace(first, position="place", written=written, again=self.again.again(first, name))


@dataclass(frozen=True)
class _Again:
    """The tables joined along their whole paths from people, and what `people` (who, shown) show in all of them.

    Texts are compared by their `codes`.
    """

    engine: Engine
    tables: Sequence[PublishedTable]
    codes: Relation
    people: Relation

    @classmethod
    def of(cls, engine: Engine, tables: Sequence[PublishedTable], rows: int) -> _Again:
        """The reading of tables in which the first found so many rows; raises AuditError if it finds others."""
        every, codes = code_paths(engine, tables, rows, whole=False)
        people = engine.materialise("sequences", "auditing/tables/list_sequences", rows=every)
        engine.drop(every)
        return cls(engine, tables, codes, people)

    def again(self, first: Subject, name: str) -> Subject:
        """What is read in the place of the first reading of a sensitive column, or of people alone."""
        own, table = with_column(self.tables, name), self.people
        if own is not None:
            rows = code_values(self.engine, self.tables, own, name, self.codes, whole=False)
            known: list[ColumnName] = ["who", "turn", name]
            table = self.engine.join("again", rows, self.people, "who", left_columns=known, right_columns=["shown"])
        return replace(first, table=table, labels=["shown"], person="who", position="turn")


def path_of(tables: Sequence[PublishedTable], table: PublishedTable) -> list[PublishedTable]:
    """The tables from people to this one."""
    above = next((other for other in tables if other.name == table.above), None)
    return [*(path_of(tables, above) if above else ()), table]


def code_paths(engine: Engine, tables: Sequence[PublishedTable], rows: int, whole: bool) -> tuple[Relation, Relation]:
    """All rows along their paths from people (who, turn, shown), of which the last two are codes, and these.

    Raises AuditError if there are not so many rows as the first reading found.
    """
    paths = [path_of(tables, table) for table in tables]
    every = engine.view("paths", _PATHS, paths=paths, value=None, sensitive=None, whole=whole)
    codes = engine.materialise("codes", "auditing/tables/code_texts", paths=every)
    coded = engine.materialise("coded", _CODED, paths=every, codes=codes, sensitive=None)
    if rows != engine.count(coded):
        raise AuditError(f"one reading found {rows:,} rows of people, another {engine.count(coded):,}")
    return coded, codes


def code_values(
    engine: Engine, tables: Sequence[PublishedTable], own: PublishedTable, name: str, codes: Relation, whole: bool
) -> Relation:
    """(who, turn, the sensitive column, shown): the rows of a table along their path, by the codes of all."""
    sensitive = Identifier(name)
    told = {"paths": [path_of(tables, own)], "value": own.sensitive[name], "sensitive": sensitive, "whole": whole}
    rows = engine.view("paths", _PATHS, **told)
    return engine.materialise("coded", _CODED, paths=rows, codes=codes, sensitive=sensitive)


#: The templates of rows along their paths from people, as texts and as codes.
_PATHS, _CODED = "auditing/tables/list_paths", "auditing/tables/code_rows"
