"""Requirements on the size of a class and on the diversity of its sensitive values: distinct, entropy, recursive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.guarantees import ONE, Ceiling, Distribution, Guarantee, eligible_ceiling
from ldiv_db.requirements.histogram import Classes, OnPeople, suppress_if_few
from ldiv_db.requirements.parameters import (
    UNIT,
    at_least_one,
    just_above,
    plain_decimal,
    positive,
    rounded,
    units,
    whole,
)


@dataclass(frozen=True)
class CountRequirement(Requirement):
    """A requirement on counts alone, which classes of different values meet once they have enough rows.

    All follows from the fewest rows and different values, and the largest share of a value, that it asks for.
    """

    counts_only = tallies_only = met_by_eligible = True

    @property
    def fewest_rows(self) -> int:
        return self._least("rows")

    @property
    def fewest_values(self) -> int:
        return self._least("values")

    @property
    def largest_share(self) -> Fraction:
        return ONE

    def _least(self, of: str) -> int:
        parameter = self.bounds_below.get(of)
        return int(getattr(self, parameter)) if parameter else 1

    def promise(self) -> Guarantee:
        return Guarantee(self.fewest_rows, self.fewest_values, share=self.largest_share).exempting(self.harmless)

    @property
    def least_rows(self) -> int:
        of_values = 1 if self.harmless else max(self.fewest_values, math.ceil(1 / self.largest_share))
        return max(self.fewest_rows, of_values)

    def unique_class_size(self) -> int:
        values = self.fewest_values + (len(self.harmless) if self.fewest_values > 1 else 0)
        return max(self.fewest_rows, values, math.ceil(1 / self.largest_share))

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        """As a table of so many different values meets them."""
        return self.weaker_whole(float(size), Distribution([1] * size))


@dataclass(frozen=True)
class KAnonymity(CountRequirement):
    """k-anonymity: `|G| >= k` (Samarati & Sweeney 1998)."""

    name = "k"
    on_people = "counts"
    reaches = "rows"
    more_is_better = rows_only = kept_by_select = True
    bounds_below = {"rows": "k"}  # noqa: RUF012
    fields = {"k": whole}  # noqa: RUF012 - typed in the base class
    #: Whether what a class reaches is the risk of a row.
    as_risk: ClassVar[bool] = False
    k: int

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"k": distribution.rows}


@dataclass(frozen=True)
class DistinctL(CountRequirement):
    """Distinct l-diversity: at least `l` distinct sensitive values (Machanavajjhala et al. 2006)."""

    name = "distinct"
    on_people: ClassVar[OnPeople] = "counts"
    reaches = "values"
    more_is_better = kept_by_select = supports_harmless = True
    bounds_below = {"values": "l"}  # noqa: RUF012
    fields = {"l": whole}  # noqa: RUF012
    l: int

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"l": distribution.largest_distinct}


@dataclass(frozen=True)
class UniqueDistinctL(DistinctL):
    """Unique distinct l-diversity: `|G| >= l` rows, all of different sensitive values (BSGI, Definition 2)."""

    name = "unique_distinct"
    on_people = None
    reaches = "rows, 0 if values recur"
    monotone = more_is_better = met_by_eligible = kept_by_select = supports_harmless = False

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return suppress_if_few(engine, classes, measures, self.l, unique=True)

    def promise(self) -> Guarantee:
        return Guarantee(size=self.l, values=self.l, share=Fraction(1, self.l))


@dataclass(frozen=True)
class PSensitiveK(CountRequirement):
    """p-sensitive k-anonymity: `|G| >= k` and at least `p` distinct sensitive values (Truta & Vinay 2006)."""

    name = "p_sensitive"
    on_people = "counts"
    l_parameter = "p"
    reaches = "values"
    more_is_better = kept_by_select = supports_harmless = True
    bounds_below = {"rows": "k", "values": "p"}  # noqa: RUF012
    fields = {"p": whole, "k": whole}  # noqa: RUF012
    p: int
    k: int

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"p": min(self.p, distribution.largest_distinct), "k": min(self.k, distribution.rows)}


#: Entropies (natural logarithms) this close to `ln l` count as reaching it, so that l equal shares do.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class EntropyL(CountRequirement):
    """Entropy l-diversity: `-sum p ln p >= ln l` over the sensitive values (Machanavajjhala et al. 2006).

    Entropies within `TOLERANCE` below `ln l` reach it. What a class reaches is given as `exp(entropy)`,
    the number of equally frequent values that would be as diverse.
    """

    name = "entropy"
    on_people = "shares"
    reaches = "exp of entropy"
    tallies_only = False
    fields = {"l": at_least_one}  # noqa: RUF012
    tolerance: ClassVar[float] = TOLERANCE
    l: Decimal

    def params(self, template: str) -> dict[str, Any]:
        return super().params(template) | {"l": float(self.l)}

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        known = {"l": float(self.l), "tolerance": TOLERANCE, "measures": measures, "sizes": classes.sizes}
        flow = EngineFlow(engine, "requirements", **known)
        flow.step("layers", "list_layers")
        flow.step("levellings", "list_levellings")
        mended = flow.step("mended", "mend_entropy")
        flow.drop("layers", "levellings")
        return mended

    def promise(self) -> Guarantee:
        """An entropy of ln l takes l values; one within the tolerance below it counts as reaching it."""
        return Guarantee(values=math.ceil(float(self.l) * math.exp(-TOLERANCE)))

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        """An entropy below ln l takes a value in more than 1/l of the rows, but not the other way round."""
        reached = distribution.entropy >= math.log(self.l) - TOLERANCE
        return None if reached else eligible_ceiling(Fraction(self.l), distribution)

    @property
    def fewest_values(self) -> int:
        return math.ceil(self.l)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"l": Decimal(rounded((reached or 1) * (1 + TOLERANCE), 3))}


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
    on_people = "shares"
    reaches = "top value / tail"
    most_is_worst = True
    counts_only = met_by_eligible = supports_harmless = True
    fields = {"c": positive, "l": whole}  # noqa: RUF012
    #: Margins are told in units of the last decimal.
    unit: ClassVar[int] = UNIT
    c: Decimal
    l: int

    @property
    def c_units(self) -> int:
        return units(self.c)

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        if not self.harmless:
            return super().measure(steps, classes)
        others = classes.exempting(self.harmless).summary
        return self.measured(steps, classes, "requirements/pd_recursive", others=others)

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        if self.harmless:
            return suppress_if_few(engine, classes, measures, 0)
        template = "requirements/mend_recursive"
        return engine.materialise("mended", template, measures=measures, sizes=classes.sizes, **self.params(template))

    def promise(self) -> Guarantee:
        """`r_1 < c (r_l + ... + r_m)`: who excludes l-2 values still leaves the l-th and those after it.

        As r_1 is the largest, more than 1/c of them are needed.
        """
        c, values = Fraction(self.c), self.unique_class_size()
        if self.l == 1:
            return Guarantee(values=values, share=min(ONE, c)).exempting(self.harmless)
        found = Guarantee(values=values, share=c / (c + 1), excluded=((self.l - 2, c / (c + 1)),))
        return found.exempting(self.harmless)

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
