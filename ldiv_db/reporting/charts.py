"""Charts of numbers as SVG, without scripts, the same bytes for the same numbers: bars, histograms and scatter plots.

Bars show a value or several for each name, against a bound where there is one. Histograms count how many there are of
each size, with marks at sizes that matter and a second distribution as a line. A scatter plot has a line through the
points that none beats in both directions. Charts know no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ldiv_db.reporting.drawing import (
    LINE,
    SIZE,
    WIDTH,
    Scale,
    chart,
    element,
    legend,
    line,
    number,
    path,
    rectangle,
    scale,
    short,
    shortened,
    text,
    text_width,
)

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
    parts += [
        text(across(t), height + 14, short(t), "tick", "start" if across(t) < 12 else "middle") for t in across.ticks
    ]
    parts.append(text(0, height + 32, shortened(unit, WIDTH, SIZE), "soft"))
    return chart(_bars_in_words(title, bars, unit, series, bound_name), height + 38, parts, "bars")


def _shown(bar: Bar) -> list[tuple[int, float | None]]:
    """The values with the numbers of their series; a dash stands for all of them if there is none."""
    given = [(place, value) for place, value in enumerate(bar.values, 1) if value is not None]
    return [*given] or [(1, None)]


def _height(bar: Bar) -> float:
    return LINE + len(_shown(bar)) * (_THICK + 2) + _GAP


def _bar(bar: Bar, y: float, across: Scale, series: Sequence[str], bound_name: str) -> list[Markup]:
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


def _bars_in_words(title: str, bars: Sequence[Bar], unit: str, series: Sequence[str], bound_name: str) -> str:
    lines = []
    for bar in bars:
        names = series or [""] * len(bar.values)
        values = [f"{name} {number(v)}".strip() for name, v in zip(names, bar.values, strict=True)]
        values += [] if bar.bound is None else [f"{bound_name} {number(bar.bound)}"]
        lines.append(f"{bar.label}: {', '.join(values)}")
    return f"{title}, {unit}. {'; '.join(lines)}."


#: The plot's left edge, its height, and room below it for ticks and the name of the axis.
_LEFT, _HIGH, _BELOW = 44.0, 150.0, 40.0


@dataclass(frozen=True)
class Bin:
    """A count of sizes between two bounds; readers see `label`."""

    low: float
    high: float
    count: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A size that matters, and why."""

    at: float
    label: str


@dataclass(frozen=True)
class Axes:
    """The names of a chart's axes, with their units; the sizes across are whole numbers if they are `whole`."""

    x: str
    y: str
    whole: bool = False


@dataclass(frozen=True)
class Later:
    """A second distribution, drawn as a line; `series` are the names of the first and of this one."""

    bins: Sequence[Bin]
    series: tuple[str, str]


def histogram(
    title: str, bins: Sequence[Bin], axes: Axes, marks: Sequence[Mark] = (), later: Later | None = None
) -> Markup:
    """Columns over a numeric axis, from 0 up; `marks` are lines across with their names."""
    after, series = (later.bins, later.series) if later else ((), ())
    top = (LINE if series else 0.0) + LINE * (1 + len(marks)) + 4
    across = scale(
        [edge for one in (*bins, *after) for edge in (one.low, one.high)] + [mark.at for mark in marks],
        _LEFT, WIDTH - 4, whole=axes.whole, rounded=False,
    )  # fmt: skip
    up = scale([0.0, *(one.count for one in (*bins, *after))], top + _HIGH, top, most=4)
    parts = [legend(series, SIZE)] if series else []
    parts.append(text(0, top - LINE * len(marks) - 8, shortened(axes.y, WIDTH, SIZE), "soft"))
    parts += _grid(up)
    parts += [_column(one, across, up) for one in bins]
    parts += [path(_steps(after, across, up), "outline")] if after else []
    parts += _axis(across, top + _HIGH)
    parts.append(text(WIDTH - 4, top + _HIGH + 34, shortened(axes.x, WIDTH, SIZE), "soft", "end"))
    parts += _marks(marks, across, top)
    return chart(_histogram_in_words(title, bins, after, axes, marks), top + _HIGH + _BELOW, parts, "histogram")


def _grid(up: Scale) -> Iterator[Markup]:
    for tick in up.ticks:
        yield line(_LEFT, up(tick), WIDTH - 4, up(tick), "grid")
        yield text(_LEFT - 6, up(tick) + 4, short(tick), "tick", "end")


def _column(one: Bin, across: Scale, up: Scale) -> Markup:
    left, right = across(one.low), across(one.high)
    gap = 1.0 if right - left > 3 else 0.0
    high = max(up(0.0) - up(one.count), 1.0) if one.count else 0.0
    return rectangle(left, up(0.0) - high, right - left - gap, high, "s1", f"{one.label}: {number(one.count)}")


def _steps(bins: Sequence[Bin], across: Scale, up: Scale) -> Iterator[tuple[float, float]]:
    for one in bins:
        yield across(one.low), up(one.count)
        yield across(one.high), up(one.count)


def _axis(across: Scale, y: float) -> Iterator[Markup]:
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
    for place, mark in enumerate(marks, 1):
        x, y = across(mark.at), top - LINE * (len(marks) - place) - 6
        yield line(x, y - 10, x, top + _HIGH, "bound dashed")
        room = x - 4 > WIDTH / 2
        yield text(x - 6 if room else x + 6, y, shortened(mark.label, WIDTH - 60, SIZE), "", "end" if room else "start")


def _histogram_in_words(
    title: str, bins: Sequence[Bin], after: Sequence[Bin], axes: Axes, marks: Sequence[Mark]
) -> str:  # fmt: skip
    """The chart in words: a reader who sees none of it has the largest column, and all marks."""
    largest = max(bins, key=lambda one: one.count, default=None)
    parts = [f"{title}: {axes.y} by {axes.x}"]
    parts += [f"{len(bins)} columns, the largest {largest.label}: {number(largest.count)}"] if largest else ["nothing"]
    parts += ["beside it a line for the other distribution"] if after else []
    parts += [f"marked: {mark.label}" for mark in marks]
    return f"{'; '.join(parts)}."


#: The height of a scatter plot, and how large its points are.
_SCATTER_HIGH, _RADIUS = 220.0, 5.0


@dataclass(frozen=True)
class Point:
    """A point with its name and its group, the part of the page that it leads to, and what is written beside it."""

    x: float
    y: float
    label: str
    group: str = ""
    anchor: str | None = None
    mark: str = ""


def scatter(
    title: str, points: Sequence[Point], x: str, y: str, frontier: Sequence[Point] = (), groups: Sequence[str] = ()
) -> Markup:
    """Points by their groups' shapes and colours, and a stepped line through `frontier`, which is in the order of x.

    `groups` are in the order in which they take shapes and colours, that of their points if they are not given.

    `x` and `y` name the axes with their units. A point with an `anchor` is a link that the keyboard reaches.
    """
    groups = groups or list(dict.fromkeys(point.group for point in points if point.group))
    rows = list(_rows(groups))
    top = LINE * len(rows) + LINE + 6
    across = scale((point.x for point in points), _LEFT, WIDTH - 10)
    up = scale((point.y for point in points), top + _SCATTER_HIGH, top)
    parts = [part for number_, row in enumerate(rows) for part in _named(row, groups, LINE * number_ + SIZE)]
    parts.append(text(0, top - 10, shortened(y, WIDTH, SIZE), "soft"))
    parts += _axes(across, up, top)
    parts.append(text(WIDTH - 4, top + _SCATTER_HIGH + 34, shortened(x, WIDTH, SIZE), "soft", "end"))
    parts += [path(_stepped(frontier, across, up), "frontier")] if len(frontier) > 1 else []
    parts += [_point(point, groups, across, up) for point in points]
    parts += _named_points(points, frontier, across, up)
    said = "; ".join(f"{point.label}: {number(point.x)}, {number(point.y)}" for point in points)
    linked = any(point.anchor for point in points)
    return chart(f"{title}: {y} against {x}. {said}.", top + _SCATTER_HIGH + _BELOW, parts, "scatter", has_links=linked)


def _rows(groups: Sequence[str]) -> Iterator[list[tuple[str, float]]]:
    row: list[tuple[str, float]] = []
    at = 0.0
    for name in groups:
        wide = text_width(name, SIZE) + 34
        if row and at + wide > WIDTH:
            yield row
            row, at = [], 0.0
        row.append((name, at))
        at += wide
    if row:
        yield row


def _named(row: Sequence[tuple[str, float]], groups: Sequence[str], y: float) -> Iterator[Markup]:
    for name, x in row:
        yield _shape(groups.index(name), x + _RADIUS + 1, y - 4, name)
        yield text(x + 16, y, shortened(name, WIDTH - 20, SIZE))


def _axes(across: Scale, up: Scale, top: float) -> Iterator[Markup]:
    yield from _grid(up)
    for tick in across.ticks:
        yield line(across(tick), top, across(tick), top + _SCATTER_HIGH, "grid")
        yield text(across(tick), top + _SCATTER_HIGH + 16, short(tick), "tick", "middle")


def _stepped(points: Sequence[Point], across: Scale, up: Scale) -> Iterator[tuple[float, float]]:
    """Yield the corners of a staircase: each step goes to the next x first, then to its y."""
    for before, point in zip([None, *points], points, strict=False):
        if before is not None:
            yield across(point.x), up(before.y)
        yield across(point.x), up(point.y)


def _point(point: Point, groups: Sequence[str], across: Scale, up: Scale) -> Markup:
    number_ = groups.index(point.group) if point.group else 0
    tip = f"{point.label}: {number(point.x)}, {number(point.y)}"
    shape = _shape(number_, across(point.x), up(point.y), tip)
    return shape if point.anchor is None else element("a", shape, href=f"#{point.anchor}", aria_label=tip)


def _named_points(points: Sequence[Point], frontier: Sequence[Point], across: Scale, up: Scale) -> Iterator[Markup]:
    """What is written beside the points of the frontier, where there is room for it."""
    taken = [(across(p.x) - _RADIUS, up(p.y) - _RADIUS, across(p.x) + _RADIUS, up(p.y) + _RADIUS) for p in points]
    for point in (point for point in frontier if point.mark):
        left, base, wide = across(point.x) + _RADIUS + 3, up(point.y) - 3, text_width(point.mark, SIZE)
        box = (left, base - SIZE, left + wide, base + 2)
        apart = (box[0] > r or box[2] < l or box[1] > b or box[3] < t for l, t, r, b in taken)
        if box[2] <= WIDTH and all(apart):
            taken.append(box)
            yield text(left, base, point.mark, "tick")


def _shape(number_: int, x: float, y: float, tip: str) -> Markup:
    kind = f"point s{number_ % 4 + 1}"
    return _SHAPES[(number_ + number_ // 4) % 4](x, y, kind, element("title", tip))


def _polygon(corners: Sequence[tuple[float, float]]) -> Callable[[float, float, str, Markup], Markup]:
    def draw(x: float, y: float, kind: str, tip: Markup) -> Markup:
        places = " ".join(f"{x + dx * _RADIUS:.2f},{y + dy * _RADIUS:.2f}" for dx, dy in corners)
        return element("polygon", tip, points=places, class_=kind)

    return draw


def _circle(x: float, y: float, kind: str, tip: Markup) -> Markup:
    return element("circle", tip, cx=x, cy=y, r=_RADIUS, class_=kind)


_SHAPES = (
    _circle,
    _polygon([(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
    _polygon([(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)]),
    _polygon([(0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
)
