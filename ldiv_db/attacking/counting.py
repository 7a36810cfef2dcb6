"""Refinement by counting: the classes that people can be in by their numbers, a transport problem solved exactly.

Everybody of a kind is in one of the classes that cover the kind, or in none if there are more people than rows; each
class has as many people as rows.

Where labels overlap, as those of local recodings do, somebody fits several classes. Whoever has everybody's
quasi-identifiers counts: each class holds as many people as it has rows, and each person is in one class at most.
Classes in which a person has no place in any solution are ruled out, and the values that only these have. Chhillar,
Righi, Sutter and Kornaropoulos, "Combinatorial Refinement Attacks on k-Anonymity Without Auxiliary Information" (2025),
narrow the classes of local recodings by a linear program, from what they know of the algorithm; here people are known,
and the answer is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.covering import NONE
from ldiv_db.attacking.disclosure import AttackedAttribute
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, share_in
from ldiv_db.attacking.matching import Matches
from ldiv_db.attacking.transport import SolvedTransport, solve
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation

#: A route costs as many pairs; so many times the routes that can be solved are put into components.
ROUTE, _LISTED = 500, 2
_MERGE, _COUNT = "attacking/counting/merge_alike", "attacking/counting/count_merged"
_CLASS, _BOX, _ROWS = Identifier("class_no"), Identifier("box_no"), Identifier("class_rows")
_CELL, _KIND, _PEOPLE = Identifier("cell_no"), Identifier("kind_no"), Identifier("people")


@dataclass(frozen=True)
class Counting:
    """The population in the classes that counting leaves.

    People whom the same classes cover are one of the `kinds` (cell_no, people; 0 is covered by none), whose classes are
    `covering` before and `possible` after (class_no, cell_no); all three None if nobody is counted.
    """

    everybody: Matches
    solved: SolvedTransport
    kinds: Relation = NONE
    covering: Relation = NONE
    possible: Relation = NONE

    @property
    def made(self) -> set[Relation]:
        """All relations that it made."""
        return {self.kinds, self.covering, self.possible} - {NONE}


def count_places(engine: Engine, classes: Relation, everybody: Matches, budget: int) -> Counting:
    """The places that counting leaves; `classes` is (class_no, class_rows).

    Numbers of kinds and classes come to Python, with their counts; nobody's, if not all can be counted.
    """
    if not everybody.finished:
        return Counting(everybody, SolvedTransport(skipped=engine.total(everybody.cells, "people")))
    with engine.scope() as scope:
        boxes = engine.materialise("boxes", _MERGE, pairs=everybody.pairs, key=_CLASS, other=_CELL, merged=_BOX)
        merged = engine.materialise("merged", _MERGE, pairs=everybody.pairs, key=_CELL, other=_CLASS, merged=_KIND)
        of_kinds = {"rows": everybody.cells, "merged": merged, "key": _CELL, "number": _KIND, "counted": _PEOPLE}
        of_boxes = {"rows": classes, "merged": boxes, "key": _CLASS, "number": _BOX, "counted": _ROWS}
        kinds = scope.keep(engine.materialise("kinds", _COUNT, **of_kinds))
        covering = scope.keep(engine.select_among("covering", everybody.pairs, kinds, "cell_no"))
        routes = engine.select_among("routes", covering, boxes, ("class_no", "box_no"))
        most = budget // ROUTE
        listed = engine.count(routes) <= _LISTED * most
        rows = engine.rows(_COUNT, **of_boxes) if listed else []
        people = engine.columns(kinds, "cell_no", "people") if listed else []
        numbered = sorted(engine.columns(routes, "cell_no", "class_no")) if listed else []
        solved = solve(dict(people), dict(rows), numbered, most)
        if not listed:
            solved.skipped = engine.total(everybody.cells, "people")
        impossible = engine.load("impossible", {"cell_no": "BIGINT", "box_no": "BIGINT"}, solved.impossible)
        placed = engine.join("placed", covering, boxes, "class_no", right_columns=["box_no"])
        columns = ("class_no", "cell_no")
        possible = engine.select_others("possible", placed, impossible, "cell_no", "box_no", columns=columns)
        return Counting(everybody, solved, kinds, covering, scope.keep(possible))


def counting(target: AttackedAttribute, places: Counting) -> Attack:
    """The attack by the classes that counting leaves for people; promised is what the labels alone may tell."""
    engine, everybody = target.engine, places.everybody
    everyone = engine.total(everybody.cells, "people")
    tried = everyone - places.solved.skipped
    if everyone and not tried:
        untold = [gain_of(measure, None, bound) for measure, bound in _measures(target)]
        return Attack("counting", target.sensitive, tuple(untold)).with_untried("people", 0, everyone)
    params: dict[str, Any] = {"cells": places.kinds, "histogram": target.histogram}
    before = engine.materialise("before", "attacking/measure_people", matches=places.covering, **params)
    after = engine.materialise("after", "attacking/measure_people", matches=places.possible, **params)
    summary = engine.record("attacking/counting/summarise_people", before=before, after=after)
    surest = share_in(engine.record("attacking/summarise_people", measures=after, unit=UNIT))
    sure = {"pairs": places.possible, "histogram": target.histogram}
    least = next(map(share_in, engine.records("attacking/counting/find_surest_share", **sure)), Fraction(0))
    engine.drop(before, after)
    solved, people = places.solved, summary["people"]
    figures = {**summary, "people_skipped": solved.skipped, "people_contradicted": solved.contradicted}
    share = Fraction(summary["one_value"], people) if people else None
    told = (surest, least, share)
    gains = [gain_of(measure, gain, bound) for gain, (measure, bound) in zip(told, _measures(target), strict=True)]
    return Attack("counting", target.sensitive, tuple(gains), figures).with_untried("people", tried, everyone)


def _measures(target: AttackedAttribute) -> Iterator[tuple[str, Fraction | None]]:
    """Each measure of the attack, and the most that is promised of it."""
    yield "posterior", target.bounds.posterior
    yield "posterior at least", target.bounds.posterior
    yield "share of known rows with one value", target.bounds.one_value
