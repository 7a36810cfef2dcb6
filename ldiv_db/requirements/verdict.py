"""Verdicts on whether requirements hold on the classes of a table, and what these promise if they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.display import fields_of
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.guarantees import Guarantee, together
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import plain

#: Is shown the measures of a requirement on the classes before they are dropped.
ClassObserver = Callable[[Requirement, Classes, Relation], None]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a requirement of a table: the classes that violate it, and the worst class.

    The worst class is, of those that violate, or of all if none does, the one that reaches the worst figure, and of
    several the one of the least margin. `worst_class` is its number, `worst_rows` are its rows, `worst` is the figure
    that it reaches and `margin` its own, which is negative if it violates: all None for a table without classes. Where
    people are counted and rows as well, figure and margin are those of the worse of the two, and `by_rows` says which;
    `violating_by_rows` are the classes that violate by rows.
    `holds` is None where rows were counted and people are asked about, which leaves it open.
    `again` are the classes that violate by a second reading of the table, in words why there is none where it was asked
    for.
    """

    requirement: Requirement
    holds: bool | None
    worst: float | None
    classes: int
    violating_classes: int
    violating_rows: int
    worst_class: int | None = None
    worst_rows: int | None = None
    margin: float | None = None
    again: int | str | None = None
    by_rows: bool = False
    violating_by_rows: int | None = None

    @property
    def second(self) -> int | None:
        """The classes that violate by a second reading, if there was one."""
        return self.again if isinstance(self.again, int) else None

    @property
    def once(self) -> str | None:
        """Why there is no second reading where it was asked for."""
        return self.again if isinstance(self.again, str) else None

    @property
    def agrees(self) -> bool:
        """True unless a second reading, which counts rows, found another number of classes that violate."""
        first = self.violating_classes if self.violating_by_rows is None else self.violating_by_rows
        return self.second in (None, first)

    @property
    def otherwise(self) -> str:
        """The words that a message adds where the second reading disagrees."""
        return "" if self.agrees else f"; a second reading found {self.second:,}: one of the two is wrong, report it"

    def by_units(self, requirement: Requirement, unit: int) -> Verdict:
        """The verdict on a requirement that was judged on so many units of each person, or row."""
        if unit == 1:
            return self
        worst = self.worst_rows and self.worst_rows // unit
        margin = None if self.margin is None else self.margin / unit
        violating = self.violating_rows // unit
        return replace(self, requirement=requirement, worst_rows=worst, margin=margin, violating_rows=violating)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.requirement.name,
            "parameters": {k: plain(v) for k, v in self.requirement.parameters.items()},
            **fields_of(self, "holds", "worst"),
            "worst_is": self.requirement.reaches,
            "worst_class": self.worst_class,
            "worst_class_rows": self.worst_rows,
            **fields_of(self, "margin", "classes", "violating_classes", "violating_rows"),
            "second_reading": self.second,
            "read_once": self.once,
        }

    @property
    def entry(self) -> dict[str, Any]:
        """The verdict as a ledger has it, which is told of values of the policy no more than how many there are."""
        return self.as_dict() | {"parameters": {name: plain(value) for name, value in self.requirement.shown.items()}}


def judge(engine: Engine, requirement: Requirement, classes: Classes, watch: ClassObserver | None = None) -> Verdict:
    """The verdict on one requirement over the classes of a published table."""
    measures = measure_table(engine, requirement, classes)
    read = {"measures": measures, "both": classes.by_rows is not None}
    summary = engine.record("requirements/summarise_measures", **read)
    order = {"most_is_worst": requirement.most_is_worst}
    worst = next(iter(engine.records("requirements/find_worst", **read, **order)), {})
    if watch is not None:
        watch(requirement, classes, measures)
    engine.drop(measures)
    return Verdict(
        requirement,
        holds=summary["violating_classes"] == 0,
        worst=worst.get("reached"),
        classes=summary["classes"],
        violating_classes=summary["violating_classes"],
        violating_rows=int(summary["violating_rows"] or 0),
        worst_class=worst.get("class_no"),
        worst_rows=worst.get("rows"),
        margin=worst.get("margin"),
        by_rows=worst.get("by_rows", False),
        violating_by_rows=summary.get("violating_by_rows"),
    )


def measure_table(steps: Steps, requirement: Requirement, classes: Classes) -> Relation:
    """(class_no, rows, reached, margin) of the classes of a whole table; a negative margin violates.

    Where people are counted `rows` are these, and the figures those of the worse of all readings.
    """
    people, *rows = [requirement.measure_table(steps, found) for found in requirement.readings(classes)]
    if not classes.of_people:
        return people
    params = {"rows": rows[0] if rows else None, "tallies": classes.tallies, "most_is_worst": requirement.most_is_worst}
    worse = steps.materialise("worse", "requirements/take_worse", people=people, **params)
    steps.drop(people, *rows)
    return worse


def promised_by(requirements: Iterable[Requirement]) -> Guarantee:
    """The guarantee of classes that meet all of them; what is asked at each position is none of a person."""
    return together(requirement.promise() for requirement in requirements if not requirement.each)
