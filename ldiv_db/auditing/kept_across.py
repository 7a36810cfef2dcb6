"""What columns that one table keeps tell of sensitive values in another: rows that join are read as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ldiv_db.auditing.kept import measure_kept
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.tables import PolicyTable, named_in


@dataclass(frozen=True)
class JoinedTable:
    """A table as its `rows` join others, and what the policy says of it.

    By `owner` they join the row above, or those of the same person, and by `key` those below.
    """

    name: str
    table: PolicyTable
    rows: Table
    owner: str
    key: str | None

    @property
    def columns(self) -> list[tuple[str, str]]:
        """What is compared, and by what it is joined further, each with its name after that of the table."""
        own = dict.fromkeys([*self.table.keep, *self.table.sensitive, self.owner])
        return [(column, named_in(self.name, column)) for column in own]

    def is_compared(self, other: JoinedTable) -> bool:
        """True if one keeps columns, and the other has sensitive ones."""
        ours, theirs = self.table, other.table
        return bool((ours.keep and theirs.sensitive) or (theirs.keep and ours.sensitive))


def warn_across(engine: Engine, tables: Sequence[JoinedTable]) -> list[str]:
    """The warnings of kept columns from which sensitive values of tables above, or below, follow; none is shown."""
    return list(dict.fromkeys(warning for table in tables for warning in _warnings(engine, tables, table)))


def _warnings(engine: Engine, tables: Sequence[JoinedTable], table: JoinedTable) -> Iterator[str]:
    """Those of a table and of each that it leads to, as far as there is something to compare."""
    way = list(_above(engine, tables, table))
    last = max((number for number, above in enumerate(way, 1) if table.is_compared(above)), default=0)
    with engine.scope():
        rows, key, columns, below = table.rows, table.owner, table.columns, table
        for above in way[:last]:
            both = key, above.key if below.table.above and above.key else above.owner
            rows = engine.join("across", rows, above.rows, both, left_columns=columns, right_columns=above.columns)
            columns = [(name, name) for _, name in (*columns, *above.columns)]
            key, below = named_in(above.name, above.owner), above
            yield from [*_told(engine, rows, table, above), *_told(engine, rows, above, table)]


def _above(engine: Engine, tables: Sequence[JoinedTable], table: JoinedTable) -> Iterator[JoinedTable]:
    """The tables one after the other of which each row joins one row: up to people, and their own row."""
    by_name, found = {one.name: one for one in tables}, table
    while found.table.above:
        found = by_name[found.table.above]
        yield found
    for one in tables:
        if one.name != found.name and one.table.person and not one.table.order and _is_one_each(engine, one):
            yield one
            return


def _is_one_each(engine: Engine, table: JoinedTable) -> bool:
    """True if everybody has one row at most."""
    return not engine.record("recoding/tables/count_links", rows=table.rows, column=table.owner, others=None, key=None)[
        "repeated"
    ]


def _told(engine: Engine, rows: Relation, one: JoinedTable, other: JoinedTable) -> Iterator[str]:
    """The warnings of the columns that one table keeps, held against the sensitive ones of the other."""
    kept = {column: Identifier(named_in(one.name, column)) for column in one.table.keep}
    others = {name: Identifier(name) for name in (named_in(other.name, column) for column in other.table.sensitive)}
    if kept and others:
        with read_exactly(engine, rows) as read:
            for found in measure_kept(engine, read, kept, others):
                if warning := replace(found, single=0, few=0).warning:
                    yield f"{one.name}: {warning}"
