"""Parameters of requirements, as written in a policy or on the command line, read and checked.

Every reader raises ValueError that says what it takes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.database.errors import nearest

DIGITS = 9
#: A decimal times this is a whole number.
UNIT = 10**DIGITS
#: No class has so many rows, no column so many values.
LARGEST = 10**9
#: Reads one parameter as it is written; raises ValueError.
Reader = Callable[[Any], Any]


def whole(argument: Any, smallest: int = 1) -> int:
    """A whole number from `smallest`."""
    try:
        number = int(str(argument))
    except ValueError:
        raise ValueError(f"takes a whole number, not {argument!r}") from None
    if number < smallest or isinstance(argument, bool):
        raise ValueError(f"takes a whole number from {smallest}, not {argument!r}")
    if number > LARGEST:
        raise ValueError(f"takes a whole number up to {LARGEST:,}")
    return number


def decimal(argument: Any, smallest: Decimal, largest: Decimal) -> Decimal:
    """The exact decimal that was written; 9 digits after the point are what the database compares."""
    try:
        number = Decimal(str(argument))
    except InvalidOperation:
        raise ValueError(f"takes a number, not {argument!r}") from None
    if isinstance(argument, bool) or not number.is_finite() or not smallest <= number <= largest:
        raise ValueError(f"takes a number from {smallest} to {largest}, not {argument!r}")
    if number != round(number, DIGITS):
        raise ValueError(f"takes at most {DIGITS} digits after the point, not {argument!r}")
    return number


def one_of(words: Sequence[str], takes: str) -> Reader:
    """Reads one of some words; what else is given is an error that says what it `takes`."""

    def read(argument: Any) -> str:
        if str(argument) not in words:
            raise ValueError(f"takes {takes}, not {argument!r}")
        return str(argument)

    return read


def _decimal_within(smallest: str, largest: int) -> Callable[[Any], Decimal]:
    def read(argument: Any) -> Decimal:
        return decimal(argument, Decimal(smallest), Decimal(largest))

    return read


at_least_one = _decimal_within("1", LARGEST)
positive = _decimal_within("1e-9", LARGEST)
not_negative = _decimal_within("0", LARGEST)
#: Above 0, up to 1, and from 0 on.
share, distance = _decimal_within("1e-9", 1), _decimal_within("0", 1)


def units(value: Decimal | Fraction) -> int:
    """The decimal in units of its last digit; what is finer is cut off."""
    return int(value * UNIT)


def in_lowest_units(name: str, value: Decimal | Fraction) -> dict[str, int]:
    """The parameter as a template takes it, a fraction of whole numbers: `name` units, of which `unit` are 1."""
    over, under = Fraction(value).as_integer_ratio()
    return {f"{name}_units": over, "unit": under}


def plain(value: Any) -> Any:
    """A parameter as JSON has it; one that says itself how it is written is asked."""
    if hasattr(value, "plain"):
        return value.plain
    if isinstance(value, Decimal | Fraction):
        return int(value) if value == int(value) else float(value)
    return value


def plain_decimal(value: Decimal) -> str:
    """The decimal without trailing zeros."""
    return f"{value.normalize():f}"


def rounded(number: float, digits: int, up: bool = False) -> str:
    """The number with so many digits after the point, never nearer than it may be."""
    way = ROUND_CEILING if up else ROUND_FLOOR
    return f"{Decimal(str(number)).quantize(Decimal(1).scaleb(-digits), way).normalize():f}"


def in_words(parameters: Mapping[str, Any]) -> str:
    """Parameters as a policy writes them: `alpha: 0.5, k: 2`."""
    return ", ".join(f"{k}: {plain_decimal(v) if isinstance(v, Decimal) else v}" for k, v in parameters.items())


def just_above(number: float) -> Decimal:
    """The least decimal of three digits after the point above the number."""
    least = Decimal(rounded(number, 3, up=True))
    return least if least > Decimal(str(number)) else least + Decimal("0.001")


def at_digits(number: Decimal) -> Decimal:
    """The number with as many digits as are compared, no less than it is."""
    return number.quantize(Decimal(1).scaleb(-DIGITS), ROUND_CEILING).normalize()


AUTO = "auto"
#: The parameters that `auto` may stand for.
_AUTOMATIC = ("k", "l", "p")


class RequirementSyntax(ABC):
    """The name of a requirement, its parameters, and their reading."""

    name: ClassVar[str]
    #: The parameters as they are written, each with its reader; the only one that must be given may be written alone.
    fields: ClassVar[Mapping[str, Reader]] = {}
    #: Those of them that may be left out.
    optional: ClassVar[frozenset[str]] = frozenset()
    #: The parameter that says how many values a class seems to have, if it has one of this name.
    l_parameter: ClassVar[str] = "l"
    #: What is wrong where the parameters need a source and there is none, and what to do.
    lacks_source: ClassVar[tuple[str, str]] = ("auto needs a source, say the number", "")

    @classmethod
    def parse(cls, text: str) -> Any:
        """The argument that a command line writes: `3`, or `c=2,l=3`; without a name it is the first parameter."""
        if "=" not in text:
            return text
        parameters: dict[str, str] = {}
        for part in text.split(","):
            key, equals, value = part.rpartition("=")
            parameters[key.strip() if equals else next(iter(cls.fields), "default")] = value
        return parameters

    @classmethod
    def by_name(cls, argument: Any) -> dict[Any, Any]:
        """The parameters by name, as they are written; raises ValueError if one is missing or unknown."""
        needed = [name for name in cls.fields if name not in cls.optional]
        if not isinstance(argument, Mapping):
            if len(needed) > 1:
                raise ValueError(f"takes {', '.join(needed)}, not {argument!r}")
            return {needed[0]: argument}
        unknown = [str(name) for name in argument if name not in cls.fields]
        if unknown:
            raise ValueError(f"has no parameter {unknown[0]!r} ({nearest(unknown[0], cls.fields)})")
        missing = [name for name in needed if name not in argument]
        if missing:
            raise ValueError(f"lacks {', '.join(missing)}")
        return dict(argument)

    @classmethod
    def typed(cls) -> dict[str, str]:
        """The parameters as Python takes them, each with its type; `Number` is what has a decimal."""
        kinds = {"int": "int", "str": "str"}
        types = {name: kinds.get(str(read.__annotations__["return"]), "Number") for name, read in cls.fields.items()}
        return {name: f'{kind} | Literal["{AUTO}"]' if name in _AUTOMATIC else kind for name, kind in types.items()}

    @classmethod
    def built(cls, given: Mapping[str, Any]) -> Any:
        """The argument of parameters that are given by name, as a document has it."""
        needed = [name for name in cls.fields if name not in cls.optional]
        return given[needed[0]] if list(given) == needed and len(needed) == 1 else dict(given)

    @classmethod
    def needs_source(cls, argument: Any) -> bool:
        """True if a parameter follows from the distribution of the source; false where it is written wrongly."""
        try:
            return AUTO in [str(v) for k, v in cls.by_name(argument).items() if k in _AUTOMATIC]
        except ValueError:
            return False

    @classmethod
    def read(cls, argument: Any, auto: int | None) -> dict[Any, Any]:
        """The parameters read and checked, `auto` being what the source makes of it; raises ValueError."""
        written = cls.by_name(argument)
        if auto is None and cls.needs_source(argument):
            raise ValueError("auto needs the distribution of the source")
        given = {k: auto if k in _AUTOMATIC and v == AUTO else v for k, v in written.items()}
        return {name: read(given[name]) for name, read in cls.fields.items() if name in given}

    @classmethod
    def written_with(cls, argument: Any, name: str, value: int) -> Any:
        """The argument as it is written with another value of a parameter; None if it has none of that name."""
        if name not in cls.fields:
            return None
        parameters = cls.by_name(argument) | {name: value}
        return value if list(parameters) == [name] else parameters
