"""Histograms: how many there are of each size, with marks at sizes that matter, and a second distribution as a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ldiv_db.charts.drawing import LINE, SIZE, WIDTH, chart, legend, line, path, rectangle, text
from ldiv_db.charts.scales import Scale, number, scale, short, shortened, text_width

#: The plot's left edge, its height, and room below it for ticks and the name of the axis.
_LEFT, _HIGH, _BELOW = 44.0, 150.0, 40.0


@dataclass(frozen=True)
class Bin:
    """So many between two sizes, of which a reader is told `label`."""

    low: float
    high: float
    count: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A size that matters, and why."""

    at: float
    label: str


def histogram(
    title: str,
    bins: Sequence[Bin],
    x: str,
    y: str,
    *,
    marks: Sequence[Mark] = (),
    after: Sequence[Bin] = (),
    series: Sequence[str] = (),
    whole: bool = False,
) -> Markup:
    """Columns over a numeric axis, from 0 up; `x` and `y` name the axes with their units.

    `marks` are lines across with their names; `after` is a second distribution as a line, the two being named by
    `series`. With `whole` the sizes are whole numbers.
    """
    top = (LINE if series else 0.0) + LINE * (1 + len(marks)) + 4
    across = scale(
        [edge for one in (*bins, *after) for edge in (one.low, one.high)] + [mark.at for mark in marks],
        _LEFT, WIDTH - 4, whole=whole, rounded=False,
    )  # fmt: skip
    up = scale([0.0, *(one.count for one in (*bins, *after))], top + _HIGH, top, most=4)
    parts = [legend(series, SIZE)] if series else []
    parts.append(text(0, top - LINE * len(marks) - 8, shortened(y, WIDTH, SIZE), "soft"))
    parts += _grid(up)
    parts += [_column(one, across, up) for one in bins]
    parts += [path(_steps(after, across, up), "outline")] if after else []
    parts += _axis(across, top + _HIGH)
    parts.append(text(WIDTH - 4, top + _HIGH + 34, shortened(x, WIDTH, SIZE), "soft", "end"))
    parts += _marks(marks, across, top)
    return chart(_said(title, bins, after, x, y, marks), top + _HIGH + _BELOW, parts, "histogram")


def _grid(up: Scale) -> Iterator[Markup]:
    for tick in up.ticks:
        yield line(_LEFT, up(tick), WIDTH - 4, up(tick), "grid")
        yield text(_LEFT - 6, up(tick) + 4, short(tick), "tick", "end")


def _column(one: Bin, across: Scale, up: Scale) -> Markup:
    """A column; one of few among many is still seen."""
    left, right = across(one.low), across(one.high)
    gap = 1.0 if right - left > 3 else 0.0
    high = max(up(0.0) - up(one.count), 1.0) if one.count else 0.0
    return rectangle(left, up(0.0) - high, right - left - gap, high, "s1", f"{one.label}: {number(one.count)}")


def _steps(bins: Sequence[Bin], across: Scale, up: Scale) -> Iterator[tuple[float, float]]:
    for one in bins:
        yield across(one.low), up(one.count)
        yield across(one.high), up(one.count)


def _axis(across: Scale, y: float) -> Iterator[Markup]:
    """The axis below, with as many numbers as have room."""
    yield line(_LEFT, y, WIDTH - 4, y, "axis")
    free = 0.0
    for tick in across.ticks:
        half = text_width(short(tick), 11) / 2
        x = min(across(tick), WIDTH - half)
        if x - half >= free:
            yield line(across(tick), y, across(tick), y + 4, "axis")
            yield text(x, y + 16, short(tick), "tick", "middle")
            free = x + half + 4


def _marks(marks: Sequence[Mark], across: Scale, top: float) -> Iterator[Markup]:
    """Lines with names, each name on a line of its own, on the side where there is room."""
    for place, mark in enumerate(marks, 1):
        x, y = across(mark.at), top - LINE * (len(marks) - place) - 6
        yield line(x, y - 10, x, top + _HIGH, "bound dashed")
        room = x - 4 > WIDTH / 2
        yield text(x - 6 if room else x + 6, y, shortened(mark.label, WIDTH - 60, SIZE), "", "end" if room else "start")


def _said(
    title: str, bins: Sequence[Bin], after: Sequence[Bin], x: str, y: str, marks: Sequence[Mark]
) -> str:  # fmt: skip
    """The chart in words: a reader who sees none of it has the largest column, and all marks."""
    largest = max(bins, key=lambda one: one.count, default=None)
    parts = [f"{title}: {y} by {x}"]
    parts += [f"{len(bins)} columns, the largest {largest.label}: {number(largest.count)}"] if largest else ["nothing"]
    parts += ["beside it a line for the other distribution"] if after else []
    parts += [f"marked: {mark.label}" for mark in marks]
    return f"{'; '.join(parts)}."
