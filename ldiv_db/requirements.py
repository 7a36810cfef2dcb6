"""Privacy requirements: what makes a class good, and the template that measures it.

A requirement's template returns one row a class with what it `reached` and its `margin`; the class
violates exactly if the margin is negative. Margins are integers or exact decimals wherever the
definition allows. Definitions: see each class's docstring.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from ldiv_db.engine import Engine
from ldiv_db.errors import Problem, nearest
from ldiv_db.templates import Relation, Value

AUTO = "auto"


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
class Requirement:
    """One requirement with its parameters resolved."""

    name: ClassVar[str]

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def template(self) -> str:
        return f"requirements/{self.name}"

    def holes(self, engine: Engine) -> dict[str, Any]:
        """What the template takes besides the histogram."""
        return {name: Value(value) for name, value in self.parameters.items()}

    def unique_class_size(self) -> int:
        """The smallest size at which every class of pairwise different sensitive values is good."""
        raise AssertionError("every requirement says its class size")

    def __str__(self) -> str:
        return f"{self.name} " + ", ".join(f"{k}={v}" for k, v in self.parameters.items())


@dataclass(frozen=True)
class KAnonymity(Requirement):
    """k-anonymity: `|G| >= k` (Samarati & Sweeney 1998)."""

    name = "k"
    k: int

    def unique_class_size(self) -> int:
        return self.k


@dataclass(frozen=True)
class DistinctL(Requirement):
    """Distinct l-diversity: at least `l` distinct sensitive values (Machanavajjhala et al. 2006)."""

    name = "distinct"
    l: int  # noqa: E741 - the field's name for it

    def unique_class_size(self) -> int:
        return self.l


@dataclass(frozen=True)
class UniqueDistinctL(Requirement):
    """Unique distinct l-diversity: `|G| >= l` rows, all of different sensitive values (BSGI, Definition 2)."""

    name = "unique_distinct"
    l: int  # noqa: E741

    def unique_class_size(self) -> int:
        return self.l


@dataclass(frozen=True)
class FrequencyL(Requirement):
    """Frequency l-diversity: no sensitive value in more than `|G| / l` rows (l-eligibility in TP)."""

    name = "frequency"
    l: Decimal  # noqa: E741

    def unique_class_size(self) -> int:
        return math.ceil(self.l)


@dataclass(frozen=True)
class Threshold(Requirement):
    """Per-value thresholds: `conf(s|G) <= theta_s` for every sensitive value s (l+-diversity).

    `thetas` maps values, as text, to their threshold; `default` is for the rest.
    """

    name = "threshold"
    default: Decimal
    thetas: tuple[tuple[str, Decimal], ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        return {"default": self.default, **dict(self.thetas)}

    def holes(self, engine: Engine) -> dict[str, Any]:
        columns = {"value": "VARCHAR", "theta": "DECIMAL(18, 9)"}
        return {"thetas": engine.load("thetas", columns, self.thetas), "default_theta": Value(self.default)}

    def unique_class_size(self) -> int:
        return math.ceil(1 / min([self.default, *(theta for _, theta in self.thetas)]))


REQUIREMENTS: dict[str, type[Requirement]] = {
    kind.name: kind for kind in (KAnonymity, DistinctL, UniqueDistinctL, FrequencyL, Threshold)
}


# -- from a policy or the command line ---------------------------------------------------------------


@dataclass(frozen=True)
class RequirementSpec:
    """A requirement as written: its name and its argument, with `auto` not yet resolved."""

    name: str
    argument: Any

    def problems(self, key: str) -> list[Problem]:
        """What is wrong with it; empty if `resolve` will work."""
        if self.name not in REQUIREMENTS:
            return [Problem(key, f"no requirement {self.name!r}", nearest(self.name, REQUIREMENTS))]
        try:
            self._build(auto=2)
        except ValueError as error:
            return [Problem(f"{key}.{self.name}", str(error))]
        return []

    def resolve(self, distribution: Distribution | None) -> Requirement:
        """The requirement; `auto` becomes the largest l that the distribution allows, at least 2."""
        return self._build(auto=distribution.auto_l if distribution else None)

    def _build(self, auto: int | None) -> Requirement:
        argument = self.argument
        if argument == AUTO and self.name != "threshold":
            if auto is None:
                raise ValueError("auto needs the distribution of the source")
            argument = auto
        if self.name == "k":
            return KAnonymity(_whole(argument, 1))
        if self.name == "distinct":
            return DistinctL(_whole(argument, 1))
        if self.name == "unique_distinct":
            return UniqueDistinctL(_whole(argument, 1))
        if self.name == "frequency":
            return FrequencyL(_decimal(argument, Decimal(1), Decimal(10**9)))
        return _threshold(argument)


def parse_requirement(text: str) -> RequirementSpec:
    """A requirement from the command line: `distinct:3`, `frequency:2.5`, `threshold:0.5,HIV=0.1`.

    Raises ValueError if it has no `name:argument` form.
    """
    name, colon, argument = text.partition(":")
    if not colon or not argument:
        raise ValueError(f"{text!r}: a requirement is written name:value, e.g. distinct:3")
    if name != "threshold":
        return RequirementSpec(name, argument)
    thetas: dict[str, str] = {}
    for part in argument.split(","):
        value, equals, theta = part.rpartition("=")
        thetas[value if equals else "default"] = theta
    return RequirementSpec(name, thetas)


def _whole(argument: Any, smallest: int) -> int:
    try:
        number = int(str(argument))
    except ValueError:
        raise ValueError(f"takes a whole number, not {argument!r}") from None
    if number < smallest or isinstance(argument, bool):
        raise ValueError(f"takes a whole number from {smallest}, not {argument!r}")
    return number


def _decimal(argument: Any, smallest: Decimal, largest: Decimal) -> Decimal:
    """The exact decimal that was written; 9 digits after the point are what the database compares."""
    try:
        number = Decimal(str(argument))
    except InvalidOperation:
        raise ValueError(f"takes a number, not {argument!r}") from None
    if isinstance(argument, bool) or not number.is_finite() or not smallest <= number <= largest:
        raise ValueError(f"takes a number from {smallest} to {largest}, not {argument!r}")
    if number != round(number, 9):
        raise ValueError(f"takes at most 9 digits after the point, not {argument!r}")
    return number


def _threshold(argument: Any) -> Threshold:
    if not isinstance(argument, Mapping):
        argument = {"default": argument}
    if not argument:
        raise ValueError("names no threshold")
    thetas = {str(value): _decimal(theta, Decimal("1e-9"), Decimal(1)) for value, theta in argument.items()}
    default = thetas.pop("default", Decimal(1))
    return Threshold(default, tuple(sorted(thetas.items())))


# -- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """Whether a requirement holds on a table: its violating classes and what the worst class reaches."""

    requirement: Requirement
    holds: bool
    worst: float | None
    classes: int
    violating_classes: int
    violating_rows: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.requirement.name,
            "parameters": {k: _plain(v) for k, v in self.requirement.parameters.items()},
            "holds": self.holds,
            "worst": self.worst,
            "violating_classes": self.violating_classes,
            "violating_rows": self.violating_rows,
        }


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def judge(engine: Engine, requirement: Requirement, histogram: Relation) -> Verdict:
    """The verdict on one requirement over a histogram `(class_no, value, rows)` of a published table."""
    measures = engine.materialise(
        requirement.name, requirement.template, histogram=histogram, **requirement.holes(engine)
    )
    summary = engine.record("audit/summarise_measures", measures=measures)
    engine.drop(measures)
    return Verdict(
        requirement,
        holds=summary["violating_classes"] == 0,
        worst=None if summary["worst"] is None else float(summary["worst"]),
        classes=summary["classes"],
        violating_classes=summary["violating_classes"],
        violating_rows=int(summary["violating_rows"] or 0),
    )
