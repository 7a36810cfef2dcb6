"""A column in counts: how many values it has, how they are spread over rows, and what they look like as text."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.people_columns import CATEGORY_ROWS, FEW_VALUES


@dataclass(frozen=True)
class Texts:
    """What the different values of a column look like as text: characters of the shortest and the longest, and counts.

    `uncoded` are more than letters and digits or have no digit, a level file cannot hold the `unlisted` ones, `starred`
    ones have a star in them, `stars` are one, `addressed` are addresses of people or machines, or such numbers.
    """

    shortest: int
    longest: int
    uncoded: int
    unlisted: int
    starred: int
    stars: int
    addressed: int = 0


@dataclass(frozen=True)
class Summary:
    """A column of a table of so many rows: different values that are not NULL, NULLs, rows of the most frequent value.

    `singles` counts the rows whose value, NULL being one, no other row has, `decimals` the numbers that are not whole;
    numbers and times have no `texts`.
    """

    column: Column
    rows: int
    distinct: int
    nulls: int
    most: int
    singles: int
    texts: Texts | None = None
    decimals: int = 0

    @property
    def is_measure(self) -> bool:
        """Whether its values are times, or numbers with decimals: they measure, and number nobody."""
        return self.column.is_time or self.decimals > 0

    @property
    def has_few_rows(self) -> bool:
        """Whether it has more than a few values, of few rows each: it may name somebody in particular."""
        return self.distinct > FEW_VALUES and self.rows < CATEGORY_ROWS * self.distinct


def summarise(engine: Engine, table: Relation | FileRelation, column: Column, rows: int) -> Summary:
    """The summary of a column, one statement."""
    as_text = not (column.is_number or column.is_time)
    name = Identifier(column.name)
    forms = {"as_text": as_text, "as_real": column.is_fractional}
    counts = engine.record("profiling/summarise_column", source=table, column=name, name=Value(column.name), **forms)
    whole = {key: int(count) for key, count in counts.items()}
    distinct, nulls, most, singles = (whole.pop(key) for key in ("different", "nulls", "most", "singles"))
    decimals = whole.pop("decimals", 0)
    return Summary(column, rows, distinct, nulls, most, singles, Texts(**whole) if as_text else None, decimals)
