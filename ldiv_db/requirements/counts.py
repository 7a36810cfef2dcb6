"""Requirements on how often sensitive values stand in a class, whatever they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.base import UNIT, Distribution, Requirement, units
from ldiv_db.requirements.core import mend_by_core
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import at_least_one, positive, share, whole

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
