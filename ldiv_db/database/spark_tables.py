"""Tables of Spark's catalog: what is there, the few statements that make, rename and drop one, and their types.

What Spark says when it fails is told in one sentence: no traces of Java's, and no values that they may quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import Relation, literal

_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]\s*(.*)")
#: The names of Java's exceptions, which stand before their messages.
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):?\s*")
#: Conditions whose sentences quote values of the data.
_QUOTING = ("CAST_", "INVALID_INPUT", "CANNOT_PARSE", "MALFORMED", "DIVIDE", "ARITHMETIC", "NUMERIC_VALUE", "UDF")


@contextmanager
def plainly(doing: str) -> Iterator[None]:
    """Within, failures of Spark's are raised as DatabaseError: what was being done, and Spark's own short sentence."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise DatabaseError(f"Spark cannot {doing}: {sentence(error)}") from None  # a cause would quote data


def sentence(error: BaseException) -> str:
    """The first sentence of what Spark says, or the name of its condition where that would quote data."""
    text = str(error).strip() or type(error).__name__
    if found := _CONDITION.search(text):
        condition, said = found.groups()
        return condition if condition.startswith(_QUOTING) else said.strip() or condition
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if line.startswith("Caused by:")), lines[0] if lines else text)
    return _CLASS.sub("", cause.removeprefix("Caused by:").strip())[:300] or type(error).__name__


#: Types of Spark that are read, by the names that its schemas have for them; decimals and texts of a length are, too.
_READ = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
         "timestamp_ntz")  # fmt: skip


def is_read(kind: str) -> bool:
    """True if values of a type are read; not of nested and collated ones, and those without a counterpart."""
    return kind in _READ or kind.startswith(("decimal(", "varchar(", "char("))


#: Formats of tables that have a commit of their own: what replaces or appends to them is there whole or not at all.
ATOMIC = ("delta", "iceberg")


def quoted(table: Relation) -> str:
    """The table's name as Spark takes it, whatever characters are in it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in table.parts)


def sibling(table: Relation, name: str) -> Relation:
    """Another table of the same schema."""
    return Relation((*table.parts[:-1], name))


def exists(session: Any, table: Relation) -> bool:
    """True if there is a table or view of that name."""
    with plainly(f"look up {table}"):
        return bool(session.catalog.tableExists(quoted(table)))


def description(session: Any, table: Relation) -> Mapping[str, str]:
    """The catalog's entries on a table beside its columns: `Provider`, `Type` and others."""
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
    """Rename a table within its schema."""
    with plainly(f"rename {table}"):
        session.sql(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(sibling(table, name))}")


def drop(session: Any, table: Relation) -> None:
    """Drop a table, if it is there."""
    with plainly(f"drop {table}"):
        session.sql(f"DROP TABLE IF EXISTS {quoted(table)}")
