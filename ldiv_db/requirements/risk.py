"""Requirements on the risk of being found, among the people of a population or the rows of a table.

The people of a class are those whose quasi-identifiers its labels cover. Classes that are regions of the domain, as
under a global recoding, part the people; those of local recodings may share some. Of two classes as one the labels
cover at least the people of both: k-map survives that whatever the classes are, delta-presence where no person is of
two classes, and where what is published covers nobody else.

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

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.diversity import KAnonymity
from ldiv_db.requirements.guarantees import Distribution, Guarantee
from ldiv_db.requirements.histogram import Classes, suppress_if_few
from ldiv_db.requirements.parameters import DIGITS, LARGEST, distance, rounded, share, whole
from ldiv_db.requirements.spec import RequirementSpec
from ldiv_db.requirements.values import Attribute


def table(argument: Any) -> str:
    """The name of a table or file."""
    if not isinstance(argument, str) or not argument.strip():
        why = ": a population's size says nothing about any class" if isinstance(argument, int | float) else ""
        raise ValueError(f"takes the name of a table or file, not {argument!r}{why}")
    return argument


class PopulationRequirement(Requirement, in_policy=False):
    """Common part of the requirements on the people of a population whom a class covers."""

    rows_only = True
    on_people = "counts"
    population: str

    @property
    def named_population(self) -> str:
        return self.population

    def unique_class_size(self) -> None:
        return None

    def readings(self, classes: Classes) -> list[Classes]:
        """The classes of people alone: labels cover as many people whatever rows they have."""
        return [classes]

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        return self.measured(steps, classes, self.template, people=classes.people_of(self.population, self.label))


@dataclass(frozen=True)
class KMap(PopulationRequirement):
    """k-map: a class covers at least `k` people of the population (Sweeney 2002).

    How many of them are in the table does not matter. It survives the union of any two classes.
    """

    name = "k_map"
    reaches = "people of the population"
    fields = {"k": whole, "population": table}  # noqa: RUF012
    #: Whether what a class reaches is the risk of a row.
    as_risk: ClassVar[bool] = False
    k: int
    population: str

    def promise(self) -> Guarantee:
        return Guarantee(people=((self.population, self.k),))

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"k": int(reached), "population": self.population} if reached else {}


@dataclass(frozen=True)
class DeltaPresence(PopulationRequirement):
    """delta-presence: of the people of a class at least the share `min` and at most `max` are in the table.

    A person's presence is the rows of their class over its people (Nergiz, Atzori and Clifton 2007); a class with more
    rows than people has presence above 1. Who is of several classes may be a row of each, so that no class tells their
    presence: classes that share people are not judged.

    With a `min` above 0 nobody of the population may be of no class. It survives the union of classes that part the
    people: the share lies between those of the two.
    """

    name = "delta_presence"
    reaches = "presence"
    most_is_worst = counts_unjudged_rows = parts_people = True
    fields = {"max": distance, "population": table, "min": distance}  # noqa: RUF012
    optional = frozenset({"min"})
    max: Decimal
    population: str
    min: Decimal = Decimal(0)

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        found = cls(**values, others_known=others_known)
        if found.min > found.max:
            raise ValueError(f"takes a min up to max, not {found.min} and {found.max}")
        if others_known:  # fewer rows of as many people: it would hold where it fails without
            raise ValueError("takes no others_known: a population does not tell sensitive values")
        return found

    def promise(self) -> Guarantee:
        return Guarantee(presence=((self.population, Fraction(self.max)),))

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        if reached is None or reached > 1 or self.min:  # of a least presence people of no class are not told
            return {}
        return {"max": Decimal(rounded(reached, DIGITS, up=True)), "population": self.population}

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return suppress_if_few(engine, classes, measures, 0)

    def params(self, template: str) -> dict[str, Any]:
        least, most = Fraction(self.min), Fraction(self.max)
        unit = math.lcm(least.denominator, most.denominator)
        return {"least": int(least * unit), "most": int(most * unit), "unit": unit}


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
    measured_as = "k"
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
    def parameters(self) -> dict[str, Any]:
        return {self.bounded: _written(self.bound), "k": self.k} | self._common_parameters

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {self.bounded: Decimal(rounded(1 / distribution.rows, DIGITS, up=True))}


@dataclass(frozen=True)
class MeanRisk(LargestRisk, in_policy=False):
    """The mean re-identification risk over all rows: `classes / rows <= average`."""

    reaches = "mean risk of a row"
    bounded = AVERAGE

    @property
    def of_classes(self) -> Requirement:
        return LargestRisk(self.k, self.bound, others_known=self.others_known)

    def promise(self) -> Guarantee:
        """Nothing of any class: a small one may stand beside large ones."""
        return Guarantee()

    def measure_table(self, steps: Steps, classes: Classes) -> Relation:
        over, under = Fraction(self.bound).as_integer_ratio()
        return self.measured(steps, classes, "requirements/mean_risk", over=over, under=under)


@dataclass(frozen=True)
class PopulationRisk(KMap, in_policy=False):
    """The largest re-identification risk among the people of a population: `1 / people <= max` for every class."""

    name = RISK
    reaches = "largest risk among the population"
    measured_as = "k_map"
    most_is_worst = as_risk = True
    bound: Decimal | Fraction = Decimal(1)

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
    return str(bound) if isinstance(bound, Fraction) else bound
