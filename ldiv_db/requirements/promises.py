"""What requirements promise against an attacker: bounds that follow from them on any class that meets them.

A requirement limits a class: its least size, its least number of different values (or categories), the largest
share of a value, and so on. The bounds below hold for every class within those limits, whoever made it; where
nothing follows there is no bound. All of them hold for the union of good classes too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

from ldiv_db.requirements import (
    AlphaK,
    DistinctAlpha,
    DistinctL,
    EntropyAlpha,
    EntropyL,
    FrequencyL,
    KAnonymity,
    PSensitiveK,
    RecursiveAlpha,
    RecursiveCL,
    Requirement,
    TCloseness,
    Threshold,
    UniqueDistinctL,
)
from ldiv_db.requirements.closeness import EQUAL
from ldiv_db.requirements.counts import TOLERANCE
from ldiv_db.requirements.named import Named, in_order

ONE = Fraction(1)


@dataclass(frozen=True)
class Promise:
    """What every good class keeps to.

    At least `size` rows, `values` different values and `categories` different categories; no value in more than its
    share, `share` unless `shares` lists it; no share more than `difference` above the table's. `excluded` is
    (m, posterior): nobody who excludes up to m values has more than that posterior. No class is wholly of one of the
    categories `mixed`, by their number from 1.
    """

    size: int = 1
    values: int = 1
    categories: int = 1
    share: Fraction = ONE
    shares: tuple[tuple[Named, Fraction], ...] = ()
    difference: Fraction = ONE
    excluded: tuple[tuple[int, Fraction], ...] = ()
    mixed: frozenset[int] = frozenset()

    def share_of(self, value: Named) -> Fraction:
        """The largest share of a value."""
        return dict(self.shares).get(value, self.share)

    def __and__(self, other: Promise) -> Promise:
        """What classes that keep both promises keep to."""
        listed = sorted({value for promise in (self, other) for value, _ in promise.shares}, key=in_order)
        return Promise(
            max(self.size, other.size),
            max(self.values, other.values),
            max(self.categories, other.categories),
            min(self.share, other.share),
            tuple((value, min(self.share_of(value), other.share_of(value))) for value in listed),
            min(self.difference, other.difference),
            self.excluded + other.excluded,
            self.mixed | other.mixed,
        )


# -- from requirements -------------------------------------------------------------------------------


def _unique(required: UniqueDistinctL) -> Promise:
    return Promise(size=required.l, values=required.l, share=Fraction(1, required.l))


def _entropy(required: EntropyL) -> Promise:
    """An entropy of ln l takes l values; one within the tolerance below it counts as reaching it."""
    return Promise(values=math.ceil(float(required.l) * math.exp(-TOLERANCE)))


def _recursive(required: RecursiveCL) -> Promise:
    """`r_1 < c (r_l + ... + r_m)`: who excludes l-2 values still leaves the l-th and those after it.

    As r_1 is the largest, more than 1/c of them are needed.
    """
    c, values = Fraction(required.c), required.l + math.floor(1 / required.c)
    if required.l == 1:
        return Promise(values=values, share=min(ONE, c))
    return Promise(values=values, share=c / (c + 1), excluded=((required.l - 2, c / (c + 1)),))


def _closeness(required: TCloseness) -> Promise:
    """With equal distances the largest gap between two distributions, over any set of values, is their distance."""
    return Promise(difference=Fraction(required.t)) if required.distance == EQUAL else Promise()


def _weighed(required: DistinctAlpha) -> Promise:
    """Weights that sum to alpha take rows, of which some have a weight."""
    alpha, most = Fraction(required.alpha), max(required.categories.weights)
    size = math.ceil(alpha / most) if most else 1
    weightless = [number for number, weight in enumerate(required.categories.weights, 1) if not weight]
    return Promise(max(size, 1), required.values_needed, mixed=frozenset(weightless if alpha else ()))


def _over_categories(required: EntropyAlpha | RecursiveAlpha) -> Promise:
    """What categories promise as values would: no value has more rows than its category."""
    found = promise_of(required.of_categories)
    return _weighed(required) & replace(found, categories=found.values)


#: What each requirement promises.
PROMISES: dict[type[Requirement], Callable[[Any], Promise]] = {
    KAnonymity: lambda required: Promise(size=required.k),
    DistinctL: lambda required: Promise(values=required.l),
    UniqueDistinctL: _unique,
    EntropyL: _entropy,
    RecursiveCL: _recursive,
    FrequencyL: lambda required: Promise(share=1 / Fraction(required.l)),
    Threshold: lambda required: Promise(
        share=Fraction(required.default), shares=tuple((value, Fraction(theta)) for value, theta in required.thetas)
    ),
    AlphaK: lambda required: Promise(size=required.k, share=Fraction(required.alpha)),
    PSensitiveK: lambda required: Promise(size=required.k, values=required.p),
    DistinctAlpha: _weighed,
    EntropyAlpha: _over_categories,
    RecursiveAlpha: _over_categories,
    TCloseness: _closeness,
}


def promise_of(required: Requirement) -> Promise:
    """What one requirement promises; where others are known it holds for parts of a class, and so for their union."""
    return PROMISES[type(required)](required)


def promise_of_all(requirements: Iterable[Requirement]) -> Promise:
    """What several requirements promise together."""
    return reduce(Promise.__and__, map(promise_of, requirements), Promise())


# -- bounds on a table -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prior:
    """Some sensitive values of a table that are alike: how many, in how many rows each, their category and share."""

    values: int
    rows: int
    share: Fraction
    category: int = 0


class Bounds:
    """The bounds that a promise puts on each attack on a table with these values; None where nothing is promised."""

    def __init__(self, promise: Promise, priors: Sequence[Prior]):
        self.rows = sum(prior.values * prior.rows for prior in priors)
        self._priors = [self._narrowed(promise, prior) for prior in priors]
        shares = sorted(self._priors, key=lambda prior: -prior.share)
        self._values = max(promise.values, promise.categories, _fewest(shares))
        self._promise = promise
        self._falling = shares

    def _narrowed(self, promise: Promise, prior: Prior) -> Prior:
        """The share of a value is at most its share of the table plus the difference that is allowed."""
        return replace(prior, share=min(prior.share, ONE, Fraction(prior.rows, self.rows) + promise.difference))

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
        if self.posterior is None:
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
    found, left = 0, ONE
    for prior in falling:
        if prior.share <= 0:
            break
        needed = math.ceil(left / prior.share)
        if needed <= prior.values:
            return found + needed
        found, left = found + prior.values, left - prior.values * prior.share
    return found + 1
