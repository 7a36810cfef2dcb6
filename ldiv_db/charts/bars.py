"""Bars: a value or several for each of some names, against a bound where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ldiv_db.charts.drawing import LINE, SIZE, WIDTH, chart, legend, line, rectangle, text
from ldiv_db.charts.scales import Scale, number, scale, short, shortened, text_width

#: How thick a bar is, and the room between two names.
_THICK, _GAP = 12.0, 10.0
#: Room for the number beside the longest bar.
_NUMBER = 64.0


@dataclass(frozen=True)
class Bar:
    """A name with a value for each series, None where there is none, and the bound that these are held against."""

    label: str
    values: tuple[float | None, ...]
    bound: float | None = None


def bar_chart(
    title: str, bars: Sequence[Bar], unit: str, series: Sequence[str] = (), bound_name: str = "bound"
) -> Markup:
    """Horizontal bars from 0, each with its number; a bound is a line across the bar.

    `title` and the numbers are what a screen reader says; `unit` stands at the axis. With several `series` each name
    has a bar for each of them, in their order.
    """
    top = LINE + 4 if series else 0.0
    height = top + sum(_height(bar) for bar in bars)
    given = [value for bar in bars for value in (*bar.values, bar.bound) if value is not None]
    across = scale([0.0, *given], 1.0, WIDTH - _NUMBER, most=4)
    parts = [legend(series, SIZE)] if series else []
    parts += [line(across(tick), top, across(tick), height, "grid") for tick in across.ticks]
    y = top
    for bar in bars:
        parts += _bar(bar, y, across, series, bound_name)
        y += _height(bar)
    parts += [text(across(t), height + 14, short(t), "tick", _anchor(t, across)) for t in across.ticks]
    parts.append(text(0, height + 32, shortened(unit, WIDTH, SIZE), "soft"))
    return chart(_said(title, bars, unit, series, bound_name), height + 38, parts, "bars")


def _shown(bar: Bar) -> list[tuple[int, float | None]]:
    """The values with the numbers of their series; a dash stands for all of them if there is none."""
    given = [(place, value) for place, value in enumerate(bar.values, 1) if value is not None]
    return [*given] or [(1, None)]


def _height(bar: Bar) -> float:
    return LINE + len(_shown(bar)) * (_THICK + 2) + _GAP


def _bar(bar: Bar, y: float, across: Scale, series: Sequence[str], bound_name: str) -> list[Markup]:
    """The name, its bars and its bound."""
    promised = "" if bar.bound is None else f"{bound_name} {number(bar.bound)}"
    room = WIDTH - text_width(promised, SIZE) - 8
    parts = [text(0, y + 13, shortened(bar.label, room, SIZE))]
    parts += [text(WIDTH, y + 13, promised, "soft", "end")] if promised else []
    for row, (place, value) in enumerate(_shown(bar)):
        at = y + LINE + row * (_THICK + 2)
        end = across(value or 0.0)
        tip = ", ".join(part for part in (bar.label, series[place - 1] if series else "", number(value)) if part)
        parts += [rectangle(across(0.0), at, end - across(0.0), _THICK, f"s{place}", tip)]
        past = across(bar.bound) if bar.bound is not None else 0.0
        near = end + 6 if not end - 2 <= past <= end + 58 else past + 6
        parts.append(text(near, at + 10, number(value), "tick"))
    if bar.bound is not None:
        x, below = across(bar.bound), y + LINE + len(_shown(bar)) * (_THICK + 2)
        parts.append(line(x, y + LINE - 3, x, below + 1, "bound"))
    return parts


def _anchor(tick: float, across: Scale) -> str:
    """The first tick's number begins at the edge, where half of it would be cut off."""
    return "start" if across(tick) < 12 else "middle"


def _said(title: str, bars: Sequence[Bar], unit: str, series: Sequence[str], bound_name: str) -> str:
    """The chart in words."""
    lines = []
    for bar in bars:
        names = series or [""] * len(bar.values)
        values = [f"{name} {number(v)}".strip() for name, v in zip(names, bar.values, strict=True)]
        values += [] if bar.bound is None else [f"{bound_name} {number(bar.bound)}"]
        lines.append(f"{bar.label}: {', '.join(values)}")
    return f"{title}, {unit}. {'; '.join(lines)}."
