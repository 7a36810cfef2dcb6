"""Requirements on how many rows and how many sensitive values a class has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.distribution import Distribution
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import whole


@dataclass(frozen=True)
class CountRequirement(Requirement):
    """What asks for counts alone, and holds in classes of different values as soon as they have rows enough."""

    of_counts = of_tallies = of_eligible = True

    def unique_class_size(self) -> int:
        return self.least_rows


@dataclass(frozen=True)
class KAnonymity(CountRequirement):
    """k-anonymity: `|G| >= k` (Samarati & Sweeney 1998)."""

    name = "k"
    reaches = "rows"
    more_is_better = of_rows = kept_by_select = True
    bounds_below = {"rows": "k"}  # noqa: RUF012
    fields = {"k": whole}  # noqa: RUF012 - typed in the base class
    k: int

    def promise(self) -> Guarantee:
        return Guarantee(size=self.k)

    @property
    def least_rows(self) -> int:
        return self.k

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"k": distribution.rows}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        return {"k": size}


@dataclass(frozen=True)
class DistinctL(CountRequirement):
    """Distinct l-diversity: at least `l` distinct sensitive values (Machanavajjhala et al. 2006)."""

    name = "distinct"
    reaches = "values"
    more_is_better = kept_by_select = spares = True
    bounds_below = {"values": "l"}  # noqa: RUF012
    fields = {"l": whole}  # noqa: RUF012
    l: int  # noqa: E741 - the field's name for it

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        return _mend_by_others(self, engine, classes, measures) or super().mend(engine, classes, measures)

    def promise(self) -> Guarantee:
        return Guarantee(values=self.l).sparing(self.harmless)

    @property
    def least_rows(self) -> int:
        return 1 if self.harmless else self.l

    def unique_class_size(self) -> int:
        return self.l + (len(self.harmless) if self.l > 1 else 0)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"l": distribution.distinct}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        return {"l": size}


@dataclass(frozen=True)
class UniqueDistinctL(DistinctL):
    """Unique distinct l-diversity: `|G| >= l` rows, all of different sensitive values (BSGI, Definition 2)."""

    name = "unique_distinct"
    reaches = "rows, 0 if values recur"
    monotone = more_is_better = of_eligible = kept_by_select = spares = False
    bounds_below = {}  # noqa: RUF012

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        holes = {"measures": measures, "summary": classes.summary, "l": Value(self.l)}
        return engine.materialise("mended", "requirements/mend_unique", **holes)

    def promise(self) -> Guarantee:
        return Guarantee(size=self.l, values=self.l, share=Fraction(1, self.l))


@dataclass(frozen=True)
class PSensitiveK(CountRequirement):
    """p-sensitive k-anonymity: `|G| >= k` and at least `p` distinct sensitive values (Truta & Vinay 2006)."""

    name = "p_sensitive"
    l_parameter = "p"
    reaches = "values"
    more_is_better = kept_by_select = spares = True
    bounds_below = {"rows": "k", "values": "p"}  # noqa: RUF012
    fields = {"p": whole, "k": whole}  # noqa: RUF012
    p: int
    k: int

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        mended = _mend_by_others(self, engine, classes, measures, self.k)
        return mended or super().mend(engine, classes, measures)

    def promise(self) -> Guarantee:
        return Guarantee(size=self.k, values=self.p).sparing(self.harmless)

    @property
    def least_rows(self) -> int:
        return self.k if self.harmless else max(self.p, self.k)

    def unique_class_size(self) -> int:
        return max(self.k, self.p + (len(self.harmless) if self.p > 1 else 0))

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"p": min(self.p, distribution.distinct), "k": min(self.k, distribution.rows)}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        return {"p": min(self.p, size), "k": min(self.k, size)}


def _mend_by_others(
    requirement: Requirement, engine: Engine, classes: Classes, measures: Relation, least: int = 1
) -> Relation | None:
    """What mends a class that has too few values that are not harmless: to lose them; None without harmless values.

    Where fewer than `least` rows would be left, all of them.
    """
    if not requirement.harmless:
        return None
    others = classes.sparing(requirement.harmless).sizes
    return engine.materialise(
        "mended", "requirements/mend_others", measures=measures, others=others, least=Value(least)
    )
