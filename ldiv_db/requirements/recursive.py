"""How far the most frequent sensitive value of a class exceeds the rare ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.core import mend_if_few
from ldiv_db.requirements.distribution import Ceiling, Distribution
from ldiv_db.requirements.guarantees import ONE, Guarantee
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import UNIT, just_above, plain_decimal, positive, rounded, units, whole


@dataclass(frozen=True)
class RecursiveCL(Requirement):
    """Recursive (c,l)-diversity: `r_1 < c (r_l + ... + r_m)`, counts in falling order (Machanavajjhala et al. 2006).

    Beside harmless values it is pd-recursive (c,l)-diversity, which allows positive disclosure of them (section 4.2
    there): with `r_y` the rows of the most frequent other value, `r_y < c` times the rows that are left without it and
    without the l - 2 most frequent of all the rest. What holds for that value holds for all others that are not
    harmless. Rows that are left add up when classes are put together, and no l - 2 values have more rows in the union
    than those that are taken from each part: so it is monotone.
    """

    name = "recursive"
    reaches = "top value / tail"
    most_is_worst = True
    of_counts = of_eligible = spares = True
    fields = {"c": positive, "l": whole}  # noqa: RUF012
    relations = ("sizes",)
    c: Decimal
    l: int  # noqa: E741

    def holes(self, steps: Steps) -> dict[str, Any]:
        return {"c_units": Value(units(self.c)), "unit": Value(UNIT), "l": Value(self.l)}

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        if not self.harmless:
            return super().measure(steps, classes)
        holes = {"sizes": classes.sizes, "others": classes.sparing(self.harmless).summary}
        return steps.materialise(self.name, "requirements/pd_recursive", **holes, **self.holes(steps))

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        if self.harmless:
            return mend_if_few(engine, classes, measures, 0)
        holes = {"measures": measures, "sizes": classes.sizes, **self.holes(engine)}
        return engine.materialise("mended", "requirements/mend_recursive", **holes)

    def promise(self) -> Guarantee:
        """`r_1 < c (r_l + ... + r_m)`: who excludes l-2 values still leaves the l-th and those after it.

        As r_1 is the largest, more than 1/c of them are needed.
        """
        c, values = Fraction(self.c), self.unique_class_size()
        if self.l == 1:
            return Guarantee(values=values, share=min(ONE, c)).sparing(self.harmless)
        found = Guarantee(values=values, share=c / (c + 1), excluded=((self.l - 2, c / (c + 1)),))
        return found.sparing(self.harmless)

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        tail = sum(distribution.counts[self.l - 1 :])
        return Ceiling(math.ceil(Fraction(self.c) * tail) - 1) if tail and not self.harmless else None

    def unique_class_size(self) -> int:
        return self.l + math.floor(1 / self.c)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        if reached is None:
            return {"c": just_above(distribution.counts[0] / distribution.counts[-1]), "l": distribution.distinct}
        return {"c": just_above(reached), "l": self.l}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        lower = size - math.floor(1 / self.c)
        if lower > 1 or size < self.l:
            return {"c": self.c, "l": max(lower, 1)}
        return {"c": just_above(1 / (size - self.l + 1)), "l": self.l}

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        if reached is None:  # no value is left beyond the first l - 1
            return f"l: {distribution.distinct}, c above {distribution.counts[0] / distribution.counts[-1]:.9g}"
        return f"l: {self.l}, c above {rounded(reached, 9, up=True)}"

    def nearest_at(self, size: int) -> str:
        lower = size - math.floor(1 / self.c)
        nearest = [f"l: {lower}, c: {plain_decimal(self.c)}"] if lower >= 1 else []
        nearest += [f"l: {self.l}, c above {rounded(1 / (size - self.l + 1), 9, up=True)}"] if size >= self.l else []
        return " or ".join(nearest) or "l: 1, c above 1"
