"""Requirements on a class among the people of a population, a table of all who could be in it.

The people of a class are those whose quasi-identifiers its labels cover. Classes that are regions of the domain, as
under a global recoding, part the people; those of local recodings may share some. Of two classes as one the labels
cover at least the people of both: k-map survives that whatever the classes are, delta-presence where no person is of
two classes, and where what is published covers nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Attribute, Requirement
from ldiv_db.requirements.guarantees import Distribution, Guarantee
from ldiv_db.requirements.histogram import Classes, suppress_if_few
from ldiv_db.requirements.parameters import DIGITS, distance, rounded, whole


def table(argument: Any) -> str:
    """The name of a table or file."""
    if not isinstance(argument, str) or not argument.strip():
        why = ": a population's size says nothing about any class" if isinstance(argument, int | float) else ""
        raise ValueError(f"takes the name of a table or file, not {argument!r}{why}")
    return argument


class PopulationRequirement(Requirement, in_policy=False):
    """Common part of the requirements on the people of a population whom a class covers."""

    rows_only = True
    population: str

    @property
    def named_population(self) -> str:
        return self.population

    def unique_class_size(self) -> None:
        return None

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
