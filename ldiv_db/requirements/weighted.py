"""(l,alpha)-diversity: distinct values that also weigh enough, by categories from most to least sensitive.

Definitions 3 to 6 of the (l,alpha) paper. The weight of a class is the sum over its rows of the weight of
each row's sensitive value; the entropy and the recursive form count categories in place of values.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.diversity import TOLERANCE, EntropyL, RecursiveCL
from ldiv_db.requirements.guarantees import Distribution, Guarantee
from ldiv_db.requirements.histogram import Classes, suppress_if_few
from ldiv_db.requirements.parameters import at_least_one, in_words, not_negative, positive, rounded, whole
from ldiv_db.requirements.values import Attribute, Categories


@dataclass(frozen=True)
class DistinctAlpha(Requirement):
    """Distinct (l,alpha)-diversity: `l` distinct sensitive values, and weights of all rows that sum to `alpha`."""

    name = "distinct_alpha"
    reaches = "weight"
    more_is_better = True
    bounds_below = {"values": "l"}  # noqa: RUF012
    fields = {"l": whole, "alpha": not_negative}  # noqa: RUF012
    l: int
    alpha: Decimal
    categories: Categories

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        if attribute.categories is None:
            raise ValueError("needs the categories of the sensitive values")
        return cls(**values, categories=attribute.categories, others_known=others_known)

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"weights": [float(weight) for weight in self.categories.weights]}

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        categories = self.categories
        numerators = [(i, int(w * categories.denominator)) for i, w in enumerate(categories.weights, 1)]
        weights = steps.load("weights", {"category": "INTEGER", "numerator": "BIGINT"}, numerators)
        taken = {"categorised": classes.by_category(categories).histogram, "weights": weights, "l": self.values_needed}
        taken["denominator"] = categories.denominator
        measures = self.measured(steps, classes, "requirements/distinct_alpha", **taken)
        steps.drop(weights)
        return measures

    @property
    def values_needed(self) -> int:
        """The distinct values that a class must have."""
        return math.ceil(self.l)

    @property
    def listed(self) -> Categories:
        return self.categories

    def promise(self) -> Guarantee:
        """Weights that sum to alpha take rows, of which some have a weight."""
        alpha, most = Fraction(self.alpha), max(self.categories.weights)
        size = math.ceil(alpha / most) if most else 1
        weightless = [number for number, weight in enumerate(self.categories.weights, 1) if not weight]
        return Guarantee(max(size, 1), self.values_needed, mixed=frozenset(weightless if alpha else ()))

    def unique_class_size(self) -> int | None:
        """The smallest size from which on even the worst choice of different values is good."""
        most = sum(self.categories.sizes)
        good = [self._holds_at_worst(size) for size in range(1, most + 1)]
        bad = max((size for size, holds in enumerate(good, 1) if not holds), default=0)
        return bad + 1 if bad < most else None

    def _holds_at_worst(self, size: int) -> bool:
        """True if every class of so many different values of the categories is good."""
        return size >= self.values_needed and self.categories.least_weight(size) >= Fraction(self.alpha)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        """Weaker parameters for the table as one class of the weight `reached`."""
        weight = Decimal(rounded(min(float(self.alpha), reached or 0), 9))
        return {"l": min(self.l, distribution.distinct), "alpha": weight}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        weight = min(Fraction(self.alpha), self.categories.least_weight(size))
        return {"l": min(self.values_needed, size), "alpha": Decimal(rounded(float(weight), 9))}


@dataclass(frozen=True)
class _OverCategories(DistinctAlpha):
    """Distinct (l,alpha)-diversity, and a requirement on the shares of the categories."""

    more_is_better = False
    bounds_below = {}  # noqa: RUF012

    @property
    @abstractmethod
    def category_requirement(self) -> EntropyL | RecursiveCL:
        """The requirement on the categories."""

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        by_weight = super().measure(steps, classes)
        by_category = self.category_requirement.measure(steps, classes.by_category(self.categories))
        measures = steps.materialise(self.name, "requirements/combine", by_weight=by_weight, by_category=by_category)
        steps.drop(by_weight, by_category)
        return measures

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return suppress_if_few(engine, classes.by_category(self.categories), measures, self.values_needed)

    def promise(self) -> Guarantee:
        """The promise of the categories, taken for values: no value has more rows than its category."""
        promise = self.category_requirement.promise()
        return super().promise() & replace(promise, categories=promise.values)

    def weaker_in(
        self, engine: Engine, classes: Classes, reached: float | None, distribution: Distribution
    ) -> Mapping[str, Any]:
        """Weaker parameters, as for the categories that occur, which `reached` so much."""
        categories, weight = self._weighed(engine, classes)
        category_requirement = self.category_requirement
        is_met = self.is_met_by(reached, categories)
        found = category_requirement.parameters if is_met else category_requirement.weaker_whole(reached, categories)
        return {**found, "alpha": weight}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        """Nothing: which categories so many values are of is not known."""
        return {}

    def nearest_in(self, engine: Engine, classes: Classes, reached: float | None, distribution: Distribution) -> str:
        categories, weight = self._weighed(engine, classes)
        if self.is_met_by(reached, categories):
            nearest = in_words(self.category_requirement.parameters)
        else:
            nearest = f"over the categories {self.category_requirement.nearest_whole(reached, categories)}"
        return f"{nearest}, {in_words({'alpha': weight})}"

    def _weighed(self, engine: Engine, classes: Classes) -> tuple[Distribution, Decimal]:
        """The rows of the categories in a single class, and as much of alpha as all its rows weigh."""
        histogram = classes.by_category(self.categories).histogram
        rows = dict(engine.rows("requirements/total_values", histogram=histogram))
        weight = sum((count * self.categories.weights[number - 1] for number, count in rows.items()), Fraction(0))
        categories = Distribution(sorted(rows.values(), reverse=True))
        return categories, Decimal(rounded(float(min(Fraction(self.alpha), weight)), 9))

    def _weighing(self, size: int) -> str:
        """The number of values and the weight that so many different values are sure to have, in words."""
        return in_words(DistinctAlpha.weaker_at(self, size))

    @abstractmethod
    def is_met_by(self, reached: float | None, categories: Distribution) -> bool:
        """True if the categories, which `reached` so much, meet the requirement on them."""

    def nearest_at(self, size: int) -> str:
        spread = self.categories.least_spread(size)
        entropy = -sum(n / sum(spread) * math.log(n / sum(spread)) for n in spread)
        return f"over the categories an entropy of ln {rounded(math.exp(entropy), 3)}; {self._weighing(size)}"


@dataclass(frozen=True)
class EntropyAlpha(_OverCategories):
    """Entropy (l,alpha)-diversity: distinct (l,alpha), and entropy of at least `ln l` over the categories."""

    name = "entropy_alpha"
    reaches = "exp of categories' entropy"
    fields = {"l": at_least_one, "alpha": not_negative}  # noqa: RUF012
    l: Decimal  # type: ignore[assignment]

    @property
    def category_requirement(self) -> EntropyL:
        return EntropyL(self.l)

    def is_met_by(self, reached: float | None, categories: Distribution) -> bool:
        return math.log(reached or 1) >= math.log(self.l) - TOLERANCE

    def _holds_at_worst(self, size: int) -> bool:
        spread = self.categories.least_spread(size)
        entropy = -sum(n / size * math.log(n / size) for n in spread)
        return super()._holds_at_worst(size) and entropy >= math.log(self.l) - TOLERANCE


@dataclass(frozen=True)
class RecursiveAlpha(_OverCategories):
    """Recursive (c,l,alpha)-diversity: distinct (l,alpha), and recursive (c,l) over the categories."""

    name = "recursive_alpha"
    reaches = "top category / tail"
    most_is_worst = True
    fields = {"c": positive, "l": whole, "alpha": not_negative}  # noqa: RUF012
    c: Decimal = Decimal(1)

    @property
    def category_requirement(self) -> RecursiveCL:
        return RecursiveCL(self.c, self.l)

    def is_met_by(self, reached: float | None, categories: Distribution) -> bool:
        return bool(categories.counts) and categories.counts[0] < self.c * sum(categories.counts[self.l - 1 :])

    def _holds_at_worst(self, size: int) -> bool:
        spread = self.categories.least_spread(size)
        return super()._holds_at_worst(size) and spread[0] < self.c * sum(spread[self.l - 1 :])

    def nearest_at(self, size: int) -> str:
        spread = self.categories.least_spread(size)
        tail = sum(spread[self.l - 1 :])
        ratio = f"c above {rounded(spread[0] / tail, 9, up=True)}" if tail else f"l up to {len(spread)}"
        return f"over the categories {ratio}; {self._weighing(size)}"
