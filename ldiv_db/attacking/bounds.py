"""The most that attackers can gain on any table whose classes keep a promise.

A requirement limits a class: its least size, its least number of different values (or categories), the largest
share of a value, and so on. The bounds below hold for every class within those limits, whoever made it; where
nothing follows there is no bound.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ldiv_db.requirements.guarantees import ONE, Guarantee


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
        """The largest posterior of who excludes so many values of a class.

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
    """How many values a class has at least: as many as it takes for their shares to make up the whole."""
    values, left = 0, ONE
    for prior in falling:
        if prior.share <= 0:
            break
        needed = math.ceil(left / prior.share)
        if needed <= prior.values:
            return values + needed
        values, left = values + prior.values, left - prior.values * prior.share
    return values + 1
