"""Suggestions of what to promise of a sensitive column, so that every row can be published, and of harmless values.

No value in more than a third of a class, or in more than half, where frequencies allow that. A value that more than
half of the rows have cannot be bounded so: no value may then be more certain than that one and a third of what it lacks
to certainty, and a class has three values. The values of a class, of numbers and times, keep a distance: 20.10 and
20.15 are one to a reader.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.measuring.generalisations import FOLDED
from ldiv_db.measuring.profile import SensitiveProfile
from ldiv_db.requirements import Distribution
from ldiv_db.requirements.nearness import SECONDS
from ldiv_db.requirements.reading import LikelySets
from ldiv_db.requirements.risk import HIGH

#: Numbers of fewer different values are taken for codes.
_MANY_VALUES = 20
#: A class spans this part of where most values lie, or if they are all one, of where all do.
_PART, _PART_OF_ALL = 10, 100
#: No distances are asked of larger numbers.
_LARGEST = 1e15
_DAY, _MICROSECONDS = 86_400, 1_000_000


def distance_between(engine: Engine, table: Table, column: Column, distinct: int) -> Any:
    """The distance that a class's values should span, as a requirement has it: a number, or a stretch of time.

    None for what is no number or time, for codes, and where some values have no place on a line.
    """
    if not (column.is_number or column.is_time) or distinct < _MANY_VALUES:
        return None
    found = engine.record("measuring/profile/measure_spread", source=table, column=column.name, kind=column.kind)
    low, high, smallest, largest = (float(found[key] or 0) for key in ("low", "high", "smallest", "largest"))
    if found["unplaced"] or not all(abs(end) < _LARGEST or column.is_time for end in (smallest, largest)):
        return None
    distance = (high - low) / _PART if high > low else (largest - smallest) / _PART_OF_ALL
    if not math.isfinite(distance) or distance <= 0:
        return None
    return _stretch(column, distance) if column.is_time else _one_digit(distance)


def _one_digit(distance: float) -> int | float:
    exponent = math.floor(math.log10(distance))
    digit = math.floor(distance / 10.0**exponent)
    return digit * 10**exponent if exponent >= 0 else round(digit * 10.0**exponent, -exponent)


def _stretch(column: Column, distance: float) -> str | None:
    """The stretch of time in days, or less if it is shorter, one digit of it; None if it is shorter than a second."""
    seconds = distance * _DAY if column.kind == "date" else distance / _MICROSECONDS
    for unit, length in SECONDS.items():
        if unit != "weeks" and seconds >= length and (unit == "days" or column.kind != "date"):
            return f"{_one_digit(math.floor(seconds / length))} {unit}"
    return None


#: The l that is asked for where the data allow it, and the class size, whose risk no report calls high.
MODEST_L, MODEST_K = 3, math.ceil(1 / HIGH)


#: What is known of whom an attacker seeks: all rows, or one beside those of the table of people.
Known = Literal["all", 1]


@dataclass(frozen=True)
class Most:
    """The l and the class size of people that a policy of several tables asks for at most, and what is `known`."""

    l: int = MODEST_L
    k: int = MODEST_K
    known: Known = "all"

    def of(self, required: dict[str, Any]) -> dict[str, Any]:
        """A requirement that asks for no more."""
        ((name, asked),) = required.items()
        if name == ALPHA_K:
            return {name: {**asked, "k": min(self.k, asked["k"])}}
        return {name: min(self.l, asked)}


MOST = Most()
#: A value that this share of the rows has, and twice as many as any other, may be harmless, as one may that reads like
#: these words.
LARGE_SHARE = Fraction(1, 4)
_WORDS = (
    "", "0", "0.0", "0.00", "-", "--", "?", "n/a", "n.a.", "na", "nan", "nil", "no", "none", "null", "false", "nothing",
    "not in universe", "not applicable", "not specified", "not stated", "healthy", "no finding", "unknown",
)  # fmt: skip
#: Values that are looked at.
_MOST = 20
#: What asks of numbers and times how far they are apart.
RANGE = "range"
#: What bounds shares of values, also where classes have one row of a person, and what besides says how large these are.
APART, ALPHA_K = "frequency", "alpha_k"


@dataclass(frozen=True)
class Frequent:
    """A value that many rows have, as its column writes it; None is NULL. `is_word` of one that reads like nothing."""

    value: str | None
    rows: int
    is_word: bool


@dataclass(frozen=True)
class Harmless:
    """Values that may be harmless, their rows, and the largest l that all the rows allow the other values then.

    That is None where it was not counted.
    """

    values: tuple[str | None, ...]
    rows: int
    largest_l: int | None


@dataclass(frozen=True)
class Suggestion:
    """The requirements on a sensitive column, how a policy describes it, and which of its values may be harmless.

    `judged` are its values as they are then told apart, `largest_l` is what all rows can meet; `is_apart` says that no
    class has two rows of one person.
    """

    column: str
    require: list[dict[str, Any]]
    judged: Distribution
    settings: dict[str, Any] | None
    harmless: Harmless | None
    largest_l: int
    is_apart: bool = False
    #: The sets of members that its values look like.
    sets: LikelySets | None = None

    def apart(self, l: int, largest_l: int) -> Suggestion:
        """The same with rows of one person kept apart, whose rows allow an l up to so many."""
        largest = min(self.largest_l, largest_l)
        return replace(self, require=[{APART: l}], harmless=None, largest_l=largest, is_apart=True)


def keeps_apart(suggestions: Sequence[Suggestion]) -> bool:
    """True if rows of one person are to be kept apart."""
    return any(suggestion.is_apart for suggestion in suggestions)


def suggest(engine: Engine, table: Table, column: SensitiveProfile) -> Suggestion:
    """Suggests what to require of a sensitive column of at least two values; every row can then be published."""
    judged, distinct, settings = column.distribution, column.distribution.distinct, None
    if column.folded is not None and column.folded.distinct >= 2:
        judged, settings = column.folded, {"same": list(FOLDED)}
    with read_exactly(engine, table) as read:
        distance = distance_between(engine, read, column.column, distinct)
        harmless = _harmless(column.distribution, _frequent(engine, read, column))
    apart = [] if distance is None else [{RANGE: {"k": min(MODEST_L, distinct), "e": distance}}]
    if harmless and settings:
        harmless = replace(harmless, largest_l=None)  # counted by spellings
    required = required_of(judged.distinct, judged.counts[0], judged.rows) + apart
    return Suggestion(column.name, required, judged, settings, harmless, judged.largest_l, sets=column.sets)


def _frequent(engine: Engine, table: Table, column: SensitiveProfile) -> list[Frequent]:
    """The values that large shares of the rows have, and those that read like nothing, most frequent first."""
    words = engine.load("words", {"word": "VARCHAR"}, [(word,) for word in _WORDS])
    least = math.ceil(LARGE_SHARE * column.distribution.rows)
    params = {"source": table, "words": words, "column": column.name, "least": least, "most": _MOST}
    rows = engine.rows("measuring/profile/list_frequent_values", **params)
    engine.drop(words)
    return [Frequent(*row) for row in rows]


def required_of(values: int, most: int, rows: int) -> list[dict[str, Any]]:
    """What can be required of a column of so many values, the most frequent of which has `most` of the rows.

    Or of so many people, `most` of whom have one value; fewer than all have any.
    """
    if rows // most >= 2:
        return [{APART: min(MODEST_L, rows // most)}]
    # A share a third of the way from the largest to certainty, rounded up to two digits of what is left.
    left = (1 - Fraction(most, rows)) * Fraction(2, 3)
    digits = min(9, max(2, 1 - math.floor(math.log10(left))))
    alpha = float(round(1 - Fraction(math.floor(left * 10**digits), 10**digits), digits))
    return [{"distinct": min(MODEST_L, values)}, {ALPHA_K: {"alpha": alpha, "k": min(MODEST_K, rows)}}]


def _harmless(distribution: Distribution, frequent: Sequence[Frequent]) -> Harmless | None:
    """Those of the values that read like nothing, or one that stands out; None if no other value is left.

    It is the one that stands out where the others allow no larger l.
    """
    chosen = [value for value in frequent if value.is_word]
    first, second, *_ = [*distribution.counts, 0, 0]
    if first >= LARGE_SHARE * sum(distribution.counts) and first >= 2 * second and frequent[0] not in chosen:
        chosen = list(frequent[:1])
    others = Counter(distribution.counts) - Counter(value.rows for value in chosen)
    if not chosen or not others:
        return None
    rows = sum(value.rows for value in chosen)
    return Harmless(tuple(value.value for value in chosen), rows, distribution.rows // max(others))


def veiled(suggestion: Suggestion) -> Suggestion:
    """The suggestion without values of the data, for which an ellipsis stands."""
    if suggestion.harmless is None:
        return suggestion
    values = dict.fromkeys(None if value is None else "…" for value in suggestion.harmless.values)
    return replace(suggestion, harmless=replace(suggestion.harmless, values=tuple(values)))
