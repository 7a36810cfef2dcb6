"""Refinement by counting: which classes people can be in once everybody has a place.

Where labels overlap, as those of local recodings do, somebody fits several classes. Who has everybody's
quasi-identifiers counts: each class holds as many people as it has rows, and each person is in one class at most.
Classes in which a person has no place in any solution are ruled out, and the values that only these have. Chhillar,
Righi, Sutter and Kornaropoulos, "Combinatorial Refinement Attacks on k-Anonymity Without Auxiliary Information" (2025),
narrow the classes of local recodings by a linear program, from what they know of the algorithm; here people are known,
and the answer is exact (`transport`).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.disclosure import Attack, AttackedAttribute, gain_of
from ldiv_db.attacking.matching import Matches
from ldiv_db.attacking.transport import Solved, solve
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation

#: A route costs as many pairs; so many times the routes that can be solved are put into components.
ROUTE, _LISTED = 500, 2


class Counting:
    """The population in the classes that counting leaves: `pairs` is (class_no, cell_no), as of `everybody`."""

    def __init__(self, engine: Engine, everybody: Matches, pairs: Relation, solved: Solved):
        self.engine = engine
        self.everybody = everybody
        self.pairs = pairs
        self.solved = solved


def count_places(engine: Engine, classes: Relation, everybody: Matches, budget: int) -> Counting:
    """The places that counting leaves; `classes` is (class_no, class_rows). Raises PolicyError without networkx.

    Numbers of kinds and classes come to Python, with their counts; nobody's, if not all can be counted.
    """
    if not everybody.finished:
        return Counting(engine, everybody, everybody.pairs, Solved(skipped=engine.total(everybody.cells, "people")))
    matched = {"pairs": everybody.pairs}
    boxes = engine.materialise("boxes", "attacking/counting/merge_classes", **matched)
    kinds = engine.materialise("kinds", "attacking/counting/merge_cells", **matched)
    routes = engine.materialise("routes", "attacking/counting/list_routes", kinds=kinds, boxes=boxes, **matched)
    most = budget // ROUTE
    listed = engine.count(routes) <= _LISTED * most
    people = dict(engine.rows("attacking/counting/list_kinds", kinds=kinds, cells=everybody.cells)) if listed else {}
    rows = dict(engine.rows("attacking/counting/list_boxes", boxes=boxes, classes=classes)) if listed else {}
    numbered = sorted(engine.columns(routes, "kind_no", "box_no")) if listed else []
    solved = solve(people, rows, numbered, most)
    if not listed:
        solved.skipped = engine.total(everybody.cells, "people")
    impossible = engine.load("impossible", {"kind_no": "BIGINT", "box_no": "BIGINT"}, solved.impossible)
    holes = {"kinds": kinds, "boxes": boxes, "impossible": impossible}
    pairs = engine.materialise("possible", "attacking/counting/keep_pairs", **matched, **holes)
    engine.drop(routes, *holes.values())
    return Counting(engine, everybody, pairs, solved)


def counting(target: AttackedAttribute, places: Counting) -> Attack:
    """What the classes that are left for people tell of them; promised is what the labels alone may tell."""
    engine, everybody = target.engine, places.everybody
    everyone = engine.total(everybody.cells, "people")
    tried = everyone - places.solved.skipped
    if everyone and not tried:
        untold = [gain_of(measure, None, bound) for measure, bound in _measures(target)]
        return Attack("counting", target.sensitive, tuple(untold)).with_untried("people", 0, everyone)
    holes: dict[str, Any] = {"cells": everybody.cells, "histogram": target.histogram}
    before = engine.materialise("before", "attacking/measure_people", matches=everybody.pairs, **holes)
    after = engine.materialise("after", "attacking/measure_people", matches=places.pairs, **holes)
    summary = engine.record("attacking/counting/summarise_people", before=before, after=after)
    surest = engine.rows("attacking/find_surest_people", measures=after)
    least = engine.rows("attacking/counting/find_surest_share", pairs=places.pairs, histogram=target.histogram)
    engine.drop(before, after)
    solved, people = places.solved, summary["people"]
    figures = {**summary, "people_skipped": solved.skipped, "people_contradicted": solved.contradicted}
    share = Fraction(summary["one_value"], people) if people else None
    told = (_first(surest), _first(least) or Fraction(0), share)
    gains = [gain_of(measure, gain, bound) for gain, (measure, bound) in zip(told, _measures(target), strict=True)]
    return Attack("counting", target.sensitive, tuple(gains), figures).with_untried("people", tried, everyone)


def _measures(target: AttackedAttribute) -> Iterator[tuple[str, Fraction | None]]:
    """What is measured, and the most that is promised of it."""
    yield "posterior", target.bounds.posterior
    yield "posterior at least", target.bounds.posterior
    yield "share of known rows with one value", target.bounds.one_value


def _first(shares: list[tuple[Any, ...]]) -> Fraction | None:
    """The share that the only row holds, None if there is none."""
    return next((Fraction(int(rows), int(whole)) for rows, whole in shares), None)
