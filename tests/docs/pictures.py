"""`docs/pictures/*.svg`: what each algorithm makes of the same 36 people, drawn from real runs.

`python -m tests.docs.pictures` draws them again; `test_pictures.py` compares. A person is a mark at age and weekly
hours, whose colour and shape are the sensitive value; a class is the rectangle that its labels cover.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import ldiv_db

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
#: Least and largest age and hours; labels of the trees below end there.
AGES, HOURS = (20, 67), (8, 55)
VALUES = ("asthma", "diabetes", "influenza")
#: Of the palette of Okabe and Ito, which people with any colour vision tell apart.
COLOURS = {"asthma": "#0072B2", "diabetes": "#D55E00", "influenza": "#009E73"}
_RANGES = {
    "age": {"taxonomy": {"ranges": [6, 12, 24, 48], "origin": 20}},
    "hours": {"taxonomy": {"ranges": [6, 12, 24, 48], "origin": 8}},
}
_NUMERIC = {"age": {"numeric": True}, "hours": {"numeric": True}}
_LABEL = re.compile(r"\[?(\d+)(?: \.\. (\d+)\])?")
#: Pixels of a side of the plane, and around it.
SIDE, MARGIN = 300, 46


@dataclass(frozen=True)
class Case:
    """A picture's policy; with `source` the people are drawn beside the release."""

    require: dict[str, Any]
    algorithm: Any
    columns: dict[str, Any]
    source: bool = False


CASES = {
    "bsgi": Case({"unique_distinct": 3}, "bsgi", _NUMERIC, source=True),
    "topdown": Case({"distinct": 3}, "topdown", _NUMERIC),
    "mondrian": Case({"distinct": 3}, "mondrian", _NUMERIC),
    "peel": Case({"distinct": 3}, "peel", _NUMERIC),
    "stratified": Case({"t_closeness": 0.2}, "stratified", _NUMERIC),
    "cuts": Case({"frequency": 2}, "cuts", _RANGES),
    "incognito": Case({"distinct": 2}, "incognito", _RANGES),
    "tds": Case({"distinct": 2}, "tds", _RANGES),
    "tp_plus": Case({"frequency": 2}, {"name": "tp_plus", "coarsen": {"age": 1, "hours": 2}}, _RANGES),
}


def people() -> list[tuple[int, int, str]]:
    """Age, hours and diagnosis of 36 people at places of their own; the same at every call."""
    found: list[tuple[int, int, str]] = []
    state = 7
    while len(found) < 36:
        state = (state * 1103515245 + 12345) % 2**31
        age, hours = AGES[0] + state // 65536 % 48, HOURS[0] + state // 4096 % 48
        if all(abs(age - a) + abs(hours - h) > 4 for a, h, _ in found):
            found.append((age, hours, VALUES[len(found) % 3]))
    return found


def released(case: Case) -> list[tuple[str, str]]:
    """The labels of age and hours of every row of a release of `people`."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE people (age INTEGER, hours INTEGER, diagnosis VARCHAR)")
        con.executemany("INSERT INTO people VALUES (?, ?, ?)", people())
        policy = {
            "source": "people",
            "target": "released",
            "quasi_identifiers": case.columns,
            "sensitive": "diagnosis",
            "require": [case.require],
            "algorithm": case.algorithm,
            "output": {"types": "text"},
            "seed": 0,
        }
        ldiv_db.run(con, policy)
        return con.execute("SELECT age, hours FROM released ORDER BY ALL").fetchall()


def bounds(label: str, whole: tuple[int, int]) -> tuple[int, int]:
    """The least and the largest number that a label covers."""
    if label == "*":
        return whole
    found = _LABEL.fullmatch(label)
    assert found, label
    return int(found[1]), int(found[2] or found[1])


def place(value: float, whole: tuple[int, int]) -> float:
    """A number's place along a side, in pixels."""
    return round((value - whole[0] + 0.5) / (whole[1] - whole[0] + 1) * SIDE, 1)


def mark(age: int, hours: int, value: str) -> str:
    """A person: a circle, a square or a triangle."""
    x, y, colour = place(age, AGES), SIDE - place(hours, HOURS), COLOURS[value]
    if value == VALUES[0]:
        return f'<circle cx="{x}" cy="{y}" r="4.5" fill="{colour}"/>'
    if value == VALUES[1]:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
    points = f"{x},{y - 5.5:.1f} {x - 5:.1f},{y + 4:.1f} {x + 5:.1f},{y + 4:.1f}"
    return f'<polygon points="{points}" fill="{colour}"/>'


def rectangle(age: str, hours: str) -> str:
    """A class: what its labels cover."""
    (left, right), (low, high) = bounds(age, AGES), bounds(hours, HOURS)
    x, y = place(left - 0.5, AGES), SIDE - place(high + 0.5, HOURS)
    width, height = place(right + 0.5, AGES) - x, SIDE - place(low - 0.5, HOURS) - y
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"'
        ' fill="#56B4E9" fill-opacity="0.18" stroke="#34495e" stroke-width="1.2"/>'
    )


def axes(title: str) -> list[str]:
    """A frame with numbers at its sides and the panel's title."""
    found = [f'<rect width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>']
    found.append(f'<text x="{SIDE / 2}" y="-12" text-anchor="middle" font-weight="bold">{title}</text>')
    for age in (20, 30, 40, 50, 60):
        found.append(f'<text x="{place(age, AGES)}" y="{SIDE + 16}" text-anchor="middle">{age}</text>')
    for hours in (10, 20, 30, 40, 50):
        found.append(f'<text x="-6" y="{SIDE - place(hours, HOURS) + 4:.1f}" text-anchor="end">{hours}</text>')
    found.append(f'<text x="{SIDE / 2}" y="{SIDE + 33}" text-anchor="middle">age</text>')
    found.append(f'<text transform="translate(-30 {SIDE / 2}) rotate(-90)" text-anchor="middle">hours a week</text>')
    return found


def panel(left: int, title: str, inside: Iterable[str]) -> list[str]:
    return [f'<g transform="translate({left} {MARGIN})">', *inside, *axes(title), "</g>"]


def legend(left: int) -> list[str]:
    found = [f'<g transform="translate({left} {SIDE + 2 * MARGIN})">']
    for number, value in enumerate(VALUES):
        age, hours = AGES[0], HOURS[1]
        shift = f"translate({number * 100 - place(age, AGES):.1f} {place(hours, HOURS) - SIDE:.1f})"
        found.append(f'<g transform="{shift}">{mark(age, hours, value)}</g>')
        found.append(f'<text x="{number * 100 + 10}" y="4">{value}</text>')
    return [*found, "</g>"]


def picture(name: str, case: Case, rows: Sequence[tuple[str, str]]) -> str:
    """The SVG of a case, with the people alone in a panel to the left if it asks for that."""
    marks = [mark(*person) for person in people()]
    classes = sorted(set(rows), key=lambda row: (bounds(row[0], AGES), bounds(row[1], HOURS)))
    width = SIDE + 2 * MARGIN
    parts = panel(MARGIN, "source", marks) if case.source else []
    left = width + MARGIN if case.source else MARGIN
    shown = [rectangle(*row) for row in classes]
    parts += panel(left, f"{name}: {len(classes)} classes", [*shown, *marks])
    parts += legend(left + 10)
    total, height = left + SIDE + MARGIN, SIDE + 2 * MARGIN + 22
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" width="{total}" height="{height}"'
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#222"'
    return "\n".join([f"{head} {style}>", f'<rect width="{total}" height="{height}" fill="#fff"/>', *parts, "</svg>\n"])


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    return {f"{name}.svg": picture(name, case, released(case)) for name, case in CASES.items()}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
