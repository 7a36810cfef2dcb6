"""ValueBounds of a search node from what its open values add to them, summed over values.

Every cut of the subtree specialises an open value or keeps it; a probe says what either way adds to the node's bound.

Within one quasi-identifier the lesser ways of all values may be summed: a partition has one value of it, so that the
partitions of two of its values are disjoint, and a bound is a sum over partitions.

Across quasi-identifiers, under LM, a mixture may be. A cut costs what its labels lose over all rows, which is a sum
over quasi-identifiers, plus what suppression adds, W. As above, each quasi-identifier bounds W by a sum over values,
so W is no less than any average of these sums. With shares of the quasi-identifiers that add up to one, a value's way
costs what it adds to the labels plus its share of what it adds to W, and the lesser ways of all values may be summed.
All shares are right; the best are found in steps, for the sum is concave in each share.

What an evaluation says of search nodes: costs and bounds, put together from sums over partitions.

A specialised value replaces its partitions, a locked one changes their bounds; the others stay. Where nothing may be
suppressed a violated partition forbids the cut, and with it all that are more specific.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ldiv_db.algorithms.cuts.trees import CutValue

#: Shares are multiples of one over this.
SHARES = 32


@dataclass(frozen=True)
class BranchCosts:
    """The additions of a value to a bound if it is specialised, and if it is kept: to the labels' loss, and to W."""

    specialised: int
    kept: int
    labels: int = 0

    def added(self, share: int) -> tuple[int, int]:
        """The additions of its two branches, times SHARES."""
        return share * self.specialised, SHARES * self.labels + share * self.kept

    def least(self, share: int) -> int:
        return min(self.added(share))


@dataclass(frozen=True)
class ValueBounds:
    """The bounds of a node's subtree, and of its parts where an open value is specialised or locked."""

    node: int
    specialised: Mapping[CutValue, int]
    locked: Mapping[CutValue, int]


def sum_within(base: int, ways: Mapping[CutValue, BranchCosts]) -> ValueBounds:
    """The bounds by the one quasi-identifier whose values add most; `base` is the node's bound."""
    totals = _totals(ways, dict.fromkeys((axis for axis, _ in ways), SHARES))
    most = max(totals.values())
    pairs = {}
    for value, way in ways.items():
        others = totals[value[0]] - way.least(SHARES)
        pairs[value] = tuple(_rounded(base, max(most, others + added)) for added in way.added(SHARES))
    return _bounds(_rounded(base, most), pairs)


def sum_across(base: int, ways: Mapping[CutValue, BranchCosts]) -> ValueBounds:
    """The bounds by the best shares of quasi-identifiers; `base` is what labels lose and W together."""
    shares = _best_shares(ways)
    total = sum(_totals(ways, shares).values())
    pairs = {}
    for value, way in ways.items():
        others = total - way.least(shares[value[0]])
        pairs[value] = tuple(_rounded(base, others + added) for added in way.added(shares[value[0]]))
    return _bounds(_rounded(base, total), pairs)


def _totals(ways: Mapping[CutValue, BranchCosts], shares: Mapping[int, int]) -> dict[int, int]:
    """The sum of the lesser ways of each quasi-identifier's values."""
    totals = dict.fromkeys(shares, 0)
    for value, way in ways.items():
        totals[value[0]] += way.least(shares[value[0]])
    return totals


def _best_shares(ways: Mapping[CutValue, BranchCosts]) -> dict[int, int]:
    """The shares by which the lesser ways add up to most: each step goes where it gains most."""
    shares = dict.fromkeys(sorted({axis for axis, _ in ways}), 0)
    gains = {axis: _gain(ways, axis, 0) for axis in shares}
    for _ in range(SHARES):
        axis = max(gains, key=gains.__getitem__)
        shares[axis] += 1
        gains[axis] = _gain(ways, axis, shares[axis])
    return shares


def _gain(ways: Mapping[CutValue, BranchCosts], axis: int, share: int) -> int:
    of_axis = [way for value, way in ways.items() if value[0] == axis]
    return sum(way.least(share + 1) - way.least(share) for way in of_axis)


def _rounded(base: int, added: int) -> int:
    """Costs are whole numbers, so a bound may be rounded up."""
    return base - (-added // SHARES)


def _bounds(node: int, pairs: Mapping[CutValue, tuple[int, ...]]) -> ValueBounds:
    return ValueBounds(node, {v: pair[0] for v, pair in pairs.items()}, {v: pair[1] for v, pair in pairs.items()})


#: A cut: the values of all quasi-identifiers.
Cut = frozenset[CutValue]
#: The cost of a cut that is not allowed, and the bound of a subtree without any that is.
FORBIDDEN = 2**62


@dataclass(frozen=True)
class CutNode:
    """A cut by its values, open and locked, and a lower bound on the cuts of its subtree."""

    open: frozenset[CutValue]
    locked: frozenset[CutValue]
    bound: int = 0

    @property
    def cut(self) -> Cut:
        return self.open | self.locked


@dataclass
class Probe:
    """The cost of a node's cut and its bound, and those of the two branches of each open value.

    `costs` and `specialised` are cost and bound of the cut with the value specialised, `locked` is the bound of the
    node with the value locked. `telling` ranks the values by how much a branch would
    tell: the product of what its two ways add, and the sum, before what all values add together hides the difference.
    """

    cost: int = 0
    bound: int = 0
    costs: dict[CutValue, int] = field(default_factory=dict)
    specialised: dict[CutValue, int] = field(default_factory=dict)
    locked: dict[CutValue, int] = field(default_factory=dict)
    telling: dict[CutValue, tuple[int, int]] = field(default_factory=dict)

    def tighten(self, bounds: ValueBounds) -> None:
        """Raise the bounds to those that were found as well."""
        self.bound = max(self.bound, bounds.node)
        self.specialised = {value: max(bound, bounds.specialised[value]) for value, bound in self.specialised.items()}
        self.locked = {value: max(bound, bounds.locked[value]) for value, bound in self.locked.items()}


class Before(NamedTuple):
    """Sums over the partitions that have an open value: as they are, and what locking the value makes of them."""

    cost: int = 0
    bound: int = 0
    locked: int = 0
    broken: int = 0
    withheld: int = 0
    added_labels: int = 0
    added_withheld: int = 0


class After(NamedTuple):
    """Sums over the partitions of a cut, or over those that take the place of others when a value is specialised."""

    cost: int = 0
    bound: int = 0
    broken: int = 0
    labels: int = 0
    withheld: int = 0


Changes = dict[CutValue, tuple[Before, After]]


def assemble(
    nodes: Sequence[CutNode],
    before: Iterable[tuple[int, ...]],
    after: Iterable[tuple[int, ...]],
    metric: str,
    scheme: str,
) -> list[Probe]:
    """The probes of all nodes, from the rows of `sum_locked` and `sum_specialised`."""
    old = {(number, axis, value): Before(*sums) for number, axis, value, *sums in before}
    new = {(number, axis, value): After(*sums) for number, axis, value, *sums in after}
    strict, probes = scheme == "none", []
    for number, node in enumerate(nodes):
        whole = new[number, 0, 0]
        changes = {
            value: (old.get((number, *value), Before()), new.get((number, *value), After()))
            for value in sorted(node.open)
        }
        if strict and whole.broken:
            costs, specialised, locked = (dict.fromkeys(changes, FORBIDDEN) for _ in range(3))
            probes.append(Probe(FORBIDDEN, FORBIDDEN, costs, specialised, locked))
            continue
        probe = _probe(whole, changes, strict)
        if changes:
            probe.tighten(sum_within(whole.bound, _ways(probe)))
            if metric == "LM" and not strict:
                probe.tighten(sum_across(whole.labels + whole.withheld, _ways_apart(changes)))
        probes.append(probe)
    return probes


def _probe(whole: After, changes: Changes, strict: bool) -> Probe:
    """The probe of one node by its values one at a time."""
    probe = Probe(whole.cost, whole.bound)
    for value, (was, new) in changes.items():
        worse = strict and whole.broken - was.broken + new.broken > 0
        probe.costs[value] = FORBIDDEN if worse else whole.cost - was.cost + new.cost
        probe.specialised[value] = FORBIDDEN if worse else whole.bound - was.bound + new.bound
        probe.locked[value] = whole.bound - was.bound + was.locked
        ways = [max(1, bound - whole.bound) for bound in (probe.specialised[value], probe.locked[value])]
        probe.telling[value] = ways[0] * ways[1], sum(ways)
    return probe


def _ways(probe: Probe) -> dict[CutValue, BranchCosts]:
    """The additions of the two branches of each value to the bound, never less than nothing: the bound holds."""
    return {
        value: BranchCosts(max(0, bound - probe.bound), max(0, probe.locked[value] - probe.bound))
        for value, bound in probe.specialised.items()
    }


def _ways_apart(changes: Changes) -> dict[CutValue, BranchCosts]:
    """The same under LM, with what is added to the loss of labels apart from what is added by suppression."""
    return {
        value: BranchCosts(max(0, new.withheld - was.withheld), max(0, was.added_withheld), was.added_labels)
        for value, (was, new) in changes.items()
    }
