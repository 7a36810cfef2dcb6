"""Columns in counts, and how far they tell rows apart: all together, all but one, and the few that do most.

Everything is counted on the different combinations of all quasi-identifiers, and no more of it than a budget of values
that are read allows.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldiv_db.auditing.people_names import CATEGORY_ROWS, FEW_VALUES
from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.population_uniqueness import PopulationUniqueness, estimate_uniqueness, root_of
from ldiv_db.recoding.encoded import Renamed

#: What columns of amounts are called, whose whole numbers may all differ; `fee_no` and `discharge` number something.
_AMOUNTS = re.compile(
    r"(?i:(^|[_ ])(salary|wages?|income|earnings|pay(ment)?|amount|price|costs?|charges?|fees?|revenue|balance|premium)"
    r"([_ ](eur|usd|gbp|chf|net|gross|total|annual|yearly|monthly))*$)"
)


#: Values have about as many rows each where these differ by so much of what lots would give.
EVEN = 0.6


@dataclass(frozen=True)
class Texts:
    """The different values of a column as text: characters of the shortest and the longest, and counts.

    `uncoded` are more than letters and digits or have no digit, a level file cannot hold the `unlisted` ones, `starred`
    ones have a star in them, `stars` are one, `addressed` are addresses of people or machines, or such numbers,
    `numbered` ones have five digits or more, `labels` are ranges or sets as a release has them;
    `folded` has those as one that differ by case and blanks at their ends alone, None where that was not counted.
    """

    shortest: int
    longest: int
    uncoded: int
    unlisted: int
    starred: int
    stars: int
    addressed: int = 0
    numbered: int = 0
    labels: int = 0
    folded: int | None = None


@dataclass(frozen=True)
class Summary:
    """A column of a table of so many rows: different values that are not NULL, NULLs, rows of the most frequent value.

    `singles` counts the rows whose value, NULL being one, no other row has, `decimals` the numbers that are not whole;
    numbers and times have no `texts`. `squares` is the sum of the squares of how many rows each value has, `largest`
    the largest of whole numbers.
    """

    column: Column
    rows: int
    distinct: int
    nulls: int
    most: int
    singles: int
    texts: Texts | None = None
    decimals: int = 0
    squares: int = 0
    largest: int = 0

    @property
    def is_coded(self) -> bool:
        """True if its values are long numbers, or codes of letters and digits, beyond any measure."""
        if self.texts is None:
            return self.column.is_integer and self.largest >= max(10**7, 1000 * self.distinct)
        return not self.texts.uncoded and self.texts.shortest >= 4

    @property
    def is_even(self) -> bool:
        """True if its values have about as many rows each, as drawing lots would not give them (of a Poisson law)."""
        mean = Fraction(self.rows - self.nulls, max(self.distinct, 1))
        if self.distinct <= FEW_VALUES or not self.squares or mean <= 1:
            return False
        spread = float(Fraction(self.squares, self.distinct) - mean**2)
        return spread < EVEN * _drawn_spread(float(mean))

    @property
    def is_measure(self) -> bool:
        """True if its values are times, numbers with decimals, or by name amounts: they measure, and number nobody."""
        amounts = self.column.is_number and _AMOUNTS.search(self.column.name) is not None
        return self.column.is_time or self.decimals > 0 or amounts

    @property
    def has_few_rows(self) -> bool:
        """True if it has more than a few values, of few rows each: it may name somebody in particular."""
        return self.distinct > FEW_VALUES and self.rows < CATEGORY_ROWS * self.distinct


def summarise(engine: Engine, table: Table, column: Column, rows: int) -> Summary:
    """The summary of a column, one statement."""
    as_text = not (column.is_number or column.is_time)
    name = Identifier(column.name)
    forms = {"as_text": as_text, "as_real": column.is_fractional, "as_integer": column.is_integer}
    counts = engine.record("measuring/profile/summarise_column", source=table, column=name, name=column.name, **forms)
    whole = {key: int(count) for key, count in counts.items()}
    largest = whole.pop("largest", 0)
    distinct, nulls, most, singles = (whole.pop(key) for key in ("different", "nulls", "most", "singles"))
    decimals, squares = whole.pop("decimals", 0), whole.pop("squares")
    texts = Texts(**whole) if as_text else None
    return Summary(column, rows, distinct, nulls, most, singles, texts, decimals, squares, largest)


def _drawn_spread(mean: float) -> float:
    """The variance of how many rows a value has that is drawn at least once, where values have so many on average."""
    # The rate of the Poisson law, of which the values that are never drawn are not seen.
    rate = root_of(lambda rate: mean + rate / math.expm1(-rate), 0.0, mean)
    return mean * (1 + rate - mean)


#: Forms of values that are shown, and the share of the rows, and the rows, that one has beside its most frequent value.
_FORMS, _FORM_SHARE, _FORM_ROWS = 3, 20, 10


def forms_of(engine: Engine, table: Table, summary: Summary) -> tuple[str, ...]:
    """How many of a column's values are written, such as `99999` or `Aaaa-aa`; none of measures."""
    if summary.is_measure or is_nested(summary.column):
        return ()
    least = max(_FORM_ROWS, math.ceil(summary.rows / _FORM_SHARE))
    params = {"column": summary.column.name, "least": least, "most": _FORMS}
    return tuple(form for (form,) in engine.rows("measuring/profile/list_forms", source=table, **params))


#: Rows in combinations of fewer than this many rows are counted as rare.
RARE = 5
#: Values that are read at most to leave out each column in turn, and to combine two, and three.
LEFT_OUT_BUDGET, SMALL_BUDGET = 30_000_000, 20_000_000
#: A statement takes as long as so many rows, however few it reads.
STATEMENT_ROWS = 100_000
#: Of more columns none is left out: where so many tell who somebody is, one is not missed.
MANY_COLUMNS = 20
#: Combinations of a size that are shown, and pairs that a third column is added to.
SHOWN = 5


@dataclass(frozen=True)
class Combination:
    """Some columns, how many combinations of their values occur, and the rows whose combination occurs once."""

    columns: tuple[str, ...]
    combinations: int
    unique_rows: int


@dataclass(frozen=True)
class Uniqueness:
    """Counts of rows that the combination of the quasi-identifiers tells apart.

    `unique_rows` counts rows whose combination occurs once, `rare_rows` those whose combination occurs
    fewer than `RARE` times. `unique_without` is the unique rows when that column is left out; it is empty where
    counting took more than its budget. `small` are the single columns, pairs and triples that leave most rows unique,
    best first within a size: all columns, pairs of those with the most values, and triples of the best pairs and one
    of these. `population` is what is estimated of the population that the table is a sample of, if its size is known.
    """

    combinations: int
    unique_rows: int
    rare_rows: int
    unique_without: dict[str, int]
    small: tuple[Combination, ...] = ()
    population: PopulationUniqueness | None = None


def measure_uniqueness(
    engine: Engine, table: Table, summaries: Sequence[Summary], population: int | None = None
) -> Uniqueness | None:
    """The uniqueness of the combination of some columns, here and in a population of that size; None of no columns."""
    if not summaries:
        return None
    columns = [Renamed(Identifier(s.column.name), Identifier(f"q{i}")) for i, s in enumerate(summaries, 1)]
    cells = engine.count_groups("cells", table, *((c.column.name, c.alias.name) for c in columns))
    size = engine.count(cells)
    if len(columns) <= MANY_COLUMNS and size * len(columns) ** 2 <= LEFT_OUT_BUDGET:  # all, then all but each
        others = [[other for other in columns if other is not column] for column in columns]
        numbered = [{"number": i, "alias": c.alias, "others": others[i - 1]} for i, c in enumerate(columns, 1)]
        params = {"cells": cells, "columns": numbered, "rare": RARE}
        whole, *parts = engine.records("measuring/profile/measure_uniqueness", **params)
    else:
        whole, parts = _count(engine, cells, columns), []
    found = Uniqueness(
        combinations=int(whole["combinations"]),
        unique_rows=int(whole["unique_rows"]),
        rare_rows=int(whole["rare_rows"]),
        unique_without={s.column.name: int(part["unique_rows"]) for s, part in zip(summaries, parts, strict=False)},
        small=tuple(_small(engine, cells, columns, summaries, max(size, STATEMENT_ROWS))),
        population=None if population is None else estimate_uniqueness(engine, cells, "rows", population),
    )
    engine.drop(cells)
    return found


def _count(engine: Engine, cells: Relation, columns: Sequence[Renamed]) -> dict[str, Any]:
    return engine.record("measuring/profile/count_unique", cells=cells, columns=columns, rare=RARE)


def _small(
    engine: Engine, cells: Relation, columns: Sequence[Renamed], summaries: Sequence[Summary], size: int
) -> Iterator[Combination]:
    """The best single columns, pairs and triples, each of fewer columns than there are; each costs `size` a column.

    Of each (-unique rows, -combinations, the places of the columns) is compared: the least is the best.
    """

    def best(asked: Iterable[tuple[int, ...]]) -> list[tuple[int, int, tuple[int, ...]]]:
        counts = [(chosen, _count(engine, cells, [columns[i] for i in chosen])) for chosen in asked]
        return sorted((-int(c["unique_rows"]), -int(c["combinations"]), chosen) for chosen, c in counts)[:SHOWN]

    counted = [(s.distinct + (s.nulls > 0), s.singles, (i,)) for i, s in enumerate(summaries)]
    ones = [(-singles, -values, place) for values, singles, place in counted if values > 1]
    widest = (1 + math.isqrt(1 + 2 * SMALL_BUDGET // size)) // 2  # half the budget allows all their pairs
    wide = sorted(place for _, _, (place,) in sorted(ones, key=lambda one: one[1:])[:widest])
    pairs = best(itertools.combinations(wide, 2)) if len(columns) > 2 else []
    triples = dict.fromkeys(tuple(sorted({*pair, i})) for _, _, pair in pairs for i in wide if i not in pair)
    most = SMALL_BUDGET // (2 * 3 * size) if len(columns) > 3 else 0
    threes = best(itertools.islice(triples, most))
    for unique, combinations, chosen in [*(sorted(ones)[:SHOWN] if len(columns) > 1 else []), *pairs, *threes]:
        yield Combination(tuple(columns[i].column.name for i in chosen), -combinations, -unique)
