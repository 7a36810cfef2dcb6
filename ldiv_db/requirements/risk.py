"""Re-identification risk as people are given it, a number: translated into the size of classes that keeps it.

Who finds somebody's class picks their row with probability 1 / its size. As 1 / |G| <= t exactly if |G| >= ceil(1 / t),
a largest risk of t is k-anonymity, and among the people of a population k-map. The mean over all rows is classes /
rows. No class decides it alone: algorithms keep each class below it, and whoever judges a whole table the mean itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Attribute, Requirement
from ldiv_db.requirements.diversity import KAnonymity
from ldiv_db.requirements.guarantees import Distribution
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import DIGITS, LARGEST, rounded, share
from ldiv_db.requirements.populations import KMap, table
from ldiv_db.requirements.spec import RequirementSpec

RISK, MAX, AVERAGE, POPULATION = "risk", "max", "average", "population"
#: A risk above this is high where nobody says otherwise: that of a row of a class of five.
HIGH = Decimal("0.2")


def probability(argument: Any) -> Decimal | Fraction:
    """A decimal above 0, up to 1, or a fraction of whole numbers: `1/11`."""
    over, slash, under = str(argument).partition("/")
    if not slash:
        return share(argument)
    if not (over.strip().isdecimal() and under.strip().isdecimal() and 0 < int(over) <= int(under) <= LARGEST):
        raise ValueError(f"takes a number above 0, up to 1, or a fraction such as 1/11, not {argument!r}")
    return Fraction(int(over), int(under))


@dataclass(frozen=True)
class LargestRisk(KAnonymity):
    """The largest re-identification risk: `1 / |G| <= max` for every row, its class having `ceil(1 / max)` rows.

    `average` instead bounds the mean over all rows, and with a `population` it is the risk among its people. Given
    alone a number is `max`.
    """

    name = RISK
    reaches = "largest risk of a row"
    most_is_worst = True
    fields = {MAX: probability, AVERAGE: probability, POPULATION: table}  # noqa: RUF012
    optional = frozenset(fields)
    as_risk = True
    bounded: ClassVar[str] = MAX
    bound: Decimal | Fraction = Decimal(1)

    @classmethod
    def by_name(cls, argument: Any) -> dict[Any, Any]:
        given = super().by_name(argument if isinstance(argument, Mapping) else {MAX: argument})
        if (MAX in given) == (AVERAGE in given):
            raise ValueError("takes max or average: two bounds are two requirements")
        if AVERAGE in given and POPULATION in given:
            raise ValueError("takes no population beside average: max bounds the average too")
        return given

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        bound = values.get(MAX) or values[AVERAGE]
        k = math.ceil(1 / Fraction(bound))
        if POPULATION in values:
            return PopulationRisk(k, values[POPULATION], bound, others_known=others_known)
        return (MeanRisk if AVERAGE in values else cls)(k, bound, others_known=others_known)

    @property
    def template(self) -> str:
        return "requirements/k"

    @property
    def parameters(self) -> dict[str, Any]:
        return {self.bounded: _written(self.bound), "k": self.k} | self._common_parameters

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {self.bounded: Decimal(rounded(1 / distribution.rows, DIGITS, up=True))}


@dataclass(frozen=True)
class MeanRisk(LargestRisk, in_policy=False):
    """The mean re-identification risk over all rows: `classes / rows <= average`."""

    reaches = "mean risk of a row"
    bounded = AVERAGE

    def measure_table(self, steps: Steps, classes: Classes) -> Relation:
        over, under = Fraction(self.bound).as_integer_ratio()
        return self.measured(steps, classes, "requirements/mean_risk", over=over, under=under)


@dataclass(frozen=True)
class PopulationRisk(KMap, in_policy=False):
    """The largest re-identification risk among the people of a population: `1 / people <= max` for every class."""

    name = RISK
    reaches = "largest risk among the population"
    most_is_worst = as_risk = True
    bound: Decimal | Fraction = Decimal(1)

    @property
    def template(self) -> str:
        return "requirements/k_map"

    @property
    def parameters(self) -> dict[str, Any]:
        found = {MAX: _written(self.bound), "people": self.k, POPULATION: self.population}
        return found | self._common_parameters

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {MAX: Decimal(rounded(reached, DIGITS, up=True)), POPULATION: self.population} if reached else {}


def bounded_risk(specs: Iterable[RequirementSpec]) -> Decimal | None:
    """The smallest bound that they set on the largest risk of a row, no less than it is; None without one."""
    asked = [spec.by_name for spec in specs if spec.name == RISK and not spec.counts_people]
    bounds = [Fraction(probability(by_name[MAX])) for by_name in asked if MAX in by_name]
    return Decimal(rounded(float(min(bounds)), DIGITS, up=True)) if bounds else None


def _written(bound: Decimal | Fraction) -> Decimal | str:
    """The bound as a policy writes it."""
    return str(bound) if isinstance(bound, Fraction) else bound
