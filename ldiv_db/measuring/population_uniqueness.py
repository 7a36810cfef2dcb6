"""How many people are unique in a population of which a table is a sample, estimated from its classes' sizes.

Three models, which need no table of the population but its size: Pitman's sampling formula (`pitman.py`), Zayatz's
conditional probability, and the slide negative binomial (`slide_negative_binomial.py`). The one that is shown follows
Dankar, El Emam, Neisa and Roffey (BMC Medical Informatics and Decision Making 12:66, 2012). All take the table for a
random sample without replacement, whose rows are of different people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import Relation
from ldiv_db.measuring import pitman, slide_negative_binomial

PITMAN, ZAYATZ, SNB = "pitman", "zayatz", "snb"
#: Up to this share of the population Dankar et al. take Pitman's model.
SMALL_SAMPLE = 0.1
#: No population is larger.
MOST_PEOPLE = 10**11


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
        raise PolicyError([Problem("population-size", f"takes a whole number up to {MOST_PEOPLE:,}")])
    if population < rows:
        what = f"{population:,} people are fewer than the table's {rows:,} rows, which are a sample of them"
        raise PolicyError([Problem("population-size", what)])


def estimate_uniqueness(engine: Engine, classes: Relation, rows: str, population: int) -> PopulationUniqueness | None:
    """The estimates for the table of these classes, whose sizes are in the column `rows`; None of an empty table."""
    sizes = dict(engine.tally(classes, rows))
    return estimate(sizes, population) if sizes else None


def estimate(sizes: Mapping[int, int], population: int) -> PopulationUniqueness:
    """The estimates for so many classes of each size, of rows drawn from a population no smaller than they are."""
    rows = sum(size * count for size, count in sizes.items())
    models: dict[str, Callable[[], float]] = {
        PITMAN: lambda: pitman.fit(sizes).expected_uniques(population),
        ZAYATZ: lambda: zayatz(sizes, population),
        SNB: lambda: slide_negative_binomial.fit(sizes, population).expected_uniques,
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
