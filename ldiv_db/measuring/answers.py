"""What queries answer of a release in place of its source: how far means are off, correlations, and an analyst's own.

A query is asked twice: of the source, and of the release as somebody reads it who knows nothing else. There a range is
its middle, and the rows that a node or a set of values covers are spread evenly over its leaves: where such a label
covers n leaves, the i-th row has the leaf of number floor(n {i a}), {} being the part after the point and `a` an
irrational number of its own for each column (a Kronecker sequence), so that columns are spread independently.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Members, read_as_one
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.given_queries import AnalystQuery
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.measuring.resolve import ResolvedColumn
from ldiv_db.policy.resolve import Source
from ldiv_db.recoding.encoded import Renamed

#: So many numbers, and columns that group them, are asked about where nobody names a query; and their values at most.
_MOST, _MOST_GROUPS = 3, 100
_DIGITS = 9


@dataclass(frozen=True)
class Answer:
    """A figure of a query: how far it is off in all groups together, and at worst in one of them, by its size.

    `error` is the sum over groups of what it is off, over that of the figures of the source; None where these are 0.
    Where there is one group alone, `before` and `after` are its figures.
    """

    query: str
    figure: str
    by: tuple[str, ...]
    groups: int
    error: float | None
    worst: float | None
    before: float | None = None
    after: float | None = None

    def __str__(self) -> str:
        if not self.by:
            return f"{self.figure} is {_short(self.after)}, was {_short(self.before)}"
        if self.error is None:
            return f"{self.figure} by {', '.join(self.by)} is 0 in the source"
        worst = "" if self.worst is None else f", at worst by {self.worst:.1%}"
        return f"{self.figure} by {', '.join(self.by)} is off by {self.error:.1%} in {self.groups:,} groups{worst}"

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "by": list(self.by), "text": str(self)}


def _short(number: float | None) -> str:
    return "undefined" if number is None else f"{number:,.3g}"


def ask(
    engine: Engine, source: Source, columns: Sequence[ResolvedColumn], numbered: Relation, queries: Sequence[str]
) -> tuple[Answer, ...]:
    """The answers to the policy's queries, or without any to means and correlations of its columns.

    `columns` are all of them, quasi-identifiers first, and `numbered` the published rows by the numbers of their
    values. Raises PolicyError for a query that cannot be asked.
    """
    sets = {name: [Members()] for name in source.sets}  # those of the release are lists by now
    secrets = [replace(c, type=f"{c.member.published}[]") if c.name in sets else c for c in source.sensitive]
    types = [*(qi.column for qi in source.quasi_identifiers), *secrets]
    names = [column.name for column in types]
    of_levels = [qi for qi in source.quasi_identifiers if qi.hierarchy.levels]
    same = {**source.same, **{qi.name: qi.hierarchy.levels[0].same for qi in of_levels}}
    with engine.scope():
        rows = _rows_of(engine, source)
        points = _points(engine, columns, types, numbered)
        with read_as_one(engine, rows, same) as before, read_as_one(engine, points, same | sets) as after:
            return tuple(
                answer
                for query in _named(queries) or _usual(columns, types)
                for answer in _compared(engine, query, (before, after), names)
            )


def check_queries(engine: Engine, source: Source, queries: Sequence[str]) -> None:
    """Raise PolicyError for a query of the policy that the source, with the values it has, cannot answer."""
    names = [*(qi.name for qi in source.quasi_identifiers), *(column.name for column in source.sensitive)]
    with engine.scope():
        for query in _named(queries):
            rows = _rows_of(engine, source)
            list(_compared(engine, query, (rows, rows), names))


def _rows_of(engine: Engine, source: Source) -> Table:
    """The rows of a source that queries are asked of: each as often as it is counted."""
    if source.weight is None:
        return source.relation
    named = [*(qi.column for qi in source.quasi_identifiers), *source.sensitive]
    columns = [Renamed(Identifier(column.name), Identifier(column.name)) for column in named]
    params = {"counts": source.relation, "columns": columns, "weight": Identifier(source.weight.name)}
    return engine.view("repeated", "database/repeat_counts", **params)


def _named(queries: Sequence[str]) -> list[AnalystQuery]:
    return [AnalystQuery(text, f"preserve.{number}") for number, text in enumerate(queries)]


def _usual(columns: Sequence[ResolvedColumn], types: Sequence[Column]) -> Iterator[AnalystQuery]:
    numbers = [column.name for column in types if column.is_number][:_MOST]
    groups = [c.name for c, kind in zip(columns, types, strict=True) if not kind.is_number and c.leaves <= _MOST_GROUPS]
    for one, other in itertools.combinations(numbers, 2):
        yield AnalystQuery.correlation(one, other)
    for number, group in itertools.product(numbers, groups[:_MOST]):
        yield AnalystQuery.mean(number, group)


def _points(engine: Engine, columns: Sequence[ResolvedColumn], types: Sequence[Column], numbered: Relation) -> Relation:
    """The release as points, the values that published ones may stand for: a row a published row."""
    primes = (n for n in itertools.count(2) if all(n % m for m in range(2, math.isqrt(n) + 1)))
    placed = [
        {
            "column": Identifier(kind.name),
            "code": column.code,
            "table": column.table,
            "type": SqlType("DOUBLE" if column.numeric and kind.is_number else kind.published),
            "points": _points_of(engine, column, kind),
            "weights": column.weights,
            "sizes": Identifier(f"n_{column.code.name}"),
            "share": None if column.numeric else math.sqrt(prime) % 1,
        }
        for column, kind, prime in zip(columns, types, primes, strict=False)
    ]
    return engine.materialise("points", "measuring/read_points", numbered=numbered, columns=placed)


def _points_of(engine: Engine, column: ResolvedColumn, kind: Column) -> Relation:
    """(value_no, place among its leaves, value): of numbers one point, whose place nothing has to choose."""
    name = f"points_{column.code.name}"
    flow = column.flow(engine)
    if column.numeric:
        return flow.step(name, "list_middles", last=column.last - (column.null_code is not None), kind=kind.kind)
    return flow.step(name, "list_leaf_points", type=SqlType(kind.published))


def _compared(engine: Engine, query: AnalystQuery, tables: Sequence[Table], names: Sequence[str]) -> Iterator[Answer]:
    """How far each figure of a query is off in the second table, if it is of the first.

    Raises PolicyError for a query that fails on values of either.
    """
    before, after = (query.asked_of(engine, table, names) for table in tables)
    groups, figures = query.parts(engine, before)
    params = {"keys": [Identifier(name) for name in groups], "before": before, "after": after}
    for figure in figures:
        try:
            found = engine.record("measuring/compare_answers", figure=figure, **params)
        except DatabaseError as failure:
            raise refused(query.key, "fails on some values (TRY_CAST, TRY or nullif gives NULL for them)") from failure
        off, size = float(found["off"] or 0), float(found["size"] or 0)
        error = _share(off / size) if size else None
        worst = _share(found["worst"])
        alone = [None, None] if groups else [_rounded(found[key]) for key in ("first", "second")]
        yield Answer(query.text, figure, tuple(groups), int(found["groups"]), error, worst, *alone)


def _rounded(number: Any) -> float | None:
    """The number with the digits that do not depend on the order in which it was summed; None if it is not finite."""
    return None if number is None or not math.isfinite(number) else float(f"{float(number):.{_DIGITS}g}")


def _share(number: Any) -> float | None:
    """What a figure is off, by its size: by less than its last digit says nothing but in which order it was summed."""
    share = _rounded(number)
    return None if share is None else round(share, _DIGITS)
