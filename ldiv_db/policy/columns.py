"""A policy held against the columns of its source: all of them classified, none missing, types that fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldiv_db.database.catalog import Column
from ldiv_db.database.equality import equal_problems
from ldiv_db.database.errors import Problem, nearest
from ldiv_db.policy.document import Policy, QuasiIdentifier

#: Columns of these keys the counts of rows need not have.
NOT_COUNTED = ("identifiers", "keep")


def without_uncounted(policy: Policy, columns: Sequence[Column]) -> Policy:
    """The policy without the columns that only the rows have of which its source holds the counts."""
    if policy.weight is None:
        return policy
    known = {column.name.lower() for column in columns}
    return policy.model_copy(
        update={key: [name for name in getattr(policy, key) if name.lower() in known] for key in NOT_COUNTED}
    )


def column_problems(policy: Policy, columns: Sequence[Column], lists_all: bool = True) -> list[Problem]:
    """Columns that the source lacks, those that the policy leaves unclassified, and types that do not fit.

    Unless the policy `lists_all` of its columns, others may be classified in what could not be read.
    """
    known = {column.name.lower(): column for column in columns}
    problems = list(_missing(policy, columns))
    problems += _unlisted(policy, columns) if lists_all else []
    for key, name in policy.roles():
        if key in ("quasi_identifiers", "sensitive") and name.lower() in known:
            problems += equal_problems(f"{key}.{name}", known[name.lower()])
        if key == "weight" and name.lower() in known and not known[name.lower()].is_number:
            what = f"takes a column of whole numbers, {name} is {known[name.lower()].shown}"
            problems.append(Problem("weight", what))
    if policy.decomposes:
        return problems
    for name, qi in policy.quasi_identifiers.items():
        if found := known.get(name.lower()):
            problems += _type_problems(f"quasi_identifiers.{name}", qi, found)
    return [*problems, *policy.released.clashes()]


def _missing(policy: Policy, columns: Sequence[Column]) -> Iterator[Problem]:
    names = [column.name for column in columns]
    known = {name.lower() for name in names}
    for key, name in policy.roles():
        if name.lower() not in known and not (policy.weight and key in NOT_COUNTED):
            yield Problem(f"{key}.{name}", "the source has no such column", nearest(name, names))


def _unlisted(policy: Policy, columns: Sequence[Column]) -> Iterator[Problem]:
    listed = {name.lower() for _, name in policy.roles()}
    for column in columns:
        if column.name.lower() not in listed:
            way_out = "list it under identifiers, quasi_identifiers, sensitive or keep"
            yield Problem(column.name, "is a column of the source that the policy does not classify", way_out)


def _type_problems(key: str, qi: QuasiIdentifier, column: Column) -> Iterator[Problem]:
    """What the column's type does not allow."""
    spec = qi.taxonomy
    if qi.numeric and not (column.is_number or column.is_time):
        what = f"ranges need numbers, dates or timestamps, the column is {column.shown}"
        yield Problem(key, what, "give it a taxonomy")
    elif spec and spec.ranges and not column.is_number:
        yield Problem(key, f"ranges need numbers, the column is {column.shown}")
    elif spec and spec.dates and not column.is_time:
        yield Problem(key, f"stretches of time need dates or timestamps, the column is {column.shown}")
