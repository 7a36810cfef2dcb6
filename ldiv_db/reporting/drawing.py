"""The parts of charts: escaped SVG elements, frames, axes with round ticks, and names and numbers that fit.

Colours, dark and light, are those of Okabe and Ito, which colour-blind readers tell apart.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

#: Styles, scripts and pages.
TEMPLATES = Path(__file__).parent / "templates"


def page_templates(**how: Any) -> jinja2.Environment:
    """The pages' templates, which escape all that they are given and lack nothing."""
    loader, undefined = jinja2.FileSystemLoader(TEMPLATES), jinja2.StrictUndefined
    return jinja2.Environment(
        loader=loader, undefined=undefined, autoescape=True, trim_blocks=True, lstrip_blocks=True, **how
    )


def joined_lines(name: str) -> Markup:
    """The style or script in that file, in one line."""
    return Markup("".join((TEMPLATES / name).read_text(encoding="utf-8").splitlines()))


#: The style of charts; a page has it once. Paper is white.
CHART_STYLE = joined_lines("chart.css")


def standalone(chart: Markup) -> Markup:
    """A chart that brings its style, for a page of others such as a notebook."""
    return Markup("<style>{}</style>{}").format(CHART_STYLE, chart)


#: Every chart is as wide as a narrow screen and little enlarged on a wide one: its text can be read on both.
WIDTH = 360.0
#: The size of text.
SIZE = 12.0
LINE = 18.0
#: A character that XML does not have becomes this one.
_NONE = "\ufffd"


def element(name: str, /, *children: str | Markup, **attributes: str | float | None) -> Markup:
    """An element; attributes of None are left out, a trailing `_` of their names is dropped, `_` becomes `-`."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key.replace("viewbox", "viewBox")}="{_attribute(value)}"' for key, value in given.items())
    inside = Markup("").join(_clean(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def text(x: float, y: float, words: str, kind: str = "", anchor: str | None = None) -> Markup:
    """Text that stands at, ends at or is centred on a place."""
    return element("text", words, x=x, y=y, class_=kind or None, text_anchor=anchor)


def rectangle(x: float, y: float, width: float, height: float, kind: str, tip: str) -> Markup:
    """A rectangle that says what it is when it is pointed at."""
    return element("rect", element("title", tip), x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """A line through the points."""
    steps = " ".join(
        f"{'L' if number else 'M'}{_coordinate(x)} {_coordinate(y)}" for number, (x, y) in enumerate(points)
    )
    return element("path", d=steps, class_=kind)


def chart(
    said: str, height: float, parts: Sequence[Markup], kind: str, width: float = WIDTH, has_links: bool = False
) -> Markup:
    """The whole chart: an image to a screen reader, of which `said` says what it shows.

    One that `has_links` is a group, as what is in an image cannot be reached.
    """
    view = f"0 0 {_coordinate(width)} {_coordinate(height)}"
    params = {"viewbox": view, "width": _coordinate(width), "height": _coordinate(height)}
    role = "group" if has_links else "img"
    return element("svg", *parts, class_=f"chart {kind}", role=role, aria_label=said, **params)


def legend(series: Sequence[str], y: float) -> Markup:
    """The names of the series beside their colours, in one line."""
    parts, x = [], 0.0
    for place, name in enumerate(series, 1):
        parts += [rectangle(x, y - 9, 10, 10, f"s{place}", name), text(x + 14, y, name)]
        x += 14 + len(name) * SIZE * 0.6 + 16
    return Markup("").join(parts)


def printable(child: Any) -> Any:
    """The text without characters that a document cannot hold; markup as it is."""
    if isinstance(child, Markup) or not isinstance(child, str):
        return child
    return "".join(letter if letter.isprintable() or letter == " " else _NONE for letter in child)


def _clean(child: str | Markup) -> Markup:
    return escape(printable(child))


def _attribute(value: str | float) -> Markup:
    return _clean(value if isinstance(value, str) else _coordinate(value))


def _coordinate(value: float) -> str:
    """A number as SVG has it: two digits are a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0", "0" if abs(value) < 0.005 else "-0")


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
    ticks = tuple(_scales_clean(number * step) for number in range(first, last + 1))
    return Scale(low, high, start, end, ticks)


def _step(wanted: float, whole: bool) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(power * part for part in _STEPS if power * part >= wanted * (1 - 1e-9))
    return max(1.0, step) if whole else step


def _scales_clean(value: float) -> float:
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
    return f"{_scales_clean(value):.6g}".replace("-", "−")


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
