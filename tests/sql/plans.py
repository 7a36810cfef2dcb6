"""Joins whose work grows with the product of two tables' rows: in plans of statements, and in what makes such plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ldiv_db.database.templates import Statement

#: Operators that try every pair of rows.
LOOPS = {"BLOCKWISE_NL_JOIN", "NESTED_LOOP_JOIN", "CROSS_PRODUCT"}
#: Where rows come from that stand in no table, and one row of all.
FEW = {"COLUMN_DATA_SCAN", "DUMMY_SCAN", "RANGE", "GENERATE_SERIES", "EMPTY_RESULT", "UNGROUPED_AGGREGATE"}
#: With these a few rows are joined as many would be, and what they happen to hold decides nothing.
SETTINGS = {
    "nested_loop_join_threshold": "0",
    "merge_join_threshold": "0",
    "disabled_optimizers": "'statistics_propagation'",
}


def loops_in(connection: Any, statement: Statement) -> set[str]:
    """The operators of the statement's plan that try every pair of rows of two tables."""
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in SETTINGS.items()))
    ((_, plans),) = connection.execute(f"EXPLAIN (FORMAT JSON) {statement.sql}", statement.values or None).fetchall()
    connection.execute("; ".join(f"RESET {name}" for name in SETTINGS))
    nodes = [node for plan in json.loads(plans) for node in _nodes(plan)]
    return {node["name"] for node in nodes if node["name"] in LOOPS and not any(map(_is_small, node["children"]))}


def one_sided(tree: exp.Expr) -> list[str]:
    """The conditions of outer joins that ask nothing of the joined table: versions of DuckDB nest loops for them."""
    return [
        condition.sql()
        for join in tree.find_all(exp.Join)
        if join.side and (on := join.args.get("on"))
        for condition in (on.flatten() if isinstance(on, exp.And) else [on])
        if join.alias_or_name not in {column.table for column in condition.find_all(exp.Column)}
    ]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _nodes(child)


def _is_small(node: dict[str, Any]) -> bool:
    """Whether it has one row, or those that are written down."""
    return node["name"] in FEW or (bool(node["children"]) and all(map(_is_small, node["children"])))
