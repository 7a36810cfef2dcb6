"""What databases that are attached do differently from DuckDB's own: schemas, keys, views."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import DIALECT, literal

#: A view may be an ordinary one or one that is stored (`m`).
_VIEWS = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')"


def kind_of(engine: Engine, database: str) -> str:
    """The type of an attached database as DuckDB calls it: duckdb, postgres, sqlite, ducklake, mysql."""
    rows = engine.execute("SELECT type FROM duckdb_databases() WHERE lower(database_name) = lower($d)", {"d": database})
    return str(rows[0][0]) if rows else "duckdb"


def is_read_only(engine: Engine, database: str) -> bool:
    """Whether the connection has an attached database open for reading only."""
    rows = engine.execute(
        "SELECT readonly FROM duckdb_databases() WHERE lower(database_name) = lower($d)", {"d": database}
    )
    return bool(rows and rows[0][0])


def main_schema(engine: Engine, database: str) -> str:
    """The schema of an attached database that is meant where none is named."""
    kind = kind_of(engine, database)
    if kind == "mysql":
        ((name,),) = engine.execute(f"FROM mysql_query({literal(database)}, 'SELECT database() AS name')")
        return name or "main"
    return "public" if kind == "postgres" else "main"


def compare_here(engine: Engine) -> None:
    """Have DuckDB itself group, filter and sort what MySQL holds, for which `flu` and `Flu` are one.

    It hands these on to the server otherwise. The connection keeps the settings.
    """
    if not engine.execute("SELECT 1 FROM duckdb_databases() WHERE type = 'mysql' LIMIT 1"):
        return
    for (name,) in engine.execute("SELECT name FROM duckdb_settings() WHERE name LIKE 'mysql_%pushdown%'"):
        engine.execute(f"SET {name} = false")


def has_one_schema(engine: Engine, database: str) -> bool:
    """Whether the database has no schemas but one."""
    return kind_of(engine, database) == "sqlite"


def keeps_constraints(engine: Engine, database: str) -> bool:
    """Whether tables of the database may have keys."""
    return kind_of(engine, database) != "ducklake"


def numbers_snapshots(engine: Engine, database: str) -> bool:
    """Whether all that a transaction of the database writes is a snapshot with a number."""
    return kind_of(engine, database) == "ducklake"


def last_snapshot(engine: Engine, database: str) -> int | None:
    """The number of the snapshot that this connection committed last."""
    ((number,),) = engine.execute(f"FROM ducklake_last_committed_snapshot({literal(database)})")
    return None if number is None else int(number)


def fitting(kind: str, sql: str) -> str:
    """The statements of a migration as such a database takes them: without keys, or schemas, where it has none."""
    if kind not in ("ducklake", "sqlite"):
        return sql
    statements = [statement for statement in sqlglot.parse(sql, read=DIALECT) if statement is not None]
    for statement in statements:
        for part in list(statement.find_all(exp.Table, exp.PrimaryKey, exp.PrimaryKeyColumnConstraint)):
            if isinstance(part, exp.Table) and kind == "sqlite":
                part.replace(exp.to_table(f"{part.db}_{part.name}"))
            elif isinstance(part, exp.PrimaryKeyColumnConstraint) and kind == "ducklake":
                assert part.parent is not None  # noqa: S101 - a constraint stands in its definition
                part.parent.pop()
            elif isinstance(part, exp.PrimaryKey) and kind == "ducklake":
                part.pop()
    return ";\n".join(statement.sql(dialect=DIALECT, comments=False) for statement in statements)


def is_postgres_view(engine: Engine, database: str, schema: str, name: str) -> bool:
    """Whether the name stands for a view in PostgreSQL, which DuckDB takes for a table."""
    asked = f"{_VIEWS} AND lower(n.nspname) = lower({literal(schema)}) AND lower(c.relname) = lower({literal(name)})"
    return bool(ask_postgres(engine, database, asked))


def ask_postgres(engine: Engine, database: str, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query as the server itself understands it, in the transaction that is open."""
    return engine.execute(f"FROM postgres_query({literal(database)}, {literal(sql)})")
