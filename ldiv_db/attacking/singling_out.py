"""Singling out: a predicate that is true of exactly one person, found in the release alone.

It takes the label of one or more quasi-identifiers and perhaps the sensitive value of a published row: "age within
20-30, zip within 12*, disease flu". Those are tried that hold for exactly one row of the release: of each single column
all, and those of up to 32 sets of several columns, drawn; of either kind at most `tries`, drawn as well. One is right
if exactly one of all targets fits it: labels cover their values, and the sensitive value is theirs (predicate singling
out: Cohen & Nissim, "Towards formalizing the GDPR's notion of singling out", PNAS 2020; Anonymeter's attacks by one and
by several attributes, which take bounds `>=` and `<=` for numbers). The random guess is a predicate with as many
columns, of each the label of a row drawn for it alone. A predicate singles out more easily among few people: with a
control of another size the larger table is cut to the smaller one's for the risk, by a draw, where Anonymeter fits a
correction.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldiv_db.attacking.covering import KnownAxis, list_cells
from ldiv_db.attacking.gains import Attack
from ldiv_db.attacking.matching import KEPT, Prefixes, number_prefixes
from ldiv_db.attacking.trials import TrialPeople, Tried, tried_attack
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.measuring.utility import draw
from ldiv_db.recoding.encoded import Renamed

#: So many sets of several columns are asked for.
SETS = 32
#: So many of them at once: what each finds is held in memory.
_AT_ONCE = 4
#: Of more different rows predicates are drawn from a part, about as large, of the combinations that rows have.
_ROWS = 100_000
#: The universal hash by which these are drawn is a sum by this modulus.
_PRIME = 2**31 - 1
#: Predicates are held against people so often: those found, and random ones, which cover more and take their part.
_TIMES = 2
#: The attacks by the kind of their predicates.
KINDS = {"one": "singling out by one column", "several": "singling out by several columns"}
_VALUE = Identifier("value")
Counts = dict[str, Tried]


@dataclass(frozen=True)
class CodedColumn:
    """A column that predicates may ask for, by codes of its texts: a label of an axis, one of its bounds, or the value.

    `axis` is its place among those; where it `is_open` no text stands for all. `factor` hashes its codes.
    """

    column: Identifier
    place: int
    axis: int
    is_open: bool
    factor: int

    table = NamedAfter("x_{0.place}")
    use, row, drawn = (NamedAfter(f"{name}_{{0.axis}}") for name in ("use", "row", "drawn"))


@dataclass(frozen=True)
class ColumnSet:
    """The columns that a predicate asks for, and their axes by their places, the last being the sensitive value."""

    places: tuple[int, ...]
    columns: tuple[CodedColumn, ...]

    @property
    def used(self) -> int:
        return len(self.places)


def singling_out(people: TrialPeople) -> Iterator[Attack]:
    """The attacks, by one column and by several, with each sensitive attribute."""
    table = people.table
    axes = coded_columns(people.seed, people.axes)
    sets, columns = column_sets(people.seed, axes), [*itertools.chain(*axes)]
    for secret in people.secrets:
        known = {"classes": table.classes, "histogram": table.histograms[secret.column.name], "columns": columns}
        flow = EngineFlow(table.engine, "attacking/singling_out", **known, seed=people.seed)
        with flow.scope():
            flow.step("texts", "list_texts")
            flow.step("rows", "list_rows")
            chosen = _choose(flow, people, sets)
            counts = dict(sorted(table.engine.tally(chosen, "kind")))
            draws = _load_draws(flow.engine, people, sets, counts)
            random = flow.step("random", "draw_predicates", draws=draws, axes=[columns[0] for columns in axes])
            flow.drop("rows", "texts")
            drawn = people.drawn_of("targets", people.targets, all=True)
            everybody = _counted(people, drawn, secret, table.cells("targets"))
            tried, guessed = (_right(people, predicates, everybody) for predicates in (chosen, random))
            pairs = _against_control(people, chosen, secret, tried)
        measure = "share of predicates that fit one person"
        for kind, name in KINDS.items():
            compared = pairs[kind] if pairs else None
            found = tried_attack(name, secret.column.name, measure, tried[kind], guessed[kind], compared)
            yield found.with_untried("predicates", tried[kind].attempts, counts.get(kind, 0))


def _choose(flow: EngineFlow, people: TrialPeople, sets: Sequence[ColumnSet]) -> Relation:
    """As many predicates of each kind as are tried, drawn from those that hold for one row.

    Of many rows from a part of those of several columns, if that has as many; otherwise from all.
    """
    part = flow.engine.count(flow["rows"]) // _ROWS
    if part > 1:
        chosen = _choose_among(flow, people, sets, part)
        if flow.engine.count(chosen, Where("kind", "several")) >= people.tries:
            return chosen
        flow.drop("chosen")
    return _choose_among(flow, people, sets)


def _choose_among(flow: EngineFlow, people: TrialPeople, sets: Sequence[ColumnSet], part: int = 1) -> Relation:
    """The lots are compared some sets at a time."""
    flow.know(chosen=None)
    for start in range(0, len(sets), _AT_ONCE):
        found = {"sets": sets[start : start + _AT_ONCE], "some": part > 1, "part": part}
        flow.step("predicates", "find_predicates", **found)
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
    return {kind: (tried[kind], control[kind]) for kind in KINDS}


def _counted(
    people: TrialPeople, drawn: Relation, secret: Renamed, cells: Relation | None = None
) -> tuple[Relation, Relation]:
    """People as predicates are held against them: (cell_no, people, the known values) and (cell_no, value, rows).

    So many people of a cell have the sensitive value. The `drawn` people are dropped; `cells` may be known.
    """
    engine = people.table.engine
    found = cells or list_cells(engine, people.axes, drawn)
    placed = people.placed(drawn, found, people.axes)
    secrets = engine.count_groups("secrets", placed, "cell_no", (secret.alias.name, "value"))
    engine.drop(drawn, placed)
    return found, secrets


def _right(people: TrialPeople, predicates: Relation, everybody: tuple[Relation, Relation]) -> Counts:
    """The predicates (class_no, the labels' columns, value, uses_value, kind) that fit one of the people, by kind."""
    engine, budget = people.table.engine, people.table.budget // _TIMES // KEPT
    cells, secrets = everybody
    if not engine.count(predicates) or not engine.count(cells):
        return defaultdict(lambda: Tried(0, 0))
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
    return defaultdict(lambda: Tried(0, 0), {kind: Tried(*counts) for kind, *counts in rows})


def coded_columns(seed: int, axes: Sequence[KnownAxis]) -> list[list[CodedColumn]]:
    """The columns of each axis, and last the sensitive value."""
    found = [[(column, axis.bounded) for column in axis.columns] for axis in axes] + [[(_VALUE, True)]]
    places = itertools.count(1)
    return [
        [
            CodedColumn(column, place, number, is_open, 1 + draw(seed, place, "factor", _PRIME - 1))
            for (column, is_open), place in zip(columns, places, strict=False)
        ]
        for number, columns in enumerate(found, 1)
    ]


def column_sets(seed: int, axes: Sequence[Sequence[CodedColumn]]) -> list[ColumnSet]:
    """Each single axis, the sensitive value's last, and sets of several: all of them, or as many as `SETS` drawn."""
    count = len(axes)
    if 2**count - 1 - count > SETS:
        sets = [*((i,) for i in range(count)), *sorted(_drawn_sets(seed, count))]
    else:
        sets = [places for size in range(1, count + 1) for places in itertools.combinations(range(count), size)]
    return [ColumnSet(places, tuple(column for place in places for column in axes[place])) for places in sets]


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


def _load_draws(engine: Engine, people: TrialPeople, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Relation:
    of_axes = [f"{key}_{axis}" for axis in range(1, len(people.axes) + 2) for key in ("use", "row")]
    types = {"number": "BIGINT", "kind": "VARCHAR", **dict.fromkeys(of_axes, "BIGINT")}
    return engine.load("draws", types, list(_draws(people, sets, counts)))


def _draws(people: TrialPeople, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Iterator[tuple[object, ...]]:
    """Of each random predicate its number and kind; of each axis whether it is asked for, and a row."""
    seed, rows, columns = people.seed, people.table.rows, len(people.axes)
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    of_kind = {kind: [asked.places for asked in sets if (len(asked.places) == 1) == (kind == "one")] for kind in counts}
    for number, kind in enumerate(kinds, 1):
        places = of_kind[kind][draw(seed, number, "set", len(of_kind[kind]))]
        asked = [(int(place in places), draw(seed, number, f"row {place}", rows)) for place in range(columns + 1)]
        yield (number, kind, *itertools.chain(*asked))
