"""How often an attack succeeds, and how much of that is due to people being in the release.

After Giomi et al., "A Unified Framework for Quantifying Privacy Risk in Synthetic Data" (PoPETs 2023), as their
program Anonymeter computes it: a rate of successes is estimated by the centre of its Wilson score interval (Wilson,
JASA 22, 1927) of 95 %, half as wide is its error. The risk is what the rate on targets, who are in the release, has
above the rate on a control, people like them who are not: `(r - c) / (1 - c)`, of what there was to gain. Errors are
propagated to first order; risk and interval are cut to 0..1.

Attacks that are tried on people: on targets, who are in the release, and on a control of people who are not.

The three risks by which the Article 29 Working Party judges anonymization (Opinion 05/2014, WP216), singling out,
linkability and inference, are each tried on a sample of targets, on one of the control, and by random guesses
(`estimates`). A control tells what is learnt of anybody like that, in the release or not.

All that is drawn is drawn by md5 of the seed: the same for any number of threads and any order of rows. People are
read as text and compared as labels are read (`covering`); sensitive values are compared as text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.covering import KnownAxis, LabelAxis, as_text, known_axes
from ldiv_db.attacking.disclosure import Attack, Gain, gain_of
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.parts import LARGEST_SEED

#: The 97.5 % quantile of the normal distribution: of intervals of 95 %.
Z = 1.959963984540054


@dataclass(frozen=True)
class Tried:
    """How often an attack was tried, and how often it succeeded."""

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


@dataclass(frozen=True)
class ExcessRisk:
    """What a success rate has above that of a control, of what it could have, and its interval of 95 %; all 0..1."""

    value: float
    interval: list[float]


def risk_beyond(targets: Tried, control: Tried) -> ExcessRisk:
    """The risk of the targets beyond that of the control."""
    left = 1 - control.rate
    value = (targets.rate - control.rate) / left
    error = math.hypot(targets.error / left, control.error * (targets.rate - 1) / left**2)
    return ExcessRisk(min(max(value, 0.0), 1.0), _cut(value, error))


def tried_attack(
    name: str, sensitive: str | None, measure: str, tried: Tried, guessed: Tried, pair: tuple[Tried, Tried] | None
) -> Attack:
    """The attack as a report has it: nothing is promised of it.

    `guessed` is the same by random guesses; `pair` is what succeeds on targets and on as many of the control, if
    there is one.
    """
    gains: tuple[Gain, ...] = (gain_of(measure, tried.share, None),)
    figures: dict[str, Any] = {**_counts("", tried), **_counts("random_", guessed)}
    if pair:
        risk = risk_beyond(*pair) if pair[0].attempts and pair[1].attempts else None
        gains += (Gain("risk beyond the control", risk.value if risk else None, None, None),)
        figures |= {**_counts("control_", pair[1]), "risk_interval": risk.interval if risk else None}
    return Attack(name, sensitive, gains, figures)


def _counts(prefix: str, tried: Tried) -> dict[str, Any]:
    """The counts and the interval as figures."""
    counts = {"attempts": tried.attempts, "successes": tried.successes}
    return {f"{prefix}{key}": value for key, value in {**counts, "interval": tried.interval}.items()}


Table = Relation | FileRelation
#: More tries than this say nothing more of a rate.
MOST_TRIES = 100_000


@dataclass(frozen=True)
class PeopleTrial:
    """Whom attacks are tried on: so many `tries` of each kind, drawn by `seed`, on `targets` and on a `control`.

    `link_columns` are the two parts of a person that are linked; None: the known quasi-identifiers in two halves.
    """

    targets: Table
    control: Table | None = None
    link_columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    tries: int = 2_000
    seed: int = 0

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the numbers."""
        if not 1 <= self.tries <= MOST_TRIES:
            yield Problem("tries", f"takes a whole number from 1 to {MOST_TRIES:,}")
        if not 0 <= self.seed <= LARGEST_SEED:
            yield Problem("seed", f"takes a whole number from 0 to {LARGEST_SEED:,}")


@dataclass(frozen=True)
class SecretColumn:
    """A sensitive attribute as people have it: its column, and the working name of its values as text."""

    name: str
    column: Identifier
    alias: Identifier


@dataclass(frozen=True)
class AttackedRelease:
    """A release that is attacked: its classes (class_no, class_rows, the labels' columns), its rows, its axes."""

    engine: Engine
    classes: Relation
    rows: int
    axes: Sequence[LabelAxis]
    budget: int


@dataclass(frozen=True)
class TrialPeople:
    """What is known of targets and control: `axes` as they are in tables of drawn people, and `secrets`.

    `targets` and `control` are how many there are; the latter None without a control.
    """

    released: AttackedRelease
    trial: PeopleTrial
    axes: tuple[KnownAxis, ...]
    secrets: tuple[SecretColumn, ...]
    targets: int
    control: int | None

    def drawn(self, targets: int, control: int) -> Relation:
        """So many people of both tables: (person_no, control: 0 or 1, the values as text)."""
        of_targets = self._draw(self.trial.targets, targets, 0)
        if self.trial.control is None:
            return of_targets
        of_control = self._draw(self.trial.control, control, 1)
        self.released.engine.extend(of_targets, of_control)
        self.released.engine.drop(of_control)
        return of_targets

    def of_targets(self, most: int) -> Relation:
        """So many targets."""
        return self._draw(self.trial.targets, most, 0)

    def of_control(self, most: int) -> Relation:
        """So many of the control, marked as such."""
        return self._draw(self.trial.control or self.trial.targets, most, 1)

    def _draw(self, table: Table, most: int, control: int) -> Relation:
        engine = self.released.engine
        names = {column.name.lower(): column.name for column in columns_of(engine, table)}
        known = [replace(axis, known=Identifier(names[axis.axis.name.lower()])) for axis in self.axes]
        secrets = [replace(secret, column=Identifier(names[secret.name.lower()])) for secret in self.secrets]
        with read_exactly(engine, as_text(engine, table)) as read:
            return engine.materialise(
                "drawn",
                "attacking/trials/draw_people",
                people=read,
                axes=known,
                secrets=secrets,
                seed=Value(self.trial.seed),
                most=Value(most),
                control=Value(control),
            )

    def placed(self, people: Relation, cells: Relation, axes: Sequence[KnownAxis]) -> Relation:
        """Drawn people with the number of their combination of known values: (person_no, control, cell_no, …)."""
        params = {"people": people, "cells": cells, "axes": axes, "secrets": self.secrets}
        return self.released.engine.materialise("placed", "attacking/trials/place_people", **params)


def people_of(released: AttackedRelease, trial: PeopleTrial, sensitive: Sequence[str]) -> TrialPeople:
    """The people of a trial; raises PolicyError for columns that a table of theirs lacks, or of another type."""
    engine = released.engine
    columns = columns_of(engine, trial.targets)
    axes = known_axes(released.axes, columns, "targets")
    problems = list(_missing(engine, trial.targets, "targets", sensitive))
    if trial.control is not None:
        problems += _missing(engine, trial.control, "control", [*(axis.axis.name for axis in axes), *sensitive])
    if problems:
        raise PolicyError(problems)
    _refuse_other_types(engine, trial, axes)
    control = None if trial.control is None else _count(engine, trial.control)
    read = tuple(replace(axis, known=axis.value, number=number) for number, axis in enumerate(axes, 1))
    secrets = tuple(SecretColumn(name, Identifier(name), Identifier(f"s{i}")) for i, name in enumerate(sensitive, 1))
    return TrialPeople(released, trial, read, secrets, _count(engine, trial.targets), control)


def _missing(engine: Engine, table: Table, key: str, names: Sequence[str]) -> Iterator[Problem]:
    known = [column.name for column in columns_of(engine, table)]
    lower = {name.lower() for name in known}
    for name in names:
        if name.lower() not in lower:
            yield Problem(key, f"has no column {name}", nearest(name, known))


def _refuse_other_types(engine: Engine, trial: PeopleTrial, axes: Sequence[KnownAxis]) -> None:
    """Raise PolicyError if people of the control are not compared as the targets are."""
    if trial.control is None:
        return
    found = known_axes([axis.axis for axis in axes], columns_of(engine, trial.control), "control")
    others = [axis for axis, other in zip(axes, found, strict=True) if axis.kind != other.kind]
    if others:
        what = "is of another type than among the targets"
        raise PolicyError([Problem("control", f"{axis.axis.name} {what}") for axis in others])


def _count(engine: Engine, table: Table) -> int:
    return int(engine.scalar("database/count_rows", rows=table))


def draw(seed: int, number: int, what: str, below: int) -> int:
    """A number from 0 to `below` - 1, by md5."""
    digest = hashlib.md5(f"{seed}:{number}:{what}".encode(), usedforsecurity=False).hexdigest()
    return int(digest, base=16) % below


@contextmanager
def drawn_rows(released: AttackedRelease, trial: PeopleTrial, count: int) -> Iterator[Relation]:
    """Two rows of the release, by their places in it, for each of so many numbers: (number, first_row, second_row)."""
    names = ("first_row", "second_row")
    rows = [
        (number, *(draw(trial.seed, number, name, released.rows) for name in names))
        for number in range(1, (count if released.rows else 0) + 1)
    ]
    draws = released.engine.load("draws", dict.fromkeys(["number", *names], "BIGINT"), rows)
    yield draws
    released.engine.drop(draws)


def tried_on(counts: Sequence[tuple[int, int, int]]) -> tuple[Tried, Tried]:
    """What succeeded on targets and on the control, of (control, attempts, successes)."""
    found = {control: Tried(attempts, successes) for control, attempts, successes in counts}
    return found.get(0, Tried(0, 0)), found.get(1, Tried(0, 0))
