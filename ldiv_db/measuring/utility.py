"""Utility of a published table by its cells: KL divergence, and the error of random COUNT queries.

Cells of the source and published combinations are tries, one column a level, the column that tells most apart first:
what holds for a prefix of columns is found once for all that begin with it, and most pairs are never formed.

KL is `sum F(x) ln(F(x) / F*(x))` over the cells x of the source. F is the share of the source's rows in a cell, F* what
a published table makes of it: each published row spreads evenly over all cells that its values cover, and a suppressed
row over the whole domain.

A query (as in the papers on Anatomy and on LDIV) asks for the rows whose values lie within given ones: of 1 to all
quasi-identifiers, at random, a range of numbers or a node of the tree, and of one sensitive attribute, if there is one,
some values. Every such predicate with q quasi-identifiers takes `SELECTIVITY ** (1 / (q + 1))` of its column's domain,
around a row of the source drawn at random, so that rare values are asked for rarely. The answer is estimated as if each
published row spread evenly over what its values cover. The error is `|estimate - answer|` over the answer, or over
0.1 % of the rows where the answer is less: small counts would otherwise outweigh all others. All that is random is
drawn here from md5 of the seed, in whole numbers.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.measuring.resolve import ResolvedColumn
from ldiv_db.recoding.loss import DivergenceSample

#: Masses are whole numbers below two to this power.
_MASS_BITS = 126
#: Divergence, and estimates of a row, are summed in this many parts of one, as whole numbers.
ESTIMATE_UNIT = 10**12
#: Cells times published combinations that are looked at for KL; of more a sample is. Few of them are pairs.
_MOST_PAIRS = 3_000_000_000
#: The rows of a sample at least: the standard error of KL is then a seventieth of the spread of its terms.
_LEAST_SAMPLE = 5_000
#: The part of all rows that a query would count if columns were uniform and independent.
SELECTIVITY = 0.05
#: Answers below this part of the rows are taken for this part.
SANITY_BOUND = 0.001
#: Where time is short, queries times published combinations come to no more, but for so many queries.
_MOST_ANSWERS, _LEAST_QUERIES = 30_000_000, 30
#: Queries are answered in batches: each may meet every published combination.
_BATCH_PAIRS = 10_000_000


@dataclass(frozen=True)
class PrefixStep:
    """A column, one level of the tries, with the name of its prefixes."""

    column: ResolvedColumn
    number: int

    prefix = NamedAfter("prefix_{0.number}")


@dataclass(frozen=True)
class PrefixTrees:
    """`cells` is (codes, rows, prefixes), `boxes` is (numbers of published values, rows, mass, prefixes).

    `mass` is what a cell gets of the rows of a combination that covers it, in parts of a row, `grain` of them.
    """

    steps: tuple[PrefixStep, ...]
    cells: Relation
    boxes: Relation
    grain: int

    def nodes(self, flow: EngineFlow, rows: Relation) -> Relation:
        """The levels (level, parent, prefix, code) of the trie of some cells, or published combinations."""
        prefixes = [None, *(step.prefix for step in self.steps)]
        levels = [
            {"parent": parent, "prefix": step.prefix, "code": step.column.code}
            for parent, step in zip(prefixes, self.steps, strict=False)
        ]
        return flow.step("nodes", "list_nodes", rows=rows, levels=levels)

    @property
    def last(self) -> Identifier:
        """The numbers of whole combinations."""
        return self.steps[-1].prefix


def grow_tries(
    engine: Engine, columns: Sequence[ResolvedColumn], cells: Relation, numbered: Relation, rows: int, published: int
) -> PrefixTrees:
    """The tries of the source's `cells` (`rows` rows) and of `numbered` (`published` rows, values by number).

    The cells are dropped: their trie has them.
    """
    grain = 2 ** (_MASS_BITS - max(rows, published).bit_length())
    boxes = engine.materialise("boxes", "measuring/list_boxes", numbered=numbered, columns=columns, grain=float(grain))
    steps = _steps(engine, columns, rows)
    cell_trie = engine.materialise("cell_trie", "measuring/number_prefixes", rows=cells, steps=steps)
    box_trie = engine.materialise("box_trie", "measuring/number_prefixes", rows=boxes, steps=steps)
    engine.drop(boxes, cells)
    return PrefixTrees(steps, cell_trie, box_trie, grain)


def _steps(engine: Engine, columns: Sequence[ResolvedColumn], rows: int) -> tuple[PrefixStep, ...]:
    """The columns in the order of the levels: first the one whose published cells cover least."""

    def share(column: ResolvedColumn) -> float:
        covered = column.flow(engine).record("estimate_share")["share"]
        return float(covered / (column.leaves if column.numeric else rows))

    return tuple(PrefixStep(column, number) for number, column in enumerate(sorted(columns, key=share), 1))


@dataclass(frozen=True)
class Divergence:
    """KL of published rows from those of a source, in nats; None if no published row covers some row of the source.

    `uncovered` are the source's rows that no published row covers, `unmatched` the published ones that cover none. With
    a `sample` all three are estimates.
    """

    kl: float | None
    uncovered: int
    unmatched: int
    sample: DivergenceSample | None = None


def measure_divergence(engine: Engine, tries: PrefixTrees, rows: int, published: int) -> Divergence:
    """The divergence of the `published` rows from the `rows` of the source: of a sample of both where pairs are many.

    The sample has every n-th row in the order of the tries, so it is the same for any order of rows.
    """
    suppressed, total = max(0, rows - published), max(rows, published)
    domain = math.prod(step.column.leaves for step in tries.steps)
    everywhere = max(1, suppressed * tries.grain // domain) if suppressed else 0
    flow = EngineFlow(engine, "measuring", everywhere=everywhere, scale=float(tries.grain) * total / rows)
    flow.know(unit=float(ESTIMATE_UNIT), prefix=tries.last)
    sampled = _sampled(engine.count(tries.cells), engine.count(tries.boxes))
    with engine.scope():
        cells = _sample(flow, tries.cells, rows, sampled)
        pairs = _pairs(flow, tries, cells, tries.boxes)
        sums = flow.record("sum_divergence", pairs=pairs)
        boxes = _sample(flow, tries.boxes, published, sampled)
        pairs = _pairs(flow, tries, tries.cells, boxes) if sampled else pairs
        rest = engine.select_others("unmatched", boxes, pairs, (tries.last.name, "box"), columns=["hits"])
        unmatched = engine.total(rest, "hits")
    looked, found = int(sums["hits"]), sums["divergence"]
    kl = None if found is None else found / (ESTIMATE_UNIT * looked)
    uncovered = round(int(sums["uncovered"]) / looked * rows)
    if sampled is None:
        return Divergence(kl, uncovered, unmatched)
    unmatched = round(unmatched / max(1, min(sampled, published)) * published)
    error = None if kl is None else math.sqrt(max(0.0, sums["squares"] / (ESTIMATE_UNIT * looked) - kl * kl) / looked)
    return Divergence(kl, uncovered, unmatched, DivergenceSample(looked, error))


def _sampled(cells: int, boxes: int) -> int | None:
    """The rows of a sample that has as many pairs as are looked at; None where all have no more."""
    return max(_LEAST_SAMPLE, _MOST_PAIRS // max(cells, boxes)) if cells * boxes > _MOST_PAIRS else None


def _sample(flow: EngineFlow, counted: Relation, rows: int, size: int | None) -> Relation:
    """Those of the cells or combinations with rows of a sample of that size, and how many: all without a size."""
    return flow.step("sampled", "sample_rows", counted=counted, total=rows, size=min(size or rows, rows))


def _pairs(flow: EngineFlow, tries: PrefixTrees, cells: Relation, boxes: Relation) -> Relation:
    """The prefixes of these cells and of the published combinations that cover them."""
    flow.know(cells=cells, boxes=boxes, cell_nodes=tries.nodes(flow, cells), box_nodes=tries.nodes(flow, boxes))
    return _descend(flow, tries, "pairs", lambda step: {"spans": step.column.spans})


def _descend(
    flow: EngineFlow, tries: PrefixTrees, what: str, params: Callable[[PrefixStep], dict[str, Any]]
) -> Relation:
    """The TEMP table of what `extend_...` finds for whole combinations: level by level of the tries."""
    found = None
    for step in tries.steps:
        longer = flow.step(f"{what}_{step.number}", f"extend_{what}", found=found, level=step.number, **params(step))
        flow.engine.drop(*([found] if found else []))  # a row for every pair of prefixes, once a column
        found = longer
    if found is None:
        raise AssertionError("tries have a level at least")
    return found


@dataclass(frozen=True)
class QueryErrors:
    """The relative errors of `queries` random queries; `below_bound` of them had an answer below `bound` rows."""

    queries: int
    seed: int
    mean_relative_error: float
    median_relative_error: float
    nine_tenths_relative_error: float
    bound: float
    below_bound: int


def measure_queries(
    engine: Engine,
    columns: Sequence[ResolvedColumn],
    tries: PrefixTrees,
    draws: Sequence[tuple[int, ...]],
    rows: int,
    seed: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> QueryErrors:
    """The errors of random queries over the columns, quasi-identifiers first, as `draw_queries` drew them by a seed.

    `progress` hears how many are answered. The tries are dropped: their nodes answer.
    """
    batch = max(1, _BATCH_PAIRS // max(1, engine.count(tries.boxes)))
    names = ["query", "anchor", *(f"{column.code.name}_{what}" for column in columns for what in ("width", "shift"))]
    answers: list[tuple[int, float]] = []
    with engine.scope():
        loaded = engine.load("draws", dict.fromkeys(names, "BIGINT"), draws)
        flow = EngineFlow(engine, "measuring", cells=tries.cells, boxes=tries.boxes, prefix=tries.last)
        anchors = flow.step("anchors", "draw_anchors", draws=loaded, columns=columns)
        flow.know(cell_nodes=tries.nodes(flow, tries.cells), box_nodes=tries.nodes(flow, tries.boxes))
        flow.know(**{side: engine.select(side, flow[side], tries.last.name, "rows") for side in ("cells", "boxes")})
        engine.drop(tries.cells, tries.boxes)
        for start in range(0, len(draws), batch):
            progress(start, len(draws))
            among = (Where("query", start, ">="), Where("query", start + batch, "<"))
            with engine.scope():
                answers += _answer(flow, columns, tries, engine.select("drawn", anchors, where=among))
    errors, bound = relative_errors(answers, rows), _bound(rows)
    floored = sum(answer < bound for answer, _ in answers)
    mean = math.fsum(errors) / len(draws)
    return QueryErrors(len(draws), seed, mean, statistics.median(errors), nine_tenths(errors), bound, floored)


def fewer_queries(engine: Engine, tries: PrefixTrees, wanted: int) -> int:
    """So many of the queries that are wanted as a report has time for."""
    return min(wanted, max(_LEAST_QUERIES, _MOST_ANSWERS // max(1, engine.count(tries.boxes))))


def _bound(rows: int) -> float:
    return max(1.0, rows * SANITY_BOUND)


def relative_errors(answers: Sequence[tuple[int, float]], rows: int) -> list[float]:
    """The errors of estimates relative to the answers."""
    return [abs(estimate - answer) / max(answer, _bound(rows)) for answer, estimate in answers]


def nine_tenths(errors: Sequence[float]) -> float:
    """The largest error of the nine tenths of them that are least."""
    return sorted(errors)[-(-9 * len(errors) // 10) - 1]


def _answer(
    flow: EngineFlow, columns: Sequence[ResolvedColumn], tries: PrefixTrees, anchors: Relation
) -> list[tuple[int, float]]:
    """The answers and the estimates of some queries, by their anchors."""
    asked = {column.name: _ask(flow.engine, anchors, column) for column in columns}

    def of_cells(step: PrefixStep) -> dict[str, Any]:
        return {"asked": asked[step.column.name]}

    def of_boxes(step: PrefixStep) -> dict[str, Any]:
        return of_cells(step) | {"spans": step.column.spans, "weights": step.column.weights}

    answered = _descend(flow, tries, "answers", of_cells)
    shared = _descend(flow, tries, "shares", of_boxes)
    pairs = flow.rows("list_answers", answered=answered, shared=shared, unit=float(ESTIMATE_UNIT))
    return [(int(answer), int(estimate) / ESTIMATE_UNIT) for answer, estimate in pairs]


def draw_queries(
    keys: Sequence[ResolvedColumn],
    sensitive: Sequence[ResolvedColumn],
    rows: int,
    queries: int,
    seed: int,
    at_least: int = 1,
) -> list[tuple[int, ...]]:
    """For each query its number, its anchor's, and for each column how many codes it takes (0: all) and its shift.

    A query takes `at_least` so many of the keys.
    """
    draws = []
    for query in range(queries):
        count = at_least + draw(seed, query, "count", len(keys) - at_least + 1)
        order = sorted(range(len(keys)), key=lambda place: draw(seed, query, f"order {place}", 2**64))
        asked = set(order[:count])
        asked |= {len(keys) + draw(seed, query, "sensitive", len(sensitive))} if sensitive else set()
        line: list[int] = [query, draw(seed, query, "anchor", rows)]
        for place, column in enumerate([*keys, *sensitive]):
            width = _width(column, count) if place in asked else 0
            line += [width, draw(seed, query, f"shift {place}", width) if width else 0]
        draws.append(tuple(line))
    return draws


def draw(seed: int, number: int, what: str, below: int) -> int:
    """A number from 0 to `below` - 1, by md5."""
    digest = hashlib.md5(f"{seed}:{number}:{what}".encode(), usedforsecurity=False).hexdigest()
    return int(digest, base=16) % below


def _width(column: ResolvedColumn, count: int) -> int:
    codes = column.leaves - (column.null_code is not None)
    return max(1, round(codes * math.pow(SELECTIVITY, 1 / (count + 1))))


def _ask(engine: Engine, anchors: Relation, column: ResolvedColumn) -> Relation:
    code, flow = column.code.name, column.flow(engine)
    flow.know(anchors=anchors, column=code, width=f"{code}_width", shift=f"{code}_shift")
    return flow.step(f"asked_{code}", "choose_query_nodes" if column.nodes else "choose_query_spans")
