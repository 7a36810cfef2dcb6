"""Links between several tables and people: checked before any work, and replaced by numbers of one release.

A number is drawn by a secret. It says no more than that rows belong together, as they do in all tables of the release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase, nearest, refuse, rows_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.tables import PolicyTable, owner_parts


@dataclass(frozen=True)
class LinkedTable:
    """A table that belongs to people, as a policy describes it, and what the columns of its source are.

    `rows` are those of its source that belong to somebody, with a column for each key of several columns. Unless they
    are published `in_order` nobody need say what that is.
    """

    name: str
    table: PolicyTable
    relation: Table
    columns: Mapping[str, Column] = field(repr=False)
    rows: Table
    in_order: bool = True

    @classmethod
    def opened(
        cls, engine: Engine, name: str, table: PolicyTable, relation: Table, in_order: bool = True
    ) -> LinkedTable:
        columns = {column.name.lower(): column for column in columns_of(engine, relation)}
        return cls(name, table, relation, columns, relation, in_order)

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
        return (
            self.in_order
            and not table.order
            and (is_parent or bool(table.quasi_identifiers and table.rows != "together"))
        )

    def column(self, name: str) -> Column:
        return self.columns[name.lower()]


class Linked(Protocol):
    """A table whose rows belong to people, or to those of the table `above`."""

    @property
    def name(self) -> str: ...
    @property
    def above(self) -> str: ...


One = TypeVar("One", bound=Linked)


def in_order(tables: Iterable[One]) -> list[One]:
    """The tables, each after that which its rows belong to."""
    left, found = list(tables), list[One]()
    while left:
        known = {"", *(table.name for table in found)}
        found += [table for table in left if table.above in known]
        left = [table for table in left if table not in found]
    return found


# -- rows that are somebody's --------------------------------------------------------------------------


def whole_tables(engine: Engine, tables: Mapping[str, LinkedTable]) -> dict[str, LinkedTable]:
    """The tables with the rows that are somebody's, and keys of several columns as one; raises PolicyError.

    What they read is read again by each statement, so that rows which others write meanwhile are checked again.
    """
    refuse(problem for table in tables.values() for problem in _lacking(table))
    refuse(problem for table in tables.values() for problem in _unlike(tables, table))
    found = keyed_tables(engine, tables)
    leaving = [table.name for table in found.values() if table.table.orphans == "leave_out"]
    register = register_of(engine, found.values()) if leaving else None
    for name in [table.name for table in in_order(found.values()) if table.name in leaving]:
        above = found.get(found[name].above)
        others = above or (register if register and register.name != name else None)
        found[name] = _owned(engine, found[name], others)
    check_links(engine, found)
    return found


def keyed_tables(engine: Engine, tables: Mapping[str, LinkedTable]) -> dict[str, LinkedTable]:
    """The tables with each key of several columns as one."""
    return {name: _with_keys(engine, table, tables.get(table.above)) for name, table in tables.items()}


def _with_keys(engine: Engine, table: LinkedTable, above: LinkedTable | None) -> LinkedTable:
    """The table with a column for each key of several columns, those of a parent in the order of its key."""
    parts = {
        table.table.own_key: table.table.key_parts,
        table.owner: owner_parts(table.table, above.table if above else None),
    }
    made = [
        {"name": Identifier(name), "parts": [Identifier(table.column(one).name) for one in own]}
        for name, own in parts.items()
        if name and len(own) > 1
    ]
    if not made:
        return table
    columns = [Identifier(column.name) for column in table.columns.values()]
    rows = engine.view("keyed", "recoding/tables/combine_keys", rows=table.relation, columns=columns, keys=made)
    return replace(table, rows=rows)


def _owned(engine: Engine, table: LinkedTable, others: LinkedTable | None) -> LinkedTable:
    """The table without rows of nobody, or of none of the others: rows that it names, or people."""
    key = others and (others.table.own_key if table.above else others.owner)
    own = {"rows": table.rows, "owner": table.owner, "others": others and others.rows, "key": key}
    return replace(table, rows=engine.view("owned", "recoding/tables/list_owned_rows", **own))


def count_orphans(engine: Engine, table: LinkedTable) -> int:
    """How many rows of its source belong to nobody, and are left out."""
    return engine.count(table.relation) - engine.count(table.rows) if table.rows != table.relation else 0


# -- checks --------------------------------------------------------------------------------------------


def check_links(engine: Engine, tables: Mapping[str, LinkedTable]) -> None:
    """Raise PolicyError with all links that are not whole, each with its counts and a way out."""
    parents = {table.above for table in tables.values()}
    found = [problem for table in tables.values() for problem in _broken(engine, tables, table, table.name in parents)]
    refuse([*found, *(() if found else _strangers(engine, tables.values()))])


def _lacking(table: LinkedTable) -> Iterator[Problem]:
    """The columns of links, and of the order, that a table does not have."""
    of_order = [table.table.order] if table.table.order else []
    owner = "parent" if table.above else "person"
    said = {owner: table.table.owner_parts, "key": table.table.key_parts, "order": of_order}
    for key, name in ((key, name) for key, names in said.items() for name in names):
        if name.lower() not in table.columns:
            known = [column.name for column in table.columns.values()]
            yield Problem(f"tables.{table.name}.{key}", f"the source has no column {name}", nearest(name, known))


def _unlike(tables: Mapping[str, LinkedTable], table: LinkedTable) -> Iterator[Problem]:
    """The columns whose values cannot be those of the ones that they link to."""
    others = [other for other in tables.values() if other.table.person]
    key, other = ("parent", tables[table.above]) if table.above else ("person", others[0])
    theirs = other.table.key_parts if table.above else other.table.owner_parts
    for ours, their in zip(owner_parts(table.table, other.table if table.above else None), theirs, strict=True):
        one, two = table.column(ours), other.column(their)
        if _read_as(one, len(theirs) > 1) != _read_as(two, len(theirs) > 1):
            what = f"{ours} is {one.shown}, and {two.name} of {other.name} is {two.shown}"
            ways = "CAST one of them" if table.above else "CAST one of them, or join the table that has both keys,"
            yield Problem(f"tables.{table.name}.{key}", what, f"{ways} in a query as the source")


def _read_as(column: Column, is_part: bool) -> Any:
    """What the values of two columns have to be alike in to be compared; parts of keys are compared as texts."""
    if is_part and not column.is_integer:
        return column.published
    return column.is_number, column.is_time


def _broken(
    engine: Engine, tables: Mapping[str, LinkedTable], table: LinkedTable, is_parent: bool
) -> Iterator[Problem]:
    """Keys that are NULL, or not one row's alone, and references without a partner."""
    under = f"tables.{table.name}"
    if table.table.own_key and is_parent:
        found = _counts(engine, table, table.table.own_key)
        if found["unknown"]:
            what = f"is NULL in {rows_phrase(found['unknown'])}: nothing can belong to them"
            yield Problem(f"{under}.key", f"{table.table.own_key} {what}", "leave them out in a query as the source")
        if found["repeated"]:
            what = f"{rows_phrase(found['repeated'])} share their {table.table.own_key} with another"
            yield Problem(f"{under}.key", what, "name a column, or make one in a query, that is one row's alone")
    above = tables.get(table.above)
    found = _counts(engine, table, table.owner, above, above.table.own_key if above else None)
    key, left_out = "parent" if above else "person", "orphans: leave_out, or a query as the source"
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
        if table.table.own_key and found["unknown"]:
            what = f"{column} is NULL in {rows_phrase(found['unknown'])}, which nothing tells apart over time"
            problems.append(Problem(f"tables.{table.name}.key", what, "leave them out in a query as the source"))
        if found["repeated"]:
            what = f"{rows_phrase(found['repeated'])} share their {column} with another, so that it tells no row apart"
            problems.append(Problem(f"tables.{table.name}.key", what, "name a column that is one row's alone"))
    refuse(problems)


def _strangers(engine: Engine, tables: Iterable[LinkedTable]) -> Iterator[Problem]:
    """People who have rows, and none in the table that has one row a person; of several that with the most people."""
    register = register_of(engine, tables)
    for table in (table for table in tables if register and table.table.person):
        found = _counts(engine, table, table.owner, register, register.owner if register else None)
        if register and found["lacking"]:
            people = count_phrase(found["lacking_values"], "person is", "people are")
            what = f"{people} not in {register.name}, who have {rows_phrase(found['lacking'])}"
            ways = (
                f"add them to {register.name}, or say orphans: leave_out; where {table.owner} is another key of theirs"
            )
            way_out = f"{ways}, join the table that has both in a query as the source"
            yield Problem(f"tables.{table.name}.person", what, way_out)


def register_of(engine: Engine, tables: Iterable[LinkedTable]) -> LinkedTable | None:
    """The table that has one row a person; of several that with the most people, None if there is none."""
    found = dict[int, LinkedTable]()
    for table in (table for table in tables if table.table.person and not table.table.order):
        counts = _counts(engine, table, table.owner)
        if not counts["repeated"]:
            found.setdefault(int(counts["people"]), table)
    return found[max(found)] if found else None


def _counts(
    engine: Engine, table: LinkedTable, column: str, other: LinkedTable | None = None, key: str | None = None
) -> dict[str, Any]:
    params = {"rows": table.rows, "column": column, "others": other and other.rows, "key": key}
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
    listed = [{"relation": table.rows, "column": Identifier(table.owner)} for table in of_people]
    people = engine.materialise("people", "recoding/tables/number_people", tables=listed, secret=secret)
    parents, numbered = {table.above for table in tables.values()}, {"": people}
    rows = {}
    for table in in_order(tables.values()):
        owners, owner, of_rows = numbered[table.above], Identifier(table.owner), table.name in parents
        key = Identifier(table.table.own_key or "") if of_rows else None
        known: dict[str, Any] = {"rows": table.rows, "owners": owners, "owner": owner, "key": key}
        if of_rows:
            own = {"secret": f"{secret}:{table.name}:", "of_people": not table.above}
            numbered[table.name] = engine.materialise("keys", "recoding/tables/number_keys", **known, **own)
        gone = {
            name.lower() for name in (table.owner, *([table.table.own_key] if of_rows and table.table.own_key else []))
        }
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
