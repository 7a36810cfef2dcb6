"""A statement as another database writes it: its bound values as literals, its names quoted."""

from __future__ import annotations

import re
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from ldiv_db.database.templates import DIALECT, Statement

#: Databases that compare text as it is, so that `a` is not `A`.
DIALECTS = (
    "bigquery", "databricks", "duckdb", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino"
)  # fmt: skip
#: Names that are the same with and without quotes, up to how a database folds them.
_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def written(statement: Statement, dialect: str) -> str:
    """The statement in a dialect, on several lines; raises sqlglot's UnsupportedError for what it lacks.

    A plain name in lower case is quoted in upper case where the database folds names without quotes so.
    """
    tree = folded(bound(statement), dialect)
    return tree.sql(dialect=dialect, pretty=True, unsupported_level=sqlglot.ErrorLevel.RAISE)


def bound(statement: Statement) -> exp.Expr:
    """The statement with its bound values as literals."""
    tree = sqlglot.parse_one(statement.sql, read=DIALECT)
    return tree.transform(lambda node: _literal(node, statement.values))


def folded(tree: exp.Expr, dialect: str) -> exp.Expr:
    """The statement with plain quoted names as the database folds such names without quotes."""
    upper = Dialect.get_or_raise(dialect).normalization_strategy is NormalizationStrategy.UPPERCASE
    return tree.transform(_folded) if upper else tree


def _literal(node: exp.Expr, values: dict[str, Any]) -> exp.Expr:
    """The value of a parameter; any other node as it is."""
    return exp.convert(values[node.name]) if isinstance(node, exp.Placeholder | exp.Parameter) else node


def _folded(node: exp.Expr) -> exp.Expr:
    """A plain name in upper case; any other node as it is."""
    if isinstance(node, exp.Identifier) and node.quoted and _PLAIN.fullmatch(node.name):
        return exp.to_identifier(node.name.upper(), quoted=True)
    return node
