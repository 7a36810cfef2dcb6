"""Queries that callers give: as a source, or to be asked of a source and of what stands in its place.

Each is one SELECT without side effects, of which a TEMP view is made. DuckDB itself says what a statement is: it
serialises SELECTs alone. Functions that read files, and those that give one value for one argument, are allowed; those
that write, draw or count are not.

An analyst's query reads a table called `source`. A column of it that has an aggregate is a figure; the others say which
group it is of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.catalog import columns_of, compare_here
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.names import Identifier, Relation, SqlType, literal

#: The functions of tables that a query may call: they read.
_TABLES = {
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto", "range", "generate_series", "unnest", "glob", "delta_scan", "iceberg_scan", "sqlite_scan",
    "postgres_scan", "mysql_scan", "repeat", "repeat_row",
}  # fmt: skip
#: A query that can be asked.
EXAMPLE = "SELECT region, avg(cost) FROM source GROUP BY region"


@dataclass(frozen=True)
class AnalystQuery:
    """A SELECT from `source`, and the key of a policy that has it."""

    text: str
    key: str = "preserve"

    @classmethod
    def mean(cls, number: str, group: str) -> AnalystQuery:
        """The mean of a column in each group of another."""
        of, by = (Identifier(name).sql() for name in (number, group))
        return cls(f"SELECT {by}, avg({of}) AS {Identifier(f'mean of {number}').sql()} FROM source GROUP BY ALL")

    @classmethod
    def correlation(cls, one: str, other: str) -> AnalystQuery:
        """Pearson's correlation of two columns."""
        name = Identifier(f"correlation of {one} and {other}").sql()
        return cls(f"SELECT corr({Identifier(one).sql()}, {Identifier(other).sql()}) AS {name} FROM source")

    def asked_of(self, engine: Engine, table: Table, columns: Sequence[str]) -> Relation:
        """A TEMP view of the answer of a table, of which it sees these columns; raises PolicyError if it cannot be."""
        query, tree = parse_select(engine, self.text, self.key)
        if not reads_as(tree, "source"):
            raise refused(self.key, "does not read the table `source`", EXAMPLE)
        names = ", ".join(Identifier(name).sql() for name in columns)
        seen = f"WITH source AS (SELECT {names} FROM {table.sql()})"
        return view_of_query(engine, f"{seen}\nSELECT * FROM (\n{query}\n) AS asked", self.key)

    def parts(self, engine: Engine, answer: Relation) -> tuple[list[str], list[str]]:
        """The columns of an answer that say which group it is, and its figures; raises PolicyError without any."""
        names = [column.name for column in columns_of(engine, answer)]
        _, tree = parse_select(engine, self.text, self.key)
        items = tree["node"].get("select_list", [])
        found = engine.execute("SELECT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'")
        aggregates = {name.lower() for (name,) in found}
        figures = [any(name in aggregates for _, name in calls_in(item)) for item in items]
        if len(figures) != len(names) or not any(figures):
            what = "names no figure: of the columns of its SELECT, each written out, one has an aggregate at least"
            raise refused(self.key, what, EXAMPLE)
        pairs = list(zip(names, figures, strict=True))
        return [name for name, figure in pairs if not figure], [name for name, figure in pairs if figure]


def name_of_query(text: str) -> str:
    """The name of a query that has been given none: its text may name values of the data."""
    return f"query {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def parse_select(engine: Engine, text: str, key: str) -> tuple[str, Any]:
    """The query, and its tree as the database serialises it; raises PolicyError unless it is one SELECT."""
    query = text.strip().rstrip(";")
    ((tree,),) = engine.execute("SELECT json_serialize_sql($query)", {"query": query})
    parsed = json.loads(tree)
    if parsed.get("error") or len(parsed["statements"]) != 1:
        raise refused(key, "takes one SELECT", "make a table or a view of anything else")
    return query, parsed["statements"][0]


def view_of_query(engine: Engine, text: str, key: str) -> Relation:
    """A TEMP view of the query; raises PolicyError unless it is one SELECT without side effects that can be read."""
    compare_here(engine)
    query, tree = parse_select(engine, text, key)
    found = engine.execute(
        "SELECT lower(function_name) FROM duckdb_functions() WHERE has_side_effects OR function_type = 'table_macro'"
    )
    volatile = {name for (name,) in found}
    called = {name for is_table, name in calls_in(tree) if name in volatile or (is_table and name not in _TABLES)}
    if called:
        names = ", ".join(sorted(called))
        raise refused(key, f"calls {names}, which may have side effects, or give other rows when it is read again")
    try:
        return engine.view_of("query", query)
    except DatabaseError as error:
        reason = error.message.splitlines()[0].partition(": ")[2] or "it cannot be read"
        raise refused(key, f"cannot be read: {reason}") from None


def calls_in(tree: Any) -> Iterator[tuple[bool, str]]:
    """For every function that is called: True if it gives a table, and its name."""
    of_tables = []
    for node in _nodes_in(tree):
        if node.get("type") == "TABLE_FUNCTION":
            of_tables.append(node["function"])
            yield True, str(node["function"]["function_name"]).lower()
        elif node.get("class") == "FUNCTION" and not any(node is call for call in of_tables):
            yield False, str(node["function_name"]).lower()


def reads_as(tree: Any, name: str) -> bool:
    """True if the statement reads a table by that name alone, without a schema, and names none so itself (`WITH`)."""
    nodes = list(_nodes_in(tree))
    tables = [node for node in nodes if node.get("type") == "BASE_TABLE"]
    read = {table["table_name"].lower() for table in tables if not table["schema_name"]}
    made = {entry["key"].lower() for node in nodes for entry in node.get("cte_map", {}).get("map", [])}
    return name in read - made


def _nodes_in(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for part in parts:
        yield from _nodes_in(part)


def written_query(
    rows: str,
    casts: Mapping[str, str],
    texts: Mapping[str, str],
    known: Iterable[str],
) -> str:
    """A query as a policy has it, of a table, or of a query in brackets; empty if its rows are read as they are.

    `casts` are columns read as another type, `texts` what stands where a text is NULL, and `known` columns that are not
    NULL in any row.
    """

    def read(name: str) -> str:
        column = Identifier(name).sql()
        return f"TRY_CAST({column} AS {SqlType(casts[name]).sql()})" if name in casts else column

    columns = [f"{read(name)} AS {Identifier(name).sql()}" for name in casts]
    columns += [f"coalesce({read(name)}, {literal(text)}) AS {Identifier(name).sql()}" for name, text in texts.items()]
    where = [f"{read(name)} IS NOT NULL" for name in dict.fromkeys(known)]
    if not (columns or where):
        return ""
    replaced = f" REPLACE ({', '.join(columns)})" if columns else ""
    return f"SELECT *{replaced} FROM {rows}{' WHERE ' if where else ''}{' AND '.join(where)}"
