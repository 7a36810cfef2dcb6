"""The deFinetti attack: what a release itself teaches of its values, used on people within their classes.

Kifer, "Attacks on Privacy and deFinetti's Theorem" (SIGMOD 2009): which quasi-identifiers go with which sensitive
values is learned from all classes together, and told again within each. First every assignment of a class's values to
its people is as likely. Then, for some rounds, naive Bayes learns `P(quasi-identifier | value)` from these beliefs, and
beliefs become the class's values weighed by it, scaled so that everybody has one value and the class the values that it
shows. Each person's likeliest value is guessed. People of equal quasi-identifiers are one combination, guessed alike.

Where labels cover more people than classes have rows, people are spread over the classes that cover them, by iterative
proportional fitting. An anatomised release shows who is in which group. True values serve the judge alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.covering import KnownAxis
from ldiv_db.attacking.disclosure import AttackedAttribute
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of
from ldiv_db.attacking.matching import Matches
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.templates import FileRelation, Identifier, NamedAfter, Relation, Value
from ldiv_db.recoding.encoded import Renamed

#: How often the likelihoods are learned; more rounds change few guesses.
ROUNDS = 3
#: A slot of a person in a class costs as many pairs: each round looks at it several times for each value.
SLOT = 2
#: A person in beliefs, which are whole numbers: sums do not depend on the order of rows.
PERSON = 10**6
#: The weight of a combination's likeliest value; what is less likely by more has the weight 1.
MOST = 10**9
_CLASS, _CELL, _VALUE = (Identifier(name) for name in ("class_no", "cell_no", "value_no"))


@dataclass(frozen=True)
class Feature:
    """A quasi-identifier that is learned from: the known column, its kind, and its value and code among the cells."""

    known: Identifier
    kind: str
    value: Identifier
    number: int

    @property
    def place(self) -> Value:
        return Value(self.number)

    code = NamedAfter("code_{0.number}")
    table = NamedAfter("l_{0.number}")

    @classmethod
    def of(cls, axes: Sequence[KnownAxis]) -> list[Feature]:
        """The features of the quasi-identifiers that people are matched by."""
        return [cls(axis.known, axis.kind, axis.value, number) for number, axis in enumerate(axes, 1)]


@dataclass(frozen=True)
class GuessedPeople:
    """The people that the attack learns from and guesses: `cells` (cell_no, people, their values), where each may be.

    `people` is their table, with the true values. `features` are learned from; people are told apart by `marks`, which
    are these, and the group where it is known. They are where labels cover them (`pairs`, as Matches has them), or
    in the `slots` (class_no, cell_no, value_no 0, units) of an anatomised table.
    """

    people: Relation | FileRelation
    features: Sequence[Feature]
    marks: Sequence[Feature]
    cells: Relation
    pairs: Relation | None = None
    slots: Relation | None = None
    classes: Relation | None = None
    labels: Sequence[Identifier] = ()
    finished: bool = True


def by_labels(people: Relation | FileRelation, matches: Matches, classes: Relation) -> GuessedPeople:
    """The people of a table, in the classes whose labels cover them."""
    labels = [column for axis in matches.prefixes.axes for column in axis.columns]
    features = Feature.of(matches.prefixes.axes)
    places = GuessedPeople(people, features, features, matches.cells, matches.pairs, classes=classes, labels=labels)
    return replace(places, finished=matches.finished)


def definetti(target: AttackedAttribute, guessed: GuessedPeople) -> Attack:
    """The attack: values guessed by what the release teaches, beside guesses that learn nothing.

    Nothing is promised of it: what l equally frequent values of a class go with is told by other classes.
    """
    engine, measure = target.engine, "share of people guessed right"
    if not guessed.finished:
        untold = Attack("definetti", target.sensitive, (gain_of(measure, None, None),))
        return untold.with_untried("people", 0, engine.count(guessed.people))
    with engine.scope():
        numbers = engine.materialise("numbers", "attacking/definetti/number_values", totals=target.classes.totals)
        shown = engine.materialise(
            "shown", "attacking/definetti/list_values", histogram=target.histogram, numbers=numbers
        )
        slots, shown = _slots(engine, guessed, shown)
        judged = _judged(engine, target.sensitive, guessed, numbers, slots, shown)
    people, matched = judged["people"], judged["people"] - judged["no_class"]
    figures = {
        "people": people,
        "no_class": judged["no_class"],
        "rounds": ROUNDS,
        "by_chance": mean_of(judged["chance_units"], matched),
        "by_shares": judged["guessed_by_shares"] / matched if matched else None,
        "by_the_table": judged["guessed_by_table"] / matched if matched else None,
    }
    share = Fraction(judged["guessed"], matched) if matched else None
    return Attack("definetti", target.sensitive, (gain_of(measure, share, None),), figures)


def _judged(
    engine: Engine, sensitive: str, guessed: GuessedPeople, numbers: Relation, slots: Relation, shown: Relation
) -> dict[str, Any]:
    """Counts the guesses that are right, of those that learned and of those that did not."""
    chances, beliefs = _learned(engine, guessed, slots, shown)
    params: dict[str, Any] = {"cells": guessed.cells, "numbers": numbers, "features": guessed.marks}
    with read_exactly(engine, guessed.people) as people:
        params |= {"people": people, "sensitive": Identifier(sensitive)}
        truth = engine.materialise("truth", "attacking/definetti/list_truth", **params)
    return engine.record(
        "attacking/definetti/judge_guesses", truth=truth, chances=chances, beliefs=beliefs, unit=Value(UNIT)
    )


def _slots(engine: Engine, guessed: GuessedPeople, shown: Relation) -> tuple[Relation, Relation]:
    """The slots of people in classes, and the values of these classes; of equal classes one stands for all."""
    if guessed.slots is not None:
        return guessed.slots, shown
    person = {"unit": Value(PERSON)}
    merged = engine.materialise(
        "merged",
        "attacking/definetti/merge_classes",
        classes=guessed.classes,
        cells_of_values=shown,
        labels=guessed.labels,
        **person,
    )
    slots = engine.materialise(
        "slots", "attacking/definetti/list_slots", pairs=guessed.pairs, cells=guessed.cells, merged=merged, **person
    )
    by_cell = engine.group("by_cell", slots, "cell_no", units=("max", "units"))
    for _ in range(2):
        slots = _scaled(engine, slots, merged, [_CLASS])
        slots = _scaled(engine, slots, by_cell, [_CELL])
    return slots, shown


def _learned(engine: Engine, guessed: GuessedPeople, slots: Relation, shown: Relation) -> tuple[Relation, Relation]:
    """Beliefs in every combination (cell_no, value_no, units) by the shares of classes, and after learning."""
    features = {"features": guessed.features}
    codes = engine.materialise("codes", "attacking/definetti/number_codes", cells=guessed.cells, **features)
    in_class = engine.group("in_class", slots, "class_no", units=("sum", "units"))
    by_value, chances = (
        engine.materialise("beliefs", "attacking/definetti/sum_beliefs", slots=some, shown=shown, keys=[key])
        for some, key in ((in_class, _CLASS), (slots, _CELL))
    )
    sums, values = chances, Value((engine.most(shown, "value_no") or 0) + 1)
    for _ in range(ROUNDS):
        with engine.scope() as scope:
            params: dict[str, Any] = {"sums": sums, "codes": codes, **features}
            learned = engine.materialise(
                "likelihoods", "attacking/definetti/learn_likelihoods", unit=Value(PERSON), **params
            )
            params |= {"likelihoods": learned, "most": Value(MOST), "values": values}
            weights = engine.materialise("weights", "attacking/definetti/weigh_values", **params)
            params = {"slots": slots, "shown": shown, "weights": weights, "values": values}
            told = engine.materialise("told", "attacking/definetti/weigh_beliefs", **params)
            sums = scope.keep(_scaled(engine, told, by_value, [_CLASS, _VALUE], added=[_CELL, _VALUE]))
    return chances, sums


def _scaled(
    engine: Engine, given: Relation, targets: Relation, keys: Sequence[Identifier], added: Sequence[Identifier] = ()
) -> Relation:
    """The units scaled so that those with equal keys add up to their target, or `added`; what was given is dropped."""
    params: dict[str, Any] = {"given": given, "targets": targets, "keys": keys, "added": added}
    scaled = engine.materialise("scaled", "attacking/definetti/scale_units", **params)
    engine.drop(given)
    return scaled


@contextmanager
def by_groups(
    engine: Engine,
    table: Relation | FileRelation,
    classes: Relation,
    group: Renamed,
    names: Sequence[str],
    people: Relation | FileRelation,
) -> Iterator[GuessedPeople]:
    """The people of an anatomised table, which shows their quasi-identifiers `names` and groups.

    `classes` are its groups with the column `group` (as published, and its name there); `people` are for the judge:
    if they have that column too, people are guessed in their groups, otherwise those of equal quasi-identifiers alike.
    """
    grouped = group.column.name.lower() in {column.name.lower() for column in columns_of(engine, people)}
    columns = [*map(Identifier, names), *([group.column] if grouped else [])]
    marks = [Feature(column, "text", Identifier(f"v{number}"), number) for number, column in enumerate(columns, 1)]
    with read_exactly(engine, table) as published:
        cells = engine.materialise("cells", "attacking/covering/list_cells", people=published, axes=marks)
        slots = engine.materialise(
            "slots",
            "attacking/definetti/list_group_slots",
            published=published,
            classes=classes,
            cells=cells,
            features=marks,
            group=group,
            unit=Value(PERSON),
        )
    yield GuessedPeople(people, marks[: len(names)], marks, cells, slots=slots)
    engine.drop(cells, slots)
