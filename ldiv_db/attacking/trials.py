"""Attacks that are tried on people: on targets, who are in the release, and on a control of people who are not.

A control tells what is learnt of anybody like that, in the release or not. All that is drawn is drawn by md5 of the
seed: the same for any number of threads and any order of rows. People are read as text and compared as labels are read
(`covering`); sensitive values are compared as text.

Rates follow Giomi et al., "A Unified Framework for Quantifying Privacy Risk in Synthetic Data" (PoPETs 2023), as their
program Anonymeter computes them: a rate of successes is estimated by the centre of its Wilson score interval (Wilson,
JASA 22, 1927) of 95 %, half as wide is its error. The risk is what the rate on targets, who are in the release, has
above the rate on a control, people like them who are not: `(r - c) / (1 - c)`, of what there was to gain. Errors are
propagated to first order; risk and interval are cut to 0..1.

Inference guesses the sensitive value of somebody whose quasi-identifiers are known: the most frequent value among the
rows of all classes that cover the person; whom no class covers gets the most frequent value of the release. It is right
if it is the person's own value (Anonymeter's inference attack takes the value of the nearest row in its place, and of
numbers one that differs by 5 % for right). The random guess is the value of a row of the release drawn at random.
Nothing is promised, not even where the shares of values in classes are bounded: people of one class may fit other
classes as well, each other ones, and all be guessed right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.base import AttackedTable
from ldiv_db.attacking.covering import KnownAxis, known_axes
from ldiv_db.attacking.gains import Attack, Gain, gain_of
from ldiv_db.attacking.matching import matched
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.utility import draw
from ldiv_db.recoding.encoded import Renamed

#: The 97.5 % quantile of the normal distribution: of intervals of 95 %.
Z = 1.959963984540054


@dataclass(frozen=True)
class Tried:
    """The attempts of an attack, and those that succeeded."""

    attempts: int
    successes: int

    @property
    def share(self) -> Fraction | None:
        return Fraction(self.successes, self.attempts) if self.attempts else None

    @property
    def rate(self) -> float:
        """The centre of the Wilson interval."""
        return (self.successes + Z * Z / 2) / (self.attempts + Z * Z)

    @property
    def error(self) -> float:
        """Half the width of the Wilson interval; half of all that a rate may be if nothing was tried."""
        if not self.attempts:
            return 0.5
        spread = self.successes * (self.attempts - self.successes) / self.attempts + Z * Z / 4
        return Z / (self.attempts + Z * Z) * math.sqrt(spread)

    @property
    def interval(self) -> list[float]:
        """The Wilson interval of 95 %: from 0 if nothing succeeded, to 1 if all did, which rounding would miss."""
        low, high = _cut(self.rate, self.error)
        return [low if self.successes else 0.0, high if self.successes < self.attempts else 1.0]


def _cut(value: float, error: float) -> list[float]:
    return [min(max(bound, 0.0), 1.0) for bound in (value - error, value + error)]


def risk_beyond(targets: Tried, control: Tried) -> tuple[float, list[float]]:
    """The risk of the targets beyond that of the control, of what it could be above, and its interval of 95 %; 0..1."""
    left = 1 - control.rate
    value = (targets.rate - control.rate) / left
    error = math.hypot(targets.error / left, control.error * (targets.rate - 1) / left**2)
    return min(max(value, 0.0), 1.0), _cut(value, error)


def tried_attack(
    name: str, sensitive: str | None, measure: str, tried: Tried, guessed: Tried, pair: tuple[Tried, Tried] | None
) -> Attack:
    """The attack as a report has it: nothing is promised of it.

    `guessed` is the same by random guesses; `pair` is what succeeds on targets and on as many of the control, if
    there is one.
    """
    gains: tuple[Gain, ...] = (gain_of(measure, tried.share, None),)
    figures = _counts("", tried) | _counts("random_", guessed)
    if pair:
        risk, interval = risk_beyond(*pair) if pair[0].attempts and pair[1].attempts else (None, None)
        gains += (Gain("risk beyond the control", risk, None, None),)
        figures |= {**_counts("control_", pair[1]), "risk_interval": interval}
    return Attack(name, sensitive, gains, figures)


def _counts(prefix: str, tried: Tried) -> dict[str, Any]:
    return {f"{prefix}{name}": getattr(tried, name) for name in ("attempts", "successes", "interval")}


# -- people --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrialPeople:
    """People of targets and control: `axes` as they are in tables of drawn people, and their sensitive columns.

    These `secrets` have working names there. `targets` and `control` are how many people there are, the latter None
    without a control.
    """

    table: AttackedTable
    axes: tuple[KnownAxis, ...]
    secrets: tuple[Renamed, ...]
    targets: int
    control: int | None

    @classmethod
    def among(cls, table: AttackedTable) -> TrialPeople:
        """The people of a trial; raises PolicyError for columns that a table of theirs lacks, or of another type."""
        engine, people, sensitive = table.engine, table.known.people, list(table.counts)
        targets, control = people["targets"], people.get("control")
        axes = known_axes(table.axes, columns_of(engine, targets), "targets")
        problems = missing_columns(engine, targets, [("targets", name) for name in sensitive], "table")
        if control is not None:
            needed = [("control", name) for name in (*(axis.name for axis in axes), *sensitive)]
            problems += missing_columns(engine, control, needed, "table")
        refuse(problems)
        if control is not None:  # whose people must be compared as the targets are
            compared = zip(axes, known_axes(axes, columns_of(engine, control), "control"), strict=True)
            what = "is of another type than among the targets"
            refuse(Problem("control", f"{axis.name} {what}") for axis, other in compared if axis.kind != other.kind)
        read = tuple(replace(axis, known=axis.value, number=number) for number, axis in enumerate(axes, 1))
        secrets = tuple(Renamed(Identifier(name), Identifier(f"s{i}")) for i, name in enumerate(sensitive, 1))
        counts = (engine.count(targets), None if control is None else engine.count(control))
        return cls(table, read, secrets, *counts)

    @property
    def seed(self) -> int:
        return self.table.known.asked.seed

    @property
    def tries(self) -> int:
        return self.table.known.asked.tries

    def drawn(self) -> Relation:
        """As many people of both tables as are tried: (person_no, control: 0 or 1, the values as text)."""
        drawn = self.drawn_of("targets", self.tries)
        if self.control is not None:
            of_control = self.drawn_of("control", self.tries)
            self.table.engine.extend(drawn, of_control)
            self.table.engine.drop(of_control)
        return drawn

    def drawn_of(self, key: str, most: int, all: bool = False) -> Relation:
        """So many of the targets or of the control, the latter marked as such; `all` of them without numbers."""
        engine, people = self.table.engine, self.table.known.people[key]
        names = {column.name.lower(): column.name for column in columns_of(engine, people)}
        known = [replace(axis, known=Identifier(names[axis.name.lower()])) for axis in self.axes]
        secrets = [replace(secret, column=Identifier(names[secret.column.name.lower()])) for secret in self.secrets]
        params = {"axes": known, "secrets": secrets, "seed": self.seed, "most": most, "all": all}
        with read_exactly(engine, people) as read:
            template, control = "attacking/trials/draw_people", int(key == "control")
            return engine.materialise("drawn", template, people=read, control=control, **params)

    def placed(self, people: Relation, cells: Relation, axes: Sequence[KnownAxis]) -> Relation:
        """Drawn people with the number of their combination of known values: (person_no, control, cell_no, …)."""
        flow = EngineFlow(self.table.engine, "attacking/trials", people=people, secrets=self.secrets)
        return flow.step("placed", "place_people", cells=cells, axes=axes)

    def guessed(self, flow: EngineFlow) -> Tried:
        """The successes of random guesses, as an attack counts them: of each by two rows of the release."""
        engine, rows, names = self.table.engine, self.table.rows, ("first_row", "second_row")
        count = min(self.tries, self.targets) if rows else 0
        listed = [(number, *(draw(self.seed, number, name, rows) for name in names)) for number in range(1, count + 1)]
        draws = engine.load("draws", dict.fromkeys(["number", *names], "BIGINT"), listed)
        found = Tried(**flow.record("count_random", draws=draws))
        engine.drop(draws)
        return found


def tried_on(counts: Sequence[tuple[int, int, int]]) -> tuple[Tried, Tried]:
    """The successes on targets and on the control, of (control, attempts, successes)."""
    found = {control: Tried(attempts, successes) for control, attempts, successes in counts}
    return found.get(0, Tried(0, 0)), found.get(1, Tried(0, 0))


def inference(people: TrialPeople, drawn: Relation) -> Iterator[Attack]:
    """The attack on each sensitive attribute, on `drawn` people."""
    table, engine = people.table, people.table.engine
    with matched(engine, table.classes, people.axes, drawn, table.budget) as matches, engine.scope():
        placed = people.placed(drawn, matches.cells, people.axes)
        tried = engine.count(placed), engine.count(drawn)
        known = {"cells": matches.cells, "matches": matches.pairs, "people": placed}
        for secret in people.secrets:
            histogram = table.histograms[secret.column.name]
            flow = EngineFlow(engine, "attacking/inference", **known, histogram=histogram, secret=secret.alias)
            flow.step("guesses", "guess_values")
            pair = tried_on(flow.rows("count_right"))
            compared, guessed = None if people.control is None else pair, people.guessed(flow)
            attack = tried_attack("inference", secret.column.name, "share of guesses right", pair[0], guessed, compared)
            yield attack.with_untried("people", *tried)
