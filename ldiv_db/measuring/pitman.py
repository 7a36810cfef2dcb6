"""Pitman's sampling formula fitted to the sizes of classes (Hoshino, Journal of Official Statistics 17(4), 2001).

The population is of endlessly many classes. Of rows drawn one after the other, one that comes after i others in u
classes opens a new class with probability (theta + u alpha) / (theta + i), and joins a class of j rows with
(j - alpha) / (theta + i), for 0 <= alpha < 1 and theta > -alpha; alpha = 0 is Ewens's formula. Both are taken where the
likelihood of the classes is greatest, by halving intervals: theta for an alpha, and alpha where its slope is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

#: A sum of reciprocals is taken term by term while its terms differ much: until the first is so many steps from 0.
_STEPS = 32
#: Intervals are halved so often: as a double has digits, and some more.
_HALVINGS = 64
#: The alphas between which one is looked for; below the least it counts as 0.
_ALPHAS = (1e-6, 1 - 1e-9)
#: The logarithms of theta + alpha between which one is looked for.
_LOG_EXCESSES = (math.log(1e-15), math.log(1e24))
#: From here on the logarithm of the gamma function is Stirling's, whose differences keep their digits.
_STIRLING = 1e4


@dataclass(frozen=True)
class Pitman:
    """The formula's parameters: alpha, and what theta exceeds -alpha by."""

    alpha: float
    excess: float

    @property
    def theta(self) -> float:
        return self.excess - self.alpha

    def expected_uniques(self, population: int) -> float:
        """The expected number of classes of one row among so many rows.

        This is the expectation itself; `population ** alpha * gamma(theta + 1) / gamma(theta + alpha)` is its limit for
        populations that are large against theta.
        """
        shrunk = _log_gamma_ratio(population - 1 + self.excess, 1 - self.alpha)
        return population * math.exp(_log_gamma_ratio(self.excess, 1 - self.alpha) - shrunk)


def fit(sizes: Mapping[int, int]) -> Pitman:
    """The parameters for so many classes of each size; raises ValueError where the likelihood has no maximum."""
    if set(sizes) == {1}:
        raise ValueError("every row is unique: the likelihood grows with theta")
    if sum(sizes.values()) == 1:
        raise ValueError("there is one class: the likelihood grows as theta falls")
    least, most = _ALPHAS
    if _slope(least, sizes) <= 0:
        return Pitman(0, _excess(0, sizes))
    alpha = _root(lambda alpha: _slope(alpha, sizes), least, most)
    return Pitman(alpha, _excess(alpha, sizes))


def _excess(alpha: float, sizes: Mapping[int, int]) -> float:
    """What the likeliest theta for an alpha exceeds -alpha by."""
    classes = sum(sizes.values())
    rows = sum(size * count for size, count in sizes.items())

    def slope(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return sum_reciprocals(excess, alpha, classes - 1) - sum_reciprocals(excess + 1 - alpha, 1, rows - 1)

    return math.exp(_root(slope, *_LOG_EXCESSES))


def _slope(alpha: float, sizes: Mapping[int, int]) -> float:
    """How the logarithm of the likelihood grows with alpha, theta being the likeliest for it."""
    excess, later = _excess(alpha, sizes), sum(sizes.values()) - 1
    opened = (later - (excess - alpha) * sum_reciprocals(excess, alpha, later)) / alpha
    joined, of_size = 0.0, 0.0
    for smaller, size in pairwise([1, *sorted(sizes)]):
        of_size += sum_reciprocals(smaller - alpha, 1, size - smaller)
        joined += sizes[size] * of_size
    return opened - joined


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a function comes from above 0 to below it."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def sum_reciprocals(first: float, step: float, count: int) -> float:
    """The sum of `1 / (first + i step)` over i from 0 to below `count`, with some 14 digits."""
    singly = min(count, math.ceil(max(0.0, _STEPS - first / step))) if step else 0
    found = sum(1 / (first + i * step) for i in range(singly))
    if singly == count:
        return found
    a, steps = first + singly * step, count - singly - 1
    b = a + steps * step
    # Euler and Maclaurin's formula; what it leaves out is below 1e-15 of the first term.
    integral = math.log1p(steps * step / a) / step if step else steps / a
    by_odd = ((1 / 12, 1), (-1 / 120, 3), (1 / 252, 5))
    corrections = sum(c * step**n * (1 / a ** (n + 1) - 1 / b ** (n + 1)) for c, n in by_odd)
    return found + integral + (1 / a + 1 / b) / 2 + corrections


def _log_gamma_ratio(x: float, more: float) -> float:
    """`log(gamma(x + more) / gamma(x))` for `more` from 0 to 1."""
    if x < _STIRLING:
        return math.lgamma(x + more) - math.lgamma(x)
    y = x + more
    return more * math.log(x) + (y - 0.5) * math.log1p(more / x) - more + (1 / y - 1 / x) / 12
