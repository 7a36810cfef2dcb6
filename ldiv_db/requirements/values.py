"""Values that a policy names, one by one or in categories: read as they are written, compared in their column's type.

What is written is a text, or None for NULL. In the type of a column `1.5` is 1.50 of a DECIMAL(4,2), and `010` is 10 of
an INTEGER but itself of a VARCHAR. A value is then the text that the database writes for it, which is what every
statement compares; so `in_type` is the only place where names and types meet.

Categories order values from most to least sensitive. Their weights are those of the (l,alpha) paper, Definition 3:
`weight(S_1) = 0`, `weight(S_k) = 1`, and the steps between neighbours stand to each other as `w_(i,i-1)`: all 1
(uniform), or `1/(i-1)^beta` (sensitivity). For four categories and beta = 2 that gives 0, 36/49, 45/49, 1; the paper
prints 0, 9/61, 45/61, 1, which does not satisfy its own equation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import accumulate
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step
from ldiv_db.database.names import SqlType
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: A value as it is named: its text, or None for NULL.
Named = str | None
#: Types whose values have several spellings; of the others (texts, enums, nested) the text is the value.
_SPELT = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|BOOLEAN|UUID|DATE|TIME(STAMP)?(_S|_MS|_NS)?"
    r"( WITH TIME ZONE)?)"
)
_EXACT = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL.*")
_NULLS = ("", "~", "null", "Null", "NULL")


def named_value(written: Any) -> Named:
    """The value that is written: a text, or what Python has for a number, a truth value or a time; None for NULL.

    Raises ValueError for what is no value.
    """
    if written is None or isinstance(written, str):
        return written
    if isinstance(written, bool):
        return str(written).lower()
    if isinstance(written, datetime):
        return written.isoformat(" ")
    if isinstance(written, bytes | Mapping | Sequence | Set):
        raise ValueError("names values: texts, numbers, times, true, false and null")
    return str(written)


def read_named(text: str) -> Named:
    """The value that a command line names: `null` is NULL, and what stands in double quotes is a text as it is."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return None if text in _NULLS[1:] else text


def shown_value(value: Named, reserved: Sequence[str] = ()) -> str:
    """The value as a command line names it; `reserved` words have a meaning of their own there."""
    if value is None:
        return "null"
    plain = value == value.strip() and value not in (*_NULLS, *reserved) and not value.startswith('"')
    return value if plain else '"{}"'.format(value.replace('"', '""'))


def in_order(value: Named) -> tuple[bool, str]:
    """Sorts named values, NULL first."""
    return value is not None, value or ""


def in_type(engine: Engine, kind: str, values: Sequence[Named]) -> tuple[dict[Named, Named], list[Named]]:
    """The text of each value in a column of the SQL type `kind`, and the values that are none of that type."""
    asked = [value for value in values if value is not None]
    if not asked or not _SPELT.fullmatch(kind):
        return {value: value for value in values}, []
    listed = engine.load("named", {"place": "INTEGER", "value": "VARCHAR"}, list(enumerate(asked)))
    rows = engine.rows("requirements/read_values", named=listed, type=SqlType(kind))
    engine.drop(listed)
    read = {asked[place]: text for place, text in rows if _is_same(kind, asked[place], text)}
    texts: dict[Named, Named] = {value: read.get(value, value) for value in asked}
    return texts | ({None: None} if None in values else {}), [value for value in asked if value not in read]


def folded(engine: Engine, texts: Mapping[Named, Named], same: Sequence[Step]) -> dict[Named, Named]:
    """The texts, by the names that stand for them, after the steps by which those of a column are the same."""
    asked = [(place, name, text) for place, (name, text) in enumerate(texts.items()) if text is not None]
    if not asked or not same:
        return dict(texts)
    rows = [(place, text) for place, _, text in asked]
    listed = engine.load("named", {"place": "INTEGER", "value": "VARCHAR"}, rows)
    found = dict(engine.rows("requirements/fold_named", named=listed, same=list(same)))
    engine.drop(listed)
    return dict(texts) | {name: found[place] for place, name, _ in asked}


def _is_same(kind: str, written: str, text: str | None) -> bool:
    """True if nothing was rounded away when the value was read."""
    if text is None or not _EXACT.fullmatch(kind):
        return text is not None
    try:
        return Decimal(written) == Decimal(text)
    except InvalidOperation:
        return False


def twice(values: Mapping[Named, Named]) -> list[tuple[Named, Named]]:
    """The pairs of names that stand for one value."""
    first: dict[Named, Named] = {}
    pairs = []
    for name, value in values.items():
        if value in first:
            pairs.append((first[value], name))
        first.setdefault(value, name)
    return pairs


def listing(values: Sequence[Named], most: int = 10) -> str:
    """The values in a message; the policy names them itself."""
    return ", ".join(
        [*("NULL" if value is None else repr(value) for value in values[:most]), *["…"] * (len(values) > most)]
    )


UNIFORM = "uniform"
#: Weights are integers over a common denominator that leaves room for sums over all rows.
_LARGEST_DENOMINATOR = 10**15
#: The most characters and the largest power of ten of a weight, and the most categories.
_LONGEST, _MOST = 40, 1_000


@dataclass(frozen=True)
class Categories:
    """Groups of sensitive values, as text, the most sensitive first, each with its weight in 0..1.

    NULL, unless it is listed, is of the most sensitive category.
    """

    groups: tuple[tuple[Named, ...], ...]
    weights: tuple[Fraction, ...]

    @property
    def null_category(self) -> int:
        """The number, from 1, of the category of NULL."""
        return next((number for number, group in enumerate(self.groups, 1) if None in group), 1)

    @property
    def denominator(self) -> int:
        """All weights are whole multiples of one over this."""
        return math.lcm(*(weight.denominator for weight in self.weights))

    @property
    def values(self) -> list[Named]:
        """All values that are listed."""
        return [value for group in self.groups for value in group]

    def written_as(self, texts: Mapping[Named, Named]) -> Categories:
        """The same categories with every value as `texts` has it."""
        return replace(self, groups=tuple(tuple(texts[value] for value in group) for group in self.groups))

    def members(self) -> list[tuple[str, int]]:
        """(value, category number from 1) of every value but NULL."""
        return [(value, i) for i, group in enumerate(self.groups, 1) for value in group if value is not None]

    @property
    def sizes(self) -> list[int]:
        """The number of values in each category, NULL counted wherever it belongs, since it may occur."""
        listed = any(None in group for group in self.groups)
        return [len(group) + (not listed and i == 0) for i, group in enumerate(self.groups)]

    def least_weight(self, values: int) -> Fraction:
        """The least that so many different values can weigh together."""
        each = sorted(w for w, size in zip(self.weights, self.sizes, strict=True) for _ in range(size))
        return sum(each[:values], Fraction(0))

    def least_spread(self, values: int) -> list[int]:
        """The number of values of each category, falling, when so many are of as few categories as can be."""
        left, taken = values, []
        for size in sorted(self.sizes, reverse=True):
            taken.append(min(size, left))
            left -= taken[-1]
        return [count for count in taken if count]


def make_categories(groups: Any, weights: Any = UNIFORM) -> Categories:
    """The categories as they are written: lists of values, and `uniform`, `{sensitivity: beta}` or a list of weights.

    Raises ValueError that says what is wrong.
    """
    if not isinstance(groups, Sequence) or isinstance(groups, str) or len(groups) < 2:
        raise ValueError("takes two lists of values or more, the most sensitive first")
    if len(groups) > _MOST:
        raise ValueError(f"takes up to {_MOST:,} categories")
    parts = [[group] if isinstance(group, str) else group for group in groups]
    if not all(isinstance(group, Sequence) and group for group in parts):
        raise ValueError("takes lists of values, none of them empty")
    named = tuple(tuple(named_value(value) for value in group) for group in parts)
    every = [value for group in named for value in group]
    if len(set(every)) < len(every):
        raise ValueError("has a value twice")
    return Categories(named, tuple(_weights(len(named), UNIFORM if weights is None else weights)))


def _weights(count: int, scheme: Any) -> list[Fraction]:
    if scheme == UNIFORM:
        return _from_steps([Fraction(1)] * (count - 1))
    if isinstance(scheme, Mapping) and set(scheme) == {"sensitivity"}:
        return _from_steps([_step(i, scheme["sensitivity"]) for i in range(1, count)])
    if isinstance(scheme, Sequence) and not isinstance(scheme, str):
        return _explicit(count, scheme)
    raise ValueError("weights are `uniform`, `{sensitivity: beta}` or a list")


def _from_steps(steps: Sequence[Fraction]) -> list[Fraction]:
    """0, then the running sums of the steps, scaled so that the last is 1."""
    sums = list(accumulate(steps, initial=Fraction(0)))
    exact = [part / sums[-1] for part in sums]
    if math.lcm(*(weight.denominator for weight in exact)) <= _LARGEST_DENOMINATOR:
        return exact
    return [Fraction(math.floor(weight * _LARGEST_DENOMINATOR), _LARGEST_DENOMINATOR) for weight in exact]


def _weight(text: str) -> Fraction:
    """The exact number, decimal or a fraction; raises ValueError or ArithmeticError for none, or an endless one."""
    if len(text) > _LONGEST or ("e" in text.lower() and abs(Decimal(text).adjusted()) > _LONGEST):
        raise ValueError(text)  # a fraction of so many digits is not even looked at
    return Fraction(text)


def _step(number: int, beta: Any) -> Fraction:
    if isinstance(beta, bool) or not isinstance(beta, int | float) or not 1 <= beta <= 100:
        raise ValueError("sensitivity takes a number from 1 to 100")
    return Fraction(1, number ** int(beta)) if float(beta).is_integer() else Fraction(number**-beta)


def _explicit(count: int, scheme: Sequence[Any]) -> list[Fraction]:
    try:
        weights = [_weight(str(weight)) for weight in scheme]
    except (ValueError, ArithmeticError):
        raise ValueError("weights are numbers") from None
    if len(weights) != count:
        raise ValueError(f"has {count} categories and {len(weights)} weights")
    if weights != sorted(weights) or weights[0] < 0 or weights[-1] > 1:
        raise ValueError("weights rise from 0 to 1")
    if math.lcm(*(weight.denominator for weight in weights)) > _LARGEST_DENOMINATOR:
        raise ValueError("weights take at most 15 digits")
    return weights


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute by its policy, with the order of its values if they have one: numbers and times do."""

    name: str
    categories: Categories | None = None
    taxonomy: Taxonomy | None = None
    is_number: bool = False
    is_time: bool = False
    #: The SQL type of its column.
    type: str = "VARCHAR"
    #: The values of which nothing is promised, as the column writes them.
    harmless: tuple[Named, ...] = ()
    #: The steps after which its texts are one.
    same: tuple[Step, ...] = ()
    #: Whether a row has a set of values.
    of_sets: bool = False


#: Stands where a table has no sensitive attribute: without a name, and of one value, so that a class is its rows.
ROWS_ALONE = Attribute("")
