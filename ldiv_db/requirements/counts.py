"""Requirements on how often sensitive values stand in a class, whatever they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from ldiv_db.engine import Engine
from ldiv_db.requirements.base import UNIT, Attribute, Distribution, Requirement, units
from ldiv_db.requirements.classes import Classes
from ldiv_db.requirements.core import mend_by_core
from ldiv_db.requirements.readers import at_least_one, positive, share, whole
from ldiv_db.templates import Relation, Value

#: Entropies (natural logarithms) this close to `ln l` count as reaching it, so that l equal shares do.
TOLERANCE = 1e-9


def rounded(number: float, digits: int, up: bool = False) -> str:
    """The number with so many digits after the point, never nearer than it may be."""
    way = ROUND_CEILING if up else ROUND_FLOOR
    return f"{Decimal(str(number)).quantize(Decimal(1).scaleb(-digits), way).normalize():f}"


@dataclass(frozen=True)
class KAnonymity(Requirement):
    """k-anonymity: `|G| >= k` (Samarati & Sweeney 1998)."""

    name = "k"
    reaches = "rows"
    fields = {"k": whole}  # noqa: RUF012 - typed in the base class
    k: int

    def unique_class_size(self) -> int:
        return self.k

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"k: {distribution.rows}"

    def nearest_at(self, size: int) -> str:
        return f"k: {size}"


@dataclass(frozen=True)
class DistinctL(Requirement):
    """Distinct l-diversity: at least `l` distinct sensitive values (Machanavajjhala et al. 2006)."""

    name = "distinct"
    reaches = "values"
    fields = {"l": whole}  # noqa: RUF012
    l: int  # noqa: E741 - the field's name for it

    def unique_class_size(self) -> int:
        return self.l

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"l: {distribution.distinct}"

    def nearest_at(self, size: int) -> str:
        return f"l: {size}"


@dataclass(frozen=True)
class UniqueDistinctL(DistinctL):
    """Unique distinct l-diversity: `|G| >= l` rows, all of different sensitive values (BSGI, Definition 2)."""

    name = "unique_distinct"
    reaches = "rows, 0 if values recur"
    monotone = False

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        holes = {"measures": measures, "summary": classes.summary, "l": Value(self.l)}
        return engine.materialise("mended", "requirements/mend_unique", **holes)


@dataclass(frozen=True)
class FrequencyL(Requirement):
    """Frequency l-diversity: no sensitive value in more than `|G| / l` rows (l-eligibility in TP)."""

    name = "frequency"
    reaches = "rows / top value's"
    fields = {"l": at_least_one}  # noqa: RUF012
    l: Decimal  # noqa: E741

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return mend_by_core(engine, classes, measures, UNIT, units(self.l))

    def unique_class_size(self) -> int:
        return math.ceil(self.l)

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"l: {rounded(distribution.rows / distribution.counts[0], 3)}"

    def nearest_at(self, size: int) -> str:
        return f"l: {size}"


@dataclass(frozen=True)
class EntropyL(Requirement):
    """Entropy l-diversity: `-sum p ln p >= ln l` over the sensitive values (Machanavajjhala et al. 2006).

    Entropies within `TOLERANCE` below `ln l` reach it. What a class reaches is given as `exp(entropy)`,
    the number of equally frequent values that would be as diverse.
    """

    name = "entropy"
    reaches = "exp of entropy"
    fields = {"l": at_least_one}  # noqa: RUF012
    l: Decimal  # noqa: E741

    def holes(self, engine: Engine) -> dict[str, Any]:
        return {"l": Value(float(self.l)), "tolerance": Value(TOLERANCE)}

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        own = self.holes(engine)
        layers = engine.materialise("layers", "requirements/list_layers", measures=measures, sizes=classes.sizes)
        levellings = engine.materialise("levellings", "requirements/list_levellings", layers=layers, **own)
        mended = engine.materialise(
            "mended", "requirements/mend_entropy", measures=measures, levellings=levellings, **own
        )
        engine.drop(layers, levellings)
        return mended

    def unique_class_size(self) -> int:
        return math.ceil(self.l)

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"l: {rounded((reached or 1) * (1 + TOLERANCE), 3)}"

    def nearest_at(self, size: int) -> str:
        return f"l: {size}"


@dataclass(frozen=True)
class RecursiveCL(Requirement):
    """Recursive (c,l)-diversity: `r_1 < c (r_l + ... + r_m)`, counts in falling order (Machanavajjhala et al. 2006)."""

    name = "recursive"
    reaches = "top value / tail"
    most_is_worst = True
    fields = {"c": positive, "l": whole}  # noqa: RUF012
    relations = ("sizes",)
    c: Decimal
    l: int  # noqa: E741

    def holes(self, engine: Engine) -> dict[str, Any]:
        return {"c_units": Value(units(self.c)), "unit": Value(UNIT), "l": Value(self.l)}

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        holes = {"measures": measures, "sizes": classes.sizes, **self.holes(engine)}
        return engine.materialise("mended", "requirements/mend_recursive", **holes)

    def unique_class_size(self) -> int:
        return self.l + math.floor(1 / self.c)

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        if reached is None:  # no value is left beyond the first l - 1
            return f"l: {distribution.distinct}, c above {distribution.counts[0] / distribution.counts[-1]:.9g}"
        return f"l: {self.l}, c above {rounded(reached, 9, up=True)}"

    def nearest_at(self, size: int) -> str:
        lower = size - math.floor(1 / self.c)
        found = [f"l: {lower}, c: {plain_decimal(self.c)}"] if lower >= 1 else []
        found += [f"l: {self.l}, c above {rounded(1 / (size - self.l + 1), 9, up=True)}"] if size >= self.l else []
        return " or ".join(found) or "l: 1, c above 1"


def plain_decimal(value: Decimal) -> str:
    """The decimal without trailing zeros."""
    return f"{value.normalize():f}"


@dataclass(frozen=True)
class PSensitiveK(Requirement):
    """p-sensitive k-anonymity: `|G| >= k` and at least `p` distinct sensitive values (Truta & Vinay 2006)."""

    name = "p_sensitive"
    reaches = "values"
    fields = {"p": whole, "k": whole}  # noqa: RUF012
    p: int
    k: int

    def unique_class_size(self) -> int:
        return max(self.p, self.k)

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"p: {min(self.p, distribution.distinct)}, k: {min(self.k, distribution.rows)}"

    def nearest_at(self, size: int) -> str:
        return f"p: {min(self.p, size)}, k: {min(self.k, size)}"


@dataclass(frozen=True)
class AlphaK(Requirement):
    """(alpha,k)-anonymity: `|G| >= k` and no sensitive value in more than `alpha |G|` rows (Wong et al. 2006)."""

    name = "alpha_k"
    reaches = "largest share"
    most_is_worst = True
    fields = {"alpha": share, "k": whole}  # noqa: RUF012
    alpha: Decimal
    k: int

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return mend_by_core(engine, classes, measures, units(self.alpha), UNIT, least=self.k)

    def unique_class_size(self) -> int:
        return max(self.k, math.ceil(1 / self.alpha))

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        alpha = max(self.alpha, Decimal(rounded(distribution.counts[0] / distribution.rows, 9, up=True)))
        return f"alpha: {plain_decimal(alpha)}, k: {min(self.k, distribution.rows)}"

    def nearest_at(self, size: int) -> str:
        alpha = max(self.alpha, Decimal(rounded(1 / size, 9, up=True)))
        return f"alpha: {plain_decimal(alpha)}, k: {min(self.k, size)}"


@dataclass(frozen=True)
class Threshold(Requirement):
    """Per-value thresholds: `conf(s|G) <= theta_s` for every sensitive value s (l+-diversity).

    `thetas` maps values, as text, to their threshold; `default` is for the rest. With `base` instead, values that are
    more frequent than the average value have `base * fr / fr_avg`, the others `base` (Liu & Wang, VIII-A); `spread`
    works them out. These follow from the data: in a report stands the base alone, with the values that are `named`.
    """

    name = "threshold"
    reaches = "share / threshold"
    most_is_worst = True
    fields = {}  # noqa: RUF012 - its parameters are named by values
    relations = ("histogram",)
    default: Decimal
    thetas: tuple[tuple[str, Decimal], ...] = ()
    from_base: bool = False
    #: The values that the policy itself names.
    named: tuple[str, ...] = ()

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        if not values:
            raise ValueError("names no threshold")
        thetas = {str(value): share(theta) for value, theta in values.items()}
        if {"base", "default"} <= set(thetas):
            raise ValueError("takes base or default, not both")
        base = thetas.pop("base", None)
        default = base or thetas.pop("default", Decimal(1))
        own = tuple(sorted(thetas.items()))
        return cls(default, own, from_base=base is not None, named=tuple(sorted(thetas)), others_known=others_known)

    def spread(self, engine: Engine, dictionary: Relation) -> Threshold:
        """With the thresholds that follow from a base, rounded down to nine digits; itself if there is no base."""
        if not self.from_base:
            return self
        frequent = engine.rows(
            "requirements/spread_thresholds", dictionary=dictionary, base=Value(units(self.default)), one=Value(UNIT)
        )
        found = {value: Decimal(theta) / UNIT for value, theta in frequent} | dict(self.thetas)
        return replace(self, thetas=tuple(sorted(found.items())))

    @property
    def parameters(self) -> dict[str, Any]:
        return self._rest | {value: theta for value, theta in self.thetas if value in self.named} | self._known

    @property
    def shown(self) -> dict[str, Any]:
        return self._rest | ({"own_thresholds": len(self.named)} if self.named else {}) | self._known

    @property
    def _rest(self) -> dict[str, Any]:
        """What the policy says of the values that it does not name."""
        return {"base" if self.from_base else "default": self.default}

    @property
    def _known(self) -> dict[str, Any]:
        return {"others_known": True} if self.others_known else {}

    def holes(self, engine: Engine) -> dict[str, Any]:
        columns = {"value": "VARCHAR", "theta": "DECIMAL(18, 9)"}
        return {"thetas": engine.load("thetas", columns, self.thetas), "default_theta": Value(self.default)}

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        own = [(value, units(theta)) for value, theta in self.thetas]
        return mend_by_core(engine, classes, measures, units(self.default), UNIT, own)

    def unique_class_size(self) -> int:
        return math.ceil(1 / min([self.default, *(theta for _, theta in self.thetas)]))

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"thresholds {rounded(reached or 1, 3, up=True)} times as high"

    def nearest_at(self, size: int) -> str:
        return f"no threshold below {rounded(1 / size, 9, up=True)}"
