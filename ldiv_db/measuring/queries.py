"""How wrong an analyst's counts are: the relative error of random COUNT queries on a published table.

A query (as in the papers on Anatomy and on LDIV) asks for the rows whose values lie within given ones: of 1 to all
quasi-identifiers, at random, a range of numbers or a node of the tree, and of one sensitive attribute some values.
Every such predicate with q quasi-identifiers takes `SELECTIVITY ** (1 / (q + 1))` of its column's domain, around a
row of the source drawn at random, so that rare values are asked for rarely. Without a sensitive attribute it asks for
quasi-identifiers alone. The answer is estimated from the
published table as if each row spread evenly over what its values cover. The error is `|estimate - answer|` over the
answer, or over 0.1 % of the rows where the answer is less: small counts would otherwise outweigh all others.

All that is random is drawn here from md5 of the seed, in whole numbers; the database does the rest, for many
queries at once.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.measuring.divergence import PrefixStep, PrefixTrees
from ldiv_db.measuring.resolve import ResolvedColumn

#: The part of all rows that a query would count if columns were uniform and independent.
SELECTIVITY = 0.05
#: Answers below this part of the rows are taken for this part.
SANITY_BOUND = 0.001
#: Estimates are summed in this many parts of a row, as whole numbers.
_UNIT = 10**12
#: Queries are answered in batches: each may meet every published combination.
_MOST_PAIRS = 10_000_000


@dataclass(frozen=True)
class QueryErrors:
    """The relative errors of `queries` random queries; `floored` of them had an answer below `bound` rows."""

    queries: int
    seed: int
    mean: float
    median: float
    bound: float
    floored: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "queries": self.queries,
            "seed": self.seed,
            "mean_relative_error": self.mean,
            "median_relative_error": self.median,
            "bound": self.bound,
            "below_bound": self.floored,
        }


def measure_queries(
    engine: Engine,
    keys: Sequence[ResolvedColumn],
    sensitive: Sequence[ResolvedColumn],
    tries: PrefixTrees,
    rows: int,
    queries: int,
    seed: int,
) -> QueryErrors:
    """The errors of `queries` random queries over the quasi-identifiers `keys` and the sensitive attributes."""
    draws = _draws(keys, sensitive, rows, queries, seed)
    batch = max(1, _MOST_PAIRS // max(1, engine.count(tries.boxes)))
    answers: list[tuple[int, float]] = []
    for start in range(0, queries, batch):
        answers += _answer(engine, [*keys, *sensitive], tries, draws[start : start + batch])
    bound = max(1.0, rows * SANITY_BOUND)
    errors = [abs(estimate - answer) / max(answer, bound) for answer, estimate in answers]
    floored = sum(answer < bound for answer, _ in answers)
    return QueryErrors(queries, seed, math.fsum(errors) / queries, statistics.median(errors), bound, floored)


def _answer(
    engine: Engine, columns: Sequence[ResolvedColumn], tries: PrefixTrees, draws: Sequence[Sequence[int]]
) -> list[tuple[int, float]]:
    """What every query counts in the source, and what the published table says that it counts."""
    names = ["query", "anchor", *(f"{column.code.name}_{what}" for column in columns for what in ("width", "shift"))]
    with engine.scope():
        loaded = engine.load("draws", dict.fromkeys(names, "BIGINT"), draws)
        params = {"draws": loaded, "cells": tries.cells, "columns": columns}
        anchors = engine.materialise("anchors", "measuring/draw_anchors", **params)
        asked = {column.name: _ask(engine, anchors, column) for column in columns}
        answers, estimates = _answers(engine, tries, asked), _estimates(engine, tries, asked)
        pairs = engine.rows("measuring/list_answers", answers=answers, estimates=estimates)
    return [(int(answer), int(estimate) / _UNIT) for answer, estimate in pairs]


def _draws(
    keys: Sequence[ResolvedColumn], sensitive: Sequence[ResolvedColumn], rows: int, queries: int, seed: int
) -> list[tuple[int, ...]]:
    """For each query its number, its anchor's, and for each column how many codes it takes (0: all) and its shift."""
    draws = []
    for query in range(queries):
        count = 1 + _draw(seed, query, "count", len(keys))
        order = sorted(range(len(keys)), key=lambda place: _draw(seed, query, f"order {place}", 2**64))
        asked = set(order[:count])
        asked |= {len(keys) + _draw(seed, query, "sensitive", len(sensitive))} if sensitive else set()
        line: list[int] = [query, _draw(seed, query, "anchor", rows)]
        for place, column in enumerate([*keys, *sensitive]):
            width = _width(column, count) if place in asked else 0
            line += [width, _draw(seed, query, f"shift {place}", width) if width else 0]
        draws.append(tuple(line))
    return draws


def _draw(seed: int, query: int, what: str, below: int) -> int:
    """A number from 0 to `below` - 1."""
    digest = hashlib.md5(f"{seed}:{query}:{what}".encode(), usedforsecurity=False).hexdigest()
    return int(digest, base=16) % below


def _width(column: ResolvedColumn, count: int) -> int:
    """How many codes a query on `count` quasi-identifiers asks for; NULL is none of them."""
    codes = column.leaves - (column.null_code is not None)
    return max(1, round(codes * math.pow(SELECTIVITY, 1 / (count + 1))))


def _ask(engine: Engine, anchors: Relation, column: ResolvedColumn) -> Relation:
    """The TEMP table (query, low, high) of the codes that the queries ask for."""
    code = column.code.name
    params: dict[str, Any] = {"anchors": anchors, "column": column.code, "width": Identifier(f"{code}_width")}
    if column.nodes:
        return engine.materialise(f"asked_{code}", "measuring/choose_query_nodes", nodes=column.nodes, **params)
    first, last = Value(column.first), Value(column.first + column.leaves - 1)
    params |= {"shift": Identifier(f"{code}_shift"), "first": first, "last": last, "null_code": Value(column.null_code)}
    return engine.materialise(f"asked_{code}", "measuring/choose_query_spans", **params)


def _answers(engine: Engine, tries: PrefixTrees, asked: dict[str, Relation]) -> Relation:
    """The TEMP table (query, answer): the cells within what is asked for, column by column."""

    def params(step: PrefixStep) -> dict[str, Any]:
        return {"cells": tries.cells, "asked": asked[step.column.name], "code": step.column.code, "prefix": step.prefix}

    answered = engine.materialise("answered_1", "measuring/start_answers", **params(tries.steps[0]))
    for parent, step in itertools.pairwise(tries.steps):
        name = f"answered_{step.number}"
        longer = engine.materialise(
            name, "measuring/extend_answers", started=answered, parent=parent.prefix, **params(step)
        )
        engine.drop(answered)  # a row for every query and prefix, once a column
        answered = longer
    last = tries.steps[-1].prefix
    answers = engine.materialise("answers", "measuring/sum_answers", answered=answered, cells=tries.cells, prefix=last)
    engine.drop(answered)
    return answers


def _estimates(engine: Engine, tries: PrefixTrees, asked: dict[str, Relation]) -> Relation:
    """The TEMP table (query, estimate): shares of published combinations, column by column."""
    first = tries.steps[0]
    shares = _shares(engine, first, asked)
    code, boxes = first.column.code, tries.boxes
    shared = engine.materialise(
        "shared_1", "measuring/start_shares", boxes=boxes, shares=shares, code=code, prefix=first.prefix
    )
    engine.drop(shares)
    for parent, step in itertools.pairwise(tries.steps):
        shares = _shares(engine, step, asked)
        longer = engine.materialise(
            f"shared_{step.number}",
            "measuring/extend_shares",
            started=shared,
            boxes=boxes,
            shares=shares,
            code=step.column.code,
            parent=parent.prefix,
            prefix=step.prefix,
        )
        engine.drop(shared, shares)  # a row for every query and prefix, once a column
        shared = longer
    last = tries.steps[-1].prefix
    estimates = engine.materialise(
        "estimates", "measuring/sum_estimates", shares=shared, boxes=boxes, prefix=last, unit=Value(float(_UNIT))
    )
    engine.drop(shared)
    return estimates


def _shares(engine: Engine, step: PrefixStep, asked: dict[str, Relation]) -> Relation:
    """The TEMP table (query, value_no, share) of what published values of a column are asked for."""
    column = step.column
    return engine.materialise(
        f"shares_{step.number}",
        "measuring/share_values",
        asked=asked[column.name],
        spans=column.spans,
        weights=column.weights,
    )
