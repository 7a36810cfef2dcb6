"""Limits that requirements promise against an attacker, and the counts of sensitive values that decide them.

What the whole table as one class violates every release of all its rows violates: a value above its ceiling is to
blame, and a release is possible only with a requirement that allows it the share it has.

Limits are those of every class that meets a requirement, whoever made it; all of them hold for the union of good
classes too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

from ldiv_db.requirements.values import Named, in_order


@dataclass(frozen=True)
class Distribution:
    """The sensitive values of a table as counts in falling order, largest first, and rows of `harmless` values beside.

    Of these values nothing is promised, but they are rows of the table.
    """

    counts: Sequence[int]
    harmless: int = 0

    @cached_property
    def rows(self) -> int:
        return sum(self.counts) + self.harmless

    @property
    def distinct(self) -> int:
        return len(self.counts)

    @property
    def largest_distinct(self) -> int:
        """The largest l of distinct l-diversity: where people have several values, l - 1 others lack any of these."""
        return min(self.distinct, self.rows - self.counts[0] + 1) if self.counts else 0

    @property
    def largest_l(self) -> int:
        """The largest l for which the table is l-eligible: `floor(n / n_1)`."""
        return self.rows // self.counts[0] if self.counts else 0

    @property
    def auto_l(self) -> int:
        """The l that `auto` stands for: `max(2, floor(n / n_1))` (BSGI, Corollary 3)."""
        return max(2, self.largest_l)

    @property
    def entropy(self) -> float:
        """The entropy in natural units."""
        shares = ((n / self.rows, values) for n, values in Counter(self.counts).items())
        return -math.fsum(values * share * math.log(share) for share, values in shares)

    @property
    def bits(self) -> float:
        """Shannon's entropy in bits."""
        return self.entropy / math.log(2) + 0.0


def most_classes(counts: Sequence[int], l: int, free: int = 0) -> int:
    """The most classes of l rows with different values: `max{k : sum_i min(n_i, k) >= k l}` (Theorem 1).

    `free` rows more may be in any, as if each had a value of its own.
    """
    tally = [*Counter(counts).items(), (1, free)]  # individuals are many, their counts few
    low, high = 0, (sum(counts) + free) // l
    while low < high:
        k = (low + high + 1) // 2
        if sum(min(count, k) * values for count, values in tally) >= k * l:
            low = k
        else:
            high = k - 1
    return low


@dataclass(frozen=True)
class Ceiling:
    """The most rows that a value may have; values with thresholds of their `own` have others."""

    rows: int
    own: tuple[tuple[Named, int], ...] = ()
    by_threshold: bool = False


def eligible_ceiling(l: Fraction | int, distribution: Distribution) -> Ceiling:
    """No value in more than 1/l of the rows."""
    return Ceiling(math.floor(distribution.rows / Fraction(l)))


ONE = Fraction(1)


@dataclass(frozen=True)
class Guarantee:
    """A guarantee that every good class keeps.

    At least `size` rows, `values` different values and `categories` different categories; no value in more than its
    share, `share` unless `shares` lists it; no share more than `difference` above the table's, or more
    than `ratio` times it, and, if `logarithmic`, none above p (1 - ln p), p being that of the table. `excluded` is
    (m, posterior): nobody who excludes up to m values has more than that posterior. No class is wholly of one of the
    categories `mixed`, by their number from 1. Of a population in `people` a class covers at least so many
    people, and of those of one in `presence` no larger share is in the table.
    """

    size: int = 1
    values: int = 1
    categories: int = 1
    share: Fraction = ONE
    shares: tuple[tuple[Named, Fraction], ...] = ()
    difference: Fraction = ONE
    excluded: tuple[tuple[int, Fraction], ...] = ()
    mixed: frozenset[int] = frozenset()
    ratio: Fraction | None = None
    logarithmic: bool = False
    people: tuple[tuple[str, int], ...] = ()
    presence: tuple[tuple[str, Fraction], ...] = ()

    def share_of(self, value: Named) -> Fraction:
        """The largest share of a value."""
        return dict(self.shares).get(value, self.share)

    @property
    def least_share(self) -> Fraction:
        """The least of all shares."""
        return min(self.share, *(share for _, share in self.shares), ONE)

    @property
    def largest_share(self) -> Fraction:
        """The share that no value exceeds."""
        return max(self.share, *(share for _, share in self.shares), Fraction(0))

    def ceiling(self, rows: int) -> Ceiling:
        """The ceilings of values in so many rows."""
        return Ceiling(math.floor(self.share * rows), tuple((v, math.floor(s * rows)) for v, s in self.shares))

    def exempting(self, harmless: Sequence[Named]) -> Guarantee:
        """The part that is kept where nothing is promised of some values: sizes, and the shares of the others.

        A class may have no other value, so that no number of values is promised, and nothing to whoever excludes some.
        """
        if not harmless:
            return self
        shares = dict(self.shares) | dict.fromkeys(harmless, ONE)
        return Guarantee(
            self.size,
            share=self.share,
            shares=tuple((v, shares[v]) for v in sorted(shares, key=in_order)),
            people=self.people,
            presence=self.presence,
        )

    @property
    def of_rows(self) -> Guarantee:
        """The part that rows keep where it is of people, of whom a class may have several rows: least numbers alone."""
        least = math.ceil(1 / (max([self.share, *(share for _, share in self.shares)]) or ONE))
        return Guarantee(
            max(self.size, least),
            max(self.values, least),
            self.categories,
            mixed=self.mixed,
            people=self.people,
            presence=self.presence,
        )

    def fewest_people(self, population: str) -> int:
        """The fewest people of a population that a class covers."""
        return max((least for name, least in self.people if name == population), default=1)

    def most_present(self, population: str) -> Fraction:
        """The largest share of the people of a class who are in the table."""
        return min((most for name, most in self.presence if name == population), default=ONE)

    def __and__(self, other: Guarantee) -> Guarantee:
        listed = sorted({value for promise in (self, other) for value, _ in promise.shares}, key=in_order)
        return Guarantee(
            max(self.size, other.size),
            max(self.values, other.values),
            max(self.categories, other.categories),
            min(self.share, other.share),
            tuple((value, min(self.share_of(value), other.share_of(value))) for value in listed),
            min(self.difference, other.difference),
            self.excluded + other.excluded,
            self.mixed | other.mixed,
            min((one.ratio for one in (self, other) if one.ratio is not None), default=None),
            self.logarithmic or other.logarithmic,
            self.people + other.people,
            self.presence + other.presence,
        )


def together(promises: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of classes that keep all the promises."""
    return reduce(Guarantee.__and__, promises, Guarantee())
