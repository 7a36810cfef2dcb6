"""A query as a source: one SELECT, without side effects, of which a TEMP view is made.

DuckDB itself says what a statement is: it serialises SELECTs alone. Functions that read files, and those that give one
value for one argument, are allowed; those that write, draw or count are not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from ldiv_db.database import foreign
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.templates import Relation

#: The functions of tables that a query may call: they read.
_TABLES = {
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto", "range", "generate_series", "unnest", "glob", "delta_scan", "iceberg_scan", "sqlite_scan",
    "postgres_scan", "mysql_scan", "repeat", "repeat_row",
}  # fmt: skip


def name_of_query(text: str) -> str:
    """What a query is called where it is not told: it may name values of the data."""
    return f"query {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def view_of_query(engine: Engine, text: str, key: str) -> Relation:
    """A TEMP view of the query; raises PolicyError unless it is one SELECT without side effects that can be read."""
    foreign.compare_here(engine)
    query = text.strip().rstrip(";")
    ((tree,),) = engine.execute("SELECT json_serialize_sql($query)", {"query": query})
    parsed = json.loads(tree)
    if parsed.get("error") or len(parsed["statements"]) != 1:
        raise PolicyError([Problem(key, "takes one SELECT", "make a table or a view of anything else")])
    if called := sorted(set(_refused(engine, parsed["statements"][0]))):
        what = f"calls {', '.join(called)}, which may have side effects, or give other rows when it is read again"
        raise PolicyError([Problem(key, what)])
    try:
        return engine.view_of("query", query)
    except DatabaseError as error:
        reason = error.message.splitlines()[0].partition(": ")[2] or "it cannot be read"
        raise PolicyError([Problem(key, f"cannot be read: {reason}")]) from None


def _refused(engine: Engine, tree: Any) -> Iterator[str]:
    """The functions called anywhere in the statement that are not allowed."""
    volatile = {
        name
        for (name,) in engine.execute(
            "SELECT lower(function_name) FROM duckdb_functions()"
            " WHERE has_side_effects OR function_type = 'table_macro'"
        )
    }
    for is_table, name in _calls(tree):
        if name in volatile or (is_table and name not in _TABLES):
            yield name


def _calls(tree: Any) -> Iterator[tuple[bool, str]]:
    """Whether it gives a table, and the name of every function that is called."""
    if isinstance(tree, list):
        for part in tree:
            yield from _calls(part)
        return
    if not isinstance(tree, dict):
        return
    if tree.get("type") == "TABLE_FUNCTION":
        yield True, str(tree["function"]["function_name"]).lower()
        yield from _calls(tree["function"].get("children", []))
        return
    if tree.get("class") == "FUNCTION":
        yield False, str(tree["function_name"]).lower()
    for part in tree.values():
        yield from _calls(part)
