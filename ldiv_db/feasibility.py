"""Why a policy cannot be met: the requirements that the data are too poor for, each with the nearest that they allow.

The union of two classes that meet a monotone requirement meets it too, so the whole table as one class is the best
there can be: what fails there fails in every table of all rows. Requirements that hold there may still ask for
classes of more different values than the table has enough of, which is what an algorithm finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ldiv_db.engine import Engine
from ldiv_db.errors import InfeasibleError, PolicyError
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Classes, Requirement, judge


@contextmanager
def explained(engine: Engine, encoded: Encoded, requirements: Mapping[str, Sequence[Requirement]]) -> Iterator[None]:
    """Adds to an error which requirements are to blame; a policy that no table of these rows meets is infeasible."""
    try:
        yield
    except (InfeasibleError, PolicyError) as error:
        reasons = [
            reason for axis in encoded.sensitive for reason in explain(engine, axis, requirements[axis.column.name])
        ]
        if not reasons:
            raise
        raise InfeasibleError("\n".join([*reasons, str(error)])) from error


def explain(engine: Engine, axis: SensitiveAxis, requirements: Sequence[Requirement]) -> list[str]:
    """A line for every requirement that the sensitive attribute cannot meet: what it is, and what is nearest."""
    histogram = engine.materialise("whole", "requirements/take_whole", dictionary=axis.dictionary)
    classes = Classes(engine, histogram)
    lines = [line for requirement in requirements if (line := _reason(engine, axis, classes, requirement))]
    classes.drop()
    engine.drop(histogram)
    return lines


def _reason(engine: Engine, axis: SensitiveAxis, classes: Classes, requirement: Requirement) -> str:
    """Why the requirement cannot be met, empty if it can."""
    about = f"{requirement.label} on {axis.column.name}"
    if requirement.monotone:
        verdict = judge(engine, requirement, classes)
        if not verdict.holds:
            nearest = requirement.nearest_whole(verdict.worst, axis.distribution)
            return f"{about} fails even in the whole table as one class; the nearest it meets is {nearest}"
    size, most = requirement.unique_class_size(), axis.distribution.largest_l
    if size is None or size <= max(most, 1):
        return ""
    return f"{about} asks for classes of {size} different values; classes of {most} meet {requirement.nearest_at(most)}"
