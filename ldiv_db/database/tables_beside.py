"""What lies beside a table in its database: the tables that its foreign keys name, and the columns of all others."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.database.catalog import SCHEMA, Column, full_name
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation


@dataclass(frozen=True)
class ColumnBeside:
    """A column of another table."""

    table: Relation
    column: Column


def foreign_keys(engine: Engine, table: Relation) -> dict[str, str]:
    """The tables whose rows a column of the table names, as declared: by the column's name in lower case."""
    rows = engine.execute(
        "SELECT lower(constraint_column_names[1]), referenced_table FROM duckdb_constraints()"
        " WHERE lower(database_name) = $database AND lower(schema_name) = $schema AND lower(table_name) = $name"
        " AND constraint_type = 'FOREIGN KEY' AND len(constraint_column_names) = 1"
        " ORDER BY constraint_index ASC NULLS LAST",
        _named(engine, table),
    )
    return dict(rows)


def columns_beside(engine: Engine, table: Relation, most_rows: int) -> list[ColumnBeside]:
    """The columns of the other tables of its database that have up to so many rows, as the database guesses."""
    rows = engine.execute(
        "SELECT c.database_name, c.schema_name, c.table_name, c.column_name, c.data_type"
        " FROM duckdb_columns() AS c JOIN duckdb_tables() AS t ON c.database_name = t.database_name"
        " AND c.schema_name = t.schema_name AND c.table_name = t.table_name"
        " JOIN duckdb_databases() AS d ON d.database_name = c.database_name"
        " WHERE lower(c.database_name) = $database AND lower(c.schema_name) <> $ours AND NOT t.internal"
        " AND NOT (d.type = 'sqlite' AND starts_with(lower(c.table_name), $ours || '_'))"
        " AND NOT (lower(c.schema_name) = $schema AND lower(c.table_name) = $name)"
        " AND NOT (t.temporary AND starts_with(lower(c.table_name), $ours || '_'))"  # copies of frames, which are ours
        " AND coalesce(t.estimated_size, 0) <= $most"
        " ORDER BY c.schema_name ASC NULLS LAST, c.table_name ASC NULLS LAST, c.column_index ASC NULLS LAST",
        {**_named(engine, table), "ours": SCHEMA, "most": most_rows},
    )
    return [ColumnBeside(Relation(row[:3]), Column(row[3], row[4])) for row in rows]


def _named(engine: Engine, table: Relation) -> dict[str, str]:
    database, schema, name = full_name(engine, table)
    return {"database": database, "schema": schema, "name": name}
