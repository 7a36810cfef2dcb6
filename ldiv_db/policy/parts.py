"""Parts of a policy: taxonomies, sensitive attributes and requirements as they are written.

Problems are collected and reported at once, each with its key and the nearest right name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictFloat,
    StrictInt,
    ValidationError,
)

from ldiv_db.database.documents import MAX_DEPTH
from ldiv_db.database.equality import Members, Reading, Step
from ldiv_db.database.errors import PolicyError, Problem, nearest, refuse, what_is_wrong
from ldiv_db.requirements import REQUIREMENTS, Requirement, RequirementSpec, make_categories
from ldiv_db.requirements.parameters import LARGEST
from ldiv_db.requirements.values import named_value
from ldiv_db.taxonomies.making import ISO_UNITS, UNITS


class Problems:
    """The problems found so far, in their order."""

    def __init__(self, found: Iterable[Problem] = ()):
        self.found = list(found)

    def add(self, found: Iterable[Problem]) -> None:
        self.found += found

    @contextmanager
    def collected(self, under: str = "") -> Iterator[None]:
        """Within, a PolicyError ends the work without being raised; its keys stand under the one that is given."""
        try:
            yield
        except PolicyError as error:
            self.found += [Problem(f"{under}.{p.key}", p.what, p.hint) if under else p for p in error.problems]

    def refuse(self) -> None:
        """Raise PolicyError if there are any."""
        refuse(self.found)


def unreported(found: Iterable[Problem], known: Sequence[Problem]) -> list[Problem]:
    """The problems that are not about a part in which, or in a part of which, there is a known one."""
    return [problem for problem in found if not is_reported(problem.key, known)]


def is_reported(key: str, known: Iterable[Problem]) -> bool:
    """True if a known problem is about that part of a policy, a part of it, or a part that it lies in."""
    return any(
        key == problem.key or key.startswith(f"{problem.key}.") or problem.key.startswith(f"{key}.")
        for problem in known
    )


def problem_of(item: Mapping[str, Any], whole: type[BaseModel]) -> Problem:
    """A pydantic error in our words; `whole` is what was read."""
    key = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-")) or "policy"
    owner = _owner(whole, item["loc"])
    if item["type"] == "extra_forbidden":
        return Problem(key, "unknown key", nearest(str(item["loc"][-1]), owner.model_fields))
    if owner.model_config.get("extra") == "allow" and item["loc"][-1] not in owner.model_fields:
        known = nearest(str(item["loc"][-1]), owner.model_fields)
        return Problem(key, "unknown key", f"{known}; a quasi-identifier {what_is_wrong(item)}")
    if item["type"] == "missing":
        return Problem(key, "is required")
    return Problem(key, what_is_wrong(item))


def _owner(whole: type[BaseModel], location: Sequence[Any]) -> type[BaseModel]:
    """The part in which the last key of a location stands; the key after that of a mapping is a name of its own."""
    owner, is_name = whole, False
    for key in location[:-1]:
        field = None if is_name else owner.model_fields.get(str(key))
        is_name = field is not None and get_origin(field.annotation) is dict
        owner = next(_models(field.annotation), owner) if field is not None else owner
    return owner


def _models(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


#: The most characters of a text that a prefix may have; the seed that draws queries is hashed as a BIGINT.
LONGEST_PREFIX, LARGEST_SEED = 1_000_000, 2**63 - 1
#: Where a policy names values of the data other than by keys, and where people write what is no value.
VALUES = (("sensitive", "*", "categories"), ("sensitive", "*", "harmless"), ("context",))


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _Readable
else:

    class _Readable(type(BaseModel)):
        """Has a part that is made in Python raise what is raised of a file; pydantic reads documents another way."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except ValidationError as error:
                found = [problem_of(item, cls) for item in error.errors()]
            raise PolicyError(found)


class PolicyPart(BaseModel, metaclass=_Readable):
    """A part of a policy: no unknown keys, never changed. Raises PolicyError with all that is wrong with it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TaxonomySpec(PolicyPart):
    """The origin of a taxonomy: the catalog, a file, ranges of numbers, prefixes, stretches of time, or the values.

    Exactly one; `flat: true` has each value that occurs as a leaf, and nothing between it and `*`.
    """

    name: str | None = Field(default=None, description="a name in the catalog, or of a taxonomy of the program")
    file: str | None = None
    tree: str | None = None
    ranges: list[StrictFloat] | None = Field(default=None, min_length=1, max_length=MAX_DEPTH)
    origin: StrictFloat = 0
    #: All numbers from `top` on are published as one value, and all below `bottom`.
    top: StrictFloat | None = None
    bottom: StrictFloat | None = None
    prefix: list[Annotated[StrictInt, Field(ge=1, le=LONGEST_PREFIX)]] | None = Field(
        default=None, min_length=1, max_length=MAX_DEPTH
    )
    dates: list[str] | None = Field(default=None, min_length=1)
    #: Years before this one are published as a single value.
    before: Annotated[StrictInt, Field(ge=2, le=9999)] | None = None
    flat: Literal[True] | None = None
    skip: StrictInt = Field(
        default=0,
        ge=0,
        le=MAX_DEPTH,
        description="how many levels above the values of a taxonomy in a file or in the catalog are left out",
    )

    def problems(self, key: str) -> list[Problem]:
        kinds = ("name", "file", "ranges", "prefix", "dates", "flat")
        if sum(getattr(self, name) is not None for name in kinds) != 1:
            listed = ", ".join(f"`{name}:`" for name in kinds[1:])
            return [Problem(key, f"takes one of: a name in the catalog, {listed}")]
        known = (*UNITS, *ISO_UNITS[1:3])
        unknown = [unit for unit in self.dates or () if unit not in known]
        if unknown:
            return [Problem(f"{key}.dates", f"no unit {unit!r}", nearest(unit, known)) for unit in unknown]
        return list(self._misfits(key))[:1]

    def _misfits(self, key: str) -> Iterator[Problem]:
        """Keys that exclude one another, and lists in another order than they should have."""
        if self.prefix is not None and sorted(set(self.prefix), reverse=True) != self.prefix:
            yield Problem(f"{key}.prefix", "takes falling lengths, e.g. [5, 3, 1]")
        rising = ([unit for unit in units if unit in (self.dates or ())] for units in (UNITS, ISO_UNITS))
        if self.dates is not None and self.dates not in rising:
            what = f"takes rising units of {', '.join(UNITS)}, or of {', '.join(ISO_UNITS)}: no week lies in one month"
            yield Problem(f"{key}.dates", what)
        if self.before is not None and (self.dates is None or not {"year", "decade"}.issuperset(self.dates)):
            yield Problem(f"{key}.before", "goes with `dates:` of years and decades")
        for end in ("top", "bottom"):
            if getattr(self, end) is not None and self.ranges is None:
                yield Problem(f"{key}.{end}", "goes with `ranges:`")
        if self.tree is not None and self.file is None:
            yield Problem(f"{key}.tree", "goes with `file:`")
        if self.skip and self.file is None and self.name is None:
            what = "goes with `file:` or a name in the catalog"
            yield Problem(f"{key}.skip", what, "leave levels out of the list")


def named_taxonomy(value: Any) -> Any:
    """A name alone is that of a taxonomy in the catalog, or of one that comes with the program."""
    return {"name": value} if isinstance(value, str) else value


#: Steps after which texts are one value; one alone is a list of one.
Steps = Annotated[
    list[Step],
    BeforeValidator(
        lambda value: [value] if isinstance(value, str) else value, json_schema_input_type=Step | list[Step]
    ),
]
#: What a document has in place of a single value of the data.
Scalar = str | float | bool | None


NamedTaxonomy = Annotated[
    TaxonomySpec | None, BeforeValidator(named_taxonomy, json_schema_input_type=str | TaxonomySpec | None)
]
_Parts = Annotated[str, Field(pattern="^[^0-9A-Za-z]+$")]


def _listed(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


def _parted(value: Any) -> str | bool | None:
    """What tells the members of sets apart: true for those of lists, or what stands between them in a text."""
    if value is None or isinstance(value, bool):
        return value or None
    if not isinstance(value, str) or not value or any(map(str.isalnum, value)):
        raise ValueError('takes true for lists, or the sign between the members of a text, as ","')
    return value


class Sensitive(PolicyPart):
    """One sensitive attribute: categories from most to least sensitive with their weights, and a taxonomy.

    Nothing is promised of its `harmless` values, but that their rows count in the size of a class.
    Texts that are the `same` after these steps are one value; each row is published with its own. A `set` counts by its
    members: true for a list, or what stands between the members of a text.
    """

    categories: list[Any] | None = None
    weights: Any = None
    harmless: Annotated[
        list[Any] | None,
        BeforeValidator(_listed, json_schema_input_type=Scalar | Annotated[list[Scalar], Field(min_length=1)]),
    ] = None
    l: StrictInt | None = Field(default=None, ge=1, le=LARGEST)
    taxonomy: NamedTaxonomy = None
    same: Steps = Field(default_factory=list)
    set: Annotated[str | bool | None, PlainValidator(_parted, json_schema_input_type=_Parts | bool | None)] = None

    @property
    def reading(self) -> Reading:
        """The steps after which values of it are one, that by which a set is its members last."""
        if not self.set:
            return self.same
        # Blanks beside what parts members are no part of these.
        return [*self.same, Members(None if self.set is True else self.set.strip() or self.set)]

    def problems(self, key: str) -> list[Problem]:
        found = []
        if self.categories is not None:
            found += _refused_by(f"{key}.categories", make_categories, self.categories, self.weights)
        elif self.weights is not None:
            found.append(Problem(f"{key}.weights", "goes with `categories:`"))
        found += [p for value in self.harmless or () for p in _refused_by(f"{key}.harmless", named_value, value)][:1]
        if self.harmless == []:
            found.append(Problem(f"{key}.harmless", "is empty", "or leave it out"))
        if self.taxonomy is not None and self.taxonomy.name is None and self.taxonomy.file is None:
            found.append(Problem(f"{key}.taxonomy", "takes a name in the catalog, or `file:`"))
        elif self.taxonomy is not None:
            found += self.taxonomy.problems(f"{key}.taxonomy")
        return found


def _refused_by(key: str, read: Callable[..., Any], *given: Any) -> list[Problem]:
    try:
        read(*given)
    except ValueError as error:
        return [Problem(key, str(error))]
    return []


#: What a requirement may say beside its name.
BESIDE = ("sensitive", "others_known", "each")


def read_requirement(value: Any) -> RequirementSpec:
    """The requirement of a mapping, with keys `BESIDE` or among its parameters, or that is one; raises ValueError."""
    if isinstance(value, RequirementSpec):
        return value
    if isinstance(value, Mapping):
        rest = {key: given for key, given in value.items() if key not in BESIDE}
        sensitive, known, each = value.get("sensitive", ()), value.get("others_known", False), value.get("each", "")
        names = (sensitive,) if isinstance(sensitive, str) else sensitive
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ValueError("`sensitive` takes a sensitive attribute or a list of them")
        if not isinstance(known, bool):
            raise ValueError("`others_known` takes true or false")
        if each not in ("", "position", "row"):
            raise ValueError("`each` takes `position` or `row`")
        if len(rest) == 1:
            ((name, argument),) = rest.items()
            # Where it has no parameters of its own, the keys are values.
            if isinstance(argument, Mapping) and REQUIREMENTS.get(str(name), Requirement).fields:
                inside = {key: argument[key] for key in BESIDE if key in argument}
                if inside:
                    own = {key: given for key, given in argument.items() if key not in BESIDE}
                    return read_requirement({**value, name: own, **inside})
            return RequirementSpec(str(name), argument, tuple(names), known, each)
    raise ValueError("takes `name: value`, e.g. `distinct: 3`")
