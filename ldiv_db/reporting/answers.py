"""The forms of an answer to a question: on a screen a row a group, each figure as `estimate (low .. high)`."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

from ldiv_db.database.errors import count_phrase
from ldiv_db.display import Part, table_of
from ldiv_db.reporting.table_text import notes_text

if TYPE_CHECKING:  # of what is shown, which is there
    from ldiv_db.measuring.asking.answer import Answers, Bounds

#: The digits of a figure on a screen.
_DIGITS = 6


def answers_line(found: Answers) -> str:
    return f"Answer of {found.table}: {count_phrase(len(found.groups), 'group', 'groups')}"


def answers_rows(found: Answers) -> list[dict[str, Any]]:
    """A row a group: its values, and of each figure the estimate under its name, its bounds and if it is exact."""
    rows = []
    for values, bounds in found.groups:
        row = dict(zip(found.by, values, strict=True))
        for name, one in zip(found.figures, bounds, strict=True):
            row |= {name: one.estimate, f"{name} low": one.low, f"{name} high": one.high}
            row |= {f"{name} exact": found.is_exact(one)}
        rows.append(row)
    return rows


def answers_text(found: Answers) -> Iterator[Part]:
    rows = [[*values, *map(_in_words, bounds)] for values, bounds in found.groups]
    yield table_of(f"{found.table}: estimate (low .. high)", [*found.by, *found.figures], rows)
    if found.unlisted:
        yield f"groups that are not listed have at most {found.unlisted:,} rows each"
    yield from notes_text(found.notes)


def _in_words(bounds: Bounds) -> str:
    """The estimate between its bounds, which are rounded outwards."""
    low, high = _short(bounds.low, ROUND_FLOOR), _short(bounds.high, ROUND_CEILING)
    return low if low == high else f"{_short(bounds.estimate, ROUND_HALF_EVEN)} ({low} .. {high})"


def _short(value: Any, rounding: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        value = Context(prec=_DIGITS, rounding=rounding).create_decimal_from_float(value).normalize()
    return f"{value:,f}" if isinstance(value, Decimal) else f"{value:,}" if isinstance(value, int) else str(value)
