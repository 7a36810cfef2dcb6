"""Queries of any table that need no template of their own: counts, copies, selections, joins, groups, bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ldiv_db.database.data_files import Table
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.queries import Queries, Where

#: A column, or a column and the name that it gets.
ColumnName = str | tuple[str, str]
#: An aggregate of the values of a group, and the column of these.
Aggregate = tuple[Literal["min", "max", "sum"], str]


class TableQueries(Queries):
    """Queries of any table, by the templates of `sql/database`."""

    def count(self, rows: Table, *where: Where) -> int:
        """The number of rows, or of those that meet all conditions."""
        if where:
            return int(self.scalar("database/count_groups", **_counted(rows, (), where)))
        return int(self.scalar("database/count_rows", rows=rows))

    def count_groups(self, name: str, rows: Table, *columns: ColumnName, where: Sequence[Where] = ()) -> Relation:
        """(the columns, rows): how many rows have each combination of their values."""
        return self.materialise(name, "database/count_groups", **_counted(rows, columns, where))

    def tally(self, rows: Relation, *columns: str, where: Sequence[Where] = ()) -> list[tuple[Any, ...]]:
        """As `count_groups`, read, in no order: for counts, bounds and plans, never for data."""
        return self.rows("database/count_groups", **_counted(rows, columns, where))

    def copy(self, name: str, rows: Relation, *columns: str) -> Relation:
        """A TEMP table of the same rows, with the columns named, or all of them."""
        return self.materialise(name, "database/list_rows", rows=rows, columns=columns)

    def extend(
        self,
        target: Relation,
        rows: Relation,
        *columns: ColumnName,
        where: Sequence[Where] = (),
        constants: Mapping[str, int] | None = None,
    ) -> None:
        """Append the rows of another table to `target`, or those that meet all conditions, as `select` has them."""
        self.insert(target, "database/select_rows", **selection(rows, columns, where, constants=constants))

    def extend_others(self, target: Relation, rows: Relation, listed: Relation, key: str, *columns: ColumnName) -> None:
        """Append to `target` the rows whose `key` no row of `listed` has, as `select_others` has them."""
        among = _Among(listed, [key], lacking=True)
        self.insert(target, "database/select_rows", **selection(rows, columns, among=among))

    def reassign(self, assigned: Relation, moved: Relation, shown: str = "row_id") -> Relation:
        """(row_id, class_id): rows with their class, that of `moved` if it has one; `shown` is their number then."""
        return self.materialise("assigned", "database/overlay_rows", assigned=assigned, moved=moved, shown=shown)

    def select(
        self,
        name: str,
        rows: Table,
        *columns: ColumnName,
        where: Sequence[Where] = (),
        distinct: bool = False,
        constants: Mapping[str, int] | None = None,
    ) -> Relation:
        """A TEMP table of rows that meet all conditions, of the columns named, or all, and further `constants`."""
        return self.materialise(name, "database/select_rows", **selection(rows, columns, where, distinct, constants))

    def select_among(
        self, name: str, rows: Relation, listed: Relation, *keys: ColumnName, columns: Sequence[ColumnName] = ()
    ) -> Relation:
        """As `select`, the rows whose keys some row of `listed` has; a pair is their name in `rows` and in `listed`."""
        among = _Among(listed, keys)
        return self.materialise(name, "database/select_rows", **selection(rows, columns, among=among))

    def select_others(
        self, name: str, rows: Relation, listed: Relation, *keys: ColumnName, columns: Sequence[ColumnName] = ()
    ) -> Relation:
        """The rows that `select_among` leaves out; keys are never NULL."""
        among = _Among(listed, keys, lacking=True)
        return self.materialise(name, "database/select_rows", **selection(rows, columns, among=among))

    def number_groups(
        self, name: str, rows: Relation, *by: str, number: str = "class_id", columns: Sequence[str] = ("row_id",)
    ) -> Relation:
        """(the columns, or all, `number`): the rows with the number of their group, from 1 in the order of `by`."""
        return self.materialise(name, "database/number_groups", rows=rows, by=by, columns=columns, number=number)

    def find(self, rows: Relation, *columns: str, where: Sequence[Where] = ()) -> list[tuple[Any, ...]]:
        """The columns named of the rows that meet all conditions, in no order: for plans and ledgers, never data."""
        return self.rows("database/select_rows", **selection(rows, columns, where))

    def columns(self, rows: Relation, *columns: str) -> list[tuple[Any, ...]]:
        """The columns named of all rows, in no order: for counts, bounds and plans, never for data."""
        return self.rows("database/list_rows", rows=rows, columns=columns)

    def column(self, rows: Relation, column: str) -> list[Any]:
        """As `columns`, of a single one."""
        return [value for (value,) in self.columns(rows, column)]

    def least(self, rows: Relation, column: str, *where: Where) -> Any:
        """The smallest value of a column, None without rows."""
        return self._summary(rows, column, "min", where)

    def most(self, rows: Table, column: str, *where: Where) -> Any:
        """The largest value of a column, None without rows."""
        return self._summary(rows, column, "max", where)

    def total(self, rows: Relation, column: str, *where: Where) -> int:
        """The sum of a column of whole numbers, 0 without rows."""
        return int(self._summary(rows, column, "sum", where) or 0)

    def count_weighted(self, rows: Relation, weight: Identifier | None) -> int:
        """The rows that those of a table stand for: each of them as many as its column `weight` says, or one."""
        return self.total(rows, weight.name) if weight else self.count(rows)

    def sum_of(self, rows: Relation, column: str) -> Value:
        """The sum of a column of whole numbers, 0 without rows, as a parameter of a template takes it."""
        return Value(self.total(rows, column))

    def _summary(self, rows: Table, column: str, function: str, where: Sequence[Where]) -> Any:
        conditions = _conditions(where)
        return self.scalar(
            "database/summarise_column", rows=rows, column=column, conditions=conditions, function=function
        )

    def join(
        self,
        name: str,
        left: Table,
        right: Table,
        *keys: ColumnName,
        left_columns: Sequence[ColumnName] = (),
        right_columns: Sequence[ColumnName] = (),
    ) -> Relation:
        """A TEMP table of the pairs of rows with equal keys, which are never NULL; of `left` by default all columns."""
        params = {"keys": _columns(keys), "columns": _columns(left_columns), "more": _columns(right_columns)}
        return self.materialise(name, "database/join_rows", rows=left, others=right, **params)

    def group(self, name: str, rows: Relation, /, *columns: ColumnName, **aggregates: Aggregate) -> Relation:
        """(the columns, the aggregates): for each combination of values the least, most or sum of other columns."""
        return self.materialise(name, "database/group_rows", **_grouping(rows, columns, aggregates))

    def grouped(self, rows: Relation, /, *columns: str, **aggregates: Aggregate) -> list[tuple[Any, ...]]:
        """As `group`, read, in no order: for counts, bounds and plans, never for data."""
        return self.rows("database/group_rows", **_grouping(rows, columns, aggregates))


def _columns(columns: Sequence[ColumnName]) -> list[dict[str, Any]]:
    pairs = [(column, column) if isinstance(column, str) else column for column in columns]
    return [{"name": Identifier(name), "alias": Identifier(alias)} for name, alias in pairs]


def _conditions(where: Sequence[Where]) -> list[dict[str, Any]]:
    return [
        {"column": Identifier(one.column), "sign": one.sign, "value": None if one.value is None else Value(one.value)}
        for one in where
    ]


def _counted(rows: Table, columns: Sequence[ColumnName], where: Sequence[Where]) -> dict[str, Any]:
    return {"rows": rows, "columns": _columns(columns), "conditions": _conditions(where)}


def _grouping(rows: Relation, columns: Sequence[ColumnName], aggregates: Mapping[str, Aggregate]) -> dict[str, Any]:
    found = [
        {"function": function, "column": Identifier(of), "alias": Identifier(alias)}
        for alias, (function, of) in aggregates.items()
    ]
    return {"rows": rows, "columns": _columns(columns), "aggregates": found}


@dataclass(frozen=True)
class _Among:
    """The rows whose keys some row of `listed` has, or, if `lacking`, those whose keys none has."""

    listed: Relation
    keys: Sequence[ColumnName]
    lacking: bool = False


def selection(
    rows: Table,
    columns: Sequence[ColumnName],
    where: Sequence[Where] = (),
    distinct: bool = False,
    constants: Mapping[str, int] | None = None,
    among: _Among | None = None,
) -> dict[str, Any]:
    return {
        **_counted(rows, columns, where),
        "listed": among.listed if among else None,
        "keys": _columns(among.keys if among else ()),
        "constants": [{"value": n, "alias": Identifier(name)} for name, n in (constants or {}).items()],
        "distinct": distinct,
        "lacking": among is not None and among.lacking,
    }
