"""Requirements on numbers and times, of which near ones are as good as one: (k,e)-anonymity and (epsilon,m)-anonymity.

Distances are exact: a number, or of times a stretch such as `30 days`.

A value has a `place`: a number is its decimal as it is written (of a FLOAT or DOUBLE the shortest that stands for it),
up to 18 digits after the point; a time is its seconds since 1970, to the microsecond. Places are compared exactly. NULL
has none: it is a value of its own, equal to NULL and near nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.guarantees import Distribution, Guarantee
from ldiv_db.requirements.histogram import Classes, suppress_if_few
from ldiv_db.requirements.parameters import DIGITS, decimal, plain_decimal, rounded, whole
from ldiv_db.requirements.values import Attribute

#: The units of a stretch of time in seconds, largest first; months and years have no one length.
SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
#: No two values that have a place are farther apart than this.
FARTHEST = 10**18
_STRETCH = re.compile(r"\s*([-+.\deE]+)\s*([a-z]+)\s*")


@dataclass(frozen=True)
class Distance:
    """A distance of two numbers, or `by_time`, in seconds."""

    amount: Decimal
    by_time: bool = False

    @property
    def plain(self) -> int | float | str:
        """The distance as JSON has it: a number, or a text with the unit."""
        if self.by_time:
            return str(self)
        return int(self.amount) if self.amount == int(self.amount) else float(self.amount)

    def __str__(self) -> str:
        if not self.by_time:
            return plain_decimal(self.amount)
        unit = next((unit for unit, length in SECONDS.items() if self.amount % length == 0), "seconds")
        count = self.amount / SECONDS[unit]
        return f"{plain_decimal(count)} {unit[:-1] if count == 1 else unit}"


def distance_of(argument: Any) -> Distance:
    """A distance above 0, as it is written: `1000`, or `30 days`; raises ValueError."""
    stretch = _STRETCH.fullmatch(argument) if isinstance(argument, str) else None
    if stretch is None:
        return Distance(decimal(argument, Decimal(1).scaleb(-DIGITS), Decimal(FARTHEST)))
    count, unit = stretch.groups()
    length = SECONDS.get(unit if unit.endswith("s") else f"{unit}s")
    if length is None:
        raise ValueError(f"takes a stretch of {', '.join(SECONDS)}, not {argument!r}")
    seconds = decimal(count, Decimal(1).scaleb(-DIGITS), Decimal(FARTHEST)) * length
    if seconds > FARTHEST:
        raise ValueError(f"takes up to {FARTHEST:,} seconds, not {argument!r}")
    return Distance(seconds, by_time=True)


#: Shares come as doubles: that of one in three is a third.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class PlacedRequirement(Requirement, in_policy=False):
    """A requirement on the distance of values, whose places are computed once for all classes."""

    uses_distances = True
    places_values = True
    #: The parameter that is a distance.
    distance: ClassVar[str]

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        asked: Distance = values[cls.distance]
        if not (attribute.is_number or attribute.is_time):
            raise ValueError("needs a sensitive column of numbers or times")
        if asked.by_time and not attribute.is_time:
            raise ValueError(f"{cls.distance} takes a number, as its column does, not {asked}")
        if attribute.is_time and not asked.by_time:
            raise ValueError(f"{cls.distance} takes a stretch of time, such as 30 days, not {asked}")
        return cls(**values, others_known=others_known)

    @property
    def is_time(self) -> bool:
        """True if the values are times; they are numbers otherwise."""
        return self._asked.by_time

    @property
    def _asked(self) -> Distance:
        return getattr(self, self.distance)  # type: ignore[no-any-return]

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        places = steps.materialise("places", "requirements/place_values", totals=classes.totals, is_time=self.is_time)
        steps.refuse_any(self._unplaced, "requirements/count_unplaced", places=places)
        measures = self.measured(steps, classes, self.template, places=places)
        steps.drop(places)
        return measures

    def _unplaced(self, found: str) -> Problem:
        what = f"{found} of the sensitive values cannot be compared: too large, infinite or NaN"
        return Problem(f"require.{self.name}", what)

    def params(self, template: str) -> dict[str, Any]:
        return super().params(template) | {self.distance: self._asked.amount}

    def unique_class_size(self) -> None:
        """None: different values may be as near as they like."""
        return None


@dataclass(frozen=True)
class Range(PlacedRequirement):
    """(k,e)-anonymity: at least `k` different values, of which the largest is `e` or more above the smallest.

    Zhang, Koudas, Srivastava & Yu (2007). NULL is one of the different values, and no end of the range.
    """

    name = "range"
    reaches = "largest less smallest value"
    distance = "e"
    more_is_better = True
    bounds_below = {"values": "k"}  # noqa: RUF012
    fields = {"k": whole, "e": distance_of}  # noqa: RUF012 - typed in the base class
    k: int
    e: Distance

    def promise(self) -> Guarantee:
        return Guarantee(values=self.k)

    @property
    def least_rows(self) -> int:
        return self.k

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        span = rounded(min(float(self.e.amount), reached or 0), 9)
        return f"k: {min(self.k, distribution.distinct)}, e: {span}{' seconds' if self.is_time else ''}"

    def nearest_at(self, size: int) -> str:
        return f"k: {min(self.k, size)}, and no e"


@dataclass(frozen=True)
class Proximity(PlacedRequirement):
    """(epsilon,m)-anonymity: around no row do more than 1/`m` of the rows have a value within `epsilon` of its own.

    Li, Tao & Xiao (2008), the absolute form: the neighbourhood of a row is [v - epsilon, v + epsilon] and has the row
    itself. The union of two good classes may be bad: a value of one may lie between two of the other that are not near
    each other.
    """

    name = "proximity"
    reaches = "largest share near a value"
    distance = "epsilon"
    most_is_worst = bounds_shares = True
    monotone = False
    fields = {"epsilon": distance_of, "m": whole}  # noqa: RUF012
    epsilon: Distance
    m: int

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return suppress_if_few(engine, classes, measures, self.m)

    def promise(self) -> Guarantee:
        """A value is near itself: no share is above 1/m."""
        return Guarantee(size=self.m, values=self.m, share=Fraction(1, self.m))

    @property
    def least_rows(self) -> int:
        return self.m

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"m: {int(1 / reached + TOLERANCE) if reached else self.m}"

    def nearest_at(self, size: int) -> str:
        return f"m: {min(self.m, size)}, and no epsilon"
