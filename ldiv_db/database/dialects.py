"""Statements as other databases take them: bound values as literals, every name quoted, every type their own.

What a dialect calls otherwise is written so; what sqlglot leaves as our own database has it is written here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from ldiv_db.database.errors import refused
from ldiv_db.database.names import DIALECT, Identifier, Relation
from ldiv_db.database.templates import Statement
from ldiv_db.database.traits_there import TRAITS

#: Digits that a floating number keeps.
_EXACT_DIGITS = 15
#: Names that are the same with and without quotes, up to how a database folds them.
_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def written(statement: Statement, dialect: str) -> str:
    """The statement on several lines, plain names folded as the dialect does; raises PolicyError for what it lacks."""
    return text_of(folded(bound(statement, dialect), dialect), dialect)


def text_of(tree: exp.Expr, dialect: str, **how: Any) -> str:
    """The statement as text, on several lines; raises PolicyError for what the dialect lacks."""
    try:
        return tree.sql(dialect=dialect, pretty=True, unsupported_level=sqlglot.ErrorLevel.RAISE, **how)
    except sqlglot.UnsupportedError as error:
        what = f"{dialect} lacks what the statement needs: {str(error).splitlines()[0]}"
        raise refused("dialect", what) from None


def bound(statement: Statement, dialect: str) -> exp.Expr:
    """The statement with its bound values as literals of a dialect."""
    tree = sqlglot.parse_one(statement.sql, read=DIALECT)
    filled = tree.transform(lambda node: _literal(_collated(node, dialect), statement.values, dialect))
    return filled.transform(_in_characters) if dialect == "clickhouse" else filled


def folded(tree: exp.Expr, dialect: str) -> exp.Expr:
    """The statement with plain names in quotes, as the database folds such names without quotes.

    Names without quotes are folded too: they would be quoted as they are later on, and name nothing that is there.
    """
    upper = Dialect.get_or_raise(dialect).normalization_strategy is NormalizationStrategy.UPPERCASE
    return tree.transform(_folded) if upper else tree


def _collated(node: exp.Expr, dialect: str) -> exp.Expr:
    """The dialect's collation by bytes; text as its column compares it where none is known."""
    if not isinstance(node, exp.Collate):
        return node
    name = TRAITS[dialect].by_bytes
    return exp.Collate(this=node.this, expression=exp.to_identifier(name, quoted=True)) if name else node.this


def _literal(node: exp.Expr, values: dict[str, Any], dialect: str) -> exp.Expr:
    if not isinstance(node, exp.Placeholder | exp.Parameter):
        return node
    value = values[node.name]
    if isinstance(value, Decimal) and (dialect == "clickhouse" or len(value.as_tuple().digits) > _EXACT_DIGITS):
        scale = max(0, -int(value.as_tuple().exponent))  # a bare literal some databases would read as floating
        kind = "BIGNUMERIC" if dialect == "bigquery" else f"DECIMAL(38, {scale})"
        return exp.cast(exp.Literal.string(f"{value:f}"), kind, dialect=dialect)
    made = exp.convert(value)
    if isinstance(value, datetime) and value.tzinfo is None and value.microsecond:
        made.this.set("this", made.name.rstrip("0"))  # as databases write a time, for those that keep its text
    return made


def _in_characters(node: exp.Expr) -> exp.Expr:
    """ClickHouse's functions of characters, not bytes, and its days since 1900, not 1970."""
    if isinstance(node, exp.Substring):
        return exp.Anonymous(this="substringUTF8", expressions=[*node.iter_expressions()])
    if isinstance(node, exp.DateStrToDate):
        return exp.cast(node.this, "Date32", dialect="clickhouse")
    return node


def _folded(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Identifier) and _PLAIN.fullmatch(node.name):
        return exp.to_identifier(node.name.upper(), quoted=True)
    return node


def written_tree(tree: exp.Expr, dialect: str, margin: str = "") -> str:
    """A statement whose values are bound in a dialect, its lines behind a margin; raises PolicyError for what it lacks.

    A statement with a name or text of several lines has no margin, which would be within them as well.
    """
    for change in (_seconds, _plain_text, _typed, _hashed, _content, _nulls_as_they_come):
        tree = tree.transform(change, dialect)
    return _text(folded(tree, dialect), dialect, margin)


def keep_columns(tree: exp.Expr, readers: Sequence[exp.Expr]) -> None:
    """Leave out the columns of a step that none of its readers names; one stays, and all where a star may read them."""
    stars = (star for reader in readers for star in reader.find_all(exp.Star))
    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or tree.is_star:
        return
    if not all(isinstance(star.parent, exp.Count) for star in stars):
        return
    named = {column.name for reader in readers for column in reader.find_all(exp.Column)}
    kept = [column for column in tree.expressions if column.alias_or_name in named]
    tree.set("expressions", kept or tree.expressions[:1])


def listed_rows(columns: Mapping[str, str], rows: Sequence[Sequence[Any]], dialect: str, margin: str = "") -> str:
    """A SELECT of rows that are written out; `columns` is name to the type in our own database."""
    cells = [[exp.convert(value) for value in row] for row in rows] or [[exp.null() for _ in columns]]
    tree: exp.Select | exp.Union
    if dialect == "redshift":  # has no VALUES but in INSERT
        selects = [_row(columns, row) for row in cells]
        tree = selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False)
    else:
        names = [f"column{i}" for i in range(1, len(columns) + 1)]
        tree = _row(columns, [exp.column(name, "t") for name in names]).from_(_values(cells, names, dialect))
    if not rows:
        tree = exp.select("*").from_(tree.subquery("t")).where("1 = 0")
    return _text(folded(tree.transform(_typed, dialect), dialect), dialect, margin)


def without_rows(columns: Mapping[str, Identifier | str], source: Relation, dialect: str) -> str:
    """A SELECT of no rows: `columns` is name to a column of the source, or to one of our types, of which it is NULL."""
    told = ((c.sql() if isinstance(c, Identifier) else f"CAST(NULL AS {c})", n) for n, c in columns.items())
    tree = exp.select(*(f"{value} AS {Identifier(name).sql()}" for value, name in told), dialect=DIALECT)
    return written_tree(tree.from_(source.sql(), dialect=DIALECT).where("1 = 0"), dialect)


def _values(cells: Sequence[Sequence[exp.Expr]], names: Sequence[str], dialect: str) -> exp.Expr:
    """The table `t` of rows that are written out, its columns by name; SQLite names them so by itself."""
    if dialect != "clickhouse":
        return exp.values([tuple(row) for row in cells], alias="t", columns=[] if dialect == "sqlite" else names)
    types = exp.Literal.string(", ".join(f"{name} Nullable(String)" for name in names))
    texts = [
        exp.Tuple(expressions=[c if isinstance(c, exp.Null) else exp.Literal.string(str(c.to_py())) for c in row])
        for row in cells
    ]
    return exp.alias_(exp.Table(this=exp.Anonymous(this="VALUES", expressions=[types, *texts])), "t", table=True)


def written_name(name: str, dialect: str) -> str:
    """The name of a step, quoted."""
    return folded(exp.to_identifier(name, quoted=True), dialect).sql(dialect=dialect)


def written_table(table: Relation, dialect: str) -> str:
    """The name of a table, every part of it quoted."""
    return ".".join(written_name(part, dialect) for part in table.parts)


@functools.cache
def written_type(kind: str, dialect: str) -> str:
    """The dialect's word for a type of our own database."""
    return exp.DataType.build(kind, dialect=DIALECT).transform(_typed, dialect).sql(dialect=dialect)


def _text(tree: exp.Expr, dialect: str, margin: str) -> str:
    text = text_of(tree, dialect, identify=True)
    has_breaks = any("\n" in node.name for node in tree.find_all(exp.Literal, exp.Identifier))
    return text if has_breaks else margin + text.replace("\n", f"\n{margin}")


def _row(columns: Mapping[str, str], cells: Sequence[exp.Expr]) -> exp.Select:
    return exp.select(
        *(
            exp.alias_(exp.cast(cell, exp.DataType.build(kind, dialect=DIALECT)), name, quoted=True)
            for cell, (name, kind) in zip(cells, columns.items(), strict=True)
        )
    )


def _plain_text(node: exp.Expr, dialect: str) -> exp.Expr:
    """Without the branch for points in time, whose texts only our own database is asked for; the order of bytes."""
    if dialect != DIALECT and isinstance(node, exp.Case) and node.find(exp.Typeof):
        plain: exp.Expr = node.args["default"].transform(_plain_text, dialect)
        return plain
    if isinstance(node, exp.Encode) and dialect == "postgres":
        return exp.func("convert_to", node.this, exp.Literal.string("UTF8"))
    return node.this if isinstance(node, exp.Encode) else node


def _placed(node: exp.Expr) -> exp.Expr | None:
    """The time whose seconds since 1970 a node is; None of any other node."""
    if not isinstance(node, exp.Mul) or not node.find(exp.Anonymous):
        return None
    value: exp.Expr = next(node.find_all(exp.Case)).args["default"].this
    return value


def _seconds(node: exp.Expr, dialect: str) -> exp.Expr:
    """The seconds since 1970 of a day: of other times only our own database is asked."""
    value = None if dialect == DIALECT else _placed(node)
    if value is None:
        return node
    column = value.sql(DIALECT)
    if dialect == "sqlite":
        days = f"julianday({column}) - julianday('1970-01-01')"
    else:
        days = f"DATE_DIFF('day', DATE '1970-01-01', CAST({column} AS DATE))"
    return sqlglot.parse_one(f"CAST({days} AS BIGINT) * 86400", read=DIALECT)


def seconds_of_instants(tree: exp.Expr) -> exp.Expr:
    """The statement with the seconds since 1970 of points in time as PostgreSQL has them: exact from version 14 on.

    It reads the column itself, so that one with a zone is not shown in that of the session; infinity lies nowhere.
    """

    def told(node: exp.Expr) -> exp.Expr:
        value = _placed(node)
        if value is None:
            return node
        seconds = exp.Extract(this=exp.var("epoch"), expression=value.copy())
        return exp.Case().when(exp.Anonymous(this="isfinite", expressions=[value.copy()]), seconds)

    return tree.transform(told)


def _typed(node: exp.Expr, dialect: str) -> exp.Expr:
    """The type of wide whole numbers, of exact decimals and of times, as the dialect has it."""
    if not isinstance(node, exp.DataType):
        return node
    traits = TRAITS[dialect]
    if traits.types and (kind := traits.types.get(node.sql(dialect=DIALECT))):
        return exp.DataType.build(kind, dialect=dialect)
    if node.is_type("int128") or (dialect == "bigquery" and node.is_type("decimal")):  # has 9 digits after the point
        return exp.DataType.build(traits.huge, dialect=dialect)
    return node


def _nulls_as_they_come(node: exp.Expr, dialect: str) -> exp.Expr:
    """Running sums in an order without NULL, or in which NULL is near nothing: BigQuery orders NULL in them its way."""
    window = node.find_ancestor(exp.Window) if dialect == "bigquery" and isinstance(node, exp.Ordered) else None
    if window and isinstance(window.this, exp.Sum):
        return exp.Ordered(this=node.this, desc=node.args.get("desc"), nulls_first=not node.args.get("desc"))
    return node


def _content(node: exp.Expr, dialect: str) -> exp.Expr:
    """The warehouse's own hash of rows in place of `ldiv_hash`."""
    if not isinstance(node, exp.Anonymous) or node.name != "ldiv_hash":
        return node
    columns = ", ".join(column.sql(dialect=dialect) for column in node.expressions)
    return exp.maybe_parse(TRAITS[dialect].hashed.format(columns), dialect=dialect)


def _hashed(node: exp.Expr, dialect: str) -> exp.Expr:
    """IS NOT DISTINCT FROM as equality of lists, which NULL is equal in; without lists, of texts and of being NULL."""
    if not TRAITS[dialect].hashes or not isinstance(node, exp.NullSafeEQ):
        return node
    if dialect == "postgres":  # a number's text tells 1.0 from 1.00, which are one
        return exp.EQ(this=exp.array(node.left), expression=exp.array(node.right))
    texts = [exp.func("coalesce", exp.cast(side, "text"), exp.Literal.string("")) for side in (node.left, node.right)]
    nulls = [exp.paren(exp.Is(this=side.copy(), expression=exp.null())) for side in (node.left, node.right)]
    return exp.and_(exp.EQ(this=texts[0], expression=texts[1]), exp.EQ(this=nulls[0], expression=nulls[1]))
