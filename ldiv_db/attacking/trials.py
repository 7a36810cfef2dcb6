"""Attacks that are tried on people: on targets, who are in the release, and on a control of people who are not.

A control tells what is learnt of anybody like that, in the release or not. All that is drawn is drawn by md5 of the
seed: the same for any number of threads and any order of rows. People are read as text and compared as labels are read
(`covering`); sensitive values are compared as text.

Inference guesses the sensitive value of somebody whose quasi-identifiers are known: the most frequent value among the
rows of all classes that cover the person; whom no class covers gets the most frequent value of the release. It is right
if it is the person's own value (Anonymeter's inference attack takes the value of the nearest row in its place, and of
numbers one that differs by 5 % for right). The random guess is the value of a row of the release drawn at random.
Nothing is promised, not even where the shares of values in classes are bounded: people of one class may fit other
classes as well, each other ones, and all be guessed right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ldiv_db.attacking.covering import KnownAxis, LabelAxis, known_axes
from ldiv_db.attacking.gains import Attack, Tried, tried_attack
from ldiv_db.attacking.matching import matched
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem, nearest, refuse
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.parts import LARGEST_SEED

Table = Relation | FileRelation
#: So many targets, people of a control, and predicates are tried unless it is said.
TRIES = 2_000
#: More tries than this say nothing more of a rate.
MOST_TRIES = 100_000


@dataclass(frozen=True)
class PeopleTrial:
    """People that attacks are tried on: so many `tries` of each kind, drawn by `seed`, on `targets` and on a `control`.

    `link_columns` are the two parts of a person that are linked; None: the known quasi-identifiers in two halves.
    """

    targets: Table
    control: Table | None = None
    link_columns: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    tries: int = TRIES
    seed: int = 0

    def problems(self) -> Iterator[Problem]:
        """Problems of the numbers."""
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

    def share(self, found: int, of_row: int = 1) -> Fraction | None:
        """The share of the rows that so many are, or of their cells, `of_row` in each."""
        return Fraction(found, self.rows * of_row) if self.rows else None


@dataclass(frozen=True)
class TrialPeople:
    """People of targets and control: `axes` as they are in tables of drawn people, and `secrets`.

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
        known = [replace(axis, known=Identifier(names[axis.name.lower()])) for axis in self.axes]
        secrets = [replace(secret, column=Identifier(names[secret.name.lower()])) for secret in self.secrets]
        with read_exactly(engine, table) as read:
            return engine.materialise(
                "drawn",
                "attacking/trials/draw_people",
                people=read,
                axes=known,
                secrets=secrets,
                seed=self.trial.seed,
                most=most,
                control=control,
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
        problems += _missing(engine, trial.control, "control", [*(axis.name for axis in axes), *sensitive])
    refuse(problems)
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
    found = known_axes(axes, columns_of(engine, trial.control), "control")
    others = [axis for axis, other in zip(axes, found, strict=True) if axis.kind != other.kind]
    if others:
        what = "is of another type than among the targets"
        raise PolicyError([Problem("control", f"{axis.name} {what}") for axis in others])


def _count(engine: Engine, table: Table) -> int:
    return int(engine.scalar("database/count_rows", rows=table))


def draw(seed: int, number: int, what: str, below: int) -> int:
    """A number from 0 to `below` - 1, by md5."""
    digest = hashlib.md5(f"{seed}:{number}:{what}".encode(), usedforsecurity=False).hexdigest()
    return int(digest, base=16) % below


def guessed_at_random(people: TrialPeople, template: str, /, **params: object) -> Tried:
    """The successes of random guesses, as the template counts them: of each by two rows of the release drawn for it."""
    released, trial, names = people.released, people.trial, ("first_row", "second_row")
    engine, count = released.engine, min(trial.tries, people.targets) if released.rows else 0
    rows = [
        (number, *(draw(trial.seed, number, name, released.rows) for name in names)) for number in range(1, count + 1)
    ]
    draws = engine.load("draws", dict.fromkeys(["number", *names], "BIGINT"), rows)
    found = Tried(**engine.record(template, draws=draws, **params))
    engine.drop(draws)
    return found


def tried_on(counts: Sequence[tuple[int, int, int]]) -> tuple[Tried, Tried]:
    """The successes on targets and on the control, of (control, attempts, successes)."""
    found = {control: Tried(attempts, successes) for control, attempts, successes in counts}
    return found.get(0, Tried(0, 0)), found.get(1, Tried(0, 0))


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
            template = "attacking/inference/count_random"
            guessed = guessed_at_random(people, template, histogram=histogram, **params)
            compared = None if people.control is None else pair
            attack = tried_attack("inference", secret.name, "share of guesses right", pair[0], guessed, compared)
            attacks.append(attack.with_untried("people", *tried))
    return attacks
