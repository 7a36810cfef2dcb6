"""Axes: round ticks, the places of values, and how numbers and names are written so that they fit."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

#: What a letter takes, in parts of its size, on average and with room to spare; a wide one takes twice that.
_LETTER = 0.6
#: The steps between ticks, in powers of ten.
_STEPS = (1.0, 2.0, 5.0, 10.0)
#: What is nearer to zero is drawn as zero: doubles have no steps between such values.
_NOTHING = 1e-280
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`, drawn from the place `start` to `end`; `ticks` are round values between."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """The place of a value, one outside taken to the nearer end."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)


def scale(
    values: Iterable[float], start: float, end: float, *, most: int = 5, whole: bool = False, rounded: bool = True
) -> Scale:
    """The scale that holds all values, with about `most` ticks; `rounded` has it end at ticks.

    `whole` puts ticks at whole numbers alone. Values that are all equal, or none, get room around them.
    """
    found = sorted(value if abs(value) > _NOTHING else 0.0 for value in values if math.isfinite(value))
    low, high = (found[0], found[-1]) if found else (0.0, 1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # doubles tell no ticks apart there
        low, high = min(low, 0.0), max(high, 0.0) or (0.0 if low else 1.0)
    step = _step((high - low) / most, whole)
    if rounded:
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        high = max(high, low + step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(_clean(number * step) for number in range(first, last + 1))
    return Scale(low, high, start, end, ticks)


def _step(wanted: float, whole: bool) -> float:
    """The next round step from the one that is wanted."""
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(power * part for part in _STEPS if power * part >= wanted * (1 - 1e-9))
    return max(1.0, step) if whole else step


def _clean(value: float) -> float:
    """A multiple of a step without what binary fractions add to it."""
    return float(f"{value:.12g}") + 0.0


def number(value: float | None) -> str:
    """A number as a reader wants it: four digits, or all of a whole one, with commas; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    written = f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"
    return written.replace("-", "−")


def short(value: float) -> str:
    """A number for a tick: thousands and millions by their letters."""
    for size, letter in _THOUSANDS:
        if abs(value) >= size * 10 or (abs(value) >= size and value % size == 0):
            return f"{value / size:.4g}{letter}".replace("-", "−")
    return f"{_clean(value):.6g}".replace("-", "−")


def text_width(text: str, size: float) -> float:
    """About how wide a text is, rather too much than too little."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text) * size * _LETTER


def shortened(text: str, width: float, size: float) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"
