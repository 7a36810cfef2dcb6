"""The sensitive attributes whose counts are judged, apart or together, where more is asked than thresholds.

Requirements are judged by the statements that the audit uses too, on counts: partitions of equal counts are judged
once, however many there are. Attributes are judged apart, unless a requirement must hold for those who know the others.

A requirement that survives the union of classes fails in a partition only if it fails in one of its parts: a cut is
refused with all that are more specific, and of a bad partition some rows are left out whatever is specialised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import SensitiveAxis

#: Partitions of unequal counts that are judged together, for memory's sake.
MOST_AT_ONCE = 500_000


@dataclass(frozen=True)
class Tally:
    """A column of counts: of the rows that hold these sensitive values, that have a label, or both."""

    column: Identifier
    held: tuple[tuple[Identifier, int], ...] = ()
    label: int | None = None


@dataclass(frozen=True)
class JudgedAttributes:
    """Sensitive attributes that are judged together: who judges them, and a column for every combination of values."""

    axes: tuple[SensitiveAxis, ...]
    tallies: tuple[Tally, ...]
    checker: ClassChecker


@dataclass(frozen=True)
class PackedCount:
    """A column of counts, and the place of its lowest bit in a pack."""

    column: Identifier
    place: int


@dataclass(frozen=True)
class Pack:
    """A column that holds several counts, and its number among those that are read together."""

    column: Identifier
    counts: tuple[PackedCount, ...]
    mask: int
    number: int

    #: The column of the sums from the first number on.
    upto = NamedAfter("upto_{0.column.name}")


def bounds_shares(task: Task) -> bool:
    """True if nothing but thresholds on the values of one attribute is required, of which everybody has one."""
    sensitive = task.encoded.sensitive
    is_one = len(sensitive) == 1 and sensitive[0].bags is None
    return is_one and all(requirement.shares_only for requirement in task.requirements)


def judged_together(task: Task) -> tuple[JudgedAttributes, ...]:
    """The attributes that are judged together; those of which nothing is required are left out."""
    axes = task.encoded.sensitive
    if len(axes) > 1 and any(requirement.others_known for requirement in task.requirements):
        groups = [axes]
    else:
        groups = [(axis,) for axis in axes if task.wanted[axis.column.name]]
    return tuple(_judged_attributes(task, number, group) for number, group in enumerate(groups, 1))


def _judged_attributes(task: Task, number: int, axes: tuple[SensitiveAxis, ...]) -> JudgedAttributes:
    rows = sorted(row[:-1] for row in task.engine.tally(task.encoded.counted, *(axis.code.name for axis in axes)))
    tallies = tuple(
        Tally(
            Identifier(f"c{number}_{place}"),
            tuple((axis.code, code) for axis, code in zip(axes, codes, strict=True)),
        )
        for place, codes in enumerate(rows, 1)
    )
    wanted = {axis.column.name: task.wanted[axis.column.name] for axis in axes}
    requirements = [requirement for of_axis in wanted.values() for requirement in of_axis]
    encoded = replace(task.encoded, sensitive=axes)
    return JudgedAttributes(
        axes, tallies, ClassChecker(replace(task, encoded=encoded, wanted=wanted, requirements=requirements))
    )


def find_bad(
    task: Task, judged: Sequence[JudgedAttributes], packs: Sequence[Sequence[Pack]], tables: Sequence[Relation]
) -> list[dict[str, Any]]:
    """The counts in the tables that violate, for all that is asked: a `relation` of `packs`, and its alias `table`."""
    return [
        {"relation": _find_bad(task, one, own, tables), "packs": own, "table": Identifier(f"bad_{number}")}
        for number, (one, own) in enumerate(zip(judged, packs, strict=True), 1)
    ]


def _find_bad(task: Task, judged: JudgedAttributes, packs: Sequence[Pack], tables: Sequence[Relation]) -> Relation:
    engine = task.engine
    with engine.scope() as scope:
        alike = engine.materialise("alike", "cuts/list_alike", tables=tables, packs=packs)
        values = {tally.column: tuple(code for _, code in tally.held) for tally in judged.tallies}
        listed = [
            (pack.number, count.place, *values[count.column])
            for pack in packs
            for count in pack.counts
            if count.column in values
        ]
        columns = {"pack": "INTEGER", "place": "INTEGER"} | {axis.code.name: "INTEGER" for axis in judged.axes}
        places = engine.load("places", columns, listed)
        failing = engine.load("failing", {"class_no": "BIGINT"}, [])
        for first in range(1, max(1, engine.count(alike)) + 1, MOST_AT_ONCE):  # none where nothing is evaluated
            counts = engine.materialise(
                "counts",
                "cuts/spread_counts",
                alike=alike,
                places=places,
                packs=packs,
                sensitive=judged.axes,
                first=first,
                last=first + MOST_AT_ONCE - 1,
            )
            engine.extend(failing, judged.checker.margins(counts), "class_no", where=[Where("margin", 0, "<")])
            engine.drop(counts)
        counted = [pack.column.name for pack in packs]
        return scope.keep(engine.select_among("bad", alike, failing, "class_no", columns=counted))
