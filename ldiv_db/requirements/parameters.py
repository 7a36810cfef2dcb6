"""Parameters, read and checked, where every reader raises ValueError that says what it takes; and numbers in words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from ldiv_db.database.templates import Value

DIGITS = 9
#: A decimal times this is a whole number.
UNIT = 10**DIGITS
#: No class has so many rows, no column so many values.
LARGEST = 10**9


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


def at_least_one(argument: Any) -> Decimal:
    """A decimal from 1."""
    return decimal(argument, Decimal(1), Decimal(LARGEST))


def positive(argument: Any) -> Decimal:
    """A decimal above 0."""
    return decimal(argument, Decimal("1e-9"), Decimal(LARGEST))


def not_negative(argument: Any) -> Decimal:
    """A decimal from 0."""
    return decimal(argument, Decimal(0), Decimal(LARGEST))


def share(argument: Any) -> Decimal:
    """A decimal above 0, up to 1."""
    return decimal(argument, Decimal("1e-9"), Decimal(1))


def distance(argument: Any) -> Decimal:
    """A decimal from 0 to 1."""
    return decimal(argument, Decimal(0), Decimal(1))


def units(value: Decimal | Fraction) -> int:
    """The decimal in units of its last digit; what is finer is cut off."""
    return int(value * UNIT)


def in_lowest_units(name: str, value: Decimal | Fraction) -> dict[str, Value]:
    """The parameter as holes of a template, a fraction of whole numbers: `name` units, of which `unit` are 1."""
    over, under = Fraction(value).as_integer_ratio()
    return {f"{name}_units": Value(over), "unit": Value(under)}


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
