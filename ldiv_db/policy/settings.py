"""Parts of a policy that settle one thing: a quasi-identifier, a person, the output, the algorithm, the seed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from ldiv_db.database.errors import Problem
from ldiv_db.database.readings import NUMBERS, TIMES, Reading
from ldiv_db.policy.parts import NamedTaxonomy, PolicyPart, Sensitive, Steps
from ldiv_db.policy.release_columns import Centre, Form
from ldiv_db.policy.sources import DEFAULT_ALGORITHM
from ldiv_db.policy.targets import listed_columns


def _written(values: Any) -> Any:
    """Numbers as they are written, also one alone: `-9` is a text like any other that stands for no value."""
    listed = values if isinstance(values, list) else [values]
    return [str(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in listed]


class SetsUpTo(PolicyPart):
    """Sets of so many values at most, NULL being one: a class that has more is published as the label above them."""

    set: StrictInt = Field(ge=2, description="the most values of a set, NULL being one")


def _recoded(value: Any) -> Any:
    most = value.get("set") if isinstance(value, Mapping) and len(value) == 1 else None
    if isinstance(most, int) and most >= 2 and not isinstance(most, bool):
        return SetsUpTo(set=most)
    if value is not None and value not in ("tree", "set") and not isinstance(value, SetsUpTo):
        raise ValueError("takes 'tree', 'set' or {set: N}, sets of at most N values, from 2 on")
    return value


#: What classes publish along a taxonomy; None leaves it to the column and the algorithm.
Recode = Literal["tree", "set"] | SetsUpTo


def most_of(recode: Recode) -> int:
    """The most values of a set that a class publishes: 0 of a tree, and where it may have any, more than there are."""
    return recode.set if isinstance(recode, SetsUpTo) else 2**31 if recode == "set" else 0


def written_recode(recode: Recode) -> dict[str, Any]:
    """The setting of a quasi-identifier that is published so; that of a tree need not be written."""
    if recode == "tree":
        return {}
    return {"recode": recode if isinstance(recode, str) else recode.model_dump()}


GivenRecode = Annotated[Recode | None, BeforeValidator(_recoded, json_schema_input_type=Recode | None)]
#: A text, or the number that it is.
_Text = str | float


class QuasiIdentifier(PolicyPart):
    """One quasi-identifier: its taxonomy, or `numeric: true` for plain ranges, and its weight in losses.

    Texts that are the `same` after these steps are one value, and published as these steps make them. Values that
    stand for none are `null_values`; `decimal` is the sign of numbers that are written as text.

    Where it has neither, its column decides (`policy.quasi_identifiers.infer`).
    """

    taxonomy: NamedTaxonomy = None
    numeric: StrictBool = False
    top: StrictFloat | None = Field(default=None, description="plain numbers from it on are one value, `90+`")
    bottom: StrictFloat | None = Field(default=None, description="plain numbers below it are one value, `<18`")
    recode: GivenRecode = None
    same: Steps = Field(default_factory=list, description="the steps that turn spellings of a text into one value")
    null_values: Annotated[list[str], BeforeValidator(_written, json_schema_input_type=_Text | list[_Text])] = Field(
        default_factory=list
    )
    decimal: Literal[".", ","] | None = None
    weight: StrictFloat = Field(default=1.0, ge=0, le=1_000_000)

    @property
    def is_open(self) -> bool:
        """True if it does not say how its values generalise."""
        return self.taxonomy is None and not self.numeric

    @property
    def refuses_ranges(self) -> bool:
        """True if it says that its values are no numbers, whatever their type."""
        return "numeric" in self.model_fields_set and not self.numeric

    @property
    def has_ends(self) -> bool:
        """True if numbers beyond an end are one value."""
        return self.bottom is not None or self.top is not None

    @property
    def is_read(self) -> bool:
        """True if it says how its column is read."""
        return bool(self.null_values) or self.decimal is not None

    def form(self, recode: Recode, bounds: bool) -> Form:
        """The form of its labels: ranges of numbers have no sets, and trees have no bounds."""
        if self.numeric:
            return "bounds" if bounds else "label"
        return "label" if recode == "tree" else "set"

    def reading(self, column: str) -> Reading:
        """How its column is read."""
        spec = self.taxonomy
        named = bool(spec and spec.name)
        kinds = NUMBERS if spec and (spec.ranges or named) else TIMES if spec and spec.dates else ()
        types = (*NUMBERS, *TIMES) if self.is_open or self.numeric else kinds
        return Reading(column, self.null_values, self.decimal, types, optional=self.is_open or named)

    def settled(self, **settings: Any) -> QuasiIdentifier:
        """The same with what it left open."""
        return QuasiIdentifier(**{**self.model_dump(include=self.model_fields_set), **settings})

    def problems(self, key: str) -> list[Problem]:
        if self.taxonomy is not None and self.numeric:
            return [Problem(key, "takes either `taxonomy:` or `numeric: true`")]
        if self.same and (self.numeric or (self.taxonomy and not (self.taxonomy.flat or self.taxonomy.prefix))):
            return [Problem(f"{key}.same", "goes with `prefix:`, `flat:`, or neither", "else fold the texts in a view")]
        if self.decimal and not (self.is_open or self.numeric or (self.taxonomy and self.taxonomy.ranges)):
            return [Problem(f"{key}.decimal", "is of numbers: it goes with `numeric: true` or `ranges:`")]
        if self.has_ends and not self.numeric:
            end = "bottom" if self.top is None else "top"
            return [Problem(f"{key}.{end}", "goes with `numeric: true`, or within `taxonomy:` with `ranges:`")]
        if self.numeric and self.recode not in (None, "tree"):
            return [Problem(f"{key}.recode", "sets are of a taxonomy's leaves; numbers are published as ranges")]
        return self.taxonomy.problems(f"{key}.taxonomy") if self.taxonomy else []


#: Columns as a policy lists them: one, several, or each with what is said of it.
QuasiIdentifiers = Annotated[
    dict[str, QuasiIdentifier],
    BeforeValidator(listed_columns, json_schema_input_type=str | list[str] | dict[str, QuasiIdentifier | None]),
]
Attributes = Annotated[
    dict[str, Sensitive],
    BeforeValidator(listed_columns, json_schema_input_type=str | list[str] | dict[str, Sensitive | None]),
]


def named_individual(value: Any) -> Any:
    """A column alone stands for its mapping."""
    return {"column": value} if isinstance(value, str) else value


class Individual(PolicyPart):
    """The column that says whose a row is, and where all rows of a person stand.

    `apart`: in any classes, of which each meets the requirements by its people: who knows one row of a person learns no
    more. `together`: in one class, so that who knows all of them learns no more of any. `aligned`: in their `order`,
    the first rows of a class with one label, the second with another, of people who publish equally many; who also
    knows how many rows everybody has learns no more. Of whoever has more than `rows_at_most` the others are left out.
    """

    column: str = Field(description="the column that identifies the person, never published")
    rows: Literal["apart", "together", "aligned"] = Field(
        default="apart", description="where the rows of a person stand: in any classes, in one class, or in their order"
    )
    order: str | None = None
    rows_at_most: StrictInt | None = Field(default=None, ge=1)


GivenIndividual = Annotated[
    Individual | None, BeforeValidator(named_individual, json_schema_input_type=str | Individual | None)
]


class Expand(PolicyPart):
    """The view beside the target in which labels of the `columns` are spread over their values, by default all."""

    view: str = Field(description="the view that each run makes anew: a row of the release for each value of a label")
    columns: list[str] = Field(default_factory=list, description="the quasi-identifiers that are spread")


GivenExpand = Annotated[
    Expand | None,
    BeforeValidator(lambda v: {"view": v} if isinstance(v, str) else v, json_schema_input_type=str | Expand | None),
]


class Output(PolicyPart):
    """Parts of the release besides its columns, and the types of these.

    Other keys are quasi-identifiers: what of a class's numbers is published beside their range, or that sets are lists.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Literal["mean", "median", "list"]] = Field(init=False)

    class_id: StrictBool | None = None
    bounds: StrictBool = False
    types: Literal["keep", "text"] = "text"
    #: The column of a number that links the rows of a person within the release.
    person: str | None = None
    position: str | None = Field(default=None, description="the column of a row's place among those of its person")

    @property
    def centres(self) -> dict[str, Centre]:
        """The quasi-identifiers of whose numbers each class publishes the mean or the median."""
        return {name: said for name, said in self.__pydantic_extra__.items() if said != "list"}

    def people(self, aligned: bool) -> tuple[str | None, str | None]:
        """The columns that link the rows of a person and number them, which rows that are `aligned` have."""
        return (self.person or "person", self.position or "position") if aligned else (self.person, self.position)

    @property
    def lists(self) -> list[str]:
        """The quasi-identifiers whose sets are published as lists."""
        return [name for name, said in self.__pydantic_extra__.items() if said == "list"]


class AlgorithmSpec(BaseModel):
    """The algorithm's name; its options are checked by the algorithm itself."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = DEFAULT_ALGORITHM

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


GivenAlgorithm = Annotated[
    AlgorithmSpec,
    BeforeValidator(lambda v: {"name": v} if isinstance(v, str) else v, json_schema_input_type=str | AlgorithmSpec),
]
#: Bits of a seed that we draw, too many for all to be tried, and of any: it is bound as an integer of 128 bits.
_DRAWN_BITS, _MOST_BITS = 120, 127


def draw_seed() -> int:
    """A seed that nobody can guess, drawn by the operating system."""
    return secrets.randbits(_DRAWN_BITS)


def _in_range(seed: int) -> int:
    if not 0 <= seed < 2**_MOST_BITS:
        raise ValueError(f"takes a whole number from 0 to 2^{_MOST_BITS} - 1")
    return seed


Seed = Annotated[StrictInt, AfterValidator(_in_range)]
