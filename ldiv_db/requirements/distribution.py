"""The sensitive values of a table as counts, and how frequent a value may be among them.

What the whole table as one class violates every release of all its rows violates: a value above its ceiling is to
blame, and a release is possible only with a requirement that allows it the share it has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from ldiv_db.requirements.named import Named


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


def most_classes(counts: Sequence[int], l: int) -> int:  # noqa: E741 - the field's name for it
    """The most classes of l rows with different values: `max{k : sum_i min(n_i, k) >= k l}` (Theorem 1)."""
    tally = list(Counter(counts).items())  # individuals are many, their counts few
    low, high = 0, sum(counts) // l
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

    def sparing(self, harmless: Sequence[Named], rows: int) -> Ceiling:
        """The same where harmless values may have all the rows."""
        return replace(self, own=(*self.own, *((value, rows) for value in harmless)))


def eligible_ceiling(l: Fraction | int, distribution: Distribution) -> Ceiling:  # noqa: E741 - the field's name for it
    """No value in more than 1/l of the rows."""
    return Ceiling(math.floor(distribution.rows / Fraction(l)))
