"""Links between several tables and people: checked before any work, and replaced by numbers of one release.

A number is drawn by a secret. It says no more than that rows belong together, as they do in all tables of the release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase, nearest, refuse, rows_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.tables import PolicyTable


@dataclass(frozen=True)
class LinkedTable:
    """A table that belongs to people, as a policy describes it, and its rows with what their columns are."""

    name: str
    table: PolicyTable
    relation: Relation | FileRelation
    columns: Mapping[str, Column] = field(repr=False)

    @classmethod
    def opened(cls, engine: Engine, name: str, table: PolicyTable, relation: Relation | FileRelation) -> LinkedTable:
        return cls(name, table, relation, {column.name.lower(): column for column in columns_of(engine, relation)})

    @property
    def owner(self) -> str:
        """The column that says whose, or what row's, a row is."""
        return self.table.owner

    @property
    def above(self) -> str:
        """The table whose rows its own belong to; empty where they belong to people."""
        return self.table.above

    def needs_order(self, is_parent: bool) -> bool:
        """True if rows of one person, or parent, differ in what is published, and nothing says which comes first."""
        table = self.table
        return not table.order and (is_parent or bool(table.quasi_identifiers and table.rows == "aligned"))

    def column(self, name: str) -> Column:
        return self.columns[name.lower()]


class Linked(Protocol):
    """A table whose rows belong to people, or to those of the table `above`."""

    @property
    def name(self) -> str: ...
    @property
    def above(self) -> str: ...


Table = TypeVar("Table", bound=Linked)


def in_order(tables: Iterable[Table]) -> list[Table]:
    """The tables, each after that which its rows belong to."""
    left, found = list(tables), list[Table]()
    while left:
        known = {"", *(table.name for table in found)}
        found += [table for table in left if table.above in known]
        left = [table for table in left if table not in found]
    return found


# -- checks --------------------------------------------------------------------------------------------


def check_links(engine: Engine, tables: Mapping[str, LinkedTable]) -> None:
    """Raise PolicyError with all links that are not whole, each with its counts and a way out."""
    refuse(problem for table in tables.values() for problem in _lacking(table))
    refuse(problem for table in tables.values() for problem in _unlike(tables, table))
    parents = {table.above for table in tables.values()}
    found = [problem for table in tables.values() for problem in _broken(engine, tables, table, table.name in parents)]
    refuse([*found, *(() if found else _strangers(engine, tables.values()))])


def _lacking(table: LinkedTable) -> Iterator[Problem]:
    """The columns of links, and of the order, that a table does not have."""
    said = {"person": table.table.person, "parent": next(iter(table.table.parent), None), "key": table.table.key}
    for key, name in {**said, "order": table.table.order}.items():
        if name and name.lower() not in table.columns:
            known = [column.name for column in table.columns.values()]
            yield Problem(f"tables.{table.name}.{key}", f"the source has no column {name}", nearest(name, known))


def _unlike(tables: Mapping[str, LinkedTable], table: LinkedTable) -> Iterator[Problem]:
    """A column whose values cannot be those of the one that it links to."""
    others = [other for other in tables.values() if other.table.person]
    key, other = ("parent", tables[table.above]) if table.above else ("person", others[0])
    theirs = other.column(other.table.key or "") if table.above else other.column(other.owner)
    ours = table.column(table.owner)
    if (ours.is_number, ours.is_time) != (theirs.is_number, theirs.is_time):
        what = f"{table.owner} is {ours.shown}, and {theirs.name} of {other.name} is {theirs.shown}"
        yield Problem(f"tables.{table.name}.{key}", what, "CAST one of them in a query as the source")


def _broken(
    engine: Engine, tables: Mapping[str, LinkedTable], table: LinkedTable, is_parent: bool
) -> Iterator[Problem]:
    """Keys that are NULL, or not one row's alone, and references without a partner."""
    under = f"tables.{table.name}"
    if table.table.key and is_parent:
        found = _counts(engine, table, table.table.key)
        if found["unknown"]:
            what = f"is NULL in {rows_phrase(found['unknown'])}: nothing can belong to them"
            yield Problem(f"{under}.key", f"{table.table.key} {what}", "leave them out in a query as the source")
        if found["repeated"]:
            what = f"{rows_phrase(found['repeated'])} share their {table.table.key} with another"
            yield Problem(f"{under}.key", what, "name a column, or make one in a query, that is one row's alone")
    above = tables.get(table.above)
    found = _counts(engine, table, table.owner, above, above.table.key if above else None)
    key, left_out = "parent" if above else "person", "leave them out in a query as the source"
    if found["unknown"]:
        what = f"{table.owner} is NULL in {rows_phrase(found['unknown'])}, which belong to nobody"
        yield Problem(f"{under}.{key}", what, left_out)
    if found["repeated"] and table.needs_order(is_parent):
        of = f"row of {above.name}" if above else "person"
        what = f"is required: {rows_phrase(found['repeated'])} have their {of} in common with others"
        ways = "name the column by which they are put into their order", "" if is_parent else ", or say rows: together"
        yield Problem(f"{under}.order", what, "".join(ways))
    if found["lacking"]:
        what = f"{rows_phrase(found['lacking'])} have {found['lacking_values']:,} values of {table.owner}"
        yield Problem(f"{under}.{key}", f"{what} that no row of {table.above} has", left_out)


def check_identities(engine: Engine, tables: Iterable[LinkedTable]) -> None:
    """Raise PolicyError unless each table has a column that says over time which row is which."""
    problems = []
    for table in tables:
        found, column = _counts(engine, table, table.table.identity), table.table.identity
        if table.table.key and found["unknown"]:
            what = f"{column} is NULL in {rows_phrase(found['unknown'])}, which nothing tells apart over time"
            problems.append(Problem(f"tables.{table.name}.key", what, "leave them out in a query as the source"))
        if found["repeated"]:
            what = f"{rows_phrase(found['repeated'])} share their {column} with another, so that it tells no row apart"
            problems.append(Problem(f"tables.{table.name}.key", what, "name a column that is one row's alone"))
    refuse(problems)


def _strangers(engine: Engine, tables: Iterable[LinkedTable]) -> Iterator[Problem]:
    """People who have rows, and none in the table that has one row a person; of several that with the most people."""
    of_people = [table for table in tables if table.table.person]
    counts = {table.name: _counts(engine, table, table.owner) for table in of_people}
    registers = [table for table in of_people if not counts[table.name]["repeated"] and not table.table.order]
    if not registers:
        return
    register = max(registers, key=lambda table: int(counts[table.name]["people"]))
    for table in of_people:
        found = _counts(engine, table, table.owner, register, register.owner)
        if found["lacking"]:
            people = count_phrase(found["lacking_values"], "person is", "people are")
            what = f"{people} not in {register.name}, who have {rows_phrase(found['lacking'])}"
            way_out = f"add them to {register.name}, or leave their rows out in a query as the source"
            yield Problem(f"tables.{table.name}.person", what, way_out)


def _counts(
    engine: Engine, table: LinkedTable, column: str, other: LinkedTable | None = None, key: str | None = None
) -> dict[str, Any]:
    params = {"rows": table.relation, "column": column, "others": other and other.relation, "key": key}
    return engine.record("recoding/tables/count_links", **params)


# -- numbers -------------------------------------------------------------------------------------------


def linked_rows(
    engine: Engine, tables: Mapping[str, LinkedTable], secret: str, person: str, row: str | None = None
) -> dict[str, Relation]:
    """The rows of each table with numbers in place of keys; of those of another table's rows `person` is whose.

    They are views, which can be read until the engine's TEMP tables are dropped. The column `row` says which row is
    which over time, where it is asked for.
    """
    of_people = [table for table in tables.values() if table.table.person]
    listed = [{"relation": table.relation, "column": Identifier(table.owner)} for table in of_people]
    people = engine.materialise("people", "recoding/tables/number_people", tables=listed, secret=secret)
    parents, numbered = {table.above for table in tables.values()}, {"": people}
    rows = {}
    for table in in_order(tables.values()):
        owners, owner, of_rows = numbered[table.above], Identifier(table.owner), table.name in parents
        key = Identifier(table.table.key or "") if of_rows else None
        known: dict[str, Any] = {"rows": table.relation, "owners": owners, "owner": owner, "key": key}
        if of_rows:
            own = {"secret": f"{secret}:{table.name}:", "of_people": not table.above}
            numbered[table.name] = engine.materialise("keys", "recoding/tables/number_keys", **known, **own)
        gone = {name.lower() for name in (table.owner, *([table.table.key] if of_rows and table.table.key else []))}
        shown = [Identifier(column.name) for name, column in table.columns.items() if name not in gone]
        added = {
            "columns": shown,
            "keys": numbered.get(table.name),
            "person": Identifier(person) if table.above else None,
            "row": Identifier(row) if row else None,
            "identity": Identifier(table.table.identity),
        }
        rows[table.name] = engine.view("linked", "recoding/tables/link_rows", **known, **added)
    return rows
