"""Requirements on the largest share of a class that a sensitive value may have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.core import mend_by_core
from ldiv_db.requirements.counts import CountRequirement, KAnonymity
from ldiv_db.requirements.distribution import Ceiling, Distribution, eligible_ceiling
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.named import Named
from ldiv_db.requirements.parameters import DIGITS, UNIT, at_least_one, in_lowest_units, rounded, share, units, whole
from ldiv_db.requirements.threshold import thresholds


@dataclass(frozen=True)
class FrequencyL(CountRequirement):
    """Frequency l-diversity: no sensitive value in more than `|G| / l` rows (l-eligibility in TP)."""

    name = "frequency"
    reaches = "rows / top value's"
    of_shares = kept_by_select = spares = True
    fields = {"l": at_least_one}  # noqa: RUF012
    l: Decimal  # noqa: E741

    def holes(self, steps: Steps) -> dict[str, Any]:
        return {**in_lowest_units("l", self.l)}

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        own = [(value, units(self.l)) for value in self.harmless]
        return mend_by_core(engine, classes, measures, UNIT, units(self.l), own)

    def promise(self) -> Guarantee:
        return Guarantee(share=1 / Fraction(self.l)).sparing(self.harmless)

    @classmethod
    def recorded_share(cls, parameters: Mapping[str, Any]) -> Fraction | None:
        return 1 / Fraction(str(parameters["l"]))

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        return eligible_ceiling(Fraction(self.l), distribution).sparing(self.harmless, distribution.rows)

    def unique_class_size(self) -> int:
        return math.ceil(self.l)

    @property
    def least_rows(self) -> int:
        return 1 if self.harmless else math.ceil(self.l)

    @property
    def share_size(self) -> int:
        return 0 if self.harmless else math.ceil(self.l)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"l": Decimal(rounded(distribution.rows / distribution.counts[0], 3))}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        return {"l": size}

    def allowing(self, shares: Mapping[Named, Decimal]) -> Sequence[Mapping[str, Any]]:
        return [thresholds(Decimal(rounded(float(1 / self.l), DIGITS, up=True)), shares)]


@dataclass(frozen=True)
class AlphaK(CountRequirement):
    """(alpha,k)-anonymity: `|G| >= k` and no sensitive value in more than `alpha |G|` rows (Wong et al. 2006)."""

    name = "alpha_k"
    reaches = "largest share"
    most_is_worst = True
    kept_by_select = spares = True
    bounds_below = {"rows": "k"}  # noqa: RUF012
    fields = {"alpha": share, "k": whole}  # noqa: RUF012
    alpha: Decimal
    k: int

    def holes(self, steps: Steps) -> dict[str, Any]:
        return {**in_lowest_units("alpha", self.alpha), "k": Value(self.k)}

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        own = [(value, UNIT) for value in self.harmless]
        return mend_by_core(engine, classes, measures, units(self.alpha), UNIT, own, least=self.k)

    def promise(self) -> Guarantee:
        return Guarantee(size=self.k, share=Fraction(self.alpha)).sparing(self.harmless)

    @classmethod
    def recorded_share(cls, parameters: Mapping[str, Any]) -> Fraction | None:
        return Fraction(str(parameters["alpha"]))

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        ceiling = Ceiling(math.floor(Fraction(self.alpha) * distribution.rows))
        return ceiling.sparing(self.harmless, distribution.rows)

    def unique_class_size(self) -> int:
        return max(self.k, math.ceil(1 / self.alpha))

    @property
    def least_rows(self) -> int:
        return max(self.k, self.share_size)

    @property
    def share_size(self) -> int:
        return 0 if self.harmless else math.ceil(1 / self.alpha)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        alpha = max(self.alpha, Decimal(rounded(distribution.counts[0] / distribution.rows, 9, up=True)))
        return {"alpha": alpha, "k": min(self.k, distribution.rows)}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        alpha = max(self.alpha, Decimal(rounded(1 / size, 9, up=True)))
        return {"alpha": alpha, "k": min(self.k, size)}

    def allowing(self, shares: Mapping[Named, Decimal]) -> Sequence[Mapping[str, Any]]:
        return [thresholds(self.alpha, shares), {KAnonymity.name: self.k}]
