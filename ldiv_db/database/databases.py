"""Databases of a connection: their kinds, their files, what they do differently from DuckDB's own, and its settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.templates import DIALECT, literal

#: The types of databases that are a file, by names of parameters; the path of others may hold a password.
_FILE_TYPES = {"t1": "duckdb", "t2": "sqlite", "t3": "ducklake"}
#: A view may be an ordinary one or one that is stored (`m`).
_VIEWS = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')"


def current_database(engine: Engine) -> str:
    """The database in which names without one are looked up."""
    return str(engine.execute("SELECT current_database()")[0][0])


def attached(engine: Engine) -> list[str]:
    """The names of all databases that are attached, in lower case."""
    return [row[0].lower() for row in engine.execute("SELECT database_name FROM duckdb_databases()")]


def file_of(engine: Engine, database: str) -> str | None:
    """The file of an attached database, None if it is in memory or on a server."""
    rows = engine.execute(
        "SELECT path FROM duckdb_databases() WHERE lower(database_name) = lower($d) AND type IN ($t1, $t2, $t3)",
        {"d": database, **_FILE_TYPES},
    )
    return rows[0][0] if rows else None


def is_in_memory(engine: Engine, database: str) -> bool:
    """True if a database of DuckDB's is in no file, and ends with the connection."""
    asked = "SELECT path IS NULL AND type = 'duckdb' FROM duckdb_databases() WHERE lower(database_name) = lower($d)"
    return engine.execute(asked, {"d": database}) == [(True,)]


def free_bytes(engine: Engine, database: str) -> int:
    """The bytes of a database's file that hold nothing any more, and may still be read as what they held."""
    rows = engine.execute(
        "SELECT free_blocks * block_size FROM pragma_database_size() WHERE lower(database_name) = lower($d)",
        {"d": database},
    )
    return int(rows[0][0] or 0) if rows else 0


def metadata_entries(engine: Engine, path: str) -> int:
    """The entries of a Parquet file beside its data, such as who wrote what else into it."""
    return int(engine.execute("SELECT count(*) FROM parquet_kv_metadata($path)", {"path": path})[0][0])


def open_files(engine: Engine) -> list[str]:
    """The files of all databases that are attached."""
    rows = engine.execute(
        "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL AND NOT internal AND type IN ($t1, $t2, $t3)",
        _FILE_TYPES,
    )
    return [row[0] for row in rows]


@dataclass(frozen=True)
class Resources:
    """Limits of the database: bytes of memory, and of its temp directory (None: all that are free)."""

    memory_limit: int
    temp_directory: str
    temp_limit: int | None


def resources(engine: Engine) -> Resources:
    """The limits that the connection's settings set."""
    ((memory, folder, limit),) = engine.execute(
        "SELECT current_setting('memory_limit'), current_setting('temp_directory'),"
        " current_setting('max_temp_directory_size')"
    )
    return Resources(_bytes(memory) or 0, folder or "", _bytes(limit))


def threads(engine: Engine) -> int:
    """The threads that the database may use."""
    return int(engine.execute("SELECT current_setting('threads')")[0][0])


def refuse_settings(engine: Engine) -> None:
    """Raise PolicyError for a setting of the connection that our statements, whatever they state, cannot answer."""
    ((case, disabled),) = engine.execute(
        "SELECT current_setting('preserve_identifier_case'), current_setting('disable_timestamptz_casts')"
    )
    problems = []
    if str(case).lower() == "uppercase":
        what = "is uppercase on this connection, by which columns of a release would have other names"
        problems.append(Problem("preserve_identifier_case", what, "SET preserve_identifier_case = 'preserve_case'"))
    if disabled:
        what = "is on for this connection; our statements ask of any value whether it is an instant"
        problems.append(Problem("disable_timestamptz_casts", what, "SET disable_timestamptz_casts = false"))
    refuse(problems)


def _bytes(text: str) -> int | None:
    """The number of bytes in a setting such as `18.8 GiB`; None for a share of what is free."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) (bytes?|[KMGTPE]iB)", text)
    if match is None:
        return None
    return int(float(match[1]) * 1024 ** ("bKMGTPE".index(match[2][0])))


def kind_of(engine: Engine, database: str) -> str:
    """The type of an attached database as DuckDB calls it: duckdb, postgres, sqlite, ducklake, mysql."""
    rows = engine.execute("SELECT type FROM duckdb_databases() WHERE lower(database_name) = lower($d)", {"d": database})
    return str(rows[0][0]) if rows else "duckdb"


def is_read_only(engine: Engine, database: str) -> bool:
    """True if the connection has an attached database open for reading only."""
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
    """True if the database has no schemas but one."""
    return kind_of(engine, database) == "sqlite"


def keeps_constraints(engine: Engine, database: str) -> bool:
    """True if tables of the database may have keys."""
    return kind_of(engine, database) != "ducklake"


def numbers_snapshots(engine: Engine, database: str) -> bool:
    """True if all that a transaction of the database writes is a snapshot with a number."""
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
    """True if the name stands for a view in PostgreSQL, which DuckDB takes for a table."""
    asked = f"{_VIEWS} AND lower(n.nspname) = lower({literal(schema)}) AND lower(c.relname) = lower({literal(name)})"
    return bool(ask_postgres(engine, database, asked))


def ask_postgres(engine: Engine, database: str, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query as the server itself understands it, in the transaction that is open."""
    return engine.execute(f"FROM postgres_query({literal(database)}, {literal(sql)})")
