"""What a class may add to an attacker's belief in a value: its share of the class against its share of the table.

beta-likeness (Cao and Karras, VLDB 2012) bounds by what part a share may exceed the table's, whatever that is: rare
values gain no more than frequent ones. delta-disclosure privacy (Brickell and Shmatikov, KDD 2008) bounds the ratio
both ways. NULL is a value. Both survive the union of classes, whose shares lie between those of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.core import mend_if_few
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import in_lowest_units, positive

BASIC, ENHANCED = "basic", "enhanced"
TWO, E = "2", "e"


def kind(argument: Any) -> str:
    """Which of the two definitions of beta-likeness."""
    if argument not in (BASIC, ENHANCED):
        raise ValueError(f"takes {BASIC} or {ENHANCED}, not {argument!r}")
    return str(argument)


def logarithm(argument: Any) -> str:
    """The base of a logarithm, 2 or e."""
    if str(argument) not in (TWO, E):
        raise ValueError(f"takes the base of a logarithm, {TWO} or {E}, not {argument!r}")
    return str(argument)


class OfGain(Requirement, in_policy=False):
    """What requirements on the shares of a class against those of the table have in common."""

    most_is_worst = True
    of_whole = True

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return mend_if_few(engine, classes, measures, 0)

    def unique_class_size(self) -> None:
        return None


@dataclass(frozen=True)
class BetaLikeness(OfGain):
    """beta-likeness: no value's share q of a class exceeds its share p of the table by more than beta p.

    Basic: `(q - p) / p <= beta` where q > p (Cao and Karras 2012). Enhanced, the default: by no more
    than `min(beta, -ln p) p`, so that no share of a class comes to 1 where that of the table is not.
    """

    name = "beta_likeness"
    reaches = "gain over the table's share"
    fields = {"beta": positive, "kind": kind}  # noqa: RUF012
    optional = frozenset({"kind"})
    beta: Decimal
    kind: str = ENHANCED

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        return steps.materialise(
            self.name,
            "requirements/beta_likeness",
            histogram=classes.histogram,
            totals=classes.totals,
            total=classes.all_rows,
            enhanced=self.kind == ENHANCED,
            **in_lowest_units("beta", self.beta),
        )

    def promise(self) -> Guarantee:
        return Guarantee(ratio=1 + Fraction(self.beta), logarithmic=self.kind == ENHANCED)


@dataclass(frozen=True)
class DeltaDisclosure(OfGain):
    """delta-disclosure privacy: `|log(q / p)| < delta` for the share q of a class of every value of the table.

    Every class has every value, then, and in about the share p that it has of the table (Brickell and Shmatikov
    2008). The logarithm is to the base 2 if nothing else is said.
    """

    name = "delta_disclosure"
    reaches = "largest |log(q / p)|"
    fields = {"delta": positive, "log": logarithm}  # noqa: RUF012
    optional = frozenset({"log"})
    delta: Decimal
    log: str = TWO

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        return steps.materialise(
            self.name,
            "requirements/delta_disclosure",
            histogram=classes.histogram,
            totals=classes.totals,
            total=classes.all_rows,
            delta=Value(self.delta),
            binary=self.log == TWO,
        )

    def promise(self) -> Guarantee:
        base = 2.0 if self.log == TWO else math.e
        try:
            return Guarantee(ratio=Fraction(math.nextafter(base ** float(self.delta), math.inf)))
        except OverflowError:
            return Guarantee()
