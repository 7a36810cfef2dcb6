"""Published labels held against known values: which classes cover whom.

A label of a tree covers the leaves below its node; a range, or two bounds, the values between; a set what its
members cover; NULL covers NULL, and `*` everything. Classes and known values are matched one quasi-identifier after
the other, for all combinations that begin alike at once, so that no step is larger than what it finds.

This is not what `resolve` and `tries` do for `measure`: there a label stands for leaves of a source's domain, to be
weighed by what it loses; here there is no source, and a label stands for those of the known people's values, perhaps
of a few columns, that it covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.hierarchies import Hierarchy
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.readers import Level
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: The kind of values that are compared as text, by a taxonomy.
TEXT = "text"
_NONE = Relation(())


@dataclass(frozen=True)
class LabelAxis:
    """One quasi-identifier of a published table: the columns of its label, or two bounds, among the classes."""

    name: str
    columns: tuple[Identifier, ...]
    hierarchy: Hierarchy


@dataclass(frozen=True)
class KnownAxis:
    """A quasi-identifier as published and as known; `number` is its place among those that are matched.

    `dictionary` is (value, code) of the known values, `labels` (the columns, label_no) of the published ones, `spans`
    (label_no, low, high) the codes that each covers.
    """

    axis: LabelAxis
    known: Identifier
    kind: str
    value: Identifier
    dictionary: Relation = _NONE
    labels: Relation = _NONE
    spans: Relation = _NONE
    different: int = 0
    number: int = 1

    @property
    def columns(self) -> tuple[Identifier, ...]:
        return self.axis.columns

    @property
    def hierarchy(self) -> Hierarchy:
        return self.axis.hierarchy

    @property
    def levels(self) -> tuple[Level, ...]:
        return self.hierarchy.levels

    @property
    def code(self) -> Identifier:
        return Identifier(f"code_{self.number}")

    @property
    def table(self) -> Identifier:
        return Identifier(f"t_{self.number}")

    @property
    def prefix(self) -> Identifier:
        return Identifier(f"prefix_{self.number}")

    @property
    def parent(self) -> Identifier:
        return Identifier(f"prefix_{self.number - 1}")


def known_axes(axes: Sequence[LabelAxis], columns: Sequence[Column], key: str) -> list[KnownAxis]:
    """The quasi-identifiers that the known table has; raises PolicyError if it has none, or of a wrong type."""
    types = {column.name.lower(): column for column in columns}
    shared = [(axis, types[axis.name.lower()]) for axis in axes if axis.name.lower() in types]
    problems = [] if shared else [Problem(key, "has none of the quasi-identifiers", ", ".join(a.name for a in axes))]
    found = []
    for number, (axis, column) in enumerate(shared, 1):
        kind = _kind(axis.hierarchy, column)
        if kind is None:
            what = (
                f"{column.name} takes {'times' if axis.hierarchy.levels else 'numbers or times'}, it is {column.shown}"
            )
            problems.append(Problem(key, what))
        found.append(KnownAxis(axis, Identifier(column.name), kind or TEXT, Identifier(f"v{number}")))
    if problems:
        raise PolicyError(problems)
    return found


def _kind(hierarchy: Hierarchy, column: Column) -> str | None:
    """How the known values are compared; None if they cannot be."""
    if hierarchy.of_times:
        return column.kind if column.is_time else None
    if not hierarchy.by_range:
        return TEXT
    if column.is_number:
        return "real"
    return column.kind if column.is_time else None


@dataclass(frozen=True)
class Matches:
    """`pairs` is (class_no, cell_no): which classes cover which `cells` (cell_no, people, the known values)."""

    axes: tuple[KnownAxis, ...]
    cells: Relation
    pairs: Relation


@contextmanager
def matched(
    engine: Engine, classes: Relation, axes: Sequence[KnownAxis], people: Relation | FileRelation
) -> Iterator[Matches]:
    """The classes (class_no, the labels' columns) that cover the people of a table.

    Raises PolicyError for labels that are no range, or that a taxonomy does not have.
    """
    with read_exactly(engine, people) as read:
        cells = engine.materialise("cells", "recoding/labels/list_cells", people=read, axes=axes)
    ready = _in_order(_covered(engine, classes, cells, axes))
    holes = {
        "boxes": engine.materialise("boxes", "recoding/labels/number_boxes", classes=classes, axes=ready),
        "cells": engine.materialise("numbered_cells", "recoding/labels/number_cells", cells=cells, axes=ready),
    }
    pairs = engine.load("pairs", {"cell": "BIGINT", "box": "BIGINT"}, [(1, 1)])
    for axis in ready:
        longer = engine.materialise("pairs", "recoding/labels/extend_pairs", pairs=pairs, axis=axis, **holes)
        engine.drop(pairs)
        pairs = longer
    found = engine.materialise("matches", "recoding/labels/list_pairs", pairs=pairs, axis=ready[-1], **holes)
    engine.drop(pairs, *holes.values(), *(r for axis in ready for r in (axis.dictionary, axis.labels, axis.spans)))
    yield Matches(tuple(axes), cells, found)
    engine.drop(cells, found)


def _in_order(axes: Sequence[KnownAxis]) -> list[KnownAxis]:
    """The axes numbered, those of few labels first: fewer combinations begin alike where there are many."""
    ordered = sorted(axes, key=lambda axis: (axis.hierarchy.by_range, axis.different))
    return [replace(axis, number=number) for number, axis in enumerate(ordered, 1)]


def _covered(engine: Engine, classes: Relation, cells: Relation, axes: Sequence[KnownAxis]) -> list[KnownAxis]:
    """The axes with their known values, their labels and what these cover; all problems at once."""
    found, problems = [], []
    for axis in axes:
        labels = engine.materialise("labels", "recoding/labels/number_labels", classes=classes, axis=axis)
        dictionary = engine.materialise("dictionary", "recoding/labels/number_values", cells=cells, axis=axis)
        different = engine.count(labels)
        ready = replace(axis, labels=labels, dictionary=dictionary, different=different)
        try:
            found.append(
                replace(ready, spans=_ranges(engine, ready) if ready.hierarchy.by_range else _values(engine, ready))
            )
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return found


def _ranges(engine: Engine, axis: KnownAxis) -> Relation:
    """The spans of labels that are ranges; raises PolicyError for those that are none."""
    if len(axis.columns) == 2:
        ranges = engine.materialise("ranges", "recoding/labels/read_bounds", labels=axis.labels, axis=axis)
    else:
        parts = engine.materialise("parts", "recoding/labels/split_labels", labels=axis.labels, axis=axis)
        ranges = engine.materialise("ranges", "recoding/labels/read_ranges", parts=parts, kind=axis.kind)
        engine.drop(parts)
    unreadable = engine.scalar("recoding/labels/count_unreadable", ranges=ranges)
    if unreadable:
        values = "number" if axis.kind == "real" else axis.kind
        what = f"{unreadable:,} of its labels are neither a range of {values}s nor NULL nor *"
        raise PolicyError([Problem(axis.axis.name, what)])
    holes = {"ranges": ranges, "dictionary": axis.dictionary}
    places = engine.materialise("places", "recoding/labels/place_bounds", **holes)
    spans = engine.materialise("spans", "recoding/labels/span_ranges", places=places, **holes)
    engine.drop(ranges, places)
    return spans


def _values(engine: Engine, axis: KnownAxis) -> Relation:
    """The spans of labels of a taxonomy."""
    parts = engine.materialise("parts", "recoding/labels/split_labels", labels=axis.labels, axis=axis)
    if axis.hierarchy.taxonomy is None:
        labelled = engine.materialise(
            "labelled", "recoding/labels/list_level_labels", dictionary=axis.dictionary, axis=axis
        )
    else:
        labelled = _node_labels(engine, axis, axis.hierarchy.taxonomy, parts)
    spans = engine.materialise(
        "spans", "recoding/labels/span_values", parts=parts, labelled=labelled, dictionary=axis.dictionary
    )
    engine.drop(parts, labelled)
    return spans


def _node_labels(engine: Engine, axis: KnownAxis, taxonomy: Taxonomy, parts: Relation) -> Relation:
    """(value, label) of the nodes above each value; raises PolicyError for labels that no node has."""
    nodes = taxonomies.load(engine, taxonomy, axis.value.name)
    unknown = engine.scalar("recoding/labels/count_unknown", parts=parts, nodes=nodes)
    if unknown:
        what = f"{unknown:,} of its labels are not in the taxonomy {taxonomy.origin}"
        raise PolicyError([Problem(axis.axis.name, what)])
    labelled = engine.materialise(
        "labelled", "recoding/labels/list_node_labels", dictionary=axis.dictionary, nodes=nodes
    )
    engine.drop(nodes)
    return labelled
