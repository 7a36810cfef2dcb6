"""How far apart values are asked to be: a number, or of times a stretch such as `30 days`; exact."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ldiv_db.requirements.parameters import DIGITS, decimal, plain_decimal

#: The units of a stretch of time in seconds, largest first; months and years have no one length.
SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
#: No two values that have a place are farther apart than this.
FARTHEST = 10**18
_STRETCH = re.compile(r"\s*([-+.\deE]+)\s*([a-z]+)\s*")


@dataclass(frozen=True)
class Distance:
    """A distance of two numbers, or `of_times`, in seconds."""

    amount: Decimal
    of_times: bool = False

    @property
    def plain(self) -> int | float | str:
        """The distance as JSON has it: a number, or a text with the unit."""
        if self.of_times:
            return str(self)
        return int(self.amount) if self.amount == int(self.amount) else float(self.amount)

    def __str__(self) -> str:
        if not self.of_times:
            return plain_decimal(self.amount)
        unit = next((unit for unit, length in SECONDS.items() if self.amount % length == 0), "seconds")
        count = self.amount / SECONDS[unit]
        return f"{plain_decimal(count)} {unit[:-1] if count == 1 else unit}"


def distance_of(argument: Any) -> Distance:
    """A distance above 0, as it is written: `1000`, or `30 days`; raises ValueError."""
    stretch = _STRETCH.fullmatch(argument) if isinstance(argument, str) else None
    if stretch is None:
        return Distance(decimal(argument, Decimal(1).scaleb(-DIGITS), Decimal(FARTHEST)))
    count, unit = stretch.groups()
    length = SECONDS.get(unit if unit.endswith("s") else f"{unit}s")
    if length is None:
        raise ValueError(f"takes a stretch of {', '.join(SECONDS)}, not {argument!r}")
    seconds = decimal(count, Decimal(1).scaleb(-DIGITS), Decimal(FARTHEST)) * length
    if seconds > FARTHEST:
        raise ValueError(f"takes up to {FARTHEST:,} seconds, not {argument!r}")
    return Distance(seconds, of_times=True)
