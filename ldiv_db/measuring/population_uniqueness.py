"""Uniqueness in a population of which a table is a sample, estimated from the sizes of its classes.

Three models need no table of the population but its size; all take the table for a random sample without replacement,
whose rows are of different people. The one that is shown follows Dankar, El Emam, Neisa and Roffey (BMC Medical
Informatics and Decision Making 12:66, 2012).

Pitman's sampling formula (Hoshino, Journal of Official Statistics 17(4), 2001): the population is of endlessly many
classes. Of rows drawn one after the other, one that comes after i others in u classes opens a new class with
probability (theta + u alpha) / (theta + i), and joins a class of j rows with (j - alpha) / (theta + i), for
0 <= alpha < 1 and theta > -alpha; alpha = 0 is Ewens's formula. Both are taken where the likelihood of the classes is
greatest, by halving intervals: theta for an alpha, and alpha where its slope is 0.

Slide negative binomial (Chen and Keller-McNulty, JOS 14(1), 1998): a class of the population has 1 + x rows, where x is
negative binomial: `alpha` failures, each row with probability `beta`. A row is in the sample with the same probability
for all. How many classes the population has is estimated from the sample by Shlosser's modified estimator (Haas and
Stokes, JASA 93, 1998, their third), and alpha and beta are such that as many classes of one and of two rows of the
sample are expected as it has.

Zayatz's conditional probability: US Bureau of the Census 91/08, 1991.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Relation

PITMAN, ZAYATZ, SNB = "pitman", "zayatz", "snb"
#: Up to this share of the population Dankar et al. take Pitman's model.
SMALL_SAMPLE = 0.1
#: No population is larger.
MOST_PEOPLE = 10**11
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
#: The log odds of beta that are tried.
_LOG_ODDS = tuple(i / 8 for i in range(-320, 281))


@dataclass(frozen=True)
class UniquesEstimate:
    """The unique people of the population by one model, or the reason why it gives none."""

    uniques: float | None
    reason: str = ""


@dataclass(frozen=True)
class PopulationUniqueness:
    """The unique people of a population of `population`, of which `rows` were drawn, by every model.

    `chosen` is the model that is shown; None where none gives an estimate.
    """

    population: int
    rows: int
    estimates: Mapping[str, UniquesEstimate]
    chosen: str | None

    @property
    def uniques(self) -> float | None:
        """The unique people of the population by the chosen model."""
        return self.estimates[self.chosen].uniques if self.chosen else None

    @property
    def share(self) -> float | None:
        """Their share of the population, and as much of the table's rows are expected to be unique there."""
        return None if self.uniques is None else self.uniques / self.population

    def as_dict(self) -> dict[str, Any]:
        """The estimates as JSON has them; shares are of the population, 0..1."""
        return {
            "size": self.population,
            "sampling_fraction": self.rows / self.population,
            "model": self.chosen,
            "unique_people": self.uniques,
            "unique_share": self.share,
            "estimates": {
                name: {"unique_people": estimate.uniques, "reason": estimate.reason or None}
                for name, estimate in self.estimates.items()
            },
        }


def refuse_population(population: int | None, rows: int) -> None:
    """Raise PolicyError for the size of a population of which so many rows cannot be a sample."""
    if population is None:
        return
    whole = isinstance(population, int) and not isinstance(population, bool)
    if not whole or not 1 <= population <= MOST_PEOPLE:
        raise refused("population-size", f"takes a whole number up to {MOST_PEOPLE:,}")
    if population < rows:
        what = f"{population:,} people are fewer than the table's {rows:,} rows, which are a sample of them"
        raise refused("population-size", what)


def estimate_uniqueness(engine: Engine, classes: Relation, rows: str, population: int) -> PopulationUniqueness | None:
    """The estimates for the table of these classes, whose sizes are in the column `rows`; None of an empty table."""
    sizes = dict(engine.tally(classes, rows))
    return estimate(sizes, population) if sizes else None


def estimate(sizes: Mapping[int, int], population: int) -> PopulationUniqueness:
    """The estimates for so many classes of each size, of rows drawn from a population no smaller than they are."""
    rows = sum(size * count for size, count in sizes.items())
    models: dict[str, Callable[[], float]] = {
        PITMAN: lambda: fit_pitman(sizes).expected_uniques(population),
        ZAYATZ: lambda: zayatz(sizes, population),
        SNB: lambda: fit_slide(sizes, population).expected_uniques,
    }
    if rows == population:
        found = dict.fromkeys(models, UniquesEstimate(float(sizes.get(1, 0)), "the table is the population: counted"))
    elif not sizes.get(1):
        found = dict.fromkeys(models, UniquesEstimate(0.0, "no row of the table is unique"))
    else:
        found = {name: _estimated(model, population) for name, model in models.items()}
    return PopulationUniqueness(population, rows, found, _choose(found, rows / population))


def _estimated(model: Callable[[], float], population: int) -> UniquesEstimate:
    try:
        uniques = model()
    except ValueError as error:
        return UniquesEstimate(None, str(error))
    if not 0 <= uniques <= population:
        return UniquesEstimate(None, "it gives more than there are people")
    return UniquesEstimate(uniques)


def _choose(found: Mapping[str, UniquesEstimate], fraction: float) -> str | None:
    """Of small samples Pitman's, of others the lower of Zayatz's and the negative binomial's; what else there is."""
    given = {name: one.uniques for name, one in found.items() if one.uniques is not None}
    if fraction <= SMALL_SAMPLE and PITMAN in given:
        return PITMAN
    return min((name for name in (ZAYATZ, SNB) if name in given), key=lambda name: given[name], default=None)


def zayatz(sizes: Mapping[int, int], population: int) -> float:
    """Zayatz's estimate (US Bureau of the Census 91/08, 1991).

    As many classes of the population are taken to be of each size as of the sample; the probability that a class of
    one in the sample is one in the population follows by Bayes, one of i rows giving one to the sample by the
    hypergeometric distribution.
    """
    rows = sum(size * count for size, count in sizes.items())
    ones = sizes.get(1, 0)
    # By the probability of a class of one, which cancels: i times that none of i - 1 others is drawn.
    weight, none_drawn, others = 0.0, 1.0, 0
    for size in sorted(sizes):
        while others < size - 1 and none_drawn:
            others += 1
            none_drawn *= max(0, population - rows - others + 1) / (population - others)
        weight += sizes[size] * size * none_drawn
    return ones * (ones / weight) * (population / rows)


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


def fit_pitman(sizes: Mapping[int, int]) -> Pitman:
    """The parameters for so many classes of each size; raises ValueError where the likelihood has no maximum."""
    if set(sizes) == {1}:
        raise ValueError("every row is unique: the likelihood grows with theta")
    if sum(sizes.values()) == 1:
        raise ValueError("there is one class: the likelihood grows as theta falls")
    least, most = _ALPHAS
    if _slope(least, sizes) <= 0:
        return Pitman(0, _excess(0, sizes))
    alpha = root_of(lambda alpha: _slope(alpha, sizes), least, most)
    return Pitman(alpha, _excess(alpha, sizes))


def _excess(alpha: float, sizes: Mapping[int, int]) -> float:
    """The excess of the likeliest theta for an alpha over -alpha."""
    classes = sum(sizes.values())
    rows = sum(size * count for size, count in sizes.items())

    def slope(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return sum_reciprocals(excess, alpha, classes - 1) - sum_reciprocals(excess + 1 - alpha, 1, rows - 1)

    return math.exp(root_of(slope, *_LOG_EXCESSES))


def _slope(alpha: float, sizes: Mapping[int, int]) -> float:
    """The slope of the logarithm of the likelihood in alpha, theta being the likeliest for it."""
    excess, later = _excess(alpha, sizes), sum(sizes.values()) - 1
    opened = (later - (excess - alpha) * sum_reciprocals(excess, alpha, later)) / alpha
    joined, of_size = 0.0, 0.0
    for smaller, size in pairwise([1, *sorted(sizes)]):
        of_size += sum_reciprocals(smaller - alpha, 1, size - smaller)
        joined += sizes[size] * of_size
    return opened - joined


def root_of(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a function falls through 0 between two numbers, by halving intervals."""
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


def fit_slide(sizes: Mapping[int, int], population: int) -> SlideNegativeBinomial:
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
        constant = ratio * kept  # alpha is the solution above 0 of `unseen x² + 2 half x = constant`
        root = math.sqrt(half * half + unseen * constant)
        alpha = constant / (half + root) if half > 0 else (root - half) / unseen
        log_ones = -alpha * math.log1p(fraction * more) + math.log1p(alpha * unseen / kept)
        return SlideNegativeBinomial(classes, alpha, beta), log_ones - math.log(ones / (classes * fraction))

    def between(low: float, high: float, sign: int) -> SlideNegativeBinomial:
        return tried(root_of(lambda log_odds: sign * tried(log_odds)[1], low, high))[0]

    signs = [-1 if tried(log_odds)[1] < 0 else 1 for log_odds in _LOG_ODDS]
    yield from (
        between(*ends, sign)
        for ends, (sign, other) in zip(pairwise(_LOG_ODDS), pairwise(signs), strict=True)
        if sign != other
    )
