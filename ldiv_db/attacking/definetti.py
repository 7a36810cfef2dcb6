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
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.templates import FileRelation, Identifier, NamedAfter, Relation
from ldiv_db.recoding.encoded import Renamed

#: How often the likelihoods are learned; more rounds change few guesses.
ROUNDS = 3
#: A slot of a person in a class costs as many pairs: each round looks at it several times for each value.
SLOT = 2
#: A person in beliefs, which are whole numbers: sums do not depend on the order of rows.
PERSON = 10**6
#: The weight of a combination's likeliest value; what is less likely by more has the weight 1.
MOST = 10**9


@dataclass(frozen=True)
class Feature:
    """A quasi-identifier that is learned from: the known column, its kind, and its value and code among the cells."""

    known: Identifier
    kind: str
    value: Identifier
    place: int

    code = NamedAfter("code_{0.place}")
    table = NamedAfter("l_{0.place}")

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
    measure = "share of people guessed right"
    if not guessed.finished:
        untold = Attack("definetti", target.sensitive, (gain_of(measure, None, None),))
        return untold.with_untried("people", 0, target.engine.count(guessed.people))
    judged = _judged(target, guessed)
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


def _judged(target: AttackedAttribute, guessed: GuessedPeople) -> dict[str, Any]:
    """Counts the guesses that are right, of those that learned and of those that did not."""
    flow = EngineFlow(target.engine, "attacking/definetti", cells=guessed.cells, features=guessed.features, unit=PERSON)
    with flow.scope():
        flow.step("numbers", "number_values", totals=target.classes.totals)
        flow.step("shown", "list_values", histogram=target.histogram)
        _spread(flow, guessed)
        _learn(flow)
        with read_exactly(target.engine, guessed.people) as people:
            known = {"people": people, "features": guessed.marks, "sensitive": target.sensitive}
            flow.step("truth", "list_truth", **known)
        return flow.record("judge_guesses", beliefs=flow["sums"], unit=UNIT)


def _spread(flow: EngineFlow, guessed: GuessedPeople) -> None:
    """Makes the `slots` of people in classes; of equal classes one stands for all."""
    if guessed.slots is not None:
        flow.know(slots=guessed.slots)
        return
    shown = flow["shown"]
    flow.step("merged", "merge_classes", classes=guessed.classes, cells_of_values=shown, labels=guessed.labels)
    flow.step("slots", "list_slots", pairs=guessed.pairs)
    by_cell = flow.engine.group("by_cell", flow["slots"], "cell_no", units=("max", "units"))
    for _ in range(2):
        _scale(flow, "slots", flow["merged"], ["class_no"])
        _scale(flow, "slots", by_cell, ["cell_no"])


def _learn(flow: EngineFlow) -> None:
    """Makes beliefs (cell_no, value_no, units) in combinations: `chances` by the shares of classes, learned `sums`."""
    flow.step("codes", "number_codes")
    in_class = flow.engine.group("in_class", flow["slots"], "class_no", units=("sum", "units"))
    flow.step("by_value", "sum_beliefs", slots=in_class, keys=["class_no"])
    flow.know(sums=flow.step("chances", "sum_beliefs", keys=["cell_no"]))
    flow.know(most=MOST, values=(flow.engine.most(flow["shown"], "value_no") or 0) + 1)
    for _ in range(ROUNDS):
        with flow.scope("sums"):
            flow.step("likelihoods", "learn_likelihoods")
            flow.step("weights", "weigh_values")
            flow.step("sums", "weigh_beliefs")
            _scale(flow, "sums", flow["by_value"], ["class_no", "value_no"], added=["cell_no", "value_no"])


def _scale(flow: EngineFlow, name: str, targets: Relation, keys: Sequence[str], added: Sequence[str] = ()) -> None:
    """Scales units so that those with equal keys add up to their target, or `added`; what they were is dropped."""
    given = flow[name]
    flow.step(name, "scale_units", given=given, targets=targets, keys=keys, added=added)
    flow.engine.drop(given)


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
        flow = EngineFlow(engine, "attacking/definetti", published=published, classes=classes, cells=cells, group=group)
        slots = flow.step("slots", "list_group_slots", features=marks, unit=PERSON)
    yield GuessedPeople(people, marks[: len(names)], marks, cells, slots=slots)
    engine.drop(cells, slots)
