"""How frequent a sensitive value may be in the whole table, as far as a requirement bounds that.

What the whole table as one class violates every release of all its rows violates: a value above its ceiling is to
blame, and a release is possible only with a requirement that allows it the share it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ldiv_db.requirements.base import Distribution, Requirement
from ldiv_db.requirements.counts import TOLERANCE, AlphaK, EntropyL, FrequencyL, RecursiveCL
from ldiv_db.requirements.named import Named
from ldiv_db.requirements.threshold import Threshold


@dataclass(frozen=True)
class Ceiling:
    """The most rows that a value may have; values with thresholds of their `own` have others."""

    rows: int
    own: tuple[tuple[Named, int], ...] = ()
    by_threshold: bool = False


def eligible_ceiling(l: Fraction | int, distribution: Distribution) -> Ceiling:  # noqa: E741 - the field's name for it
    """No value in more than 1/l of the rows."""
    return Ceiling(math.floor(distribution.rows / Fraction(l)))


def ceiling_of(requirement: Requirement, distribution: Distribution) -> Ceiling | None:
    """The ceiling that the requirement sets; None if it is not the frequency of values that it bounds.

    An entropy below ln l takes a value in more than 1/l of the rows, but not the other way round.
    """
    rows = distribution.rows
    if isinstance(requirement, EntropyL) and _entropy(distribution) >= math.log(requirement.l) - TOLERANCE:
        return None
    if isinstance(requirement, FrequencyL | EntropyL):
        return eligible_ceiling(Fraction(requirement.l), distribution)
    if isinstance(requirement, AlphaK):
        return Ceiling(math.floor(Fraction(requirement.alpha) * rows))
    if isinstance(requirement, RecursiveCL):
        tail = sum(distribution.counts[requirement.l - 1 :])
        return Ceiling(math.ceil(Fraction(requirement.c) * tail) - 1) if tail else None
    if isinstance(requirement, Threshold):
        own = tuple((value, math.floor(Fraction(theta) * rows)) for value, theta in requirement.thetas)
        return Ceiling(math.floor(Fraction(requirement.default) * rows), own, by_threshold=True)
    return None


def _entropy(distribution: Distribution) -> float:
    return -math.fsum(n / distribution.rows * math.log(n / distribution.rows) for n in distribution.counts)
