"""Whether a requirement holds on the classes of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import plain

#: Is shown the measures of a requirement on the classes before they are dropped.
Watch = Callable[[Requirement, Classes, Relation], None]


@dataclass(frozen=True)
class Verdict:
    """Whether a requirement holds on a table: its violating classes, and its worst class.

    `worst_class` is the number of the class of the least `margin`, which is negative if it violates, and
    `worst_rows` its rows: all None for a table without classes. `worst` is the worst that any class reaches.
    `second` are the classes that violate by a second reading of the table, `once` why there is none where it was asked
    for.
    """

    requirement: Requirement
    holds: bool
    worst: float | None
    classes: int
    violating_classes: int
    violating_rows: int
    worst_class: int | None = None
    worst_rows: int | None = None
    margin: float | None = None
    second: int | None = None
    once: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether a second reading, if there is one, found as many classes that violate."""
        return self.second in (None, self.violating_classes)

    @property
    def otherwise(self) -> str:
        """What a message adds where the second reading found otherwise."""
        return "" if self.agrees else f"; a second reading found {self.second:,}: one of the two is wrong, report it"

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.requirement.name,
            "parameters": {k: plain(v) for k, v in self.requirement.parameters.items()},
            "holds": self.holds,
            "worst": self.worst,
            "worst_is": self.requirement.reaches,
            "worst_class": self.worst_class,
            "worst_class_rows": self.worst_rows,
            "margin": self.margin,
            "classes": self.classes,
            "violating_classes": self.violating_classes,
            "violating_rows": self.violating_rows,
            "second_reading": self.second,
            "read_once": self.once,
        }


def judge(engine: Engine, requirement: Requirement, classes: Classes, watch: Watch | None = None) -> Verdict:
    """The verdict on one requirement over the classes of a published table."""
    measures = requirement.measure(engine, classes)
    most_is_worst = requirement.most_is_worst
    summary = engine.record("requirements/summarise_measures", measures=measures, most_is_worst=most_is_worst)
    least = next(iter(engine.records("requirements/find_worst", measures=measures)), {})
    if watch is not None:
        watch(requirement, classes, measures)
    engine.drop(measures)
    return Verdict(
        requirement,
        holds=summary["violating_classes"] == 0,
        worst=None if summary["worst"] is None else float(summary["worst"]),
        classes=summary["classes"],
        violating_classes=summary["violating_classes"],
        violating_rows=int(summary["violating_rows"] or 0),
        worst_class=least.get("class_no"),
        worst_rows=least.get("rows"),
        margin=least.get("margin"),
    )
