"""The three risks of the Article 29 Working Party (Opinion 05/2014, WP216): singling out, linkability, inference.

Each is tried on a sample of targets, on one of the control, and by random guesses; nothing is promised against any.

Singling out finds a predicate that is true of exactly one person, in the release alone. It takes the label of one or
more quasi-identifiers and perhaps the sensitive value of a published row: "age within 20-30, zip within 12*, disease
flu". Those are tried that hold for exactly one row of the release: of each single column all, and those of up to 32
sets of several columns, drawn; of either kind at most `tries`. One is right if exactly one of all targets fits it:
labels cover their values, and the sensitive value is theirs (predicate singling out: Cohen & Nissim, "Towards
formalizing the GDPR's notion of singling out", PNAS 2020; Anonymeter's attacks by one and by several attributes, which
take bounds `>=` and `<=` for numbers). The random guess is a predicate with as many columns, of each the label of a row
drawn for it alone. A predicate singles out more easily among few people: with a control of another size the larger
table is cut to the smaller one's for the risk, by a draw, where Anonymeter fits a correction.

Linkability puts two parts of what is known of somebody together. One attacker knows some quasi-identifiers of a person,
another one others. Each looks for the classes nearest to the part: of those whose labels cover it the ones whose labels
say most, by the share of the known values that a label covers, summed over the part's columns. The parts are linked if
exactly one class is among the nearest of both. (Anonymeter takes the nearest row for each part, and links if it is the
same: here a row is nowhere nearer than the rest of its class.) The random guess draws two rows, which link if they are
of one class.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.attacking.covering import KnownAxis, list_cells
from ldiv_db.attacking.gains import Attack, Tried, tried_attack
from ldiv_db.attacking.matching import KEPT, Prefixes, number_prefixes, prefixes_of
from ldiv_db.attacking.trials import (
    AttackedRelease,
    PeopleTrial,
    SecretColumn,
    TrialPeople,
    draw,
    guessed_at_random,
    inference,
    people_of,
    tried_on,
)
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.templates import Identifier, Relation, Value

#: Distances are summed in parts of a column's known values.
_UNIT = 10**9
Parts = tuple[tuple[KnownAxis, ...], tuple[KnownAxis, ...]]
#: So many sets of several columns are asked for.
SETS = 32
#: So many of them at once: what each finds is held in memory.
_AT_ONCE = 4
#: Predicates are held against people so often: those found, and random ones.
_TIMES = 2
_KINDS = {"one": "singling out by one column", "several": "singling out by several columns"}
_VALUE = Identifier("value")
Counts = dict[str, Tried]


@dataclass(frozen=True)
class _Side:
    """One part of the people: who has which cell, the nearest boxes of each cell, and the boxes of classes."""

    people: Relation
    nearest: Relation
    boxes: Relation
    last: KnownAxis


def parts_of(people: TrialPeople) -> Parts | None:
    """The two parts of a person: those that are asked for, or halves; None of a single quasi-identifier.

    Raises PolicyError for parts with columns that are not known, or in both parts, and for empty ones.
    """
    asked = people.trial.link_columns
    if asked is None:
        half = (len(people.axes) + 1) // 2
        halves = people.axes[:half], people.axes[half:]
        return None if not halves[1] else (_numbered(halves[0]), _numbered(halves[1]))
    known = {axis.name.lower(): axis for axis in people.axes}
    names = [name.lower() for part in asked for name in part]
    unknown = [name for part in asked for name in part if name.lower() not in known]
    problems = [Problem("link_columns", f"{name} is not a quasi-identifier that targets have") for name in unknown]
    if not all(asked):
        problems.append(Problem("link_columns", "takes two lists of columns", "a,b|c,d"))
    if len(set(names)) < len(names):
        problems.append(Problem("link_columns", "has a column twice"))
    refuse(problems)
    first, second = ([known[name.lower()] for name in part] for part in asked)
    return _numbered(first), _numbered(second)


def _numbered(axes: Sequence[KnownAxis]) -> tuple[KnownAxis, ...]:
    return tuple(replace(axis, number=number) for number, axis in enumerate(axes, 1))


def linkability(people: TrialPeople, drawn: Relation, parts: Parts) -> Attack:
    """The attack on `drawn` people."""
    engine = people.released.engine
    with ExitStack() as stack:
        first, second = (stack.enter_context(_side(people, drawn, part)) for part in parts)
        counts = engine.rows(
            "attacking/linkability/count_linked",
            first_people=first.people,
            second_people=second.people,
            first_nearest=first.nearest,
            second_nearest=second.nearest,
            first_boxes=first.boxes,
            second_boxes=second.boxes,
            first_last=first.last,
            second_last=second.last,
        )
    pair = tried_on(counts)
    guessed = guessed_at_random(people, "attacking/linkability/count_random", classes=people.released.classes)
    compared = None if people.control is None else pair
    found = tried_attack("linkability", None, "share of people linked", pair[0], guessed, compared)
    return found.with_untried("people", sum(one.attempts for one in pair), engine.count(drawn))


@contextmanager
def _side(people: TrialPeople, drawn: Relation, axes: tuple[KnownAxis, ...]) -> Iterator[_Side]:
    """The nearest boxes of each person, as the holder of one part finds them."""
    engine = people.released.engine
    with prefixes_of(engine, people.released.classes, axes, drawn) as numbered, engine.scope():
        distanced = [  # spans are shares of the known values
            {"code": a.code, "table": a.table, "spans": a.spans, "codes": Value(engine.count(a.dictionary))}
            for a in numbered.axes
        ]
        nearest = engine.load("nearest", {"cell_no": "BIGINT", "box": "BIGINT"}, [])
        tried = engine.load("tried", {"cell_no": "BIGINT"}, [])
        for part in numbered.drawn(people.released.budget // KEPT):
            found = part.prefixes
            params = {"pairs": found.pairs, "boxes": found.boxes, "codes": found.codes, "unit": Value(_UNIT)}
            engine.insert(nearest, "attacking/linkability/find_nearest", axes=distanced, last=numbered.last, **params)
            engine.extend(tried, part.part, "cell_no")
        cells = engine.select_among("kept", numbered.cells, tried, "cell_no")
        yield _Side(people.placed(drawn, cells, axes), nearest, numbered.boxes, numbered.last)


@dataclass(frozen=True)
class ColumnSet:
    """The columns that a predicate asks for, by their places; the last place is that of the sensitive value."""

    places: tuple[int, ...]
    columns: tuple[Identifier, ...]


def singling_out(people: TrialPeople, histograms: dict[str, Relation]) -> list[Attack]:
    """The attacks, by one column and by several, with each sensitive attribute's histogram (class_no, value, rows)."""
    engine = people.released.engine
    attacks = []
    for secret in people.secrets:
        with engine.scope():
            attacks += _attack(people, secret, histograms[secret.name])
    return attacks


def _attack(people: TrialPeople, secret: SecretColumn, histogram: Relation) -> list[Attack]:
    engine, trial, axes = people.released.engine, people.trial, people.axes
    columns = [column for axis in axes for column in axis.columns]
    rows = engine.materialise(
        "rows",
        "attacking/singling_out/list_rows",
        classes=people.released.classes,
        histogram=histogram,
        columns=columns,
    )
    sets = column_sets(trial.seed, axes)
    chosen = _chosen(people, rows, sets, columns)
    counts = dict(sorted(engine.tally(chosen, "kind")))
    random = _draw_random(people, rows, sets, counts)
    everybody = _counted(people, people.of_targets(people.targets), secret)
    tried, guessed = (_right(people, predicates, everybody) for predicates in (chosen, random))
    pairs = _against_control(people, chosen, secret, tried)
    measure = "share of predicates that fit one person"
    return [
        tried_attack(
            _KINDS[kind], secret.name, measure, tried[kind], guessed[kind], pairs[kind] if pairs else None
        ).with_untried("predicates", tried[kind].attempts, counts.get(kind, 0))
        for kind in _KINDS
    ]


def _chosen(people: TrialPeople, rows: Relation, sets: Sequence[ColumnSet], columns: Sequence[Identifier]) -> Relation:
    """As many predicates of each kind as are tried, drawn from those that hold for one row; some sets at a time."""
    engine, trial = people.released.engine, people.trial
    asked_of = {"rows": rows, "axes": people.axes, "value": _VALUE}
    params = {"columns": columns, "seed": Value(trial.seed), "most": Value(trial.tries)}
    chosen = None
    for asked in (sets[start : start + _AT_ONCE] for start in range(0, len(sets), _AT_ONCE)):
        found = engine.materialise("predicates", "attacking/singling_out/find_predicates", sets=asked, **asked_of)
        template, before = "attacking/singling_out/choose_predicates", chosen
        chosen = engine.materialise("chosen", template, predicates=found, chosen=before, **params)
        engine.drop(found, *([before] if before else []))
    assert chosen is not None  # noqa: S101 - there is a quasi-identifier, and the sensitive value
    return chosen


def _against_control(
    people: TrialPeople, chosen: Relation, secret: SecretColumn, tried: Counts
) -> dict[str, tuple[Tried, Tried]] | None:
    """The successes on targets and on the control, of each kind, where both are as many; None without a control."""
    if people.control is None:
        return None
    most = min(people.targets, people.control)
    if most < people.targets:
        tried = _right(people, chosen, _counted(people, people.of_targets(most), secret))
    control = _right(people, chosen, _counted(people, people.of_control(most), secret))
    return {kind: (tried[kind], control[kind]) for kind in _KINDS}


@dataclass(frozen=True)
class _Everybody:
    """People as predicates are held against them: `cells` (cell_no, people, the known values), with their `secrets`.

    These are (cell_no, value, rows): so many people of a cell have the sensitive value.
    """

    cells: Relation
    secrets: Relation


def _counted(people: TrialPeople, drawn: Relation, secret: SecretColumn) -> _Everybody:
    engine = people.released.engine
    cells = list_cells(engine, people.axes, drawn)
    placed = people.placed(drawn, cells, people.axes)
    return _Everybody(cells, engine.count_groups("secrets", placed, "cell_no", (secret.alias.name, "value")))


def _right(people: TrialPeople, predicates: Relation, everybody: _Everybody) -> Counts:
    """The predicates (class_no, the labels' columns, value, uses_value, kind) that fit one of the people, by kind."""
    engine, budget = people.released.engine, people.released.budget // _TIMES // KEPT
    if not engine.count(predicates) or not engine.count(everybody.cells):
        return dict.fromkeys(_KINDS, Tried(0, 0))
    with engine.scope():
        numbered = number_prefixes(engine, predicates, people.axes, everybody.cells)
        of_all = {"codes": numbered.codes, "axis": numbered.last}
        secrets = engine.materialise(
            "secrets_alike", "attacking/singling_out/list_secrets", secrets=everybody.secrets, **of_all
        )
        fits = engine.load("fits", {"kind": "VARCHAR", "cells": "BIGINT", "people": "BIGINT"}, [])

        def keep(found: Prefixes) -> int:
            before, params = engine.total(fits, "cells"), {"pairs": found.pairs, "boxes": found.boxes, **of_all}
            template = "attacking/singling_out/count_fits"
            engine.insert(fits, template, secrets=secrets, predicates=predicates, **params)
            return engine.total(fits, "cells") - before

        for _ in numbered.drawn(budget, by_classes=True, keep=keep):
            pass
        rows = engine.rows("attacking/singling_out/count_right", fits=fits)
    found = {kind: Tried(*counts) for kind, *counts in rows}
    return {kind: found.get(kind, Tried(0, 0)) for kind in _KINDS}


def column_sets(seed: int, axes: Sequence[KnownAxis]) -> list[ColumnSet]:
    """Each single column, the sensitive value's last, and sets of several: all of them, or as many as `SETS` drawn."""
    count, columns = len(axes) + 1, [*(axis.columns for axis in axes), (_VALUE,)]
    if 2**count - 1 - count > SETS:
        sets = [*((i,) for i in range(count)), *sorted(_drawn_sets(seed, count))]
    else:
        sets = [places for size in range(1, count + 1) for places in itertools.combinations(range(count), size)]
    return [ColumnSet(places, tuple(column for place in places for column in columns[place])) for places in sets]


def _drawn_sets(seed: int, count: int) -> set[tuple[int, ...]]:
    """As many sets as `SETS`, each of a size that is drawn, of 2 to all columns."""
    found: set[tuple[int, ...]] = set()
    number = 0
    while len(found) < SETS:
        number += 1
        size = 2 + draw(seed, number, "size", count - 1)
        lots = [draw(seed, number, f"order {place}", 2**64) for place in range(count)]
        found.add(tuple(sorted(sorted(range(count), key=lots.__getitem__)[:size])))
    return found


def _asked(axis: KnownAxis) -> dict[str, Any]:
    """A quasi-identifier in random predicates: its label's columns, whether it is asked for, and in which row."""
    names = {key: Identifier(f"{key}_{axis.number}") for key in ("use", "row")}
    return {"columns": axis.columns, "bounded": axis.bounded, "table": axis.table, **names}


def _draw_random(people: TrialPeople, rows: Relation, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Relation:
    """Random predicates, of either kind as many as were found."""
    engine, axes = people.released.engine, [_asked(axis) for axis in people.axes]
    types = {"number": "BIGINT", "kind": "VARCHAR", "use_value": "BIGINT", "row_value": "BIGINT"}
    types |= {name: "BIGINT" for axis in axes for name in (axis["use"].name, axis["row"].name)}
    draws = engine.load("draws", types, list(_draws(people, sets, counts)))
    return engine.materialise("random", "attacking/singling_out/draw_predicates", rows=rows, draws=draws, axes=axes)


def _draws(people: TrialPeople, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Iterator[tuple[object, ...]]:
    """Of each random predicate its number and kind; of the value and each axis whether it is asked for, and a row."""
    seed, rows, columns = people.trial.seed, people.released.rows, len(people.axes)
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    of_kind = {kind: [asked.places for asked in sets if (len(asked.places) == 1) == (kind == "one")] for kind in counts}
    for number, kind in enumerate(kinds, 1):
        places = of_kind[kind][draw(seed, number, "set", len(of_kind[kind]))]
        asked = [(int(place in places), draw(seed, number, f"row {place}", rows)) for place in range(columns + 1)]
        yield (number, kind, *asked[columns], *(item for pair in asked[:columns] for item in pair))


def try_attacks(released: AttackedRelease, trial: PeopleTrial, histograms: dict[str, Relation]) -> list[Attack]:
    """The attacks on the people of a trial, by the histogram (class_no, value, rows) of each sensitive attribute.

    Raises PolicyError for columns that people lack, and for parts to be linked that are none.
    """
    people = people_of(released, trial, list(histograms))
    parts = parts_of(people)
    with released.engine.scope():
        attacks = singling_out(people, histograms)
        drawn = people.drawn(trial.tries, trial.tries)
        attacks += [linkability(people, drawn, parts)] if parts else []
        return attacks + inference(people, drawn, histograms)
