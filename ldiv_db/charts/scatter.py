"""Points in a plane: one thing against another, a line through those that none beats in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ldiv_db.charts.drawing import LINE, SIZE, WIDTH, chart, element, line, path, text
from ldiv_db.charts.scales import Scale, number, scale, short, shortened, text_width

_LEFT, _HIGH, _BELOW, _RADIUS = 44.0, 220.0, 40.0, 5.0


@dataclass(frozen=True)
class Point:
    """A point with its name and its group, and the part of the page that it leads to."""

    x: float
    y: float
    label: str
    group: str = ""
    anchor: str | None = None


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
    up = scale((point.y for point in points), top + _HIGH, top)
    parts = [part for number_, row in enumerate(rows) for part in _named(row, groups, LINE * number_ + SIZE)]
    parts.append(text(0, top - 10, shortened(y, WIDTH, SIZE), "soft"))
    parts += _axes(across, up, top)
    parts.append(text(WIDTH - 4, top + _HIGH + 34, shortened(x, WIDTH, SIZE), "soft", "end"))
    parts += [path(_stepped(frontier, across, up), "frontier")] if len(frontier) > 1 else []
    parts += [_point(point, groups, across, up) for point in points]
    said = "; ".join(f"{point.label}: {number(point.x)}, {number(point.y)}" for point in points)
    linked = any(point.anchor for point in points)
    return chart(f"{title}: {y} against {x}. {said}.", top + _HIGH + _BELOW, parts, "scatter", has_links=linked)


def _rows(groups: Sequence[str]) -> Iterator[list[tuple[str, float]]]:
    """The names of groups with their places, as many a line as fit."""
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
    for tick in up.ticks:
        yield line(_LEFT, up(tick), WIDTH - 4, up(tick), "grid")
        yield text(_LEFT - 6, up(tick) + 4, short(tick), "tick", "end")
    for tick in across.ticks:
        yield line(across(tick), top, across(tick), top + _HIGH, "grid")
        yield text(across(tick), top + _HIGH + 16, short(tick), "tick", "middle")


def _stepped(points: Sequence[Point], across: Scale, up: Scale) -> Iterator[tuple[float, float]]:
    """Who takes the next point pays its x before he has its y."""
    for before, point in zip([None, *points], points, strict=False):
        if before is not None:
            yield across(point.x), up(before.y)
        yield across(point.x), up(point.y)


def _point(point: Point, groups: Sequence[str], across: Scale, up: Scale) -> Markup:
    number_ = groups.index(point.group) if point.group else 0
    tip = f"{point.label}: {number(point.x)}, {number(point.y)}"
    shape = _shape(number_, across(point.x), up(point.y), tip)
    return shape if point.anchor is None else element("a", shape, href=f"#{point.anchor}", aria_label=tip)


def _shape(number_: int, x: float, y: float, tip: str) -> Markup:
    """A circle, square, diamond or triangle; after four of one colour the next colour begins elsewhere."""
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
