"""Requirements on the share of a class that a sensitive value may have: one bound for all, or thresholds of each."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.diversity import CountRequirement, KAnonymity
from ldiv_db.requirements.guarantees import Ceiling, Distribution, Guarantee
from ldiv_db.requirements.histogram import Classes, Core, suppress_by_core
from ldiv_db.requirements.parameters import DIGITS, UNIT, at_digits, at_least_one, rounded, share, units, whole
from ldiv_db.requirements.values import Named, in_order, listing, named_value, read_named, shown_value

#: The words beside the values that have thresholds; a value of such a name stands under `values`.
DEFAULT, BASE, ABSENT, VALUES = WORDS = ("default", "base", "absent", "values")
#: A part of thresholds on the command line: commas within double quotes are the value's own.
_PART = re.compile(r'\s*"(?:[^"]|"")*"\s*=[^,]*|[^,]+')


@dataclass(frozen=True)
class Threshold(Requirement):
    """Per-value thresholds: `conf(s|G) <= theta_s` for every sensitive value s (l+-diversity).

    `thetas` maps values, as their column writes them, to their threshold; `default` is for the rest. With `base`
    instead, values that are more frequent than the average value have `base * fr / fr_avg`, the others `base` (Liu &
    Wang, VIII-A); `spread` works them out, exactly. These follow from the data: in a report stands the base alone, with
    the values that are `named`.
    """

    name = "threshold"
    on_people = "counts"
    reaches = "share / threshold"
    most_is_worst = True
    shares_only = bounds_shares = met_by_eligible = kept_by_select = supports_harmless = True
    lacks_source = (
        "base needs the source of a policy, from which thresholds follow",
        "write them out: threshold:0.5,HIV=0.1",
    )
    optional = frozenset(WORDS)
    default: Decimal
    thetas: tuple[tuple[Named, Decimal | Fraction], ...] = ()
    from_base: bool = False
    #: The values that the policy itself names, and whether they need not occur.
    named: tuple[Named, ...] = ()
    absent: bool = False
    #: The same values as they were named.
    written: tuple[Named, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, text: str) -> dict[str, Any]:
        """The words and values of thresholds; what is given twice is an error."""
        words: dict[str, str] = {}
        values: dict[Named, str] = {}
        for part in _PART.findall(text):
            name, equals, theta = part.rpartition("=")
            word = name.strip() if equals else DEFAULT
            value = read_named(name)
            is_word = word in (DEFAULT, BASE, ABSENT)
            if word in words or (value in values and not is_word):
                raise ValueError(f"threshold: {part!r} is given twice")
            if is_word:
                words[word] = theta
            else:
                values[value] = theta
        return {**words, VALUES: values} if values else {**words}

    @classmethod
    def by_name(cls, argument: Any) -> dict[Any, Any]:
        return dict(argument) if isinstance(argument, Mapping) else {DEFAULT: argument}

    @classmethod
    def typed(cls) -> dict[str, str]:
        return {DEFAULT: "Number", BASE: "Number", ABSENT: 'Literal["allow", "error"]', VALUES: "Mapping[Any, Number]"}

    @classmethod
    def built(cls, given: Mapping[str, Any]) -> Any:
        return given[DEFAULT] if list(given) == [DEFAULT] else dict(given)

    @classmethod
    def needs_source(cls, argument: Any) -> bool:
        return isinstance(argument, Mapping) and BASE in argument

    @classmethod
    def read(cls, argument: Any, auto: int | None) -> dict[str, Any]:
        values = cls.by_name(argument)
        if not values:
            raise ValueError("names no threshold")
        thetas = _own_thresholds(values)
        if {BASE, DEFAULT} <= set(values):
            raise ValueError("takes base or default, not both")
        if values.get(ABSENT, "error") not in ("allow", "error"):
            raise ValueError("absent takes allow or error; the threshold of a value of that name stands under `values`")
        named = tuple(sorted(thetas, key=in_order))
        return {
            "default": share(values.get(BASE, values.get(DEFAULT, 1))),
            "thetas": tuple((value, thetas[value]) for value in named),
            "from_base": BASE in values,
            "named": named,
            "absent": values.get(ABSENT) == "allow",
        }

    def written_as(self, texts: Mapping[Named, Named], place: int) -> Threshold:
        thetas = tuple((texts[value], theta) for value, theta in self.thetas)
        named = tuple(texts[value] for value in self.named)
        return replace(self, thetas=thetas, named=named, written=self.named, place=place)

    def missing(self, engine: Engine, table: Table, column: str) -> set[Named]:
        names = dict(zip(self.named, self.written, strict=True))
        members = engine.load("members", {"value": "VARCHAR"}, [(value,) for value in self.named])
        rows = engine.rows("requirements/list_absent", totals=table, members=members, column=column)
        engine.drop(members)
        return {names[value] for (value,) in rows}

    def spread(self, engine: Engine, dictionary: Relation) -> Threshold:
        """With the thresholds that follow from a base; itself if there is no base."""
        if not self.from_base:
            return self
        frequent = engine.rows(
            "requirements/spread_thresholds", dictionary=dictionary, base=units(self.default), one=UNIT
        )
        by_value = {value: Fraction(int(over), int(under)) for value, over, under in frequent} | dict(self.thetas)
        thetas = tuple((value, by_value[value]) for value in sorted(by_value, key=in_order))
        return replace(self, thetas=thetas)

    @property
    def parameters(self) -> dict[str, Any]:
        words = (*WORDS, "others_known", "each")
        named = {shown_value(value, words): theta for value, theta in self.thetas if value in self.named}
        return self._rest | named | self._common_parameters

    @property
    def shown(self) -> dict[str, Any]:
        own = {"own_thresholds": len(self.named)} if self.named else {}
        return self._without_values(self._rest | own | self._common_parameters)

    @property
    def _rest(self) -> dict[str, Any]:
        """The parameter for the values that the policy does not name."""
        return {BASE if self.from_base else DEFAULT: self.default}

    def measured(self, steps: Steps, classes: Classes, template: str, **more: Any) -> Relation:
        columns = {"value": "VARCHAR", "numerator": "HUGEINT", "denominator": "HUGEINT"}
        rows = [(value, *Fraction(theta).as_integer_ratio()) for value, theta in self.thetas]
        over, under = Fraction(self.default).as_integer_ratio()
        thetas = steps.load("thetas", columns, rows)
        taken = {"thetas": thetas, "numerator": over, "denominator": under}
        measures = super().measured(steps, classes, template, **taken, **more)
        steps.drop(thetas)
        return measures

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        own = [(value, units(theta)) for value, theta in self.thetas]
        return suppress_by_core(engine, classes, measures, Core(units(self.default), UNIT, own, self.harmless))

    def promise(self) -> Guarantee:
        shares = tuple((value, Fraction(theta)) for value, theta in self.thetas)
        return Guarantee(share=Fraction(self.default), shares=shares).exempting(self.harmless)

    @classmethod
    def recorded_share(cls, parameters: Mapping[str, Any]) -> Fraction | None:
        return None if parameters.get("own_thresholds") else Fraction(str(parameters["default"]))

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        found = super().ceiling(distribution)
        return found and replace(found, by_threshold=True)

    def unique_class_size(self) -> int:
        return math.ceil(1 / min(Fraction(theta) for theta in [self.default, *dict(self.thetas).values()]))

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        """All thresholds by as much higher as the worst is exceeded."""
        factor = Decimal(rounded(reached or 1, 3, up=True))
        own = {value: min(Decimal(1), theta * factor) for value, theta in self._named.items()}
        return self._as_written(min(Decimal(1), self.default * factor), own)

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        least = Decimal(rounded(1 / size, DIGITS, up=True))
        own = {value: max(theta, least) for value, theta in self._named.items()}
        return {} if self.from_base else self._as_written(max(self.default, least), own)

    def allowing(self, shares: Mapping[Named, Decimal]) -> Sequence[Mapping[str, Any]]:
        names = dict(zip(self.named, self.written or self.named, strict=True))
        higher = {names.get(value, value): theta for value, theta in shares.items()}
        return [{self.name: self._as_written(self.default, self._named | higher)}]

    @property
    def _named(self) -> dict[Named, Decimal]:
        """The values that the policy names, as it names them, with their thresholds."""
        thetas = dict(self.thetas)
        names = self.written or self.named
        return {name: Decimal(str(thetas[value])) for name, value in zip(names, self.named, strict=True)}

    def _as_written(self, default: Decimal, own: Mapping[Named, Decimal]) -> dict[str, Any]:
        """The parameters, as a policy writes them, with other thresholds."""
        more = {ABSENT: "allow"} if self.absent else {}
        values = {value: at_digits(theta) for value, theta in own.items()}
        return {BASE if self.from_base else DEFAULT: at_digits(default), **more, **({VALUES: values} if own else {})}

    def nearest_whole(self, reached: float | None, distribution: Distribution) -> str:
        return f"thresholds {rounded(reached or 1, 3, up=True)} times as high"

    def nearest_at(self, size: int) -> str:
        return f"no threshold below {rounded(1 / size, 9, up=True)}"


def thresholds(default: Decimal, own: Mapping[Named, Decimal]) -> dict[str, Any]:
    """The requirement, as a policy writes it, with a threshold of its own for each of these values."""
    return {Threshold.name: {DEFAULT: default, VALUES: dict(own)}}


def _own_thresholds(written: Mapping[Any, Any]) -> dict[Named, Decimal]:
    """The thresholds of the values that are named, among the words or under `values`."""
    within = written[VALUES] if isinstance(written.get(VALUES), Mapping) else {}
    words = (DEFAULT, BASE, ABSENT, *([VALUES] if VALUES in written and within is written[VALUES] else []))
    thetas: dict[Named, Decimal] = {}
    for name, theta in [*((k, v) for k, v in written.items() if k not in words), *within.items()]:
        value = named_value(name)
        if value in thetas:
            raise ValueError(f"names {listing([value])} twice")
        thetas[value] = share(theta)
    return thetas


@dataclass(frozen=True)
class ShareRequirement(CountRequirement):
    """A requirement on counts with one bound for the shares of all values."""

    on_people = "counts"
    bounds_shares = kept_by_select = supports_harmless = True

    def rows_to_suppress(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        core = Core(*self.largest_share.as_integer_ratio(), harmless=self.harmless, least=self.fewest_rows)
        return suppress_by_core(engine, classes, measures, core)

    def allowing(self, shares: Mapping[Named, Decimal]) -> Sequence[Mapping[str, Any]]:
        rest = Decimal(rounded(float(self.largest_share), DIGITS, up=True))
        return [thresholds(rest, shares), *([{KAnonymity.name: self.fewest_rows}] if self.bounds_below else [])]


@dataclass(frozen=True)
class FrequencyL(ShareRequirement):
    """Frequency l-diversity: no sensitive value in more than `|G| / l` rows (l-eligibility in TP)."""

    name = "frequency"
    reaches = "rows / top value's rows"
    shares_only = True
    fields = {"l": at_least_one}  # noqa: RUF012
    l: Decimal

    @property
    def largest_share(self) -> Fraction:
        return 1 / Fraction(self.l)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"l": Decimal(rounded(distribution.rows / distribution.counts[0], 3))}


@dataclass(frozen=True)
class AlphaK(ShareRequirement):
    """(alpha,k)-anonymity: `|G| >= k` and no sensitive value in more than `alpha |G|` rows (Wong et al. 2006)."""

    name = "alpha_k"
    reaches = "largest share"
    most_is_worst = True
    bounds_below = {"rows": "k"}  # noqa: RUF012
    fields = {"alpha": share, "k": whole}  # noqa: RUF012
    alpha: Decimal
    k: int

    @property
    def largest_share(self) -> Fraction:
        return Fraction(self.alpha)

    def of_units(self, unit: int) -> AlphaK:
        return self if unit == 1 else replace(self, k=1)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        alpha = max(self.alpha, Decimal(rounded(distribution.counts[0] / distribution.rows, 9, up=True)))
        return {"alpha": alpha, "k": min(self.k, distribution.rows)}
