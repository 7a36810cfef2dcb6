"""Why a policy cannot be met: the requirements that the data are too poor for, each with the nearest that they allow.

The union of two classes that meet a monotone requirement meets it too, so the whole table as one class is the best
there can be: what fails there fails in every table of all rows. Requirements that hold there may still ask for
classes of more different values than the table has enough of, which is what an algorithm finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.database.templates import Value
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Classes, Requirement, judge
from ldiv_db.requirements.distribution import Ceiling, eligible_ceiling
from ldiv_db.requirements.parameters import rounded

#: What is said in place of values that are data.
HINT = "--show-values (in Python show_values=True) names the values that are too frequent"
#: The most values that one line names.
MOST_VALUES = 20


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
    whole table violates. Values are named if `show_values` is set, otherwise
    a hint says how to see them.
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
        raise InfeasibleError("\n".join([*reasons, str(error), *values]), l) from error


def blame_values(
    engine: Engine,
    axis: SensitiveAxis,
    requirements: Sequence[Requirement],
    l: int | None,  # noqa: E741 - the field's name for it
    show_values: bool,
) -> list[str]:
    """A line for every bound that sensitive values exceed in the whole table, a requirement's or 1/l: the hint, or
    the values with their rows and the most that they may have.
    """
    ceilings: dict[Ceiling, str] = {}
    for requirement in requirements:
        if ceiling := requirement.ceiling(axis.judged_distribution):
            ceilings.setdefault(ceiling, requirement.label)
    if l is not None:
        ceilings.setdefault(eligible_ceiling(l, axis.judged_distribution), f"l = {l}")
    found = [(ceiling, name, _frequent(engine, axis, ceiling, show_values)) for ceiling, name in ceilings.items()]
    return [
        f"too frequent in {axis.column.name} for {name}: {_listed(axis, ceiling, rows)}" if show_values else HINT
        for ceiling, name, rows in found
        if rows
    ]


def _frequent(
    engine: Engine, axis: SensitiveAxis, ceiling: Ceiling, show_values: bool
) -> list[tuple[str | None, int, int]]:
    """The most frequent of the values above their ceiling, one more than are listed: (value, rows, ceiling)."""
    own = engine.load("ceilings", {"value": "VARCHAR", "ceiling": "BIGINT"}, ceiling.own)
    rows = engine.rows(
        "requirements/list_frequent",
        dictionary=axis.reference,
        ceilings=own,
        ceiling=Value(ceiling.rows),
        most=Value(MOST_VALUES + 1),
        show_values=show_values,
    )
    engine.drop(own)
    return rows


def _listed(axis: SensitiveAxis, ceiling: Ceiling, found: Sequence[tuple[str | None, int, int]]) -> str:
    """The values; of those with thresholds the smallest that can be met, which is their share of the whole table."""
    rows, shown = axis.judged_distribution.rows, []
    for value, own, most in found[:MOST_VALUES]:
        least = f"; smallest threshold {rounded(own / rows, 9, up=True)}" if ceiling.by_threshold else ""
        shown.append(f"{'NULL' if value is None else repr(value)} ({own:,} of {rows:,} rows, at most {most:,}{least})")
    return ", ".join([*shown, *(["…"] if len(found) > MOST_VALUES else [])])


def explain(
    engine: Engine, axis: SensitiveAxis, requirements: Sequence[Requirement], takes_any_class: bool = False
) -> list[str]:
    """A line for every requirement that the sensitive attribute cannot meet: what it is, and what is nearest."""
    histogram = engine.materialise("whole", "requirements/take_whole", dictionary=axis.reference)
    classes = Classes(engine, histogram)
    lines = [
        line for requirement in requirements if (line := _reason(engine, axis, classes, requirement, takes_any_class))
    ]
    classes.drop()
    engine.drop(histogram)
    return lines


def _reason(
    engine: Engine, axis: SensitiveAxis, classes: Classes, requirement: Requirement, takes_any_class: bool
) -> str:
    """Why the requirement cannot be met, empty if it can."""
    about = f"{requirement.label} on {axis.column.name}"
    if requirement.monotone:
        verdict = judge(engine, requirement, classes)
        if not verdict.holds:
            nearest = requirement.nearest_in(engine, classes, verdict.worst, axis.judged_distribution)
            return f"{about} fails even in the whole table as one class; the nearest it meets is {nearest}"
    size, most = requirement.unique_class_size(), axis.judged_distribution.largest_l
    if takes_any_class or size is None or size <= max(most, 1):
        return ""
    return f"{about} asks for classes of {size} different values; classes of {most} meet {requirement.nearest_at(most)}"
