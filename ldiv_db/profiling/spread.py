"""How far apart the values of a class should lie, of numbers and times: 20.10 and 20.15 are one to a reader."""

from __future__ import annotations

import math
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import FileRelation, Identifier, Relation

#: Numbers of fewer different values are taken for codes.
_MANY_VALUES = 20
#: A class spans this part of where most values lie, or if they are all one, of where all do.
_PART, _PART_OF_ALL = 10, 100
#: No distances are asked of larger numbers.
_LARGEST = 1e15
_DAY, _MICROSECONDS = 86_400, 1_000_000


def distance_between(engine: Engine, table: Relation | FileRelation, column: Column, distinct: int) -> Any:
    """How far apart the ends of a class's values should lie, as a requirement has it: a number, or a stretch of time.

    None for what is no number or time, for codes, and where some values have no place on a line.
    """
    if not (column.is_number or column.is_time) or distinct < _MANY_VALUES:
        return None
    found = engine.record("profiling/measure_spread", source=table, column=Identifier(column.name), kind=column.kind)
    low, high, smallest, largest = (float(found[key] or 0) for key in ("low", "high", "smallest", "largest"))
    if found["unplaced"] or not all(abs(end) < _LARGEST or column.is_time for end in (smallest, largest)):
        return None
    distance = (high - low) / _PART if high > low else (largest - smallest) / _PART_OF_ALL
    if not math.isfinite(distance) or distance <= 0:
        return None
    return _stretch(column, distance) if column.is_time else _one_digit(distance)


def _one_digit(distance: float) -> int | float:
    """The number rounded down to one digit other than 0."""
    exponent = math.floor(math.log10(distance))
    digit = math.floor(distance / 10.0**exponent)
    return digit * 10**exponent if exponent >= 0 else round(digit * 10.0**exponent, -exponent)


def _stretch(column: Column, distance: float) -> str | None:
    """The stretch of time in whole days, or seconds if it is shorter; None if it is shorter than these."""
    seconds = distance * _DAY if column.kind == "date" else distance / _MICROSECONDS
    for unit, length in (("days", _DAY), ("seconds", 1)):
        if seconds >= length and (unit == "days" or column.kind != "date"):
            return f"{math.floor(seconds / length)} {unit}"
    return None
