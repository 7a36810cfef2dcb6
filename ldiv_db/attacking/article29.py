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
from typing import Any, ClassVar

from ldiv_db.attacking.base import ABOVE, NOTHING, UNDECIDED, WITHIN, Attacker, Verdict
from ldiv_db.attacking.covering import KnownAxis, list_cells
from ldiv_db.attacking.gains import Attack
from ldiv_db.attacking.matching import KEPT, Prefixes, number_prefixes, prefixes_of
from ldiv_db.attacking.trials import TrialPeople, Tried, inference, tried_attack, tried_on
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.utility import draw
from ldiv_db.policy.reading import names_of
from ldiv_db.recoding.encoded import Renamed

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


class PeopleTrial(Attacker):
    """The attacks on people that are named: on targets, who are in the release, and perhaps on a control.

    Raises PolicyError for columns that people lack, and for parts to be linked that are none.
    """

    names = (*_KINDS.values(), "linkability", "inference")
    key = people = "targets"
    reads_labels = True
    one_value = True
    place = 1
    words: ClassVar = {
        "interval": "95 % interval",
        "random_interval": "95 % interval at random",
        "risk_interval": "95 % interval of the risk",
    }

    def attacks(self) -> Iterator[Attack]:
        table = self.table
        people = TrialPeople.among(table)
        parts = parts_of(people)
        with table.engine.scope():
            yield from singling_out(people)
            drawn = people.drawn()
            if parts:
                yield linkability(people, drawn, parts)
            yield from inference(people, drawn)
        for key in ("targets", "control"):
            if key in table.known.people:
                table.count_lost(key)

    @classmethod
    def verdict(cls, attack: Attack, promised: float | None, no_bound: str, threshold: float) -> Verdict:
        """The interval of 95 % against the threshold of recognition.

        A rate bounds from above the risk beyond a control. So without a control a rate within the threshold decides,
        and one above leaves open how much of it is due to being in the release.
        """
        figures, controlled, gain = attack.figures, len(attack.gains) > 1, attack.gains[-1]
        interval = figures["risk_interval" if controlled else "interval"]
        told = gain.gain is not None and interval is not None
        why = f"95 % interval {interval[0]:.3g} to {interval[1]:.3g}" if told else None
        if attack.untried is not None and attack.untried.tried == 0:
            verdict = UNDECIDED
        elif not figures["attempts"]:
            verdict = NOTHING
        elif interval is not None and interval[1] <= threshold:
            verdict = WITHIN
        else:
            verdict = ABOVE if controlled and interval is not None and interval[0] > threshold else UNDECIDED
        return Verdict(gain, threshold, verdict, why)


def parts_of(people: TrialPeople) -> Parts | None:
    """The two parts of a person: those that are asked for, or halves; None of a single quasi-identifier.

    Raises PolicyError for parts with columns that are not known, or in both parts, and for empty ones.
    """
    linked = people.table.known.asked.link_columns
    if linked is None:
        half = (len(people.axes) + 1) // 2
        halves = people.axes[:half], people.axes[half:]
        return None if not halves[1] else (_numbered(halves[0]), _numbered(halves[1]))
    asked = [names_of(part) for part in linked]
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


# -- linkability ---------------------------------------------------------------------------------------


def linkability(people: TrialPeople, drawn: Relation, parts: Parts) -> Attack:
    """The attack on `drawn` people."""
    table = people.table
    flow = EngineFlow(table.engine, "attacking/linkability", classes=table.classes)
    with ExitStack() as stack:
        for place, part in zip(("first", "second"), parts, strict=True):
            side = stack.enter_context(_side(people, drawn, part))
            flow.know(**{f"{place}_{name}": found for name, found in side.items()})
        pair = tried_on(flow.rows("count_linked"))
    compared = None if people.control is None else pair
    found = tried_attack("linkability", None, "share of people linked", pair[0], people.guessed(flow), compared)
    return found.with_untried("people", sum(one.attempts for one in pair), table.engine.count(drawn))


@contextmanager
def _side(people: TrialPeople, drawn: Relation, axes: tuple[KnownAxis, ...]) -> Iterator[dict[str, Any]]:
    """Who has which cell, the nearest boxes of each, as the holder of one part finds them, and the boxes of classes."""
    table, engine = people.table, people.table.engine
    with prefixes_of(engine, table.classes, axes, drawn) as numbered, engine.scope():
        distanced = [  # spans are shares of the known values
            {"code": a.code, "table": a.table, "spans": a.spans, "codes": engine.count(a.dictionary)}
            for a in numbered.axes
        ]
        nearest = engine.load("nearest", {"cell_no": "BIGINT", "box": "BIGINT"}, [])
        tried = engine.load("tried", {"cell_no": "BIGINT"}, [])
        for found, part, _ in numbered.drawn(table.budget // KEPT):
            flow = found.flow("attacking/linkability", last=numbered.last, unit=_UNIT)
            flow.insert(nearest, "find_nearest", axes=distanced)
            engine.extend(tried, part, "cell_no")
        cells = engine.select_among("kept", numbered.cells, tried, "cell_no")
        placed = people.placed(drawn, cells, axes)
        yield {"people": placed, "nearest": nearest, "boxes": numbered.boxes, "last": numbered.last}


# -- singling out --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnSet:
    """The columns that a predicate asks for, by their places; the last place is that of the sensitive value."""

    places: tuple[int, ...]
    columns: tuple[Identifier, ...]


def singling_out(people: TrialPeople) -> Iterator[Attack]:
    """The attacks, by one column and by several, with each sensitive attribute."""
    table = people.table
    sets = column_sets(people.seed, people.axes)
    columns = [column for axis in people.axes for column in axis.columns]
    for secret in people.secrets:
        known = {"classes": table.classes, "histogram": table.histograms[secret.column.name], "columns": columns}
        flow = EngineFlow(table.engine, "attacking/singling_out", **known, value=_VALUE, seed=people.seed)
        with flow.scope():
            flow.step("rows", "list_rows")
            chosen = _choose(flow, people, sets)
            counts = dict(sorted(table.engine.tally(chosen, "kind")))
            random = _draw_random(flow, people, sets, counts)
            everybody = _counted(people, people.drawn_of("targets", people.targets), secret)
            tried, guessed = (_right(people, predicates, everybody) for predicates in (chosen, random))
            pairs = _against_control(people, chosen, secret, tried)
        measure = "share of predicates that fit one person"
        for kind, name in _KINDS.items():
            compared = pairs[kind] if pairs else None
            found = tried_attack(name, secret.column.name, measure, tried[kind], guessed[kind], compared)
            yield found.with_untried("predicates", tried[kind].attempts, counts.get(kind, 0))


def _choose(flow: EngineFlow, people: TrialPeople, sets: Sequence[ColumnSet]) -> Relation:
    """As many predicates of each kind as are tried, drawn from those that hold for one row; some sets at a time."""
    flow.know(chosen=None)
    for start in range(0, len(sets), _AT_ONCE):
        flow.step("predicates", "find_predicates", sets=sets[start : start + _AT_ONCE], axes=people.axes)
        before = flow["chosen"]
        flow.step("chosen", "choose_predicates", most=people.tries)
        flow.engine.drop(flow["predicates"], *([before] if before else []))
    chosen: Relation = flow["chosen"]
    return chosen


def _against_control(
    people: TrialPeople, chosen: Relation, secret: Renamed, tried: Counts
) -> dict[str, tuple[Tried, Tried]] | None:
    """The successes on targets and on the control, of each kind, where both are as many; None without a control."""
    if people.control is None:
        return None
    most = min(people.targets, people.control)
    if most < people.targets:
        tried = _right(people, chosen, _counted(people, people.drawn_of("targets", most), secret))
    control = _right(people, chosen, _counted(people, people.drawn_of("control", most), secret))
    return {kind: (tried[kind], control[kind]) for kind in _KINDS}


def _counted(people: TrialPeople, drawn: Relation, secret: Renamed) -> tuple[Relation, Relation]:
    """People as predicates are held against them: (cell_no, people, the known values) and (cell_no, value, rows).

    So many people of a cell have the sensitive value.
    """
    engine = people.table.engine
    cells = list_cells(engine, people.axes, drawn)
    placed = people.placed(drawn, cells, people.axes)
    return cells, engine.count_groups("secrets", placed, "cell_no", (secret.alias.name, "value"))


def _right(people: TrialPeople, predicates: Relation, everybody: tuple[Relation, Relation]) -> Counts:
    """The predicates (class_no, the labels' columns, value, uses_value, kind) that fit one of the people, by kind."""
    engine, budget = people.table.engine, people.table.budget // _TIMES // KEPT
    cells, secrets = everybody
    if not engine.count(predicates) or not engine.count(cells):
        return dict.fromkeys(_KINDS, Tried(0, 0))
    with engine.scope():
        numbered = number_prefixes(engine, predicates, people.axes, cells)
        flow = numbered.flow("attacking/singling_out", predicates=predicates, secrets=secrets)
        alike = flow.step("secrets_alike", "list_secrets")
        fits = engine.load("fits", {"kind": "VARCHAR", "cells": "BIGINT", "people": "BIGINT"}, [])

        def keep(found: Prefixes) -> int:
            before = engine.total(fits, "cells")
            flow.insert(fits, "count_fits", pairs=found.pairs, boxes=found.boxes, secrets=alike)
            return engine.total(fits, "cells") - before

        for _ in numbered.drawn(budget, by_classes=True, keep=keep):
            pass
        rows = flow.rows("count_right", fits=fits)
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


def _draw_random(flow: EngineFlow, people: TrialPeople, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Relation:
    axes: list[dict[str, Any]] = [
        {"columns": axis.columns, "bounded": axis.bounded, "table": axis.table}
        | {key: Identifier(f"{key}_{axis.number}") for key in ("use", "row")}  # whether it is asked for, in which row
        for axis in people.axes
    ]
    types = {"number": "BIGINT", "kind": "VARCHAR", "use_value": "BIGINT", "row_value": "BIGINT"}
    types |= {axis[key].name: "BIGINT" for axis in axes for key in ("use", "row")}
    draws = flow.engine.load("draws", types, list(_draws(people, sets, counts)))
    return flow.step("random", "draw_predicates", draws=draws, axes=axes)


def _draws(people: TrialPeople, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Iterator[tuple[object, ...]]:
    """Of each random predicate its number and kind; of the value and each axis whether it is asked for, and a row."""
    seed, rows, columns = people.seed, people.table.rows, len(people.axes)
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    of_kind = {kind: [asked.places for asked in sets if (len(asked.places) == 1) == (kind == "one")] for kind in counts}
    for number, kind in enumerate(kinds, 1):
        places = of_kind[kind][draw(seed, number, "set", len(of_kind[kind]))]
        asked = [(int(place in places), draw(seed, number, f"row {place}", rows)) for place in range(columns + 1)]
        yield (number, kind, *asked[columns], *(item for pair in asked[:columns] for item in pair))
