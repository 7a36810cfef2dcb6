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
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.attacking.base import ABOVE, UNDECIDED, AttackedAttribute, AttackedTable, Attacker, Verdict
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.covering import TEXT, KnownAxis
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of
from ldiv_db.attacking.matching import Matches
from ldiv_db.attacking.question import Knowledge
from ldiv_db.auditing.counting import Counted
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import Problem
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.quasi_identifiers import Hierarchy

_FOLDER = "attacking/definetti"
#: How often the likelihoods are learned; more rounds change few guesses.
ROUNDS = 3
#: A slot of a person in a class costs as many pairs: each round looks at it several times for each value.
SLOT = 2
#: A person in beliefs, which are whole numbers: sums do not depend on the order of rows.
PERSON_UNITS = 10**6
#: The weight of a combination's likeliest value; what is less likely by more has the weight 1.
MOST = 10**9


class DeFinetti(Attacker):
    """Values guessed by what the release teaches, beside guesses that learn nothing.

    Nothing is promised of it: what l equally frequent values of a class go with is told by other classes.
    """

    names = ("definetti",)
    key = people = "definetti"
    reads_labels = True
    one_value = True
    place = 7
    slow_if_wide = True
    words: ClassVar = {
        "by_chance": "right by chance",
        "by_shares": "right by the shares of a class",
        "by_the_table": "right by the most frequent value of the table",
    }

    @classmethod
    def needs_policy(cls, columns: Columns) -> bool:
        return columns.pair is None and super().needs_policy(columns)

    @classmethod
    def problems(cls, engine: Engine, columns: Columns, known: Knowledge) -> Iterator[Problem]:
        names = [*columns.sensitive, *(columns.quasi_identifiers if columns.pair else ())]
        needed = [("definetti", name) for name in names]
        yield from missing_columns(engine, known.people["definetti"], needed, "table of people")
        if not columns.quasi_identifiers:
            yield Problem("qi", "is missing: the attack has nothing to learn from")

    def __init__(self, table: AttackedTable) -> None:
        """Learns from combinations `cells` (cell_no, people, their values) of `features`, told apart by `marks`.

        These are the features, and the group where it is known. People are where labels cover them, or in the groups of
        an anatomised table.
        """
        super().__init__(table)
        self.true = table.known.people["definetti"]
        self.matches: Matches | None = None
        self.slots: Relation | None = None
        self.marks: tuple[KnownAxis, ...]
        self.features: tuple[KnownAxis, ...]
        if table.columns.pair is None:
            self.matches = table.matches("definetti", SLOT)
            self.cells = self.matches.cells
            self.features = self.marks = self.matches.prefixes.axes
        else:
            self._by_groups(table.first, table.columns.quasi_identifiers)

    def _by_groups(self, first: Counted, names: Sequence[str]) -> None:
        """The `slots` (class_no, cell_no, value_no 0, units) of an anatomised table, which shows quasi-identifiers.

        If the people have the column of groups too, they are guessed in their groups, otherwise those of equal
        quasi-identifiers alike.
        """
        engine, group = self.table.engine, first.subject.renamed[0]
        grouped = group.column.name.lower() in {column.name.lower() for column in columns_of(engine, self.true)}
        columns = [*map(Identifier, names), *([group.column] if grouped else [])]
        self.marks = tuple(
            KnownAxis(column.name, (), Hierarchy(), known=column, kind=TEXT, value=Identifier(f"v{i}"), number=i)
            for i, column in enumerate(columns, 1)
        )
        self.features = self.marks[: len(names)]
        with read_exactly(engine, first.subject.table) as published:
            flow = EngineFlow(
                engine, _FOLDER, published=published, classes=first.listed, group=group, unit=PERSON_UNITS
            )
            self.cells = flow.step(
                "cells", "attacking/covering/list_cells", people=published, axes=self.marks, person=None
            )
            self.slots = flow.step("slots", "list_group_slots", features=self.marks)
            self.table.made += [self.cells, self.slots]

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        measure = "share of people guessed right"
        if self.matches and not self.matches.finished:
            untold = Attack("definetti", target.sensitive, (gain_of(measure, None, None),))
            yield untold.with_untried("people", 0, target.engine.count(self.true))
            return
        judged = self._judged(target)
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
        yield Attack("definetti", target.sensitive, (gain_of(measure, share, None),), figures)

    @classmethod
    def verdict(cls, attack: Attack, promised: float | None, no_bound: str, threshold: float) -> Verdict:
        """As of others; but of a rate above the promise some would be as high of anybody else."""
        found = super().verdict(attack, promised, no_bound, threshold)
        if found.verdict != ABOVE:
            return found
        why = "without a control nobody can tell how much of the rest is due to being in the release"
        why = f"{attack.figures['by_shares']:.3g} by the shares of classes alone; {why}"
        return replace(found, verdict=UNDECIDED, why=why)

    def _judged(self, target: AttackedAttribute) -> dict[str, Any]:
        """Counts the guesses that are right, of those that learned and of those that did not."""
        flow = EngineFlow(target.engine, _FOLDER, cells=self.cells, features=self.features, unit=PERSON_UNITS)
        with flow.scope():
            flow.step("numbers", "number_values", totals=target.classes.totals)
            flow.step("shown", "list_values", histogram=target.histogram)
            flow.know(slots=self.slots)
            if self.matches:
                _spread(flow, self.matches, self.table.classes)
            _learn(flow)
            with read_exactly(target.engine, self.true) as people:
                flow.step("truth", "list_truth", people=people, features=self.marks, sensitive=target.sensitive)
            return flow.record("judge_guesses", beliefs=flow["sums"], unit=UNIT)


def _spread(flow: EngineFlow, matches: Matches, classes: Relation) -> None:
    """Makes the `slots` of people in classes; of equal classes one stands for all."""
    labels = [column for axis in matches.prefixes.axes for column in axis.columns]
    flow.step("merged", "merge_classes", classes=classes, cells_of_values=flow["shown"], labels=labels)
    flow.step("slots", "list_slots", pairs=matches.pairs)
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
