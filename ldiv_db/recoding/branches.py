"""The columns of a recoding as a SELECT writes them: each label's rules as a branch of a CASE, in a dialect.

A run takes values for their text in DuckDB. Other databases write numbers and times otherwise (`1.5` for `1.50`), so
there such values are compared as what they are; of types whose text alone would do, a column is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

from ldiv_db.database.catalog import INSTANT, without_members
from ldiv_db.database.errors import PolicyError, refused
from ldiv_db.database.names import DIALECT, Identifier, NamedAfter, SqlType, Value
from ldiv_db.recoding.rules import GlobalRecoding, RecodedColumn, Rule

#: Types whose values all databases write alike, as text.
_WRITTEN_ALIKE = re.compile(r"VARCHAR|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|UUID|ENUM.*")
FLOATING = ("FLOAT", "DOUBLE")
#: The text of days and times; a year of more digits, or infinity, no other database reads.
_DAY, _SECONDS = r"\d{4}-\d\d-\d\d", r" \d\d:\d\d:\d\d(\.\d{0,5}[1-9])?"
_TEXTS = {"BOOLEAN": "true|false", "DATE": _DAY, "TIMESTAMP": _DAY + _SECONDS}
_ENDLESS = re.compile(r"[-+]?(inf|infinity|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class Rules:
    """Neighbouring rules that one branch of a CASE expresses."""

    kind: str
    lows: tuple[Value, ...]
    low: Value
    high: Value
    label: Value

    @property
    def length(self) -> int:
        return len(str(self.low.value))


@dataclass(frozen=True)
class WrittenColumn:
    """A column of the SELECT: its name, its alias within, and for a quasi-identifier its rules.

    `as_it_is` says whether its values are compared as they are, `is_text` whether that is their text.
    """

    name: Identifier
    alias: Identifier
    is_text: bool
    as_it_is: bool
    is_float: bool
    nulls: bool
    keeps_null: bool
    rules: tuple[Rules, ...]
    #: The type that it is published in, if not its own.
    cast: SqlType | None = None

    #: The column that is true where the value is NULL, which is published as NULL.
    missing = NamedAfter("{0.alias.name}_null")


def written_columns(recoding: GlobalRecoding, role: str, letter: str, dialect: str) -> list[WrittenColumn]:
    """The columns of a role, in order; raises PolicyError for one that the dialect cannot tell the values of."""
    mine = [column for column in recoding.columns if column.role == role]
    return [
        WrittenColumn(
            Identifier(column.name),
            Identifier(f"{letter}{number}"),
            column.type == "VARCHAR",
            column.type == "VARCHAR" or is_typed(column, dialect),
            column.type in FLOATING,
            column.nulls,
            any(rule.kind == "null" and rule.label is None for rule in column.rules),
            tuple(_branches(column, dialect)),
            None if (kind := without_members(column.type, "VARCHAR")) == column.type else SqlType(kind),
        )
        for number, column in enumerate(mine, 1)
    ]


def is_typed(column: RecodedColumn, dialect: str) -> bool:
    """True if the dialect compares the column's values by their own type, not as text."""
    return dialect != DIALECT and _WRITTEN_ALIKE.fullmatch(column.type) is None


def own_value(column: RecodedColumn, text: str, dialect: str) -> Value | None:
    """The value of a text, as the dialect compares it with the column's; None if no value is written so."""
    found = list(_values(column, [text], dialect))
    return Value(found[0]) if found else None


def _branches(column: RecodedColumn, dialect: str) -> Iterator[Rules]:
    """The branches of the CASE of a column: values that stay as they are, then one a label or range."""
    typed = is_typed(column, dialect)
    if typed and column.type != "DATE" and any(rule.kind == "prefix" for rule in column.rules):
        raise _untold(column, dialect)
    same = [rule for rule in column.rules if rule.kind == "value" and rule.low == rule.label and not typed]
    if same:
        yield _branch(column, [replace(rule, kind="same") for rule in same], dialect)
    others = [rule for rule in column.rules if rule not in same]
    for (kind, _), rules in groupby(others, key=lambda rule: (rule.kind, rule.label)):
        if kind == "value":
            branch = _branch(column, list(rules), dialect)
            if branch.lows:
                yield branch
        else:
            yield from (_branch(column, [rule], dialect) for rule in rules)


def _branch(column: RecodedColumn, rules: Sequence[Rule], dialect: str) -> Rules:
    first = rules[0]
    kind = "range" if first.kind == "dates" else first.kind
    values = [str(rule.low) for rule in rules if rule.kind in ("same", "value")]
    lows = tuple(Value(value) for value in _values(column, values, dialect))
    low, high = (Value(_bound(first.kind, text, column.type)) for text in (first.low, first.high))
    return Rules(kind, lows, low, high, Value(first.label))


def _bound(kind: str, text: str | None, of: str) -> Any:
    """A bound as it is compared with a type: a day (of instants its beginning in UTC), a number, or text."""
    if text is None or kind not in ("dates", "range"):
        return text
    if kind == "dates":
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if of == INSTANT else date.fromisoformat(text)
    if of in FLOATING:
        return float(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number


# -- values by their text ----------------------------------------------------------------------------


def _values(column: RecodedColumn, texts: Iterable[str], dialect: str) -> Iterator[Any]:
    """The values that DuckDB writes so; raises PolicyError for a type, or a value, that the dialect may not have."""
    if not is_typed(column, dialect):
        yield from texts
        return
    for text in texts:
        if _ENDLESS.fullmatch(text) and column.type not in _TEXTS:
            raise _untold(column, dialect)
        value = _value(column, text, dialect)
        if value is not None:
            yield value


def _value(column: RecodedColumn, text: str, dialect: str) -> Any:
    """The value of a text; None if DuckDB writes none of the type so, as a leaf of a taxonomy may be."""
    try:
        if column.type == "DOUBLE":
            value = float(text)
            return value if repr(value) == text else None
        if column.type.startswith("DECIMAL"):
            scale = int(re.findall(r"\d+", column.type)[1])
            return Decimal(text) if re.fullmatch(rf"-?\d+\.\d{{{scale}}}" if scale else r"-?\d+", text) else None
        if column.type not in _TEXTS:
            raise _untold(column, dialect)
        if not re.fullmatch(_TEXTS[column.type], text):
            return None
        reads = {"BOOLEAN": "true".__eq__, "DATE": date.fromisoformat, "TIMESTAMP": datetime.fromisoformat}
        return reads[column.type](text)
    except (ValueError, ArithmeticError):
        return None


def _untold(column: RecodedColumn, dialect: str) -> PolicyError:
    what = f"{column.name} is {column.type}, whose values {dialect} may write otherwise than the run's labels"
    return refused("--dialect", what, "generalise the column by ranges, or cast it in the source")
