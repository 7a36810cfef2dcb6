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
from fractions import Fraction
from typing import ClassVar

from ldiv_db.attacking.base import AttackedAttribute, AttackedTable, Attacker
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, share_in
from ldiv_db.attacking.matching import Matches
from ldiv_db.attacking.question import Knowledge
from ldiv_db.attacking.transport import SolvedTransport, solve
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.flow import EngineFlow

#: A route costs as many pairs; so many times the routes that can be solved are put into components.
ROUTE, _LISTED = 500, 2


class Counting(Attacker):
    """The population in the classes that counting leaves; promised is what the labels alone may tell.

    Numbers of kinds and classes come to Python, with their counts; nobody's, if not all can be counted.
    """

    names = ("counting",)
    key = "counting"
    people = "population"
    one_value = True
    place = 6
    lacking = "needs a population (--population), or the source"
    slow_if_wide = True
    words: ClassVar = {
        "fewer_classes": "people whom counting leaves fewer classes than their labels",
        "fewer_values": "people whom counting leaves fewer values than their labels",
        "one_value_before": "people with one value before",
    }

    @classmethod
    def problems(cls, engine: Engine, columns: Columns, known: Knowledge) -> Iterator[Problem]:
        if "population" not in known.people:
            yield Problem("counting", "needs everybody's quasi-identifiers", "give --population")

    def __init__(self, table: AttackedTable) -> None:
        super().__init__(table)
        engine, everybody = table.engine, table.everybody
        assert everybody is not None  # noqa: S101 - whoever counts has a population
        self.people_in_all = engine.total(everybody.cells, "people")
        self.solved = SolvedTransport(skipped=self.people_in_all)
        if everybody.finished:
            self._count(everybody, table.budget // ROUTE)

    def _count(self, everybody: Matches, most: int) -> None:
        """Solves up to `most` routes.

        People whom the same classes cover are one of the `kinds` (cell_no, people; 0 is covered by none), whose classes
        are `covering` before and `possible` after (class_no, cell_no).
        """
        table = self.table
        engine = table.engine
        flow = EngineFlow(engine, "attacking/counting", pairs=everybody.pairs)
        with flow.scope("kinds", "covering", "possible"):
            flow.step("boxes", "merge_alike", key="class_no", other="cell_no", merged="box_no")
            flow.step("merged", "merge_alike", key="cell_no", other="class_no", merged="kind_no")
            of_kinds = {"rows": everybody.cells, "key": "cell_no", "number": "kind_no", "counted": "people"}
            kinds = flow.step("kinds", "count_merged", **of_kinds)
            covering = engine.select_among("covering", everybody.pairs, kinds, "cell_no")
            routes = engine.select_among("routes", covering, flow["boxes"], ("class_no", "box_no"))
            if engine.count(routes) <= _LISTED * most:
                of_boxes = {"rows": table.classes, "key": "class_no", "number": "box_no", "counted": "class_rows"}
                rows = flow.rows("count_merged", merged=flow["boxes"], **of_boxes)
                people = engine.columns(kinds, "cell_no", "people")
                numbered = sorted(engine.columns(routes, "cell_no", "class_no"))
                self.solved = solve(dict(people), dict(rows), numbered, most)
            ruled_out = engine.load("impossible", {"cell_no": "BIGINT", "box_no": "BIGINT"}, self.solved.impossible)
            placed = engine.join("placed", covering, flow["boxes"], "class_no", right_columns=["box_no"])
            columns = ("class_no", "cell_no")
            possible = engine.select_others("possible", placed, ruled_out, "cell_no", "box_no", columns=columns)
            flow.know(covering=covering, possible=possible)
        table.made += [flow[name] for name in ("kinds", "covering", "possible")]
        self.flow = flow

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        bounds, everyone, solved = target.bounds, self.people_in_all, self.solved
        measures = {
            "posterior": bounds.posterior,
            "posterior at least": bounds.posterior,
            "share of known rows with one value": bounds.one_value,
        }
        tried = everyone - solved.skipped
        if everyone and not tried:
            untold = tuple(gain_of(measure, None, bound) for measure, bound in measures.items())
            yield Attack("counting", target.sensitive, untold).with_untried("people", 0, everyone)
            return
        with self.flow.scope():
            flow, of_people = self.flow, {"cells": self.flow["kinds"], "histogram": target.histogram}
            flow.step("before", "attacking/measure_people", matches=flow["covering"], **of_people)
            after = flow.step("after", "attacking/measure_people", matches=flow["possible"], **of_people)
            summary = flow.record("summarise_people")
            surest = share_in(flow.record("attacking/summarise_people", measures=after, unit=UNIT))
            shares = flow.records("find_surest_share", pairs=flow["possible"], histogram=target.histogram)
        people = summary["people"]
        figures = {**summary, "people_skipped": solved.skipped, "people_contradicted": solved.contradicted}
        share = Fraction(summary["one_value"], people) if people else None
        told = (surest, next(map(share_in, shares), Fraction(0)), share)
        gains = [gain_of(measure, gain, bound) for gain, (measure, bound) in zip(told, measures.items(), strict=True)]
        yield Attack("counting", target.sensitive, tuple(gains), figures).with_untried("people", tried, everyone)
