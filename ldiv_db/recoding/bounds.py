"""Where a column's numbers and times begin and end, and which of them have no place on a line."""

from __future__ import annotations

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation

#: Differences from here on are beyond doubles, or of integers beyond the widest type.
_WIDEST, _WIDEST_INTEGER = 1.7e308, 2**127
#: Of the years 1 to 9999, counted from 1970; and the microseconds of a day.
_FIRST_DAY, _LAST_DAY, _MICROSECONDS = -719_162, 2_932_896, 86_400_000_000


def bounds_of(engine: Engine, rows: Relation | FileRelation, code: Identifier, column: Column) -> tuple[float, float]:
    """The smallest and the largest position in `code`, which holds the values of `column`; zeros if there are none.

    Raises PolicyError for infinities and NaN, and for numbers so far apart that no type holds the distance.
    """
    found = engine.record("recoding/input/bound_numbers", rows=rows, column=code, kind=column.kind)
    smallest, largest = found["smallest"] or 0, found["largest"] or 0
    if found["unplaced"] or not (abs(smallest) < float("inf") and abs(largest) < float("inf")):
        raise _refused(column, "holds NaN or infinity, which no range covers")
    if not largest - smallest < (_WIDEST_INTEGER if column.kind == "integer" else _WIDEST):
        raise _refused(column, "holds numbers too far apart to compare")
    return smallest, largest


def refuse_odd_years(engine: Engine, rows: Relation | FileRelation, code: Identifier, column: Column) -> None:
    """Raise PolicyError unless all years have up to four digits: labels of others would be ambiguous."""
    smallest, largest = bounds_of(engine, rows, code, column)
    day = 1 if column.kind == "date" else _MICROSECONDS
    if smallest < _FIRST_DAY * day or largest >= (_LAST_DAY + 1) * day:
        raise _refused(column, "holds years outside 1 to 9999")


def _refused(column: Column, what: str) -> PolicyError:
    return PolicyError([Problem(f"quasi_identifiers.{column.name}", what)])
