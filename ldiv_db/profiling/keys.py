"""Which columns of a table name rows of other tables: they lead to whoever has those, as identifiers do.

A foreign key says so. Without one a column does if another table has a unique column of its name or of the same stem
(`c_custkey` of `o_custkey`, `customers.id` of `customer_id`), which has all its values. Where a value has very many
rows, the other table is taken for a list of categories, such as countries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.tables_beside import ColumnBeside, columns_beside, foreign_keys
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.people_columns import CATEGORY_ROWS
from ldiv_db.profiling.summary import Summary

#: Tables of more rows are not looked at, and of those that a column may belong to no more than so many.
_MOST_ROWS, _MOST_TABLES = 5_000_000, 5
#: A column's name after the letter or two of its table.
_STEM = re.compile(r"[a-z]{1,3}_(.+)")


class Keys:
    """The tables beside one table, asked column by column whether they own it."""

    def __init__(self, engine: Engine, table: Relation | FileRelation) -> None:
        self._engine = engine
        self._declared: dict[str, str] = {}
        self._beside: list[ColumnBeside] = []
        if isinstance(table, Relation):
            self._declared = foreign_keys(engine, table)
            self._beside = columns_beside(engine, table, _MOST_ROWS)

    def owner(self, summary: Summary, read: Relation | FileRelation) -> str | None:
        """The name of the table whose rows the column of `read` names, None if there is none."""
        column = summary.column
        if column.is_time or column.is_fractional or summary.rows >= CATEGORY_ROWS * summary.distinct:
            return None
        if declared := self._declared.get(column.name.lower()):
            return declared
        for other in self._candidates(column):
            holes = {"column": Identifier(column.name), "key": Identifier(other.column.name)}
            found = self._engine.record("profiling/hold_against_key", source=read, other=other.table, **holes)
            if not found["repeated"] and not found["strangers"]:
                return other.table.name
        return None

    def _candidates(self, column: Column) -> Sequence[ColumnBeside]:
        """The columns of other tables that the column's name leads to, of its type or whole numbers as well."""
        found = [other for other in self._beside if _alike(column, other.column) and _leads(column.name, other)]
        return found[:_MOST_TABLES]


def _alike(one: Column, other: Column) -> bool:
    return one.type == other.type or (one.is_integer and other.is_integer)


def _leads(name: str, other: ColumnBeside) -> bool:
    """Whether a column's name is, but for its table's letters, that of a column of another table."""
    return not set(_stems(name)).isdisjoint(_stems(other.column.name, other.table.name))


def _stems(name: str, table: str = "") -> Iterator[str]:
    """What a column may be called elsewhere, in lower case: `id` of the table `customers` is `customer_id`."""
    name = name.lower()
    yield name
    if stem := _STEM.fullmatch(name):
        yield stem[1]
    if name == "id":
        for owner in (table.lower(), table.lower().removesuffix("s")):
            yield f"{owner}_id"
