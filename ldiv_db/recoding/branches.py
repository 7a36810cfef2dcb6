"""The counts of equal rows that a plan needs, as one SELECT that runs where the rows are.

The columns of a recoding as a SELECT writes them: each label's rules as a branch of a CASE, in a dialect.

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

from ldiv_db.database.catalog import INSTANT, named_table, without_members
from ldiv_db.database.counted import ColumnThere
from ldiv_db.database.dialects import written
from ldiv_db.database.errors import PolicyError, Problem, nearest, refuse
from ldiv_db.database.templates import DIALECT, FileRelation, Identifier, NamedAfter, Relation, SqlType, Value, render
from ldiv_db.database.traits_there import DIALECTS
from ldiv_db.policy.document import Policy
from ldiv_db.policy.rules import WEIGHT_RULES, broken
from ldiv_db.policy.sources import PolicySource
from ldiv_db.recoding.rules import GlobalRecoding, RecodedColumn, Rule

#: The template of the counts.
TEMPLATE = "database/count_combinations"
#: The name of the column of counts where the policy gives none.
DEFAULT_WEIGHT = "n"


def counting_sql(policy: Policy, dialect: str = "duckdb", source: str | None = None) -> str:
    """The SELECT in a dialect; `source` names the table there, by default that of the policy.

    Raises PolicyError for a policy that no counts serve, a source that is no table, and a dialect that is none.
    """
    unknown = [] if dialect in DIALECTS else [dialect]
    problems = [Problem("dialect", f"no dialect {name!r}", nearest(name, DIALECTS)) for name in unknown]
    problems += _problems(policy, source)
    refuse(problems)
    return written(render(TEMPLATE, counting_params(policy, source)), dialect)


def counting_params(policy: Policy, source: str | None = None) -> dict[str, Any]:
    """Parameters of the template of the counts."""
    return {
        "source": _table(source or policy.source),
        "columns": [ColumnThere(Identifier(name), Identifier(name)) for name in counted_columns(policy)],
        "weight": Identifier(weight_of(policy)),
        "counted": None,
    }


def weight_of(policy: Policy) -> str:
    """The name of the column of counts."""
    return policy.weight or DEFAULT_WEIGHT


def counted_columns(policy: Policy) -> list[str]:
    """The columns that rows are counted by: quasi-identifiers, sensitive ones, those that say whose a row is or which,
    and that which a class column is.
    """
    label = str(policy.algorithm.options.get("class") or "").lower()
    labels = [name for name in policy.keep if name.lower() == label]
    told = [policy.individual.column if policy.individual else None, policy.key]
    return [*policy.quasi_identifiers, *policy.sensitive, *(name for name in told if name), *labels]


def _problems(policy: Policy, source: str | None) -> Iterator[Problem]:
    if policy.weight is not None and source is None:
        what = f"{policy.source} holds the counts already"
        yield Problem("source", what, "name the table of the rows beside the policy: --source")
    weight = weight_of(policy)
    yield from broken(policy.model_copy(update={"weight": weight}), WEIGHT_RULES)
    if weight.lower() in map(str.lower, counted_columns(policy)):
        yield Problem("weight", f"{weight} is a column of the policy already", "give the counts another name")


def _table(source: PolicySource) -> Relation:
    is_file = isinstance(source, str) and not source.startswith('"') and FileRelation.of(source) is not None
    if not isinstance(source, str) or is_file:
        what = f"{source} is {'a file' if is_file else 'no table'}"
        raise PolicyError([Problem("source", what, "name the table of the rows beside the policy: --source")])
    return named_table(source, "source")


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
    def length(self) -> Value:
        return Value(len(str(self.low.value)))


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
    return PolicyError([Problem("--dialect", what, "generalise the column by ranges, or cast it in the source")])
