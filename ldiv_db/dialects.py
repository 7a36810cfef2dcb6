"""A statement as another database writes it: its bound values as literals, its names quoted."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from ldiv_db.templates import DIALECT, Statement

#: Databases that compare text as it is, so that `a` is not `A`.
DIALECTS = (
    "bigquery", "databricks", "duckdb", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino"
)  # fmt: skip


def written(statement: Statement, dialect: str) -> str:
    """The statement in a dialect, on several lines; raises sqlglot's UnsupportedError for what it lacks."""
    tree = sqlglot.parse_one(statement.sql, read=DIALECT)
    filled = tree.transform(lambda node: _literal(node, statement.values))
    return filled.sql(dialect=dialect, pretty=True, unsupported_level=sqlglot.ErrorLevel.RAISE)


def _literal(node: exp.Expr, values: dict[str, Any]) -> exp.Expr:
    """The value of a parameter; any other node as it is."""
    return exp.convert(values[node.name]) if isinstance(node, exp.Placeholder | exp.Parameter) else node
