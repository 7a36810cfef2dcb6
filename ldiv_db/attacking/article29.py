"""Singling out: a predicate that is true of exactly one person, found in the release alone.

A predicate takes the label of one or more quasi-identifiers and perhaps the sensitive value of a published row: "age
within 20-30, zip within 12*, disease flu". Those are tried that hold for exactly one row of the release, a row
holding if it is published with the same labels and value. All such predicates of each single column are found, and
those of up to 32 sets of several columns, drawn; of either kind at most `tries` are tried. One is right if exactly
one of all targets fits it: labels cover their values, and the sensitive value is theirs (predicate singling out:
Cohen & Nissim, "Towards formalizing the GDPR's notion of singling out", PNAS 2020; Anonymeter's attacks by one and by
several attributes, which take bounds `>=` and `<=` for numbers). The random guess is a predicate with as many
columns, of each the label of a row drawn for it alone.

A predicate singles out more easily among few people. With a control of another size the larger table is
therefore cut to the smaller one's for the risk, by a draw, where Anonymeter fits a correction.

Nothing is promised: l different values in a class make its rows different from one another.

Inference: the sensitive value of somebody whose quasi-identifiers are known is guessed.

The guess is the most frequent value among the rows of all classes that cover the person; whom no class covers gets
the most frequent value of the release. It is right if it is the person's own value (Anonymeter's inference attack
takes the value of the nearest row in its place, and of numbers one that differs by 5 % for right). The random guess
is the value of a row of the release drawn at random.

Nothing is promised, not even where the shares of values in classes are bounded: people of one class may fit other
classes as well, each other ones, and all be guessed right. And what succeeds on a control as often as on targets
tells what the release says of people, not of those in it.

The three risks of the Article 29 Working Party (Opinion 05/2014, WP216): singling out, linkability, inference.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldiv_db.attacking.covering import KnownAxis
from ldiv_db.attacking.disclosure import Attack
from ldiv_db.attacking.linkability import linkability, parts_of
from ldiv_db.attacking.matching import matched
from ldiv_db.attacking.trials import (
    AttackedRelease,
    PeopleTrial,
    SecretColumn,
    TrialPeople,
    Tried,
    draw,
    drawn_rows,
    people_of,
    tried_attack,
    tried_on,
)
from ldiv_db.database.templates import Identifier, Relation, Value

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
class AskedAxis:
    """A quasi-identifier in random predicates: its label's columns, whether it is asked for, and in which row."""

    axis: KnownAxis

    @property
    def columns(self) -> tuple[Identifier, ...]:
        return self.axis.columns

    @property
    def bounded(self) -> bool:
        return self.axis.bounded

    @property
    def table(self) -> Identifier:
        return self.axis.table

    @property
    def use(self) -> Identifier:
        return Identifier(f"use_{self.axis.number}")

    @property
    def row(self) -> Identifier:
        return Identifier(f"row_{self.axis.number}")


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
    everybody = people.of_targets(people.targets)
    tried, guessed = (_right(people, predicates, everybody, secret) for predicates in (chosen, random))
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
    some: list[Relation] = []
    for asked in (sets[start : start + _AT_ONCE] for start in range(0, len(sets), _AT_ONCE)):
        found = engine.materialise("predicates", "attacking/singling_out/find_predicates", sets=asked, **asked_of)
        some.append(
            engine.materialise("chosen", "attacking/singling_out/choose_predicates", predicates=[found], **params)
        )
        engine.drop(found)
    return engine.materialise("chosen", "attacking/singling_out/choose_predicates", predicates=some, **params)


def _against_control(
    people: TrialPeople, chosen: Relation, secret: SecretColumn, tried: Counts
) -> dict[str, tuple[Tried, Tried]] | None:
    """What succeeds on targets and on the control, of each kind, where both are as many; None without a control."""
    if people.control is None:
        return None
    most = min(people.targets, people.control)
    if most < people.targets:
        tried = _right(people, chosen, people.of_targets(most), secret)
    control = _right(people, chosen, people.of_control(most), secret)
    return {kind: (tried[kind], control[kind]) for kind in _KINDS}


def _right(people: TrialPeople, predicates: Relation, drawn: Relation, secret: SecretColumn) -> Counts:
    """How many predicates (class_no, the labels' columns, value, uses_value, kind) fit one of the people, by kind."""
    engine = people.released.engine
    found = {}
    if engine.count(predicates) and engine.count(drawn):
        budget = people.released.budget // _TIMES
        with matched(engine, predicates, people.axes, drawn, budget, by_classes=True) as matches, engine.scope():
            placed = people.placed(drawn, matches.cells, people.axes)
            params = {"predicates": matches.classes, "matches": matches.pairs, "people": placed, "secret": secret.alias}
            found = {
                kind: Tried(*counts) for kind, *counts in engine.rows("attacking/singling_out/count_right", **params)
            }
    return {kind: found.get(kind, Tried(0, 0)) for kind in _KINDS}


def column_sets(seed: int, axes: Sequence[KnownAxis]) -> list[ColumnSet]:
    """Each single column, the sensitive value's last, and sets of several: all of them, or as many as `SETS` drawn."""
    count = len(axes) + 1
    several = sorted(_drawn_sets(seed, count)) if 2**count - 1 - count > SETS else _all_sets(count)
    return [ColumnSet(places, _columns_of(places, axes)) for places in [*((i,) for i in range(count)), *several]]


def _all_sets(count: int) -> list[tuple[int, ...]]:
    return [places for size in range(2, count + 1) for places in itertools.combinations(range(count), size)]


def _drawn_sets(seed: int, count: int) -> set[tuple[int, ...]]:
    """As many sets as `SETS`, each of a size that is drawn, of 2 to all columns."""
    found: set[tuple[int, ...]] = set()
    number = 0
    while len(found) < SETS:
        number += 1
        size = 2 + draw(seed, number, "size", count - 1)
        order = _shuffled(seed, number, count)
        found.add(tuple(sorted(order[:size])))
    return found


def _shuffled(seed: int, number: int, count: int) -> list[int]:
    return sorted(range(count), key=lambda place: draw(seed, number, f"order {place}", 2**64))


def _columns_of(places: Sequence[int], axes: Sequence[KnownAxis]) -> tuple[Identifier, ...]:
    return tuple(column for place in places for column in (axes[place].columns if place < len(axes) else (_VALUE,)))


def _draw_random(people: TrialPeople, rows: Relation, sets: Sequence[ColumnSet], counts: dict[str, int]) -> Relation:
    """Random predicates, of either kind as many as were found."""
    engine, axes = people.released.engine, [AskedAxis(axis) for axis in people.axes]
    types = {"number": "BIGINT", "kind": "VARCHAR", "use_value": "BIGINT", "row_value": "BIGINT"}
    types |= {name: "BIGINT" for axis in axes for name in (axis.use.name, axis.row.name)}
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


def inference(people: TrialPeople, drawn: Relation, histograms: dict[str, Relation]) -> list[Attack]:
    """The attack on each sensitive attribute, by its histogram (class_no, value, rows), on `drawn` people."""
    engine, classes = people.released.engine, people.released.classes
    attacks = []
    with matched(engine, classes, people.axes, drawn, people.released.budget) as matches, engine.scope():
        placed = people.placed(drawn, matches.cells, people.axes)
        tried = engine.count(placed), engine.count(drawn)
        for secret in people.secrets:
            histogram = histograms[secret.name]
            guesses = engine.materialise(
                "guesses",
                "attacking/inference/guess_values",
                cells=matches.cells,
                matches=matches.pairs,
                histogram=histogram,
            )
            params = {"people": placed, "secret": secret.alias}
            pair = tried_on(engine.rows("attacking/inference/count_right", guesses=guesses, **params))
            measure = "share of guesses right"
            attack = tried_attack(
                "inference",
                secret.name,
                measure,
                pair[0],
                _guessed(people, placed, histogram, secret),
                None if people.control is None else pair,
            )
            attacks.append(attack.with_untried("people", *tried))
    return attacks


def _guessed(people: TrialPeople, placed: Relation, histogram: Relation, secret: SecretColumn) -> Tried:
    """What random guesses get right."""
    engine, tries = people.released.engine, min(people.trial.tries, people.targets)
    with drawn_rows(people.released, people.trial, tries) as draws:
        params = {"people": placed, "draws": draws, "histogram": histogram, "secret": secret.alias}
        return Tried(**engine.record("attacking/inference/count_random", **params))


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
