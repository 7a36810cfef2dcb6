"""A question as a SELECT: its conditions as a formula without NOT, its groups and its figures.

A WHERE keeps the rows of which it is true. With NOT pushed down to conditions, AND and OR ask of each condition alone
whether it is true, so that the third truth value, NULL, is no case of its own: of a NULL only IS NULL is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import sqlglot
from sqlglot import exp

from ldiv_db.database.errors import refused
from ldiv_db.database.names import DIALECT, Identifier, NamedAfter, Value

KEY = "query"
#: What can be asked.
EXAMPLE = "SELECT sex, count(*) FROM patients WHERE age BETWEEN 30 AND 40 GROUP BY ALL"
Sign = Literal["=", "<>", "<", "<=", ">", ">=", "like", "not like", "null", "not null"]
Constant = str | int | float | Decimal | bool | date | datetime
_SIGNS: dict[type[exp.Expr], Sign] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.Like: "like",
}  # fmt: skip
_OPPOSITE: dict[Sign, Sign] = {
    "=": "<>", "<": ">=", "<=": ">", "like": "not like", "null": "not null",
}  # fmt: skip
_OPPOSITE |= {other: sign for sign, other in _OPPOSITE.items()}
_TURNED: dict[Sign, Sign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Clauses that are answered, by what sqlglot calls them.
_CLAUSES = {"expressions", "from", "from_", "where", "group"}
FUNCTIONS = ("count", "sum", "avg", "median")
_FIGURES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Median: "median"}
_KINDS: tuple[tuple[type, str], ...] = ((bool, "truth"), (str, "text"), (date, "time"))
_UNITS = ("year", "quarter", "month", "week", "day", "hour")


@dataclass(frozen=True)
class Condition:
    """A column compared with a value; `=` holds of any of several, `<>` of none of them.

    `sure` and `may` are the columns, 1 or 0, of whether it holds surely of a row, and may.
    """

    column: str
    sign: Sign
    values: tuple[Constant, ...] = ()
    number: int = 0

    sure = NamedAfter("sure_{0.number}")
    may = NamedAfter("may_{0.number}")

    @property
    def kind(self) -> str:
        """What its values are: `number`, `text`, `time` or `truth`; `text` if there are none. Raises PolicyError."""
        kinds = {next((kind for known, kind in _KINDS if isinstance(one, known)), "number") for one in self.values}
        if len(kinds) > 1:
            raise refused(KEY, f"{self.column} is compared with values of several types")
        return next(iter(kinds), "text")

    @property
    def told(self) -> list[Value]:
        """Its values as templates take them."""
        return [*map(Value, self.values)]

    @property
    def fixed(self) -> Value:
        """What a text must begin with to be LIKE its value."""
        return Value(re.split("[%_]", str(self.values[0]))[0] if self.values else "")

    def negated(self) -> Condition:
        """What is true where this is false."""
        return replace(self, sign=_OPPOSITE[self.sign])


@dataclass(frozen=True)
class Formula:
    """Conditions, and formulas, all of which hold, or one; nothing of which is all holds always."""

    all: bool = True
    parts: tuple[Condition | Formula, ...] = ()

    def conditions(self) -> Iterator[Condition]:
        """The conditions in it."""
        for part in self.parts:
            yield from part.conditions() if isinstance(part, Formula) else [part]


@dataclass(frozen=True)
class Grouping:
    """A column by its values; by `floor` of parts of a width, perhaps times it; in buckets; or by stretches of time."""

    column: str
    kind: Literal["value", "floor", "bucket", "trunc"] = "value"
    width: float = 0
    low: float = 0
    buckets: int = 0
    times: bool = False
    unit: str = ""
    #: Its number among the groups of its question.
    place: int = field(default=1, compare=False)

    grouped = NamedAfter("g{0.place}")
    known = NamedAfter("k{0.place}")

    @property
    def high(self) -> float:
        """Where its buckets end."""
        return self.low + self.width * self.buckets


@dataclass(frozen=True)
class Asked:
    """A figure: a function of a column, or of rows, of all rows of which its `formula` holds.

    `source` is what has the numbers that it sums up: labels, a box of equal rows, or nothing where it counts.
    """

    function: str
    column: str | None = None
    place: int = field(default=0, compare=False)
    formula: Formula = field(default=Formula(), compare=False)
    source: Literal["labels", "box", ""] = field(default="", compare=False)
    is_time: bool = field(default=False, compare=False)

    own = NamedAfter("{0.column}")
    number = NamedAfter("x{0.place}")
    low = NamedAfter("low_{0.place}")
    high = NamedAfter("high_{0.place}")
    mid = NamedAfter("mid_{0.place}")
    share = NamedAfter("share_{0.place}")
    sure = NamedAfter("is_sure_{0.place}")
    may = NamedAfter("may_be_{0.place}")

    @property
    def code(self) -> int:
        """The number of its function."""
        return FUNCTIONS.index(self.function)


@dataclass(frozen=True)
class Question:
    """The formula of the rows that are asked about, and of each column of the answer its name and what it is."""

    where: Formula = field(default_factory=Formula)
    items: tuple[tuple[str, Grouping | Asked], ...] = ()

    @property
    def groups(self) -> list[Grouping]:
        return [item for _, item in self.items if isinstance(item, Grouping)]

    @property
    def figures(self) -> list[Asked]:
        return [item for _, item in self.items if isinstance(item, Asked)]

    @property
    def columns(self) -> list[str]:
        """The columns that it names, each once."""
        named = [*(c.column for c in self.where.conditions()), *(item.column for _, item in self.items if item.column)]
        return list({name.lower(): name for name in reversed(named)}.values())[::-1]

    def conditions_of(self, column: str) -> list[Condition]:
        """What it asks of each value of a column."""
        listed = [*self.where.conditions(), *(one for figure in self.figures for one in figure.formula.conditions())]
        return list({one.number: one for one in listed if one.column.lower() == column.lower()}.values())


def read_question(text: str) -> Question:
    """The question that a SELECT asks; raises PolicyError that names what cannot be answered."""
    try:
        trees = sqlglot.parse(text, read=DIALECT)
    except sqlglot.errors.SqlglotError as error:
        raise refused(KEY, f"cannot be read: {str(error).splitlines()[0]}", EXAMPLE) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select):
        raise refused(KEY, "takes one SELECT", EXAMPLE)
    tree, numbers = trees[0], itertools.count(1)
    _refuse_clauses(tree)
    condition = tree.args.get("where")
    where = _formula(condition.this, False, numbers) if condition else Formula()
    places = {Grouping: itertools.count(1), Asked: itertools.count(1)}
    listed = [(_name_of(item), _item(item.unalias())) for item in tree.expressions]
    items = [(name, replace(item, place=next(places[type(item)]))) for name, item in listed]
    question = Question(where, tuple((name, _of_rows(item, where, numbers)) for name, item in items))
    if not question.figures:
        raise refused(KEY, "asks for no figure: count(*), sum(x), avg(x) or median(x)", EXAMPLE)
    if len({name.lower() for name, _ in items}) < len(items):
        raise refused(KEY, "has two columns of one name", "name them: count(*) AS people")
    if len({group.column.lower() for group in question.groups}) < len(question.groups):
        raise refused(KEY, "groups by a column twice", "ask twice")
    _refuse_groups(tree, question)
    return question


def _of_rows(item: Grouping | Asked, where: Formula, numbers: Iterator[int]) -> Grouping | Asked:
    """A figure with the formula of the rows that it is of: those without a value of its column are in none."""
    if isinstance(item, Grouping):
        return item
    filled = [Condition(item.column, "not null", (), next(numbers))] if item.column else []
    return replace(item, formula=Formula(True, (where, *filled)))


def count_by(columns: Sequence[str]) -> str:
    """The question how many rows each combination of values of the columns has."""
    names = ", ".join(Identifier(column).sql() for column in columns)
    return f"SELECT {names}, count(*) FROM source GROUP BY {names}"


def _refuse_clauses(tree: exp.Select) -> None:
    for key in (key for key, clause in tree.args.items() if clause and key not in _CLAUSES):
        name = "ORDER BY" if key == "order" else key.rstrip("_s").upper()
        raise refused(KEY, f"{name} is not answered", EXAMPLE)
    source = tree.args.get("from_") or tree.args.get("from")
    if source is None or not isinstance(source.this, exp.Table) or not isinstance(source.this.this, exp.Identifier):
        raise refused(KEY, "FROM takes the name of one table", EXAMPLE)
    for kind, name in ((exp.Subquery, "a subquery"), (exp.Select, "a subquery"), (exp.Window, "a window")):
        if any(found is not tree for found in tree.find_all(kind)):
            raise refused(KEY, f"{name} is not answered", EXAMPLE)


def _refuse_groups(tree: exp.Select, question: Question) -> None:
    """Raise PolicyError if GROUP BY does not list the columns of the answer that are no figures."""
    group = tree.args.get("group")
    if group is None and question.groups:
        raise refused(KEY, "has columns beside figures and no GROUP BY", "GROUP BY ALL")
    if group is None or group.args.get("all"):
        return
    if any(group.args.get(key) for key in ("grouping_sets", "rollup", "cube")):
        raise refused(KEY, "GROUPING SETS, ROLLUP and CUBE are not answered", "GROUP BY ALL")
    named = {name.lower(): item for name, item in question.items}

    def meant(part: exp.Expr) -> Any:
        if isinstance(part, exp.Literal) and part.is_int and 0 < int(part.name) <= len(question.items):
            return question.items[int(part.name) - 1][1]
        own = named.get(part.name.lower()) if isinstance(part, exp.Column) else None
        return own if isinstance(own, Grouping) else _item(part)

    if {*map(meant, group.expressions)} != {*question.groups}:
        raise refused(KEY, "GROUP BY does not list the columns of the answer that are no figures", "GROUP BY ALL")


def _name_of(item: exp.Expr) -> str:
    return item.alias or (item.name if isinstance(item, exp.Column) else item.sql(dialect=DIALECT).lower())


def _item(tree: exp.Expr) -> Grouping | Asked:
    function = _FIGURES.get(type(tree))
    if function:
        if isinstance(tree.this, exp.Star) and function == "count":
            return Asked("count")
        if isinstance(tree.this, exp.Column) and not tree.expressions:
            return Asked(function, tree.this.name)
        raise refused(KEY, f"{tree.sql(DIALECT)} is not answered: {function} takes a column", EXAMPLE)
    return _grouping(tree)


def _grouping(tree: exp.Expr) -> Grouping:
    if isinstance(tree, exp.Column):
        return Grouping(tree.name)
    if isinstance(tree, exp.Mul) and isinstance(tree.this, exp.Floor):
        found = _grouping(tree.this)
        if float(_constant(tree.expression)) == found.width:
            return replace(found, times=True)
    if isinstance(tree, exp.Floor) and isinstance(divided := tree.this, exp.Div | exp.Column):
        is_whole = isinstance(divided, exp.Column)
        column, width = (divided, 1.0) if is_whole else (divided.this, float(_constant(divided.expression)))
        if isinstance(column, exp.Column) and width > 0:
            return Grouping(column.name, "floor", width)
    if isinstance(tree, exp.WidthBucket) and isinstance(tree.this, exp.Column):
        low, high, number = (_constant(tree.args[key]) for key in ("min_value", "max_value", "num_buckets"))
        if float(high) > float(low) and int(number) > 0:
            step = (float(high) - float(low)) / int(number)
            return Grouping(tree.this.name, "bucket", step, float(low), int(number))
    if isinstance(tree, exp.TimestampTrunc | exp.DateTrunc) and isinstance(tree.this, exp.Column):
        unit = str(tree.args["unit"].name).lower()
        if unit in _UNITS:
            return Grouping(tree.this.name, "trunc", unit=unit)
    what = f"{tree.sql(DIALECT)} is not answered"
    raise refused(KEY, what, "a column, floor(x / 10) * 10, width_bucket(x, 0, 100, 10) or date_trunc('month', x)")


def _formula(tree: exp.Expr, negated: bool, numbers: Iterator[int]) -> Formula:
    """The formula of a condition, or of its opposite; conditions are numbered."""
    if isinstance(tree, exp.Paren):
        return _formula(tree.this, negated, numbers)
    if isinstance(tree, exp.Not):
        return _formula(tree.this, not negated, numbers)
    if isinstance(tree, exp.And | exp.Or):
        parts = tuple(_formula(part, negated, numbers) for part in (tree.this, tree.expression))
        return Formula(isinstance(tree, exp.And) is not negated, parts)
    found = [replace(one.negated() if negated else one, number=next(numbers)) for one in _positive(tree)]
    return Formula(not negated, tuple(found))


def _positive(tree: exp.Expr) -> tuple[Condition, ...]:
    """The conditions that together are one of the query."""
    column = tree.this
    if isinstance(tree, exp.Column):
        return (Condition(tree.name, "=", (True,)),)
    if isinstance(tree, exp.Between) and isinstance(column, exp.Column):
        ends = (_constant(tree.args["low"]),), (_constant(tree.args["high"]),)
        return Condition(column.name, ">=", ends[0]), Condition(column.name, "<=", ends[1])
    if isinstance(tree, exp.In) and isinstance(column, exp.Column) and tree.expressions:
        return (Condition(column.name, "=", tuple(map(_constant, tree.expressions))),)
    if isinstance(tree, exp.Is) and isinstance(column, exp.Column) and isinstance(tree.expression, exp.Null):
        return (Condition(column.name, "null"),)
    sign = _SIGNS.get(type(tree))
    if sign and isinstance(tree.expression, exp.Column) and sign != "like":
        column, sign, other = tree.expression, _TURNED.get(sign, sign), tree.this
    else:
        other = tree.expression if sign else None
    if sign and isinstance(column, exp.Column) and not isinstance(other, exp.Column):
        found = Condition(column.name, sign, (_constant(other),))
        if sign == "like" and not isinstance(found.values[0], str):
            raise refused(KEY, f"{tree.sql(DIALECT)}: LIKE takes a text")
        return (found.negated(),) if tree.args.get("negate") else (found,)
    what = f"{tree.sql(DIALECT)} is not answered"
    raise refused(KEY, what, "a condition compares a column with a value: =, <>, <, IN, BETWEEN, LIKE, IS NULL")


def _constant(tree: exp.Expr | None) -> Any:
    """The value that is written there: a text, a number, a truth value, a date or a time."""
    if isinstance(tree, exp.Neg):
        return -_constant(tree.this)
    if isinstance(tree, exp.Literal):
        if tree.is_string:
            return tree.name
        return int(tree.name) if tree.is_int else Decimal(tree.name)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal) and tree.this.is_string:
        read = {"DATE": date.fromisoformat, "TIMESTAMP": datetime.fromisoformat}.get(tree.to.sql(DIALECT))
        try:
            if read:
                return read(tree.this.name)
        except ValueError:
            raise refused(KEY, f"{tree.sql(DIALECT)} is no date or time") from None
    if isinstance(tree, exp.Null):
        raise refused(KEY, "nothing is equal to NULL, or is not", "IS NULL")
    said = "nothing" if tree is None else tree.sql(DIALECT)
    raise refused(KEY, f"{said} is not answered where a value stands", "a text, a number, DATE '2024-01-31' or TRUE")
