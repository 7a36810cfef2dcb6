"""What requirements promise against an attacker: limits of every class that meets them, whoever made it.

All of them hold for the union of good classes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from ldiv_db.requirements.named import Named, in_order

ONE = Fraction(1)


@dataclass(frozen=True)
class Guarantee:
    """What every good class keeps to.

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

    def sparing(self, harmless: Sequence[Named]) -> Guarantee:
        """What is kept where nothing is promised of some values: sizes, and the shares of the others.

        A class may have no other value, so that no number of values is promised, and nothing to who excludes some.
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

    def fewest_people(self, population: str) -> int:
        """How many people of a population a class covers at least."""
        return max((least for name, least in self.people if name == population), default=1)

    def most_present(self, population: str) -> Fraction:
        """The largest share of the people of a class who are in the table."""
        return min((most for name, most in self.presence if name == population), default=ONE)

    def __and__(self, other: Guarantee) -> Guarantee:
        """What classes that keep both promises keep to."""
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
    """What classes that keep all the promises keep to."""
    return reduce(Guarantee.__and__, promises, Guarantee())
