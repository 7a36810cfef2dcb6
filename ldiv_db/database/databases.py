"""Databases of a connection: their kinds, their files, what they do differently from DuckDB's own, and its settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.names import DIALECT, literal

#: A view may be an ordinary one or one that is stored (`m`).
_VIEWS = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')"


def current_database(engine: Engine) -> str:
    """The database in which names without one are looked up."""
    return engine.snapshot.current


def attached(engine: Engine) -> list[str]:
    """The names of all databases that are attached, in lower case."""
    return list(engine.snapshot.databases)


def file_of(engine: Engine, database: str) -> str | None:
    """The file of an attached database, None if it is in memory or on a server."""
    found = engine.snapshot.databases.get(database.lower())
    return found.file if found else None


def is_in_memory(engine: Engine, database: str) -> bool:
    """True if a database of DuckDB's is in no file, and ends with the connection."""
    found = engine.snapshot.databases.get(database.lower())
    return found is not None and found.kind == "duckdb" and found.path is None


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
    return [found.file for found in engine.snapshot.databases.values() if found.file and not found.is_internal]


@dataclass(frozen=True)
class Resources:
    """Limits of the database: bytes of memory, and of its temp directory (None: all that are free)."""

    memory_limit: int
    temp_directory: str
    temp_limit: int | None


def resources(engine: Engine) -> Resources:
    """The limits that the connection's settings set."""
    found = engine.snapshot.settings
    limit = _bytes(found["max_temp_directory_size"])
    return Resources(_bytes(found["memory_limit"]) or 0, found["temp_directory"] or "", limit)


def threads(engine: Engine) -> int:
    """The threads that the database may use."""
    return int(engine.execute("SELECT current_setting('threads')")[0][0])


def refuse_settings(engine: Engine) -> None:
    """Raise PolicyError for a setting of the connection that our statements, whatever they state, cannot answer."""
    problems, settings = [], engine.snapshot.settings
    if str(settings["preserve_identifier_case"]).lower() == "uppercase":
        what = "is uppercase on this connection, by which columns of a release would have other names"
        problems.append(Problem("preserve_identifier_case", what, "SET preserve_identifier_case = 'preserve_case'"))
    if settings["disable_timestamptz_casts"]:
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
    return engine.snapshot.kind(database)


def is_read_only(engine: Engine, database: str) -> bool:
    """True if the connection has an attached database open for reading only."""
    found = engine.snapshot.databases.get(database.lower())
    return found is not None and found.is_read_only


def main_schema(engine: Engine, database: str) -> str:
    """The schema of an attached database that is meant where none is named."""
    kind = kind_of(engine, database)
    if kind == "mysql":
        ((name,),) = engine.execute(f"FROM mysql_query({literal(database)}, 'SELECT database() AS name')")
        return name or "main"
    return "public" if kind == "postgres" else "main"


def compare_here(engine: Engine) -> None:
    """Let DuckDB itself group, filter and sort the rows of MySQL, which takes `flu` and `Flu` for one.

    It hands these on to the server otherwise. The connection keeps the settings.
    """
    if not engine.snapshot.has("mysql"):
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
