"""Downcoding: labels read backwards, because who published them would have published finer ones if they were true.

Cohen, "Attacks on Deidentification's Defenses" (USENIX Security 2022): of a minimal hierarchical release no label can
be refined. Of that the attack here uses what a label says of its own class: it is the least node of a taxonomy, or
the tightest range, that covers the values of the class's rows. So some row of the class is

- at the lower end of a range, and another at the upper end (both ends occupied; two columns of bounds are a range),
- each member of a set (`recode: set` shows what occurs),
- under one child, and another under another child, of a node of a taxonomy or a label of a level (at least two children
  occupied; `*` too, NULL being a child of it).

From the release alone this tells single rows something where a class has two: a range then means one of its two ends.
Such a cell is narrowed if other values lie between: more than 1 apart for whole numbers and days. In a larger class
any one row may still be anywhere in the label, as the others may be at the ends.

With everybody's quasi-identifiers (a population) the people whom a label fits are held against it. Those who alone
are at an end, a member, or a child that some row must have are singled out: the label and that side of it is a
predicate that fits one person alone and is true of a row (Cohen & Nissim, "Towards formalizing the GDPR's notion of
singling out", PNAS 2020). They are each a row of the class, and none of its other rows. In a class of two rows those
are ruled out who have no partner with whom they explain every label together; in larger ones nobody is, though who
tries all sets of n people might rule out some. People are counted, so two who are alike are never singled
out; what is reported is a lower bound of what can be concluded.

Nothing follows where labels do not follow from a class's rows: global recodings (`cuts`, `annealing`, `incognito`,
`tds`), stars and coarsened values of the `tp` family, labels of nested ranges, and `*` of numbers. Beside sets a node
says that all its leaves occur, or more than a set may have; of that two children are counted. A class that the
population does not explain (it lacks people of the release, or the labels are not least) is left as it is and
counted. Numbers nearer to each other than 2^-30 of all that they span are published alike, and their ends may be
wrong by that much. A requirement promises nothing against this attack.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.attacking.base import NO_THRESHOLD, AttackedTable, Attacker, Verdict, held_against
from ldiv_db.attacking.covering import ReadAxis
from ldiv_db.attacking.gains import Attack, Gain, gain_of, mean_of
from ldiv_db.attacking.matching import Matches
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.settings import AlgorithmSpec
from ldiv_db.recoding.labels import LabelAxis, number_labels, read_parts, read_ranges
from ldiv_db.taxonomies import taxonomy as taxonomies

#: The people of classes of two rows are tried in pairs of kinds, those of few kinds first; one costs as many pairs.
_PAIR = 7
#: The measure of people whom a population tells apart.
SINGLED_OUT = "share of rows singled out"
#: How numbers and times are read where nobody's values say which they are.
_KINDS = ("real", "instant")
_FOLDER = "attacking/downcoding"
#: A quasi-identifier as the templates of an attack take it: relations and names, by what they are.
AxisParameter = dict[str, Any]


def why_not_least(spec: AlgorithmSpec) -> str:
    """Why nothing follows from the labels of an algorithm; empty if they are the least that cover their rows."""
    if spec.name not in ALGORITHMS:
        return ""
    algorithm = algorithm_of(spec.name)(spec.options)
    published = "the labels of its cut" if algorithm.traits.recodes_globally else algorithm.excludes_sets
    return f"{spec.name} publishes {published}, which do not follow from the rows of a class" if published else ""


class Downcoding(Attacker):
    """The attack by minimality on a release of an algorithm, alone and, if there is a population, held against it."""

    names = ("downcoding",)
    key = "downcoding"
    people = "population"
    reads_labels = True
    of_values = False
    place = 10
    lacking = ""
    slow_if_wide = True
    words: ClassVar = {"people_alike": "people who fit a row, on average", "people_alike_narrowed": "after narrowing"}

    def attacks(self) -> Iterator[Attack]:
        table, population = self.table, self.table.everybody
        if note := why_not_least(table.columns.algorithm):
            yield Attack("downcoding", None, self._gains("release", 0, 0), {"note": note})
            return
        with table.engine.scope():
            gains = self._gains("release", *self._halved())
            more, figures = self._hold_against(population) if population else ((), {})
            tried = table.engine.count(population.classes) if population else 0
        found = Attack("downcoding", None, (*gains, *more), figures)
        found = found.with_untried("rows", table.rows - figures.get("rows_untried", 0), table.rows)
        yield found.with_untried("classes", tried, table.engine.count(table.classes)) if population else found

    @classmethod
    def verdict(cls, attack: Attack, promised: float | None, no_bound: str, threshold: float) -> Verdict:
        """People whom labels read backwards single out, against the threshold of recognition."""
        gain, note = attack.gains[-1], attack.figures.get("note")
        if note is None and gain.measure != SINGLED_OUT:
            note = "needs a population (--population), or the source, to tell whom it singles out"
        if note:
            return Verdict(gain, threshold, NO_THRESHOLD, note)
        return held_against(attack, gain, threshold)

    def _gains(self, by: str, found: int, cells: int, of_rows: int | None = None) -> tuple[Gain, ...]:
        """The two shares that are narrowed, by default of all rows, of which nothing is promised."""
        rows = self.table.rows if of_rows is None else of_rows
        in_all = rows * len(self.table.axes)
        return (
            gain_of(f"share of rows narrowed by the {by}", Fraction(found, rows) if rows else None, None),
            gain_of(f"share of cells narrowed by the {by}", Fraction(cells, in_all) if rows else None, None),
        )

    def _halved(self) -> tuple[int, int]:
        """The rows and the cells of classes of two rows that have one of two values."""
        axes = [_labelled(self.table, axis) for axis in self.table.axes if axis.hierarchy.is_plain]
        if not axes:
            return 0, 0
        counts = self.table.engine.record(f"{_FOLDER}/count_halved", classes=self.table.classes, axes=axes)
        return counts["rows"], counts["cells"]

    def _hold_against(self, population: Matches) -> tuple[tuple[Gain, ...], dict[str, Any]]:
        """The gains by a population, class by class, and what goes with them."""
        engine, prefixes = self.table.engine, population.prefixes
        rows = engine.total(population.classes, "class_rows")
        axes = [sided for axis in prefixes.axes if (sided := _sided(engine, axis))]
        if not axes:
            return self._gains("population", 0, 0, rows), {"note": "no label has sides"}
        people = {"matches": population.pairs, "cells": population.cells}
        coded = {"codes": prefixes.codes, "boxes": prefixes.boxes, "axes": axes}
        flow = EngineFlow(engine, _FOLDER, classes=population.classes, **people, **coded)
        flow.step("rules", "rule_classes")
        candidates = flow.step("candidates", "list_candidates")
        sides = [axis["side"].name for axis in axes]
        flow.know(kinds=engine.group("kinds", candidates, "kind_no", "class_no", *sides, people=("sum", "people")))
        flow.step("tried", "choose_small", most=self.table.budget // _PAIR)
        flow.step("kept", "keep_kinds")
        flow.step("explained", "explain_classes")
        flow.step("singles", "find_single")
        flow.step("measures", "measure_classes")
        cells = sum(flow.scalar("count_narrowed_cells", axis=axis) for axis in prefixes.axes)
        sums = flow.record("summarise_classes")
        single = gain_of(SINGLED_OUT, Fraction(sums["single"], rows) if rows else None, None)
        figures = {
            "people_alike": mean_of(sums["before"], sums["rows"], unit=1),
            "people_alike_narrowed": mean_of(sums["after"], sums["rows"], unit=1),
            "rows_unexplained": sums["unexplained"],
            "rows_untried": sums["untried"],
        }
        return (*self._gains("population", sums["narrowed"], cells, rows), single), figures


# -- by the release alone ----------------------------------------------------------------------------


def _labelled(table: AttackedTable, axis: LabelAxis) -> AxisParameter:
    """The axis with its labels; `inner` are those that are ranges of numbers, or else of times, with values inside."""
    engine = table.engine
    labels = number_labels(engine, table.classes, axis)
    parts = read_parts(engine, labels)
    found = [_ranges(engine, parts, kind, inner_of=labels) for kind in _KINDS]
    return {"columns": axis.columns, "labels": labels, "inner": max(found, key=engine.count)}


def _ranges(engine: Engine, parts: Relation, kind: str, inner_of: Relation | None = None) -> Relation:
    """The labels (value_no, start, stop) that are ranges of two ends; of those labels with values inside, if given."""
    params = {"ranges": read_ranges(engine, parts, kind), "labels": inner_of, "inner": inner_of and kind}
    return engine.materialise("ranges", f"{_FOLDER}/list_ranges", **params)


# -- by a population ---------------------------------------------------------------------------------


def _sided(engine: Engine, axis: ReadAxis) -> AxisParameter | None:
    """The axis with the `sides` of its labels (value_no, code, side), and how many of them some row has (`rules`).

    None for nested ranges, whose labels have none here. Sides of labels that are no sets are the children of a node, or
    the next finer level.
    """
    known = {"parts": axis.parts, "chosen": axis.chosen, "dictionary": axis.dictionary}
    flow = EngineFlow(engine, _FOLDER, **known, ranges=None, apart=None, sides=None)
    taxonomy, levels = axis.hierarchy.taxonomy, axis.levels
    if axis.hierarchy.is_plain:
        flow.know(ranges=_ranges(engine, axis.parts, axis.kind))
        sides = flow.step("sides", "side_ranges")
    elif axis.by_range:
        return None
    else:
        if taxonomy is not None:
            sides = flow.step("sides", "side_nodes", nodes=taxonomies.load(engine, taxonomy, axis.value.name))
        else:
            numbered = [{"number": number, "level": level} for number, level in enumerate(levels, 1)]
            sides = flow.step("sides", "side_levels", levels=numbered, coarsest=len(levels))  # finest first
        flow.step("apart", "list_apart")
    rules = flow.step("rules", "list_rules")
    if flow["apart"] is not None:
        engine.extend(sides, flow["apart"], "value_no", "code", "side", where=[Where("code", None, "<>")])
    names = {"side": "side", "every": "every", "needed": "needed", "sides_found": "sides", "alike": "alike"}
    named = {key: Identifier(f"{name}_{axis.number}") for key, name in names.items()}
    return {"code": axis.code, "table": axis.table, "sides": sides, "rules": rules, **named}
