"""Gains of attacks, and the most that is promised of each.

A requirement limits a class: its least size, its least number of different values (or categories), the largest share of
a value, and so on. `Bounds` hold for every class within those limits, whoever made it; where nothing follows there is
no bound. A gain is compared with its bound in whole numbers and fractions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ldiv_db.database.errors import in_unit
from ldiv_db.requirements.guarantees import ONE, Guarantee

#: Means are sums of whole units, so that they do not depend on the order of rows.
UNIT = 10**9


@dataclass(frozen=True)
class Gain:
    """The best gain of an attacker, and the most that is promised; None where nothing is.

    `measure` says what the gain is: a share of rows or people, a probability, or a ratio of two. `holds` says
    whether the promise is kept, None where there is none.
    """

    measure: str
    gain: float | None
    bound: float | None
    holds: bool | None

    def as_dict(self) -> dict[str, Any]:
        return {"measure": self.measure, "gain": self.gain, "bound": self.bound, "holds": self.holds}


def gain_of(measure: str, gain: Fraction | None, bound: Fraction | None, kept: bool = True) -> Gain:
    """The gain as a report has it; a promise is kept unless the gain exceeds its bound, or is not `kept` otherwise."""
    holds = None if bound is None and kept else kept and (gain is None or bound is None or gain <= bound)
    return Gain(measure, None if gain is None else float(gain), None if bound is None else float(bound), holds)


def all_hold(verdicts: Iterable[bool | None]) -> bool | None:
    """True if all promises hold, of those that there are; None if there are none."""
    found = [verdict for verdict in verdicts if verdict is not None]
    return all(found) if found else None


@dataclass(frozen=True)
class Untried:
    """The rest that an attack did not get to: it `tried` so many of the `whole`, people, classes or the like."""

    what: str
    tried: int
    whole: int

    def as_dict(self) -> dict[str, Any]:
        return {"what": self.what, "tried": self.tried, "of": self.whole}

    def __str__(self) -> str:
        return f"tried on {self.tried:,} of {self.whole:,} {self.what}"


@dataclass(frozen=True)
class Attack:
    """One attack: its gains, and counts that go with them. `sensitive` is None if it is about rows alone.

    `knows` says which tables of several the attacker knows people's quasi-identifiers in. `shown` holds rows of the
    data, for those who may see them. What is `untried` was beyond the budget: gains and
    figures are then of what was tried, and a promise that it does not break is not known to hold. No more is it where
    rows stand for people who cannot be counted: gains are then `at_least` what they would be.
    """

    name: str
    sensitive: str | None
    gains: tuple[Gain, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    shown: list[dict[str, Any]] | None = None
    untried: Untried | None = None
    knows: str = ""
    of_people: bool = False
    at_least: bool = False

    @property
    def title(self) -> str:
        """Its name, and what the attacker knows if that is said."""
        return f"{self.name}, {self.knows} known" if self.knows else self.name

    @property
    def holds(self) -> bool | None:
        """True if every promise is kept, None where nothing is promised, or where it is not known."""
        return all_hold(gain.holds for gain in self.gains)

    def with_untried(self, what: str, tried: int, whole: int) -> Attack:
        """The same, tried on so many of the `whole`: what it has not found may be among the others."""
        if tried >= whole:
            return self
        gains = tuple(replace(gain, holds=gain.holds and None) for gain in self.gains)
        untried = Untried(what, tried, whole)
        return replace(self, gains=gains, untried=untried, figures=self.figures | {"not_finished": str(untried)})

    def counting_people(self) -> Attack:
        """The same in words, as it was made on people in place of rows."""
        gains = tuple(replace(gain, measure=in_unit(gain.measure, "people")) for gain in self.gains)
        return replace(self, gains=gains, of_people=True)

    def counting_rows(self) -> Attack:
        """The same where rows stand for people who cannot be counted: a person is found at least as surely."""
        gains = (replace(one, measure=f"{one.measure}, at least", holds=one.holds and None) for one in self.gains)
        return replace(self, gains=tuple(gains), at_least=True)

    def without_people(self, people: int) -> Attack:
        """The same where none of so many people stands in a class: then nothing was tried."""
        return self.with_untried("people: no others stand in a class", 0, people)

    def as_dict(self) -> dict[str, Any]:
        attack = {
            "attack": self.name,
            "sensitive": self.sensitive,
            **({"knows": self.knows} if self.knows else {}),
            **{key: True for key in ("of_people", "at_least") if getattr(self, key)},
            "holds": self.holds,
            "finished": self.untried is None,
            "untried": self.untried and self.untried.as_dict(),
            "gains": [gain.as_dict() for gain in self.gains],
            "figures": self.figures,
        }
        return attack if self.shown is None else attack | {"shown": self.shown}


def share_in(row: Mapping[str, Any]) -> Fraction | None:
    """The fraction that a row holds, None if it holds none."""
    return None if row["numerator"] is None else Fraction(int(row["numerator"]), int(row["denominator"]))


def mean_of(units: Any, rows: int, unit: int = UNIT) -> float | None:
    """The mean of what was summed in units."""
    return float(Fraction(int(units), unit * rows)) if rows else None


@dataclass(frozen=True)
class Prior:
    """Some sensitive values of a table that are alike: how many, in how many rows each, their category and share."""

    values: int
    rows: int
    share: Fraction
    category: int = 0


class Bounds:
    """The bounds that a promise puts on each attack on a table with these values; None where nothing is promised."""

    def __init__(self, promise: Guarantee, priors: Sequence[Prior]):
        self.rows = sum(prior.values * prior.rows for prior in priors)
        self._priors = [self._narrowed(promise, prior) for prior in priors]
        shares = sorted(self._priors, key=lambda prior: -prior.share)
        self._values = max(promise.values, promise.categories, _fewest(shares))
        self._promise = promise
        self._falling = shares

    def _narrowed(self, promise: Guarantee, prior: Prior) -> Prior:
        """The share of a value is at most its share of the table plus the difference, or times the ratio, allowed."""
        whole = Fraction(prior.rows, self.rows)
        allowed = [prior.share, ONE, whole + promise.difference]
        if promise.ratio is not None:
            allowed.append(whole * promise.ratio)
        if promise.logarithmic:
            allowed.append(whole * (1 - Fraction(math.nextafter(math.log(whole), -math.inf))))
        return replace(prior, share=min(allowed))

    @property
    def one_value(self) -> Fraction | None:
        """The share of rows in classes with one value: 0 if every class has two."""
        return self.few_values(1)

    def few_values(self, most: int) -> Fraction | None:
        """The share of rows in classes with at most so many values: 0 if every class has more."""
        return Fraction(0) if self._values > most else None

    @property
    def one_category(self) -> Fraction | None:
        """The share of rows in classes of one category.

        0 if classes have two, or if no category that may be alone has values enough, or shares enough, to fill a class.
        """
        if self._promise.categories >= 2:
            return Fraction(0)
        counts: dict[int, int] = defaultdict(int)
        shares: dict[int, Fraction] = defaultdict(Fraction)
        for prior in self._priors:
            counts[prior.category] += prior.values
            shares[prior.category] += prior.values * prior.share
        alone = counts.keys() - self._promise.mixed
        filled = [c for c in alone if counts[c] >= self._values and shares[c] >= 1]
        return None if filled else Fraction(0)

    @property
    def posterior(self) -> Fraction | None:
        """The largest share of a value in a class."""
        most = max((prior.share for prior in self._priors), default=ONE)
        return most if most < 1 else None

    @property
    def ratio(self) -> Fraction | None:
        """The largest share of a value in a class over its share of the table."""
        if self.posterior is None and self._promise.ratio is None:
            return None
        return max(prior.share * self.rows / prior.rows for prior in self._priors)

    @property
    def difference(self) -> Fraction | None:
        """The largest share of a value in a class less its share of the table."""
        if self.posterior is None and self._promise.difference == 1:
            return None
        return max(prior.share - Fraction(prior.rows, self.rows) for prior in self._priors)

    def excluded(self, values: int) -> Fraction | None:
        """The largest posterior of whoever excludes so many values of a class.

        The value with the largest share, the next largest ones excluded: `theta_1 / (1 - theta_2 - ...)`.
        """
        bounds = [posterior for most, posterior in self._promise.excluded if values <= most]
        shares = [prior.share for prior in self._falling for _ in range(min(prior.values, values + 1))][: values + 1]
        rest = 1 - sum(shares[1:], Fraction(0))
        if shares and rest > shares[0]:
            bounds.append(shares[0] / rest)
        return min((bound for bound in bounds if bound < 1), default=None)

    @property
    def record(self) -> Fraction | None:
        """The largest risk of re-identification: one over the least size of a class."""
        largest = max((prior.share for prior in self._priors), default=ONE)
        size = max(self._promise.size, self._values, math.ceil(1 / largest) if largest else 1)
        return Fraction(1, size) if size > 1 else None


def _fewest(falling: Sequence[Prior]) -> int:
    """The fewest values of a class: as many as it takes for their shares to make up the whole."""
    values, left = 0, ONE
    for prior in falling:
        if prior.share <= 0:
            break
        needed = math.ceil(left / prior.share)
        if needed <= prior.values:
            return values + needed
        values, left = values + prior.values, left - prior.values * prior.share
    return values + 1
