"""A quasi-identifier that generalises by fewer steps: one level of its taxonomy less, or ranges of one width.

Values and `*` stay what they are, so that losses keep their measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from ldiv_db.policy.document import QuasiIdentifier
from ldiv_db.policy.parts import TaxonomySpec
from ldiv_db.policy.resolve import QuasiColumn

#: A column of numbers has about so many of the ranges, and each of them so many of the narrowest where those are not
#: single numbers.
_RANGES, _NARROW = 10, 100
#: Up to this range whole numbers are told apart by themselves.
_WHOLE_NUMBERS = 10_000
#: How long stretches of time are where dates were published as ranges.
_STRETCHES = ["day", "month", "year"]

#: The smallest and the largest number of a column.
Bounds = Callable[[QuasiColumn], tuple[float, float]]


def coarser(qi: QuasiIdentifier, column: QuasiColumn, bounds: Bounds) -> dict[str, Any] | None:
    """The settings of the quasi-identifier by one level less, as a policy writes them; None if it has none to spare.

    Of plain numbers these are ranges of one width, of dates months and years.
    """
    settings = {key: value for key, value in _written(qi).items() if key not in ("numeric", "taxonomy")}
    taxonomy = _ranges(column, bounds) if qi.numeric else _less(qi.taxonomy, column)
    return settings | {"taxonomy": taxonomy} if taxonomy else None


def _written(qi: QuasiIdentifier) -> dict[str, Any]:
    return qi.model_dump(exclude_unset=True)


def _less(spec: TaxonomySpec | None, column: QuasiColumn) -> dict[str, Any] | None:
    """The taxonomy without the level next above the values."""
    if spec is None:
        return None
    written = spec.model_dump(exclude_unset=True)
    if column.hierarchy.taxonomy is not None:
        return written | {"skip": spec.skip + 1} if column.hierarchy.taxonomy.skippable else None
    for key in ("prefix", "dates", "ranges"):
        levels = getattr(spec, key)
        if levels is not None and len(levels) > 1:
            return written | {key: [levels[0], *levels[2:]]}
    return None


def _ranges(column: QuasiColumn, bounds: Bounds) -> dict[str, Any] | None:
    """A taxonomy of numbers or dates that were published as ranges of any width."""
    if column.column.is_time:
        return {"dates": _STRETCHES} if column.column.type == "DATE" else None
    if not column.column.is_number:
        return None
    smallest, largest = bounds(column)
    widths = _widths(Decimal(str(largest)) - Decimal(str(smallest)), column.column.is_integer)
    return {"ranges": widths} if widths else None


def _widths(domain: Decimal, whole: bool) -> Sequence[int | float]:
    """The widths of ranges for numbers of that domain, narrowest first; none if they are too few."""
    if not domain.is_finite() or domain <= 0:
        return []
    wide = _round_width(domain / _RANGES)
    if whole and wide < 2:
        return []
    narrow = Decimal(1) if whole and domain <= _WHOLE_NUMBERS else wide / _NARROW
    return [_plain(narrow), _plain(wide)]


def _round_width(least: Decimal) -> Decimal:
    """The smallest of 1, 2, 5, 10, 20, 50 and so on, and of their tenths, that is no less."""
    power = Decimal(1).scaleb(least.adjusted())
    return next(power * step for step in (1, 2, 5, 10) if power * step >= least)


def _plain(width: Decimal) -> int | float:
    return int(width) if width == int(width) else float(width)
