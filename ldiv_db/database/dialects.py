"""A statement as another database writes it: its bound values as literals, its names quoted."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import DIALECT, Statement

#: Databases that compare text as it is, so that `a` is not `A`.
DIALECTS = (
    "bigquery", "clickhouse", "databricks", "duckdb", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino"
)  # fmt: skip
#: Digits that a floating number keeps.
_EXACT_DIGITS = 15
#: Names that are the same with and without quotes, up to how a database folds them.
_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def written(statement: Statement, dialect: str) -> str:
    """The statement in a dialect, on several lines; raises PolicyError for what it lacks.

    A plain name in lower case is quoted in upper case where the database folds names without quotes so.
    """
    return text_of(folded(bound(statement, dialect), dialect), dialect)


def text_of(tree: exp.Expr, dialect: str, **how: Any) -> str:
    """The statement as text, on several lines; raises PolicyError for what the dialect lacks."""
    try:
        return tree.sql(dialect=dialect, pretty=True, unsupported_level=sqlglot.ErrorLevel.RAISE, **how)
    except sqlglot.UnsupportedError as error:
        what = f"{dialect} lacks what the statement needs: {str(error).splitlines()[0]}"
        raise PolicyError([Problem("dialect", what)]) from None


def bound(statement: Statement, dialect: str) -> exp.Expr:
    """The statement with its bound values as literals of a dialect."""
    tree = sqlglot.parse_one(statement.sql, read=DIALECT)
    filled = tree.transform(lambda node: _literal(node, statement.values, dialect))
    return filled.transform(_in_characters) if dialect == "clickhouse" else filled


def folded(tree: exp.Expr, dialect: str) -> exp.Expr:
    """The statement with plain quoted names as the database folds such names without quotes."""
    upper = Dialect.get_or_raise(dialect).normalization_strategy is NormalizationStrategy.UPPERCASE
    return tree.transform(_folded) if upper else tree


def _literal(node: exp.Expr, values: dict[str, Any], dialect: str) -> exp.Expr:
    """The value of a parameter; any other node as it is."""
    if not isinstance(node, exp.Placeholder | exp.Parameter):
        return node
    value = values[node.name]
    if isinstance(value, Decimal) and (dialect == "clickhouse" or len(value.as_tuple().digits) > _EXACT_DIGITS):
        return _exact(value, dialect)
    made = exp.convert(value)
    if isinstance(value, datetime) and value.tzinfo is None and value.microsecond:
        made.this.set("this", made.name.rstrip("0"))  # as databases write a time, for those that keep its text
    return made


def _exact(value: Decimal, dialect: str) -> exp.Expr:
    """A decimal that as a bare literal some databases would read as a floating number."""
    scale = max(0, -int(value.as_tuple().exponent))
    kind = "BIGNUMERIC" if dialect == "bigquery" else f"DECIMAL(38, {scale})"
    return exp.cast(exp.Literal.string(f"{value:f}"), kind, dialect=dialect)


def _in_characters(node: exp.Expr) -> exp.Expr:
    """ClickHouse's functions of characters, not bytes, and its days since 1900, not 1970."""
    if isinstance(node, exp.Substring):
        return exp.Anonymous(this="substringUTF8", expressions=[*node.iter_expressions()])
    if isinstance(node, exp.DateStrToDate):
        return exp.cast(node.this, "Date32", dialect="clickhouse")
    return node


def _folded(node: exp.Expr) -> exp.Expr:
    """A plain name in upper case; any other node as it is."""
    if isinstance(node, exp.Identifier) and node.quoted and _PLAIN.fullmatch(node.name):
        return exp.to_identifier(node.name.upper(), quoted=True)
    return node
