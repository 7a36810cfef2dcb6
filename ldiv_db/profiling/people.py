"""Which columns say whose a row is, where somebody may have several: by their names, and by what belongs together.

Rows of one person have the same birthday, sex and home, and differ in what happened: a column whose values have a few
rows each, within which most other columns hardly vary, may be whose they are, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.people_columns import CATEGORY_ROWS, FEW_VALUES, NEARLY_UNIQUE, tells_one
from ldiv_db.profiling.summary import Summary

#: A column of more different values than this share of the rows varies in nearly any rows.
OFTEN_UNIQUE = 0.5
#: Values that are looked at, of those that have several rows.
_MOST = 1_000
#: A column belongs to somebody if it varies in their rows this part at most of what it does in any rows, and has two
#: values there on average at most.
_LITTLE, _FEW = 3, 2


@dataclass(frozen=True)
class _Other:
    """Another column, under the names of what is counted of it."""

    column: Identifier
    alias: Identifier
    together: Identifier
    apart: Identifier


def names_people(summary: Summary) -> bool:
    """Whether a column says by its name whose rows they are, and is no list of a few kinds."""
    return may_name(summary) and tells_one(summary.column.name)


def is_repeated(summary: Summary) -> bool:
    """Whether values of a column that says whose a row is have several rows."""
    return 1 < summary.distinct <= NEARLY_UNIQUE * (summary.rows - summary.nulls)


def held_by(
    engine: Engine, table: Relation | FileRelation, summary: Summary, all_columns: Sequence[Summary]
) -> tuple[int, int]:
    """How many of the other columns that vary belong to the values of a column, and how many there are; one statement.

    (0, 0) where it cannot say whose rows they are.
    """
    if not (may_name(summary) and summary.has_few_rows and is_repeated(summary)):
        return 0, 0
    varying = [
        c for c in all_columns if c is not summary and 1 < c.distinct <= OFTEN_UNIQUE * c.rows and not c.decimals
    ]
    others = [
        _Other(Identifier(c.column.name), *(Identifier(f"{letter}{i}") for letter in ("d", "together_", "apart_")))
        for i, c in enumerate(varying)
    ]
    if not others:
        return 0, 0
    column = Identifier(summary.column.name)
    found = engine.record("profiling/hold_together", source=table, column=column, others=others, most=Value(_MOST))
    values = found["values"]
    extra = [[found[name.name] - values for name in (other.together, other.apart)] for other in others]
    vary = [(together, apart) for together, apart in extra if apart * 20 > values]
    most = (_FEW - 1) * values
    return sum(together * _LITTLE <= apart and together <= most for together, apart in vary), len(vary)


def may_name(summary: Summary) -> bool:
    """Whether a column is of a type that names people, and not of a few values with many rows each."""
    if summary.is_measure or summary.column.type == "BOOLEAN" or summary.distinct < 2:
        return False
    few_rows = summary.rows < CATEGORY_ROWS * summary.distinct
    return summary.distinct > FEW_VALUES or (summary.texts is not None and few_rows)
