"""The slide negative binomial model of the sizes of classes (Chen and Keller-McNulty, JOS 14(1), 1998).

A class of the population has 1 + x rows, where x is negative binomial: `alpha` failures, each row with probability
`beta`. A row is in the sample with the same probability for all. How many classes the population has is estimated from
the sample by Shlosser's modified estimator (Haas and Stokes, JASA 93, 1998, their third), and alpha and beta are such
that as many classes of one and of two rows of the sample are expected as it has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

#: The log odds of beta that are tried, and how often the interval between two of them is halved.
_LOG_ODDS = tuple(i / 8 for i in range(-320, 281))
_HALVINGS = 60


@dataclass(frozen=True)
class SlideNegativeBinomial:
    """The model's parameters, and the number of classes of the population."""

    classes: float
    alpha: float
    beta: float

    @property
    def rows(self) -> float:
        """The expected rows of all classes."""
        return self.classes * (1 + self.alpha * (1 - self.beta) / self.beta)

    @property
    def expected_uniques(self) -> float:
        """The expected number of classes of one row."""
        return self.classes * math.pow(self.beta, self.alpha)


def fit(sizes: Mapping[int, int], population: int) -> SlideNegativeBinomial:
    """The parameters for so many classes of each size in a sample of the population.

    Of several that fit, those whose rows are nearest to the population's. Raises ValueError where none do.
    """
    if not sizes.get(1) or not sizes.get(2):
        raise ValueError("needs classes of one and of two rows")
    fraction = sum(size * count for size, count in sizes.items()) / population
    classes = estimate_classes(sizes, fraction)
    found = list(_solutions(classes, fraction, sizes[1], sizes[2]))
    if not found:
        raise ValueError("no parameters give so many classes of one and of two rows")
    return min(found, key=lambda model: abs(math.log(model.rows / population)))


def estimate_classes(sizes: Mapping[int, int], fraction: float) -> float:
    """The number of classes of a population of which a fraction, below 1, was drawn: Haas and Stokes's Sh3."""
    rest = 1 - fraction
    squared = fraction * fraction
    twice = sum(count * size * squared * (1 - squared) ** (size - 1) for size, count in sizes.items())
    either = sum(count * ((1 - squared) ** size - rest**size) for size, count in sizes.items())
    missed = sum(count * rest**size for size, count in sizes.items())
    once = sum(count * size * fraction * rest ** (size - 1) for size, count in sizes.items())
    return sum(sizes.values()) + sizes.get(1, 0) * (twice / either) * (missed / once) ** 2


def _solutions(classes: float, fraction: float, ones: int, twos: int) -> Iterator[SlideNegativeBinomial]:
    """All parameters between those that are tried that give so many classes of one and of two rows."""

    def tried(log_odds: float) -> tuple[SlideNegativeBinomial, float]:
        more = math.exp(-log_odds)
        beta, other = 1 / (1 + more), more / (1 + more)
        kept = beta + fraction * other  # 1 - (1 - fraction) (1 - beta)
        unseen = (1 - fraction) * other
        # Classes of two to those of one: a quadratic equation in alpha, with one solution above 0.
        ratio = 2 * twos * kept / (ones * fraction * other)
        half = (1 + kept - ratio * unseen) / 2
        alpha = _positive_root(unseen, half, ratio * kept)
        log_ones = -alpha * math.log1p(fraction * more) + math.log1p(alpha * unseen / kept)
        return SlideNegativeBinomial(classes, alpha, beta), log_ones - math.log(ones / (classes * fraction))

    for below, above in pairwise(_LOG_ODDS):
        low, high = below, above
        rising = tried(low)[1] < 0
        if rising == (tried(high)[1] < 0):
            continue
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if (tried(middle)[1] < 0) == rising else (low, middle)
        yield tried(low)[0]


def _positive_root(square: float, half: float, constant: float) -> float:
    """The solution above 0 of `square x² + 2 half x = constant`, where square and constant are above 0."""
    root = math.sqrt(half * half + square * constant)
    return constant / (half + root) if half > 0 else (root - half) / square
