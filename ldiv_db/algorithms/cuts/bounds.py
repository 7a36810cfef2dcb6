"""ValueBounds of a search node from what its open values add to them, summed over values.

Every cut of the subtree specialises an open value or keeps it; a probe says what either way adds to the node's bound.

Within one quasi-identifier the lesser ways of all values may be summed: a partition has one value of it, so that the
partitions of two of its values are disjoint, and a bound is a sum over partitions.

Across quasi-identifiers, under LM, a mixture may be. A cut costs what its labels lose over all rows, which is a sum
over quasi-identifiers, plus what suppression adds, W. As above, each quasi-identifier bounds W by a sum over values,
so W is no less than any average of these sums. With shares of the quasi-identifiers that add up to one, a value's way
costs what it adds to the labels plus its share of what it adds to W, and the lesser ways of all values may be summed.
All shares are right; the best are found in steps, for the sum is concave in each share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ldiv_db.algorithms.cuts.trees import CutValue

#: Shares are multiples of one over this.
SHARES = 32


@dataclass(frozen=True)
class Ways:
    """What a value adds to a bound if it is specialised, and if it is kept: to the labels' loss, and to W."""

    specialised: int
    kept: int
    labels: int = 0

    def added(self, share: int) -> tuple[int, int]:
        """What its two ways add, times SHARES."""
        return share * self.specialised, SHARES * self.labels + share * self.kept

    def least(self, share: int) -> int:
        return min(self.added(share))


@dataclass(frozen=True)
class ValueBounds:
    """Of a node's subtree, and of its parts where an open value is specialised or locked."""

    node: int
    specialised: Mapping[CutValue, int]
    locked: Mapping[CutValue, int]


def sum_within(base: int, ways: Mapping[CutValue, Ways]) -> ValueBounds:
    """The bounds by the one quasi-identifier whose values add most; `base` is the node's bound."""
    totals = _totals(ways, dict.fromkeys((axis for axis, _ in ways), SHARES))
    most = max(totals.values())
    pairs = {}
    for value, way in ways.items():
        others = totals[value[0]] - way.least(SHARES)
        specialised, kept = (_rounded(base, max(most, others + added)) for added in way.added(SHARES))
        pairs[value] = (specialised, kept)
    return _bounds(_rounded(base, most), pairs)


def sum_across(base: int, ways: Mapping[CutValue, Ways]) -> ValueBounds:
    """The bounds by the best shares of quasi-identifiers; `base` is what labels lose and W together."""
    shares = _best_shares(ways)
    total = sum(_totals(ways, shares).values())
    pairs = {}
    for value, way in ways.items():
        share = shares[value[0]]
        others = total - way.least(share)
        specialised, kept = (_rounded(base, others + added) for added in way.added(share))
        pairs[value] = (specialised, kept)
    return _bounds(_rounded(base, total), pairs)


def _totals(ways: Mapping[CutValue, Ways], shares: Mapping[int, int]) -> dict[int, int]:
    """The sum of the lesser ways of each quasi-identifier's values."""
    totals = dict.fromkeys(shares, 0)
    for value, way in ways.items():
        totals[value[0]] += way.least(shares[value[0]])
    return totals


def _best_shares(ways: Mapping[CutValue, Ways]) -> dict[int, int]:
    """The shares by which the lesser ways add up to most: each step goes where it gains most."""
    shares = dict.fromkeys(sorted({axis for axis, _ in ways}), 0)
    gains = {axis: _gain(ways, axis, 0) for axis in shares}
    for _ in range(SHARES):
        axis = max(gains, key=gains.__getitem__)
        shares[axis] += 1
        gains[axis] = _gain(ways, axis, shares[axis])
    return shares


def _gain(ways: Mapping[CutValue, Ways], axis: int, share: int) -> int:
    of_axis = [way for value, way in ways.items() if value[0] == axis]
    return sum(way.least(share + 1) - way.least(share) for way in of_axis)


def _rounded(base: int, added: int) -> int:
    """Costs are whole numbers, so a bound may be rounded up."""
    return base - (-added // SHARES)


def _bounds(node: int, pairs: Mapping[CutValue, tuple[int, int]]) -> ValueBounds:
    return ValueBounds(node, {v: pair[0] for v, pair in pairs.items()}, {v: pair[1] for v, pair in pairs.items()})
