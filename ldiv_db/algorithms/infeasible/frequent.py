"""Which sensitive values are too frequent: named where that is asked for, with the most rows that they may have."""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Value
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.distribution import Ceiling, eligible_ceiling
from ldiv_db.requirements.parameters import rounded

#: What is said in place of values that are data.
HINT = "--show-values (in Python show_values=True) names the values that are too frequent"
#: The most values that one line names.
MOST_VALUES = 20


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
    exceeded = [
        (ceiling, name, frequent_values(engine, axis, ceiling, show_values)) for ceiling, name in ceilings.items()
    ]
    return [
        f"too frequent in {axis.column.name} for {name}: {_listed(axis, ceiling, rows)}" if show_values else HINT
        for ceiling, name, rows in exceeded
        if rows
    ]


def frequent_values(
    engine: Engine, axis: SensitiveAxis, ceiling: Ceiling, show_values: bool
) -> list[tuple[str | None, int, int]]:
    """The most frequent of the values above their ceiling, one more than are listed: (value, rows, ceiling)."""
    ceilings = engine.load("ceilings", {"value": "VARCHAR", "ceiling": "BIGINT"}, ceiling.own)
    rows = engine.rows(
        "requirements/list_frequent",
        dictionary=axis.reference,
        ceilings=ceilings,
        ceiling=Value(ceiling.rows),
        most=Value(MOST_VALUES + 1),
        show_values=show_values,
    )
    engine.drop(ceilings)
    return rows


def _listed(axis: SensitiveAxis, ceiling: Ceiling, frequent: Sequence[tuple[str | None, int, int]]) -> str:
    """The values; of those with thresholds the smallest that can be met, which is their share of the whole table."""
    rows, listed = axis.judged_distribution.rows, []
    for value, count, most in frequent[:MOST_VALUES]:
        least = f"; smallest threshold {rounded(count / rows, 9, up=True)}" if ceiling.by_threshold else ""
        name = "NULL" if value is None else repr(value)
        listed.append(f"{name} ({count:,} of {rows:,} rows, at most {most:,}{least})")
    return ", ".join([*listed, *(["…"] if len(frequent) > MOST_VALUES else [])])
