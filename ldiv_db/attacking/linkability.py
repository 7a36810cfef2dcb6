"""Linkability: two parts of what is known of somebody, in different hands, are put together by means of the release.

One attacker knows some quasi-identifiers of a person, another one others. Each looks for the classes nearest to the
part: of those whose labels cover it the ones whose labels say most, by the share of the known values that a label
covers, summed over the part's columns. The parts are linked if exactly one class is among the nearest of both.
(Anonymeter's linkability attack takes the nearest row for each part, and links if it is the same: here a row is
nowhere nearer than the rest of its class.) The random guess draws two rows of the release, which link if they are of
one class.

Nothing is promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from ldiv_db.attacking.covering import KnownAxis
from ldiv_db.attacking.disclosure import Attack
from ldiv_db.attacking.matching import KEPT, prefixes_of
from ldiv_db.attacking.trials import TrialPeople, Tried, drawn_rows, tried_attack, tried_on
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import Identifier, Relation, Value

#: Distances are summed in parts of a column's known values.
_UNIT = 10**9
Parts = tuple[tuple[KnownAxis, ...], tuple[KnownAxis, ...]]


@dataclass(frozen=True)
class _Distanced:
    """A quasi-identifier with the `spans` of its labels, and the number of known values, of which they are shares."""

    code: Identifier
    table: Identifier
    spans: Relation
    codes: Value


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
    known = {axis.axis.name.lower(): axis for axis in people.axes}
    names = [name.lower() for part in asked for name in part]
    unknown = [name for part in asked for name in part if name.lower() not in known]
    problems = [Problem("link_columns", f"{name} is not a quasi-identifier that targets have") for name in unknown]
    if not all(asked):
        problems.append(Problem("link_columns", "takes two lists of columns", "a,b|c,d"))
    if len(set(names)) < len(names):
        problems.append(Problem("link_columns", "has a column twice"))
    if problems:
        raise PolicyError(problems)
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
    guessed = _guessed(people)
    compared = None if people.control is None else pair
    found = tried_attack("linkability", None, "share of people linked", pair[0], guessed, compared)
    return found.with_untried("people", sum(one.attempts for one in pair), engine.count(drawn))


@contextmanager
def _side(people: TrialPeople, drawn: Relation, axes: tuple[KnownAxis, ...]) -> Iterator[_Side]:
    """What the holder of one part finds."""
    engine = people.released.engine
    with prefixes_of(engine, people.released.classes, axes, drawn) as numbered, engine.scope():
        distanced = [
            _Distanced(axis.code, axis.table, axis.spans, Value(engine.count(axis.dictionary)))
            for axis in numbered.axes
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


def _guessed(people: TrialPeople) -> Tried:
    """How often two random rows are of one class."""
    engine, tries = people.released.engine, min(people.trial.tries, people.targets)
    with drawn_rows(people.released, people.trial, tries) as draws:
        params = {"classes": people.released.classes, "draws": draws}
        return Tried(**engine.record("attacking/linkability/count_random", **params))
