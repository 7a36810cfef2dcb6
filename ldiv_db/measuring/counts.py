"""How far random counts over two columns are off: a quasi-identifier with a sensitive attribute, or with another.

Queries are drawn and answered as in `utility`, of all pairs of columns at once: tables of pairs are (pair, one, other,
rows), of the source's codes or of the numbers of published values. What a run is about to publish is known by its codes
and classes, so no label is written or read.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow, Flow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.steps import OneStatement
from ldiv_db.measuring.resolve import ResolvedColumn
from ldiv_db.measuring.utility import ESTIMATE_UNIT, draw_queries, nine_tenths, relative_errors
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.recoding.loss import CountErrors
from ldiv_db.recoding.recode import Recoding, Spans

#: Counts that are asked of a table, as many of each quasi-identifier, and the most of these: each takes time.
_COUNTS, _MOST_KEYS = 100, 24
#: Pairs that one statement asks about: the time to plan it grows faster than the number of columns in it.
_BATCH = 8
#: Decimals of errors, so that they do not depend on how estimates are grouped.
_DIGITS = 9
_ROWS = Identifier("rows")
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Side:
    """One column of a pair, under the name that its codes have in tables of pairs."""

    number: int
    name: Identifier
    column: ResolvedColumn

    table = NamedAfter("side_{0.name.name}")
    width = NamedAfter("{0.name.name}_width")
    shift = NamedAfter("{0.name.name}_shift")


@dataclass(frozen=True)
class Pair:
    """Two columns that are counted together."""

    number: int
    sides: tuple[Side, Side]
    #: Whether the second is a sensitive attribute, which every query asks about.
    is_sensitive: bool


def _pairs(keys: Sequence[ResolvedColumn], sensitive: Sequence[ResolvedColumn]) -> list[Pair]:
    """A pair for each quasi-identifier; none if there is one column alone."""
    pairs = []
    for number, key in enumerate(keys):
        others = sensitive[number % len(sensitive) :] if sensitive else [*keys[number + 1 :], *keys[:number]]
        for other in others[:1]:
            both = (Side(1, Identifier("one"), key), Side(2, Identifier("other"), other))
            pairs.append(Pair(number, both, bool(sensitive)))
    return pairs


def _asked(keys: Sequence[_Key]) -> Sequence[_Key]:
    """The quasi-identifiers that are asked about, at even distances."""
    return keys[:: -(-len(keys) // _MOST_KEYS) or 1]


@dataclass(frozen=True)
class SourceCells:
    """The `rows` of a source, `counted` by their codes; `weight` is the column of how many each is, None for one."""

    counted: Relation
    rows: int
    weight: Identifier | None = _ROWS


def measure_counts(
    engine: Engine,
    keys: Sequence[ResolvedColumn],
    sensitive: Sequence[ResolvedColumn],
    source: SourceCells,
    number: Callable[[Sequence[ResolvedColumn]], Relation],
    seed: int,
) -> CountErrors | None:
    """The errors of counts of the source's rows by the published ones.

    `number` gives a relation of these with the numbers of their values of some quasi-identifiers, and of all sensitive
    attributes. None where there are not two columns, or no rows.
    """
    keys, rows = _asked(keys), source.rows
    pairs = _pairs(keys, sensitive)
    if not pairs or not rows:
        return None
    of_each, answers = -(-_COUNTS // len(pairs)), list[tuple[int, float]]()
    for first in range(0, len(pairs), _BATCH):
        with engine.scope():
            batch = pairs[first : first + _BATCH]
            draws = _draws(batch, rows, of_each, seed)
            columns = dict.fromkeys(side.column for pair in batch for side in pair.sides if side.column in keys)
            answers += _answer(engine, batch, draws, source, number([*columns]))
    errors = relative_errors(answers, rows)
    median, most = statistics.median(errors), nine_tenths(errors)
    return CountErrors(len(errors), round(median, _DIGITS), round(most, _DIGITS))


def _answer(
    engine: Engine,
    pairs: Sequence[Pair],
    draws: Sequence[tuple[int, ...]],
    cells: SourceCells,
    numbered: Relation,
) -> list[tuple[int, float]]:
    """What the source answers to each query about the pairs, and what the published rows do."""
    steps = OneStatement(engine)
    flow = Flow(steps, "measuring", pairs=pairs)
    source = flow.step("source_pairs", "list_pairs", placed=True, counted=cells.counted, weight=cells.weight)
    flow.step("release_pairs", "list_pairs", placed=False, counted=numbered, weight=_ROWS)
    names = [name.name for side in pairs[0].sides for name in (side.width, side.shift)]
    flow.know(draws=engine.load("draws", dict.fromkeys(["query", "pair", "anchor", *names], "BIGINT"), draws))
    flow.step("anchors", "anchor_pairs", pairs=source)
    flow.step("asked", "ask_pairs")
    found = steps.rows(flow.path("answer_pairs"), **flow.params("answer_pairs", unit=float(ESTIMATE_UNIT)))
    return [(int(answer), int(estimate) / ESTIMATE_UNIT) for answer, estimate in found]


def measure_planned_counts(engine: Engine, encoded: Encoded, recoding: Recoding, seed: int = 0) -> CountErrors | None:
    """The same of what a recoding would publish, as `measure_counts` finds it in the release."""
    with engine.scope():
        spans = {_planned(engine, span): span for span in _asked(recoding.spans)}
        sensitive = [_placed_values(engine, axis, seed) for axis in encoded.told]

        def number(columns: Sequence[ResolvedColumn]) -> Relation:
            return engine.materialise(
                "numbered",
                "measuring/number_planned",
                members=encoded.members(recoding.dealt),
                assigned=recoding.assigned,
                dealt=recoding.dealt,
                classes=recoding.classes,
                blanked=recoding.blanked,
                keys=[{"column": column, "span": spans[column]} for column in columns],
                sensitive=sensitive,
            )

        source = SourceCells(encoded.counted, encoded.row_count, encoded.weight)
        return measure_counts(engine, [*spans], sensitive, source, number, seed)


def _planned(engine: Engine, span: Spans) -> ResolvedColumn:
    """The quasi-identifier of a span; its codes and places are those of the span's axis, or of numbers that occur."""
    axis, code = span.axis, span.axis.code.name
    flow = EngineFlow(engine, "measuring", dictionary=axis.dictionary, nodes=axis.nodes, places=None)
    leaves, null_code = axis.leaves, axis.null_code
    if axis.nodes is None:
        flow.know(places=flow.step(f"places_{code}", "place_numbers"))
        leaves = (engine.most(flow["places"], "last") or 0) + 1
        null_code = None if axis.null_code is None else leaves - 1
    covers = flow.step(f"covers_{code}", "cover_spans", span=span, leaves=leaves, bounds=span.form == "bounds")
    made = (axis.dictionary, covers, covers, covers, leaves)
    places = flow["places"]
    return ResolvedColumn(axis.name, axis.code, axis.table, *made, nodes=axis.nodes, null_code=null_code, places=places)


def _placed_values(engine: Engine, axis: SensitiveAxis, seed: int) -> ResolvedColumn:
    """A sensitive attribute with its values in the order that `measure` gives them; number 0 is a blank."""
    code, flow = axis.code.name, EngineFlow(engine, "measuring", dictionary=axis.dictionary, seed=seed)
    flow.know(places=flow.step(f"places_{code}", "place_values"))
    leaves = engine.count(flow["places"])
    covers = flow.step(f"covers_{code}", "cover_values", leaves=leaves)
    made = (axis.dictionary, covers, covers, covers, leaves)
    return ResolvedColumn(axis.column.name, axis.code, axis.table, *made, first=1, places=flow["places"])


def _draws(pairs: Sequence[Pair], rows: int, of_each: int, seed: int) -> list[tuple[int, ...]]:
    """(query, pair, anchor, width and shift of either side) of the counts of the pairs."""
    drawn = []
    for pair in pairs:
        one, other = (side.column for side in pair.sides)
        keys, sensitive = ([one], [other]) if pair.is_sensitive else ([one, other], [])
        for query, *rest in draw_queries(keys, sensitive, rows, of_each, seed + pair.number, at_least=len(keys)):
            anchor, *widths = rest
            drawn.append((pair.number * of_each + query, pair.number, anchor, *widths))
    return drawn
