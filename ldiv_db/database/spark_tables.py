"""Tables of Spark's catalog: what is there, and the few statements that make, rename and drop one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.templates import Relation, literal

#: Formats of tables that have a commit of their own: what replaces or appends to them is there whole or not at all.
ATOMIC = ("delta", "iceberg")


def table_named(text: str, key: str) -> Relation:
    """The table that a name stands for; raises PolicyError for what is no name of one."""
    try:
        parts = [part for part in exp.to_table(text, dialect="spark").parts if isinstance(part, exp.Identifier)]
    except SqlglotError:
        parts = []
    if not parts or len(parts) > 3:
        raise PolicyError([Problem(key, f"{text!r} names no table", "TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE")])
    return Relation(tuple(part.name for part in parts))


def quoted(table: Relation) -> str:
    """The table's name as Spark takes it, whatever characters are in it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in table.parts)


def beside(table: Relation, name: str) -> Relation:
    """Another table of the same schema."""
    return Relation((*table.parts[:-1], name))


def exists(session: Any, table: Relation) -> bool:
    """Whether there is a table or view of that name."""
    with plainly(f"look up {table}"):
        return bool(session.catalog.tableExists(quoted(table)))


def description(session: Any, table: Relation) -> Mapping[str, str]:
    """What the catalog says of a table beside its columns: `Provider`, `Type` and others."""
    with plainly(f"look up {table}"):
        rows = session.sql(f"DESCRIBE TABLE EXTENDED {quoted(table)}").collect()
    names = [row[0] for row in rows]
    start = next((i for i, name in enumerate(names) if name.startswith("# Detailed")), len(rows))
    return {row[0]: row[1] for row in rows[start:]}


def read(session: Any, table: Relation) -> Any:
    """The table as a frame, with the files that it has now: another session may have written or renamed some."""
    session.catalog.refreshTable(quoted(table))
    return session.table(quoted(table))


def names_in_schema(session: Any, table: Relation) -> list[str]:
    """The names of all tables beside a table; none if its schema is not there."""
    where = f" IN {quoted(Relation(table.parts[:-1]))}" if len(table.parts) > 1 else ""
    if where and not session.catalog.databaseExists(quoted(Relation(table.parts[:-1]))):
        return []
    with plainly("list tables"):
        return [row["tableName"] for row in session.sql(f"SHOW TABLES{where}").collect() if not row["isTemporary"]]


def make_schema(session: Any, table: Relation) -> None:
    """Make the schema of a table, if it names one that is not there."""
    schema = quoted(Relation(table.parts[:-1]))
    with plainly("make the schema"):
        if schema and not session.catalog.databaseExists(schema):
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")


def make_empty(session: Any, table: Relation, columns: Sequence[Any]) -> None:
    """An empty table of these fields: it is in the catalog before it has files, so that none are left unknown."""
    provider = session.conf.get("spark.sql.sources.default", "parquet")
    listed = ", ".join(f"{quoted(Relation((field.name,)))} {field.dataType.simpleString()}" for field in columns)
    with plainly(f"make {table}"):
        session.sql(f"CREATE TABLE {quoted(table)} ({listed}) USING {provider}")


def make_lasting(session: Any, table: Relation, columns: str) -> None:
    """A table of columns, as SQL, if it is not there; of a catalog in memory where later sessions find it again."""
    make_schema(session, table)
    if exists(session, table):
        return
    in_memory = (
        session.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory" and len(table.parts) == 2
    )
    place = f"{session.conf.get('spark.sql.warehouse.dir')}/{table.parts[0]}.db/{table.name}" if in_memory else ""
    located = f" USING parquet LOCATION {literal(place)}" if in_memory else ""
    with plainly(f"make {table}"):
        session.sql(f"CREATE TABLE {quoted(table)} ({columns}){located}")


def rename(session: Any, table: Relation, name: str) -> None:
    """Have a table under another name of its schema."""
    with plainly(f"rename {table}"):
        session.sql(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(beside(table, name))}")


def drop(session: Any, table: Relation) -> None:
    """Drop a table, if it is there."""
    with plainly(f"drop {table}"):
        session.sql(f"DROP TABLE IF EXISTS {quoted(table)}")
