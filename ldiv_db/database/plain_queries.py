"""What is asked of any table, or changed in it, and needs no template of its own: counts, copies, single columns and
their bounds; rows that are deleted or updated by the values of columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ldiv_db.database.templates import FileRelation, Identifier, Relation, literal


class PlainQueries(ABC):
    """Plain queries, in terms of those that run a template or a statement of floor 0."""

    @abstractmethod
    def materialise(self, name: str, template: str, **params: Any) -> Relation:
        """The TEMP table holding what `template` selects."""

    @abstractmethod
    def insert(self, target: Relation, template: str, **params: Any) -> None:
        """Append what `template` selects to the table `target`, by column name."""

    @abstractmethod
    def rows(self, template: str, **params: Any) -> list[tuple[Any, ...]]:
        """All rows that `template` selects."""

    @abstractmethod
    def scalar(self, template: str, **params: Any) -> Any:
        """The single value that `template` selects."""

    @abstractmethod
    def execute(
        self,
        sql: str,
        values: Mapping[str, Any] | None = None,
        reads: Sequence[Relation | FileRelation] = (),
        writes: Relation | None = None,
    ) -> list[tuple[Any, ...]]:
        """Run a statement written in floor 0 and return its rows."""

    @abstractmethod
    def refresh_count(self, target: Relation) -> None:
        """Say that the rows of a table may be others than when it was made."""

    def keep_text(self, variable: str, text: str) -> None:
        """Leave a text in a variable of the connection, where a caller that has the connection alone can read it."""
        self.execute(f"SET VARIABLE {Identifier(variable).sql()} = {literal(text)}")

    def count(self, rows: Relation | FileRelation) -> int:
        """The number of rows."""
        return int(self.scalar("database/count_rows", rows=rows))

    def copy(self, name: str, rows: Relation, *columns: str) -> Relation:
        """A TEMP table of the same rows, with the columns named, or all of them."""
        return self.materialise(name, "database/list_rows", rows=rows, columns=[*map(Identifier, columns)])

    def extend(self, target: Relation, rows: Relation, *columns: str) -> None:
        """Append the rows of another table to `target`, with the columns named, or all of them."""
        self.insert(target, "database/list_rows", rows=rows, columns=[*map(Identifier, columns)])

    def columns(self, rows: Relation, *columns: str) -> list[tuple[Any, ...]]:
        """The columns named of all rows, in no order: for counts, bounds and plans, never for data."""
        return self.rows("database/list_rows", rows=rows, columns=[*map(Identifier, columns)])

    def column(self, rows: Relation, column: str) -> list[Any]:
        """As `columns`, of a single one."""
        return [value for (value,) in self.columns(rows, column)]

    def least(self, rows: Relation, column: str) -> Any:
        """The smallest value of a column, None without rows."""
        return self._summary(rows, column, "min")

    def most(self, rows: Relation, column: str) -> Any:
        """The largest value of a column, None without rows."""
        return self._summary(rows, column, "max")

    def total(self, rows: Relation, column: str) -> int:
        """The sum of a column of whole numbers, 0 without rows."""
        return int(self._summary(rows, column, "sum") or 0)

    def delete(self, target: Relation, having: Mapping[str, Any]) -> None:
        """Delete the rows of `target` that have the values of `having`, by column."""
        self.refresh_count(target)
        self.execute(f"DELETE FROM {target.sql()} WHERE {_eq(having, ' AND ')}", having)

    def update(self, target: Relation, values: Mapping[str, Any], having: Mapping[str, Any]) -> None:
        """Set `values`, by column, in the rows of `target` that have the values of `having`."""
        self.execute(
            f"UPDATE {target.sql()} SET {_eq(values, ', ')} WHERE {_eq(having, ' AND ')}", {**values, **having}
        )

    def delete_listed(self, target: Relation, column: Identifier, listed: Relation) -> None:
        """Delete the rows of `target` whose `column` has a value that `listed` has in the same column."""
        self.refresh_count(target)
        name = column.sql()
        self.execute(f"DELETE FROM {target.sql()} WHERE {name} IN (SELECT {name} FROM {listed.sql()})")

    def _summary(self, rows: Relation, column: str, function: str) -> Any:
        return self.scalar("database/summarise_column", rows=rows, column=Identifier(column), function=function)


def _eq(values: Mapping[str, Any], separator: str) -> str:
    """`"column" = $column` for each column."""
    return separator.join(f"{Identifier(column).sql()} = ${column}" for column in values)
