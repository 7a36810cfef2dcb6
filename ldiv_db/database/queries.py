"""Queries of an engine by a template, and the statements of floor 0 that change tables of others.

All are told in terms of a statement that is run, and of one that becomes a TEMP table.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ldiv_db.database.data_files import Table
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.names import Identifier, Relation, literal
from ldiv_db.database.snapshot import Snapshot
from ldiv_db.database.templates import BUILT_IN, Statement

#: The file formats of `export`. CSV: all text that is not NULL is quoted, so that '' and NULL differ.
EXPORTS = {
    "csv": "FORMAT csv, HEADER true, DELIMITER ',', QUOTE '\"', ESCAPE '\"', NULLSTR '', FORCE_QUOTE *",
    "parquet": "FORMAT parquet, COMPRESSION zstd",
}


@dataclass(frozen=True)
class Step:
    """One finished statement: its name, the rows it made and the milliseconds it took."""

    name: str
    rows: int
    milliseconds: float


@dataclass(frozen=True)
class Where:
    """A condition on a column of every row; a value of None is NULL, and met by it, or with `<>` by all others."""

    column: str
    value: Any
    sign: Literal["=", "<>", "<", "<=", ">", ">="] = "="


class Queries(ABC):
    """Queries in terms of statements that are rendered and run."""

    #: True within a transaction that was begun here.
    has_begun = False

    @abstractmethod
    def rendered(self, template: str | Statement, values: dict[str, Any] | None = None, /, **params: Any) -> Statement:
        """The SELECT of `template`, ready to run, or a statement as it is; `values` are those of its other parts."""

    @abstractmethod
    def make(self, name: str, statement: Statement) -> Relation:
        """The TEMP table of what a statement selects."""

    @abstractmethod
    def _timed(self, name: str, statement: Statement) -> int:
        """Run a named step; the rows that it made."""

    @abstractmethod
    def refresh_count(self, target: Relation, added: int | None = None) -> None:
        """Count rows that were `added` to a table, or forget how many it has."""

    @abstractmethod
    def _execute(self, statement: Statement) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns and the rows."""

    @property
    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The databases that are attached, as they are now."""

    # -- by template -------------------------------------------------------------------------------

    def materialise(self, name: str, template: str, **params: Any) -> Relation:
        """The TEMP table holding what `template` selects; it lives until dropped or `close_scratch`."""
        return self.make(name, self.rendered(template, **params))

    def rows(self, template: str | Statement, **params: Any) -> list[tuple[Any, ...]]:
        """All rows that `template`, or a statement that is rendered, selects: for counts and plans, never for data."""
        return self._execute(self.rendered(template, **params))[1]

    def records(self, template: str | Statement, **params: Any) -> list[dict[str, Any]]:
        """As `rows`, each a dict by column name."""
        names, rows = self._execute(self.rendered(template, **params))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def record(self, template: str | Statement, **params: Any) -> dict[str, Any]:
        """The single row that `template`, or a statement that is rendered, selects, as a dict by column name."""
        names, (row,) = self._execute(self.rendered(template, **params))
        return dict(zip(names, row, strict=True))

    def scalar(self, template: str, **params: Any) -> Any:
        """The single value that `template` selects."""
        ((value,),) = self.rows(template, **params)
        return value

    def refuse_any(self, problem: Callable[[str], Problem], template: str | Statement, **params: Any) -> None:
        """Raise PolicyError if what `template` has `found` is not 0; `problem` says it of the number."""
        ((found,),) = self.rows(template, **params)
        if found:
            raise PolicyError([problem(f"{found:,}")])

    def execute(
        self,
        sql: str,
        values: Mapping[str, Any] | None = None,
        reads: Sequence[Table] = (),
        writes: Relation | None = None,
    ) -> list[tuple[Any, ...]]:
        """Run a statement written in floor 0 (DDL, catalog look-ups) and return its rows.

        `reads` are tables, views and files of others: where they cannot be read they are to blame; `writes` is a table
        that stays.
        """
        return self._execute(Statement(BUILT_IN, sql, dict(values or {}), reads, writes))[1]

    # -- changes -----------------------------------------------------------------------------------

    def create(self, target: Relation, template: str, replace: bool = False, **params: Any) -> None:
        """Make `target`, a table that stays, of what `template` selects; its schema is made if need be."""
        self.make_schema(target)
        statement = self.rendered(template, **params)
        verb, statement.writes = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE", target
        statement.sql = f"{verb} {target.sql()} AS\n{statement.sql}"
        self._timed("publish", statement)

    def insert(self, target: Relation, template: str, **params: Any) -> None:
        """Append what `template` selects to the table `target`, by column name."""
        statement = self.rendered(template, **params)
        statement.sql, statement.writes = f"INSERT INTO {target.sql()} BY NAME\n{statement.sql}", target
        self.refresh_count(target, self._timed("publish", statement))

    def export(self, path: Path, form: str, template: str, **params: Any) -> None:
        """Write what `template` selects to a file; `form` is one of `EXPORTS`."""
        statement = self.rendered(template, **params)
        statement.sql = f"COPY (\n{statement.sql}\n) TO {literal(str(path))} ({EXPORTS[form]})"
        self._timed("publish", statement)

    def append(self, target: Relation, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows of metadata into `target`: one statement, one parameter a column."""
        if not rows:
            return
        names = ", ".join(Identifier(column).sql() for column in columns)
        given = listed(columns, rows)
        self.execute(f"INSERT INTO {target.sql()} ({names})\n{given.sql}", given.values)
        self.refresh_count(target, len(rows))

    def delete(self, target: Relation, having: Mapping[str, Any]) -> None:
        """Delete the rows of `target` that have the values of `having`, by column."""
        self.refresh_count(target)
        self.execute(f"DELETE FROM {target.sql()} WHERE {_eq(having, ' AND ')}", having)

    def delete_listed(self, target: Relation, column: Identifier, listed: Relation) -> None:
        """Delete the rows of `target` whose `column` has a value that `listed` has in the same column."""
        self.refresh_count(target)
        name = column.sql()
        self.execute(f"DELETE FROM {target.sql()} WHERE {name} IN (SELECT {name} FROM {listed.sql()})")

    def update(self, target: Relation, values: Mapping[str, Any], having: Mapping[str, Any]) -> None:
        """Set `values`, by column, in the rows of `target` that have the values of `having`, or one of a list."""
        self.execute(
            f"UPDATE {target.sql()} SET {_eq(values, ', ')} WHERE {_eq(having, ' AND ')}", {**values, **having}
        )

    def drop_table(self, table: Relation) -> None:
        """Drop a table that stays, if it is there."""
        self.execute(f"DROP TABLE IF EXISTS {table.sql()}", writes=table)

    def rename(self, table: Relation, target: Relation, replace: bool) -> None:
        """Rename a table within its schema; with `replace` it takes the place of a table of that name."""
        if replace:
            self.drop_table(target)
        self.execute(f"ALTER TABLE {table.sql()} RENAME TO {Identifier(target.name).sql()}", writes=target)

    def make_schema(self, target: Relation) -> None:
        """Make the schema of a table that is to be made, if it names one that is not there."""
        if len(target.parts) > 1 and not self._has_schema(target.parts[:-1]):
            self.execute(f"CREATE SCHEMA IF NOT EXISTS {Relation(target.parts[:-1]).sql()}", writes=target)

    def _has_schema(self, parts: Sequence[str]) -> bool:
        """True if a database of others has the schema, by `parts`; leave to make it is not asked for then."""
        if not self.snapshot.others:
            return False
        rows = self.execute(
            "SELECT 1 FROM duckdb_schemas() AS s JOIN duckdb_databases() AS d USING (database_name)"
            " WHERE d.type <> 'duckdb' AND (lower(schema_name) = lower($schema)"
            " AND lower(database_name) = lower(coalesce($database, current_database()))"
            " OR $database IS NULL AND lower(database_name) = lower($schema))",
            {"schema": parts[-1], "database": parts[0] if len(parts) > 1 else None},
        )
        return bool(rows)

    @contextmanager
    def setting(self, name: str, value: object) -> Iterator[None]:
        """Within, a setting has another value for this connection alone, unless settings are locked."""
        ((before, locked),) = self.execute(f"SELECT current_setting('{name}'), current_setting('lock_configuration')")
        if locked:
            yield
            return
        self.execute(f"SET SESSION {name} = {literal(str(value))}")
        try:
            yield
        finally:
            with suppress(DatabaseError):  # a transaction that failed takes no setting; the first error is reported
                self.execute(f"SET SESSION {name} = {literal(str(before))}")

    def refresh_servers(self) -> None:
        """Look up the names of a server's tables anew: others may have changed them, or we rolled ours back."""
        servers = self.snapshot.of_kind("postgres")
        if servers:
            self.execute("CALL pg_clear_cache()")
        for server in servers:
            # The extension leaves a COPY of an open transaction unread, by which its next look-up of names would fail.
            with suppress(DatabaseError):
                self.execute(f"FROM postgres_query({literal(server)}, 'SELECT 1')")

    def in_transaction(self) -> bool:
        """True if one is open: outside, every statement is a transaction of its own, with its own number."""
        if self.has_begun:
            return True
        is_own = self.snapshot.kind(self.snapshot.current) == "duckdb"
        # Databases that are attached number no transactions, but one has a single time.
        asked = "SELECT txid_current()" if is_own else "SELECT epoch_us(now())"
        first, second = (self.execute(asked) for _ in range(2))
        return first == second


def listed(columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Statement:
    """The SELECT of rows of metadata, by columns with their SQL types."""
    # A column is bound as one JSON text: DuckDB 1.5 takes half a millisecond for each element of a bound list.
    made = ", ".join(
        f"unnest($p{i}::JSON::VARCHAR[]::{kind}[]) AS {Identifier(name).sql()}"
        for i, (name, kind) in enumerate(columns.items())
    )
    texts = [[None if value is None else str(value) for value in column] for column in zip(*rows, strict=True)]
    values = {f"p{i}": json.dumps(texts[i] if texts else [], ensure_ascii=False) for i in range(len(columns))}
    return Statement(BUILT_IN, f"SELECT {made}", values)


def _eq(values: Mapping[str, Any], separator: str) -> str:
    """`"column" = $column` for each column, or one of the values of a list."""
    wanted = {
        column: f"ANY (${column})" if isinstance(value, list) else f"${column}" for column, value in values.items()
    }
    return separator.join(f"{Identifier(column).sql()} = {value}" for column, value in wanted.items())
