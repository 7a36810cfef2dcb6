"""The base of requirements: parameters, an attribute, a measure, a way to mend a class, and what follows from it.

All that is known of a requirement is said in its class; nothing else asks which one it is.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import declared_params
from ldiv_db.requirements.guarantees import Ceiling, Distribution, Guarantee
from ldiv_db.requirements.histogram import OF_CLASSES, Classes
from ldiv_db.requirements.parameters import RequirementSyntax, in_lowest_units, in_words, plain
from ldiv_db.requirements.traits import RequirementTraits
from ldiv_db.requirements.values import ROWS_ALONE, Attribute, Categories, Named, shown_value

#: What a policy may require, by its name: every subclass with a name of its own, unless it says otherwise.
REQUIREMENTS: dict[str, type[Requirement]] = {}
#: Why a requirement cannot be judged where people are counted, by what it reads of them.
NOT_OF_PEOPLE = {
    None: "is about rows of one value, and does not carry over to people (`individual`) or rows (`set`) with several",
    "shares": "is about shares of people or rows, whose numbers of values have no common multiple up to 10^9",
}
#: What harmless values are called among the parameters.
HARMLESS = "harmless"


@dataclass(frozen=True)
class Requirement(RequirementSyntax, RequirementTraits):
    """One requirement with its parameters resolved, for the sensitive attribute it is judged on.

    With `others_known` it must hold in every class refined by the other sensitive attributes: rows of a
    class that agree on all of them (NULL being a value) are a class of their own, as for an attacker who
    knows them (Machanavajjhala et al. 2007, section 4.3: the others count as quasi-identifiers).
    With `each` (`position`) it is asked of the values at every position of people's rows, not of all that they have.
    Rows whose value is `harmless` count in the size of a class. Bounds on shares, and numbers of different values, are
    asked of the other values alone: a class that has none of them meets both.
    """

    others_known: bool = field(default=False, kw_only=True)
    each: str = field(default="", kw_only=True)
    #: The values of which nothing is promised, as their column writes them.
    harmless: tuple[Named, ...] = field(default=(), kw_only=True)
    #: Which of the requirements of a policy it is, from 0, where it names values.
    place: int = field(default=0, compare=False, kw_only=True)

    def __init_subclass__(cls, in_policy: bool = True) -> None:
        """Enter the requirement among those that a policy may ask for."""
        super().__init_subclass__()
        if in_policy and "name" in vars(cls):
            REQUIREMENTS[cls.name] = cls

    # -- its parameters ------------------------------------------------------------------------------

    @classmethod
    def build(cls, values: Mapping[str, Any], attribute: Attribute, others_known: bool) -> Requirement:
        """The requirement of checked parameters; raises ValueError if the attribute lacks what it needs."""
        return cls(**values, others_known=others_known)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters for a report; values of the data are among them where the policy names them."""
        return {name: getattr(self, name) for name in self.fields} | self._common_parameters

    @property
    def shown(self) -> dict[str, Any]:
        """The parameters without any sensitive value."""
        return self._without_values(self.parameters)

    @property
    def _common_parameters(self) -> dict[str, Any]:
        """The parameters that any requirement may have beside its own."""
        known = {"others_known": self.others_known, "each": self.each, HARMLESS: [*map(shown_value, self.harmless)]}
        return {name: said for name, said in known.items() if said}

    def _without_values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with the number of harmless values in their place."""
        return dict(parameters) | ({HARMLESS: len(self.harmless)} if self.harmless else {})

    def __str__(self) -> str:
        return f"{self.name} " + ", ".join(f"{k}={plain(v)}" for k, v in self.parameters.items())

    @property
    def label(self) -> str:
        """As `str`, without any sensitive value."""
        return f"{self.name} " + ", ".join(f"{k}={plain(v)}" for k, v in self.shown.items())

    @property
    def names(self) -> tuple[str, str]:
        """Its text, with and without the sensitive values that it names."""
        return str(self), self.label

    @property
    def definition(self) -> str:
        """Its demand on a class, with the source."""
        return self.means()

    @classmethod
    def means(cls) -> str:
        """The demand of these requirements: the first paragraph of what the class says."""
        return " ".join((cls.__doc__ or "").split("\n\n")[0].split())

    @property
    def named(self) -> tuple[Named, ...]:
        """The values that it names."""
        return ()

    @property
    def named_population(self) -> str:
        """The table or file of people that its classes are held against; empty if it is the table alone."""
        return ""

    @property
    def absent(self) -> bool:
        """True if the values that it names need not occur."""
        return False

    def written_as(self, texts: Mapping[Named, Named], place: int) -> Requirement:
        """The same with every value that it names as `texts` has it; `place` is its number in the policy."""
        return self

    def exempting(self, values: Sequence[Named]) -> Requirement:
        """The same where nothing is promised of these values; raises ValueError if that has no meaning."""
        if not values or self.rows_only:
            return self
        if not self.supports_harmless:
            able = ", ".join(name for name, kind in REQUIREMENTS.items() if kind.supports_harmless or kind.rows_only)
            raise ValueError(f"is about all values of a class, the harmless ones too; beside these take {able}")
        return replace(self, harmless=tuple(values))

    def missing(self, engine: Engine, table: Table, column: str) -> set[Named]:
        """The values that it names, as the policy names them, that the column of the table does not have."""
        return set()

    def spread(self, engine: Engine, dictionary: Relation) -> Requirement:
        """The requirement with what follows from the values (value, rows) of the source."""
        return self

    @property
    def listed(self) -> Categories | None:
        """The categories that every value must be of, if any."""
        return None

    # -- judging and mending classes -----------------------------------------------------------------

    @property
    def template(self) -> str:
        return f"requirements/{self.measured_as or self.name}"

    def params(self, template: str) -> dict[str, Any]:
        """What a template takes of it by the names of its header: `l`, or exactly `l_units`, of which `unit` are 1."""
        declared = declared_params(template)
        found = {name: getattr(self, name) for name in declared if hasattr(self, name)}
        for name in self.fields:
            if f"{name}_units" in declared - set(found):
                found |= in_lowest_units(name, getattr(self, name))
        return found

    def readings(self, classes: Classes) -> list[Classes]:
        """The classes as it reads them, in each of which it must hold: of people, then of rows.

        Raises PolicyError if its definition does not carry over to people.
        """
        return [self._read(found) for found in (classes, classes.by_rows) if found]

    def _read(self, classes: Classes) -> Classes:
        if not classes.of_people or self.on_people == "counts":
            return classes
        if classes.shares is None or self.on_people is None:
            raise PolicyError([Problem("require", f"{self.label} {NOT_OF_PEOPLE[self.on_people]}")])
        return classes.shares

    def measure(self, steps: Steps, classes: Classes) -> Relation:
        """The relation (class_no, rows, reached, margin), a row a class; a negative margin violates."""
        return self.measured(steps, classes.exempting(self.harmless), self.template)

    def measured(self, steps: Steps, classes: Classes, template: str, **more: Any) -> Relation:
        """As `measure`, by a template, which takes by its header what it needs of the classes and the requirement."""
        taken = declared_params(template) - set(more)
        of_classes = {name: getattr(classes, name) for name in OF_CLASSES if name in taken}
        return steps.materialise(self.name, template, **of_classes, **self.params(template) | more)

    def of_units(self, unit: int) -> Requirement:
        """The same on classes in which everybody is so many units, and of whom other requirements count the people."""
        return self

    @property
    def of_classes(self) -> Requirement:
        """What algorithms ask of each class, where a whole table may have less."""
        return self

    def measure_table(self, steps: Steps, classes: Classes) -> Relation:
        """As `measure`, where the classes are those of one whole table, which may decide what no class does alone."""
        return self.measure(steps, classes)

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        """The TEMP table (class_no, suppress): the fewest rows of each violating class whose suppression mends it.

        By default all of them, as what lacks rows or values does not come to have more by losing some; where some are
        harmless the others, if enough are left without these. NULL where no exact rule is known.
        """
        if not self.harmless:
            return engine.materialise("mended", "requirements/mend_whole", measures=measures)
        kept = {"others": classes.exempting(self.harmless).sizes, "least": self.least_rows}
        return engine.materialise("mended", "requirements/mend_others", measures=measures, **kept)

    # -- what follows from it ------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        """The guarantee of classes that meet it, against any attacker.

        Where others are known it holds for parts of a class, and so for their union.
        """
        return Guarantee()

    @classmethod
    def recorded_share(cls, parameters: Mapping[str, Any]) -> Fraction | None:
        """The share that parameters, as the ledger has them, allow every value; None if they do not tell of one."""
        if not (cls.bounds_shares and cls.kept_by_select) or parameters.get("each"):
            return None
        values = cls.read({name: parameters[name] for name in cls.fields}, None)
        return cls.build(values, ROWS_ALONE, others_known=False).promise().share

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        """The largest frequency of a value in the whole table; None if it does not bound the frequency of values."""
        return self.promise().ceiling(distribution.rows) if self.bounds_shares else None

    @property
    def least_rows(self) -> int:
        """The fewest rows that a good class can have, as far as is known without counting."""
        return 1

    @property
    def share_size(self) -> int:
        """The rows of different values that keep every share below its bound; 0 if shares are not what it bounds."""
        return math.ceil(1 / self.promise().least_share) if self.bounds_shares and not self.harmless else 0

    @abstractmethod
    def unique_class_size(self) -> int | None:
        """The smallest size from which on every class of pairwise different sensitive values is good; None if none."""

    # -- what is nearest to it -----------------------------------------------------------------------

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        """The nearest parameters that the table as one class meets, which `reached` that much, as a policy writes them.

        Empty where none can be told.
        """
        return {}

    def weaker_in(
        self, engine: Engine, classes: Classes, reached: float | None, distribution: Distribution
    ) -> Mapping[str, Any]:
        """As `weaker_whole`, where `classes` are the table as one class."""
        return self.weaker_whole(reached, self._judged(engine, classes, distribution))

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        """The nearest parameters that classes of `size` different sensitive values meet, or none."""
        return {}

    def allowing(self, shares: Mapping[Named, Decimal]) -> Sequence[Mapping[str, Any]]:
        """Requirements, as a policy writes them, that ask for the same but allow each of these values its share.

        Empty if there are no such requirements.
        """
        return ()

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        """As `weaker_whole`, in words."""
        return in_words(self.weaker_whole(reached, distribution))

    def nearest_in(self, engine: Engine, classes: Classes, reached: float | None, distribution: Distribution) -> str:
        """As `weaker_in`, in words."""
        return self.nearest_whole(reached, self._judged(engine, classes, distribution))

    def _judged(self, engine: Engine, classes: Classes, distribution: Distribution) -> Distribution:
        return classes.distribution(engine, self.harmless) if self.harmless else distribution

    def nearest_at(self, size: int) -> str:
        """As `weaker_at`, in words."""
        return in_words(self.weaker_at(size))
