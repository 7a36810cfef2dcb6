"""What every requirement has: its parameters, the attribute it is about, a measure and a way to mend a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.categories import Categories
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import DIGITS
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: A decimal times this is a whole number.
UNIT = 10**DIGITS
#: Reads one parameter as it is written; raises ValueError.
Reader = Callable[[Any], Any]


@dataclass(frozen=True)
class Distribution:
    """The sensitive values of a table as counts in falling order, largest first."""

    counts: Sequence[int]

    @property
    def rows(self) -> int:
        return sum(self.counts)

    @property
    def distinct(self) -> int:
        return len(self.counts)

    @property
    def largest_l(self) -> int:
        """The largest l for which the table is l-eligible: `floor(n / n_1)`."""
        return self.rows // self.counts[0] if self.counts else 0

    @property
    def auto_l(self) -> int:
        """The l that `auto` stands for: `max(2, floor(n / n_1))` (BSGI, Corollary 3)."""
        return max(2, self.largest_l)


@dataclass(frozen=True)
class Attribute:
    """What a policy says of a sensitive attribute, and whether its values are ordered: numbers and times are."""

    name: str
    categories: Categories | None = None
    taxonomy: Taxonomy | None = None
    is_number: bool = False
    is_time: bool = False
    #: The SQL type of its column.
    type: str = "VARCHAR"


@dataclass(frozen=True)
class Requirement:
    """One requirement with its parameters resolved, for the sensitive attribute it is judged on.

    With `others_known` it must hold in every class refined by the other sensitive attributes: rows of a
    class that agree on all of them (NULL being a value) are a class of their own, as for an attacker who
    knows them (Machanavajjhala et al. 2007, section 4.3: the others count as quasi-identifiers).
    """

    name: ClassVar[str]
    #: The parameters as they are written, each with its reader; the only one that must be given may be written alone.
    fields: ClassVar[Mapping[str, Reader]]
    #: Those of them that may be left out.
    optional: ClassVar[frozenset[str]] = frozenset()
    #: What of the classes its template takes.
    relations: ClassVar[tuple[str, ...]] = ("summary",)
    #: Whether the union of two good classes is good: then the whole table as one class is the best there can be.
    monotone: ClassVar[bool] = True

    #: Whether the class that reaches the most is the worst: shares, ratios and distances.
    most_is_worst: ClassVar[bool] = False
    #: What figure a class reaches; of several conditions that of one, while the margin is that of the worst.
    reaches: ClassVar[str]

    others_known: bool = field(default=False, kw_only=True)

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        """The requirement of checked parameters; raises ValueError if the attribute lacks what it needs."""
        return cls(**values, others_known=others_known)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters for a report; none is a value of the data, except for `Threshold`."""
        known = {"others_known": True} if self.others_known else {}
        return {name: getattr(self, name) for name in self.fields} | known

    @property
    def shown(self) -> dict[str, Any]:
        """The parameters without any sensitive value."""
        return self.parameters

    @property
    def template(self) -> str:
        return f"requirements/{self.name}"

    def holes(self, engine: Engine) -> dict[str, Any]:
        """What the template takes besides the classes."""
        return {name: Value(getattr(self, name)) for name in self.fields}

    def measure(self, engine: Engine, classes: Classes) -> Relation:
        """The TEMP table (class_no, rows, reached, margin), a row a class; a negative margin violates."""
        shared = {name: getattr(classes, name) for name in self.relations}
        own = self.holes(engine)
        measures = engine.materialise(self.name, self.template, **shared, **own)
        engine.drop(*(hole for hole in own.values() if isinstance(hole, Relation)))
        return measures

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        """The TEMP table (class_no, suppress): the fewest rows of each violating class whose suppression mends it.

        By default all of them: what lacks rows or values does not come to have more by losing some. NULL
        where no exact rule is known.
        """
        return engine.materialise("mended", "requirements/mend_whole", measures=measures)

    def unique_class_size(self) -> int | None:
        """The smallest size from which on every class of pairwise different sensitive values is good; None if none."""
        raise AssertionError("every requirement says its class size")

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        """The nearest parameters that the table as one class meets, which `reached` that much; in words."""
        raise AssertionError("every requirement says what is nearest")

    def nearest_in(self, engine: Engine, classes: Classes, reached: float | None, distribution: Distribution) -> str:
        """As `nearest_whole`, where `classes` are the table as one class."""
        return self.nearest_whole(reached, distribution)

    def nearest_at(self, size: int) -> str:
        """The nearest parameters that classes of `size` different sensitive values meet, in words."""
        raise AssertionError("every requirement says what is nearest")

    def __str__(self) -> str:
        return f"{self.name} " + ", ".join(f"{k}={plain(v)}" for k, v in self.parameters.items())

    @property
    def label(self) -> str:
        """As `str`, without any sensitive value."""
        return f"{self.name} " + ", ".join(f"{k}={plain(v)}" for k, v in self.shown.items())

    @property
    def names(self) -> tuple[str, str]:
        """How it is written, with and without sensitive values."""
        return str(self), self.label


def plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Decimal | Fraction):
        return int(value) if value == int(value) else float(value)
    return value


def units(value: Decimal | Fraction) -> int:
    """The decimal in units of its last digit; what is finer is cut off."""
    return int(value * UNIT)
