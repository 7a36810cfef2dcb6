"""What is asked of the databases of a connection beside their snapshot, and its settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.names import literal
from ldiv_db.database.snapshot import MYSQL

#: A view may be an ordinary one or one that is stored (`m`).
_VIEWS = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')"


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


def main_schema(engine: Engine, database: str) -> str:
    """The schema of an attached database that is meant where none is named."""
    kind = engine.snapshot.traits(database)
    if kind is MYSQL:
        ((name,),) = engine.execute(f"FROM mysql_query({literal(database)}, 'SELECT database() AS name')")
        return name or kind.schema
    return kind.schema


def compare_here(engine: Engine) -> None:
    """Have DuckDB itself compare the rows of MySQL, which takes `flu` and `Flu` for one, from here on."""
    if not engine.snapshot.has("mysql"):
        return
    for (name,) in engine.execute("SELECT name FROM duckdb_settings() WHERE name LIKE 'mysql_%pushdown%'"):
        engine.execute(f"SET {name} = false")


def last_snapshot(engine: Engine, database: str) -> int | None:
    """The number of the snapshot that this connection committed last."""
    ((number,),) = engine.execute(f"FROM ducklake_last_committed_snapshot({literal(database)})")
    return None if number is None else int(number)


def is_postgres_view(engine: Engine, database: str, schema: str, name: str) -> bool:
    """True if the name stands for a view in PostgreSQL, which DuckDB takes for a table."""
    asked = f"{_VIEWS} AND lower(n.nspname) = lower({literal(schema)}) AND lower(c.relname) = lower({literal(name)})"
    return bool(ask_postgres(engine, database, asked))


def ask_postgres(engine: Engine, database: str, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query as the server itself understands it, in the transaction that is open."""
    return engine.execute(f"FROM postgres_query({literal(database)}, {literal(sql)})")
