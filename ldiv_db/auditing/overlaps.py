"""Labels of rows that have values in common: who knows a row finds it by both, and bounds hold of neither.

Among people who show the same in the tables of people, the labels of one table, with those of the rows that its rows
belong to, are equal, or on some quasi-identifier no value is covered by two of them. Labels are read as everywhere,
but without the source: what two have in common is found by values that the labels themselves name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from ldiv_db.auditing.joined_tables import JoinedTables, path_of
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, count_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding import labels
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.taxonomies import taxonomy as taxonomies

#: The kinds of lines on which ranges are tried, in their order.
_KINDS = ("real", "timestamp", "instant")
_FOLDER = "auditing/overlaps"
#: A quasi-identifier of a published table: its labels, and the codes that each covers.
_Read = Mapping[str, Any]


def require_disjoint(joined: JoinedTables, people: Relation, of_people: frozenset[str]) -> None:
    """Raise AuditError if two labels of rows of people (person, labels) who show the same have values in common.

    Or if labels cannot be read. Tables `of_people` have none of which one row is known.
    """
    engine, numbers = joined.engine, count(1)
    axes = {
        table.name: [_read(engine, table, ways, next(numbers)) for ways in table.axes]
        for table in joined.tables
        if table.name not in of_people
    }
    for table in joined.tables:
        path = path_of(joined.tables, table)
        own = [axis for step in path for axis in axes.get(step.name, ())]
        if not own or table.name in of_people:
            continue
        with engine.scope():
            boxes = engine.materialise("boxes", f"{_FOLDER}/list_boxes", people=people, path=path, axes=own)
            found = engine.scalar(f"{_FOLDER}/count_overlaps", boxes=boxes, axes=own)
        if found:
            what = f"{count_phrase(found, 'pair', 'pairs')} of labels of {table.name} have values in common"
            raise AuditError(f"{what} among people who are alike: who knows a row finds it by either")


def _read(engine: Engine, table: PublishedTable, ways: Sequence[LabelAxis], number: int) -> _Read:
    """A quasi-identifier by the first of the ways to read it that reads all labels; raises AuditError if none does."""
    for axis in ways:
        with engine.scope() as scope:
            numbered = labels.number_labels(engine, table.rows, axis)
            if (spans := _spans(engine, numbered, axis)) is None:
                continue
            hulls = engine.group("hulls", spans, "value_no", low=("min", "low"), high=("max", "high"))
            told = ["low", "high"]
            found = scope.keep(engine.join("labels", numbered, hulls, "value_no", right_columns=told))
            several = engine.count(spans) > engine.count(hulls)
            meeting = engine.materialise("meeting", f"{_FOLDER}/list_meeting", spans=spans) if several else None
            named = {key: Identifier(f"{key}_{number}") for key in ("alias", "code", "low", "high")}
            shown = {"columns": axis.columns, "table": Identifier(table.alias.name), "labels": found}
            return {**named, **shown, "meeting": scope.keep(meeting) if meeting else None}
    raise AuditError(f"labels of {table.name}.{ways[0].name} cannot be read, so that some may have values in common")


def _spans(engine: Engine, numbered: Relation, axis: LabelAxis) -> Relation | None:
    """The codes that labels cover (value_no, low, high), none touching another; None if not all can be read."""
    parts = labels.read_parts(engine, numbered)
    for found in _ranges(engine, parts) if axis.hierarchy.by_range else _values(engine, parts, axis):
        spans = labels.choose_reading(engine, found, axis.sets_first)[1]
        if not labels.count_unread(engine, numbered, spans)["count"]:
            return spans
    return None


def _ranges(engine: Engine, parts: Relation) -> Iterator[Relation]:
    """What parts cover on the line of each kind: of the ends that they name, and places between.

    Where all are whole numbers that is theirs: on the line of all numbers those beyond 2^53 are one with others.
    """
    for kind in _KINDS:
        ranges = labels.read_ranges(engine, parts, kind)
        if kind == "real":
            integers = labels.read_ranges(engine, parts, "integer")
            if not engine.scalar(f"{_FOLDER}/count_inexact", ranges=ranges, integers=integers):
                ranges, kind = integers, "integer"  # noqa: PLW2901 - the line of these
        ends = engine.materialise("ends", f"{_FOLDER}/list_ends", ranges=ranges, kind=kind)
        last = engine.count(ends) - 1
        yield labels.span_ranges(engine, ranges, ends, last, last)


def _values(engine: Engine, parts: Relation, axis: LabelAxis) -> Iterator[Relation]:
    """What parts cover by a taxonomy, or by levels made of values."""
    hierarchy = axis.hierarchy
    nodes = None if hierarchy.taxonomy is None else taxonomies.load(engine, hierarchy.taxonomy, "label")
    known = {"nodes": nodes, "levels": hierarchy.levels}
    probes = engine.materialise("probes", f"{_FOLDER}/list_probes", parts=parts, by_time=hierarchy.by_time, **known)
    yield labels.find_values(engine, parts, probes, engine.count(probes) - 1, type=None, **known)
