"""SVG elements whose texts and attributes are escaped, and the frame of a chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

#: Every chart is as wide as a narrow screen and little enlarged on a wide one: its text can be read on both.
WIDTH = 360.0
#: The size of text.
SIZE = 12.0
LINE = 18.0
#: A character that XML does not have becomes this one.
_NONE = "\ufffd"


def element(name: str, *children: str | Markup, **attributes: str | float | None) -> Markup:
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
    steps = " ".join(f"{'L' if number else 'M'}{_place(x)} {_place(y)}" for number, (x, y) in enumerate(points))
    return element("path", d=steps, class_=kind)


def chart(
    said: str, height: float, parts: Sequence[Markup], kind: str, width: float = WIDTH, has_links: bool = False
) -> Markup:
    """The whole chart: an image to a screen reader, of which `said` says what it shows.

    One that `has_links` is a group, as what is in an image cannot be reached.
    """
    view = f"0 0 {_place(width)} {_place(height)}"
    holes = {"viewbox": view, "width": _place(width), "height": _place(height)}
    role = "group" if has_links else "img"
    return element("svg", *parts, class_=f"chart {kind}", role=role, aria_label=said, **holes)


def legend(series: Sequence[str], y: float) -> Markup:
    """The names of the series beside their colours, in one line."""
    parts, x = [], 0.0
    for place, name in enumerate(series, 1):
        parts += [rectangle(x, y - 9, 10, 10, f"s{place}", name), text(x + 14, y, name)]
        x += 14 + len(name) * SIZE * 0.6 + 16
    return Markup("").join(parts)


def _clean(child: str | Markup) -> Markup:
    """The child escaped, without characters that a document cannot hold."""
    if isinstance(child, Markup):
        return child
    return escape("".join(letter if letter.isprintable() or letter == " " else _NONE for letter in child))


def _attribute(value: str | float) -> Markup:
    return _clean(value if isinstance(value, str) else _place(value))


def _place(value: float) -> str:
    """A number as SVG has it: two digits are a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0", "0" if abs(value) < 0.005 else "-0")
