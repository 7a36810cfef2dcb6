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
`tds`), stars and coarsened values of the `tp` family, labels of nested ranges, and `*` of numbers. A class that the
population does not explain (it lacks people of the release, or the labels are not least) is left as it is and
counted. Numbers nearer to each other than 2^-30 of all that they span are published alike, and their ends may be
wrong by that much. A requirement promises nothing against this attack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.attacking.covering import KnownAxis, LabelAxis
from ldiv_db.attacking.gains import Attack, Gain, gain_of
from ldiv_db.attacking.matching import Matches
from ldiv_db.attacking.trials import AttackedRelease
from ldiv_db.database.engine import Engine
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.policy.settings import AlgorithmSpec
from ldiv_db.recoding.labels import read_parts, read_ranges
from ldiv_db.taxonomies import taxonomy as taxonomies

#: The people of classes of two rows are tried in pairs of kinds, those of few kinds first; one costs as many pairs.
_PAIR = 7
#: A person who may be in a class costs as many kept pairs: they are looked at with all their sides.
CANDIDATE = 4
#: The measure of people whom a population tells apart.
SINGLED_OUT = "share of rows singled out"
#: How numbers and times are read where nobody's values say which they are.
_KINDS = ("real", "instant")
#: A quasi-identifier as the templates of an attack take it: relations and names, by what they are.
AxisParameter = dict[str, Any]


def why_not_least(spec: AlgorithmSpec) -> str:
    """Why nothing follows from the labels of an algorithm; empty if they are the least that cover their rows."""
    if spec.name not in ALGORITHMS:
        return ""
    published = algorithm_of(spec.name)(spec.options).excludes_sets
    return f"{spec.name} publishes {published}, which do not follow from the rows of a class" if published else ""


def downcoding(coded: AttackedRelease, spec: AlgorithmSpec, population: Matches | None) -> Attack:
    """The attack by minimality on a release of an algorithm, alone and, if there is a population, held against it."""
    if note := why_not_least(spec):
        return Attack("downcoding", None, _gains(coded, "release", 0, 0), {"note": note})
    with coded.engine.scope():
        gains = _gains(coded, "release", *_count_halved(coded))
        more, figures = _hold_against(coded, population) if population else ((), {})
        tried = coded.engine.count(population.classes) if population else 0
    found = Attack("downcoding", None, (*gains, *more), figures)
    found = found.with_untried("rows", coded.rows - figures.get("rows_untried", 0), coded.rows)
    return found.with_untried("classes", tried, coded.engine.count(coded.classes)) if population else found


def _gains(coded: AttackedRelease, by: str, rows: int, cells: int) -> tuple[Gain, ...]:
    """The two shares that are narrowed, of which nothing is promised."""
    return (
        gain_of(f"share of rows narrowed by the {by}", coded.share(rows), None),
        gain_of(f"share of cells narrowed by the {by}", coded.share(cells, len(coded.axes)), None),
    )


# -- by the release alone ----------------------------------------------------------------------------


def _count_halved(coded: AttackedRelease) -> tuple[int, int]:
    """The rows and the cells of classes of two rows that have one of two values."""
    axes = [_labelled(coded, axis) for axis in coded.axes if axis.hierarchy.is_plain]
    if not axes:
        return 0, 0
    counts = coded.engine.record("attacking/downcoding/count_halved", classes=coded.classes, axes=axes)
    return counts["rows"], counts["cells"]


def _labelled(coded: AttackedRelease, axis: LabelAxis) -> AxisParameter:
    """The axis with its labels; `inner` are those that are ranges of numbers, or else of times, with values inside."""
    engine = coded.engine
    label = (axis.name, axis.columns, axis.hierarchy, axis.sets_first)
    known = KnownAxis(*label, kind=_KINDS[0], known=Identifier(axis.name), value=Identifier("value"))
    labels = engine.materialise("labels", "attacking/covering/number_labels", classes=coded.classes, axis=known)
    parts = read_parts(engine, labels)
    found = [_ranges(engine, parts, kind, inner_of=labels) for kind in _KINDS]
    return {"columns": axis.columns, "labels": labels, "inner": max(found, key=engine.count)}


def _ranges(engine: Engine, parts: Relation, kind: str, inner_of: Relation | None = None) -> Relation:
    """The labels (value_no, start, stop) that are ranges of two ends; of those labels with values inside, if given."""
    params = {"ranges": read_ranges(engine, parts, kind), "labels": inner_of, "inner": inner_of and kind}
    return engine.materialise("ranges", "attacking/downcoding/list_ranges", **params)


# -- by a population ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Held:
    """A release held against a population, class by class: the steps that lead to `measures`, and those behind it."""

    candidates: Relation
    kinds: Relation
    tried: Relation
    kept: Relation
    singles: Relation
    measures: Relation


def _hold_against(coded: AttackedRelease, population: Matches) -> tuple[tuple[Gain, ...], dict[str, Any]]:
    """The gains by a population, and what goes with them."""
    engine, prefixes = coded.engine, population.prefixes
    coded = replace(coded, classes=population.classes, rows=engine.total(population.classes, "class_rows"))
    axes = [sided for axis in prefixes.axes if (sided := _sided(engine, axis))]
    if not axes:
        return _gains(coded, "population", 0, 0), {"note": "no label has sides"}
    held = _held(coded, population, axes)
    params = {"candidates": held.candidates, "codes": prefixes.codes, "kinds": held.kinds, "kept": held.kept}
    params |= {"singles": held.singles, "measures": held.measures}
    cells = sum(
        engine.scalar("attacking/downcoding/count_narrowed_cells", axis=axis, **params) for axis in prefixes.axes
    )
    sums = engine.record("attacking/downcoding/summarise_classes", measures=held.measures, tried=held.tried)
    single = gain_of(SINGLED_OUT, coded.share(sums["single"]), None)
    figures = {
        "people_alike": _mean(sums["before"], sums["rows"]),
        "people_alike_narrowed": _mean(sums["after"], sums["rows"]),
        "rows_unexplained": sums["unexplained"],
        "rows_untried": sums["untried"],
    }
    return (*_gains(coded, "population", sums["narrowed"], cells), single), figures


def _mean(total: Any, rows: int) -> float | None:
    return float(Fraction(int(total), rows)) if rows else None


def _held(coded: AttackedRelease, population: Matches, axes: Sequence[AxisParameter]) -> _Held:
    """The classes with the people whom they fit, who may be in them, and who are singled out."""
    engine, prefixes = coded.engine, population.prefixes

    def make(verb: str, **params: Any) -> Relation:
        return engine.materialise(verb, f"attacking/downcoding/{verb}", **params)

    rules = make("rule_classes", classes=coded.classes, boxes=prefixes.boxes, axes=axes)
    people = {"matches": population.pairs, "cells": population.cells, "codes": prefixes.codes}
    candidates = make("list_candidates", boxes=prefixes.boxes, axes=axes, **people)
    sides = [axis["side"].name for axis in axes]
    kinds = engine.group("kinds", candidates, "kind_no", "class_no", *sides, people=("sum", "people"))
    tried = make("choose_small", kinds=kinds, rules=rules, most=Value(coded.budget // _PAIR))
    kept = make("keep_kinds", kinds=kinds, rules=rules, tried=tried, axes=axes)
    explained = make("explain_classes", kept=kept, axes=axes)
    singles = make("find_single", kept=kept, explained=explained, axes=axes)
    measures = make("measure_classes", rules=rules, kinds=kinds, explained=explained, singles=singles)
    return _Held(candidates, kinds, tried, kept, singles, measures)


def _sided(engine: Engine, axis: KnownAxis) -> AxisParameter | None:
    """The axis with the sides of its labels; None for nested ranges, whose labels have none here."""
    if axis.hierarchy.is_plain:
        ranges = _ranges(engine, axis.parts, axis.kind)
        params = {"ranges": ranges, "dictionary": axis.dictionary}
        sides = engine.materialise("sides", "attacking/downcoding/side_ranges", **params)
        return _with_sides(axis, sides, _rules(engine, ranges=ranges))
    if axis.by_range:
        return None
    sides = _side_whole(engine, axis)
    apart = engine.materialise(
        "apart", "attacking/downcoding/list_apart", chosen=axis.chosen, dictionary=axis.dictionary
    )
    rules = _rules(engine, apart=apart, sides=sides)
    engine.extend(sides, apart, "value_no", "code", "side", where=[Where("code", None, "<>")])
    return _with_sides(axis, sides, rules)


def _with_sides(axis: KnownAxis, sides: Relation, rules: Relation) -> AxisParameter:
    """The axis with the `sides` of its labels (value_no, code, side), and how many of them some row has (`rules`)."""
    names = {"side": "side", "every": "every", "needed": "needed", "sides_found": "sides", "alike": "alike"}
    named = {key: Identifier(f"{name}_{axis.number}") for key, name in names.items()}
    return {"code": axis.code, "table": axis.table, "sides": sides, "rules": rules, **named}


def _rules(
    engine: Engine, ranges: Relation | None = None, apart: Relation | None = None, sides: Relation | None = None
) -> Relation:
    """The sides of a label that some row has (value_no, every_side, needed): of ranges, or of sets and other labels."""
    params = {"ranges": ranges, "apart": apart, "sides": sides}
    return engine.materialise("rules", "attacking/downcoding/list_rules", **params)


def _side_whole(engine: Engine, axis: KnownAxis) -> Relation:
    """The sides of labels that are no sets: by the children of a node, or by the next finer level."""
    taxonomy = axis.hierarchy.taxonomy
    read = {"parts": axis.parts, "chosen": axis.chosen, "dictionary": axis.dictionary}
    if taxonomy is not None:
        nodes = taxonomies.load(engine, taxonomy, axis.value.name)
        return engine.materialise("whole", "attacking/downcoding/side_nodes", nodes=nodes, **read)
    levels = [{"number": Value(number), "level": level} for number, level in enumerate(axis.levels, 1)]  # finest first
    params = {"levels": levels, "coarsest": Value(len(axis.levels))}
    return engine.materialise("whole", "attacking/downcoding/side_levels", **params, **read)
