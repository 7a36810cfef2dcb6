"""A column's distribution before and after: how many rows lie in each part of its values, without any value.

The values of a quasi-identifier stand in their order, or that of its taxonomy, and are cut into bins of equally many
different values; those of a sensitive attribute stand by falling frequency. A published row spreads evenly over the
values that its label covers, as an analyst has to take it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.measuring.resolve import ResolvedColumn
from ldiv_db.recoding.encoded import LOSS_UNIT

#: Bins of a column at most.
MOST_BINS = 24


@dataclass(frozen=True)
class Spread:
    """The rows of a column's bins in the source and in the release; NULL is a value, and stands last.

    `edges` are the places of the values at which bins begin, from 0, and after which the last one ends.
    """

    name: str
    role: str
    values: int
    edges: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "column": self.name,
            "role": self.role,
            "values": self.values,
            "edges": list(self.edges),
            "before": list(self.before),
            "after": list(self.after),
        }


def compare_columns(
    engine: Engine, quasi_identifiers: Sequence[ResolvedColumn], sensitive: Sequence[ResolvedColumn]
) -> tuple[Spread, ...]:
    """The distributions of all columns."""
    compared = [_compare(engine, column, "quasi-identifier") for column in quasi_identifiers]
    for column in sensitive:
        with engine.scope():
            compared.append(_compare(engine, _ranked(engine, column), "sensitive"))
    return tuple(compared)


def _ranked(engine: Engine, column: ResolvedColumn) -> ResolvedColumn:
    """The column with its values numbered by falling frequency."""
    ranks = engine.materialise("ranks", "measuring/rank_codes", dictionary=column.dictionary)
    spans = engine.materialise("ranked", "measuring/rank_spans", spans=column.spans, ranks=ranks)
    return replace(column, dictionary=ranks, spans=spans)


def _compare(engine: Engine, column: ResolvedColumn, role: str) -> Spread:
    count = min(MOST_BINS, column.leaves)
    edges = [-(-number * column.leaves // count) for number in range(count + 1)] if count else [0]
    bins = _bins(engine, edges, column.first)
    rows = engine.rows(
        "measuring/compare_column",
        bins=bins,
        dictionary=column.dictionary,
        values_of=column.values,
        spans=column.spans,
        weights=column.weights,
        unit=Value(LOSS_UNIT),
    )
    engine.drop(bins)
    before, after = ([int(row[place]) / LOSS_UNIT for row in rows] for place in (1, 2))
    return Spread(column.name, role, column.leaves, tuple(edges), tuple(before), tuple(after))


def _bins(engine: Engine, edges: Sequence[int], first: int) -> Relation:
    """The bins (bin, low, high) as codes, of which `first` is the least."""
    rows = [(i, edges[i] + first, edges[i + 1] - 1 + first) for i in range(len(edges) - 1)]
    return engine.load("bins", {"bin": "INTEGER", "low": "BIGINT", "high": "BIGINT"}, rows)
