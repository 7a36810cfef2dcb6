"""Which requirements cannot be met, by the table as one class and by what an algorithm needs.

The union of two classes that meet a monotone requirement meets it too, so the whole table as one class is the best
there can be: what fails there fails in every table of all rows. Requirements that hold there may still ask for
classes of more different values than the table has enough of, which is what an algorithm finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.infeasible.frequent import blame_values
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.database.templates import Relation
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Classes, Requirement, Verdict, judge

#: What is said where the whole table as one class violates a requirement, the best there can be.
NOTHING_MEETS = "no table of all these rows meets the policy"


@contextmanager
def explained(
    engine: Engine,
    encoded: Encoded,
    requirements: Mapping[str, Sequence[Requirement]],
    says_why: bool = False,
    takes_any_class: bool = False,
    show_values: bool = False,
) -> Iterator[None]:
    """Adds to an error which requirements and values are to blame; what no table of these rows meets is infeasible.

    Where the error `says_why` itself no requirements are added; if the algorithm `takes_any_class` only those that the
    whole table violates. Values are named if `show_values` is set, otherwise a hint says how to see them.
    """
    try:
        yield
    except (InfeasibleError, PolicyError) as error:
        reasons = [
            reason
            for axis in encoded.sensitive
            for reason in ([] if says_why else explain(engine, axis, requirements[axis.column.name], takes_any_class))
        ]
        if not reasons and isinstance(error, PolicyError):
            raise
        l = error.l if isinstance(error, InfeasibleError) else None  # noqa: E741
        values = [
            line
            for axis in encoded.sensitive
            for line in blame_values(engine, axis, requirements[axis.column.name], l, show_values)
        ]
        values = values if show_values else values[:1]
        raise InfeasibleError("\n".join([*reasons, error.message, *values]), l) from error


@dataclass(frozen=True)
class Failure:
    """A requirement that a sensitive attribute cannot meet: why, and the nearest parameters that it meets.

    `is_of_table` says whether the whole table as one class fails, or an algorithm's classes of different values do.
    """

    axis: SensitiveAxis
    requirement: Requirement
    reason: str
    weaker: Mapping[str, Any]
    is_of_table: bool


def explain(
    engine: Engine,
    axis: SensitiveAxis,
    requirements: Sequence[Requirement],
    takes_any_class: bool = False,
    people: Mapping[str, Relation] | None = None,
) -> list[str]:
    """A line for every requirement that the sensitive attribute cannot meet: what it is, and what is nearest."""
    found = failures(engine, axis, requirements, people)
    return [failure.reason for failure in found if failure.is_of_table or not takes_any_class]


def failures(
    engine: Engine,
    axis: SensitiveAxis,
    requirements: Sequence[Requirement],
    people: Mapping[str, Relation] | None = None,
) -> list[Failure]:
    """The requirements that the sensitive attribute cannot meet, by the whole table or in classes of unlike values.

    `people` are those of populations that the whole table covers; of others nothing is known.
    """
    histogram = engine.materialise("whole", "requirements/take_whole", dictionary=axis.reference)
    classes = Classes(engine, histogram)
    classes.place_people(people or {})
    known = [r for r in requirements if not r.named_population or r.named_population in (people or {})]
    found = [_failure_of_table(engine, axis, classes, r) or _failure_of_size(axis, r) for r in known]
    classes.drop()
    engine.drop(histogram)
    return [failure for failure in found if failure]


def met_by_table(engine: Engine, axis: SensitiveAxis, requirements: Sequence[Requirement]) -> dict[Requirement, str]:
    """The strictest parameters, in words, that the table as one class meets, of each requirement where that is known.

    Where a class may have equal values no other class is nearer to what is required.
    """
    found = {}
    with engine.scope():
        histogram = engine.materialise("whole", "requirements/take_whole", dictionary=axis.reference)
        classes = Classes(engine, histogram)
        for requirement in requirements:
            if requirement.monotone and not requirement.named_population:
                worst = judge(engine, requirement, classes).worst
                found[requirement] = requirement.nearest_in(engine, classes, worst, axis.judged_distribution)
    return {requirement: words for requirement, words in found.items() if words}


def _failure_of_table(
    engine: Engine, axis: SensitiveAxis, classes: Classes, requirement: Requirement
) -> Failure | None:
    """That the whole table violates the requirement, if it does; `classes` are the table as one class."""
    if not requirement.monotone:
        return None
    verdict = judge(engine, requirement, classes)
    if verdict.holds:
        return None
    given = (engine, classes, verdict.worst, axis.judged_distribution)
    nearest = requirement.nearest_in(*given)
    reason = _fails(requirement, axis) + (f"; the nearest it meets is {nearest}" if nearest else "")
    return Failure(axis, requirement, reason, requirement.weaker_in(*given), is_of_table=True)


def _failure_of_size(axis: SensitiveAxis, requirement: Requirement) -> Failure | None:
    """That there are no classes of as many different values as the requirement takes, if there are none."""
    size, most = requirement.unique_class_size(), axis.asked_distribution.largest_l
    if size is None or size <= max(most, 1):
        return None
    reason = (
        f"{_about(requirement, axis)} asks for classes of {size} different values; classes of {most} meet"
        f" {requirement.nearest_at(most)}"
    )
    return Failure(axis, requirement, reason, requirement.weaker_at(most), is_of_table=False)


def _about(requirement: Requirement, axis: SensitiveAxis) -> str:
    return f"{requirement.label} on {axis.column.name}" if axis.is_said else requirement.label


def _fails(requirement: Requirement, axis: SensitiveAxis) -> str:
    return f"{_about(requirement, axis)} fails even in the whole table as one class"


def fails_for_those_who_know(
    requirement: Requirement, axis: SensitiveAxis, known: Sequence[SensitiveAxis], verdict: Verdict
) -> str:
    """That the whole table violates the requirement for those who know the other sensitive attributes."""
    names = ", ".join(other.column.name for other in known)
    reached = "nothing" if verdict.worst is None else f"{verdict.worst:.9g}"
    return (
        f"{_fails(requirement, axis)}: of {verdict.classes:,} classes for those who know {names}"
        f" {verdict.violating_classes:,} violate it, the worst reaches {reached}"
    )


def cannot_promise(algorithm: str, requirement: Requirement, why: str, hint: str = "") -> Problem:
    """That no classes of the algorithm are sure to meet the requirement, whatever the data."""
    return Problem("require", f"{algorithm} cannot promise {requirement.label}: {why}", hint)
