"""Published labels held against known values: which classes cover whom.

A label of a tree covers the leaves below its node; a range, or two bounds, the values between; a set what its
members cover; NULL covers NULL, and `*` everything. Classes and known values are matched one quasi-identifier after
the other, for all combinations that begin alike at once, so that no step is larger than what it finds.

Labels are read as `measure` reads them; but there a label stands for leaves of a source's domain, to be weighed by what
it loses, and here for those of the known people's values, perhaps of a few columns, that it covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.hierarchies import Hierarchy
from ldiv_db.recoding.labels import RANGE_FORMS, choose_reading, count_unread, read_parts, read_ranges, span_ranges
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.readers import Level

#: The kind of values that are compared as text, by a taxonomy.
TEXT = "text"
_NONE = Relation(())


@dataclass(frozen=True)
class LabelAxis:
    """One quasi-identifier of a published table: the columns of its label (or bounds) among the classes, its hierarchy.

    `sets_first` says that sets are known to be written.
    """

    name: str
    columns: tuple[Identifier, ...]
    hierarchy: Hierarchy
    sets_first: bool = False


@dataclass(frozen=True)
class KnownAxis:
    """A quasi-identifier as published and as known; `number` is its place among those that are matched.

    `dictionary` is (value, code, position) of the known values, `labels` (the columns, value_no, written, rows) of the
    published ones, `parts` and `chosen` what they were read as, `spans` (value_no, low, high) the codes that each
    covers.
    """

    axis: LabelAxis
    known: Identifier
    kind: str
    value: Identifier
    dictionary: Relation = _NONE
    labels: Relation = _NONE
    parts: Relation = _NONE
    chosen: Relation = _NONE
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
    def by_range(self) -> bool:
        return self.hierarchy.by_range

    @property
    def bounded(self) -> bool:
        """Whether there are two columns of bounds."""
        return len(self.columns) > 1

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
    known = []
    for number, (axis, column) in enumerate(shared, 1):
        kind = _kind(axis.hierarchy, column)
        if kind is None:
            takes = "times" if axis.hierarchy.levels else "numbers or times"
            problems.append(Problem(key, f"{column.name} takes {takes}, it is {column.shown}"))
        known.append(KnownAxis(axis, Identifier(column.name), kind or TEXT, Identifier(f"v{number}")))
    if problems:
        raise PolicyError(problems)
    return known


def as_text(engine: Engine, people: Relation | FileRelation) -> Relation | FileRelation:
    """People in a CSV file read as text, so that no zero in front of a code is lost; others as they are."""
    if isinstance(people, FileRelation) and Path(people.path).suffix.lower() == ".csv":
        return FileRelation(people.reader, people.path, tuple(column.name for column in columns_of(engine, people)))
    return people


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
class Prefixes:
    """Combinations of labels and of known values, and which of the former cover which of the latter.

    `cells` is (cell_no, people, the known values). `boxes` is (class_no) and `codes` (cell_no), each with the numbers
    of its labels or values and of their prefixes, axis by axis; `pairs` is (cell, box) of the last of these prefixes.
    """

    axes: tuple[KnownAxis, ...]
    cells: Relation
    boxes: Relation
    codes: Relation
    pairs: Relation

    @property
    def last(self) -> KnownAxis:
        """The axis whose prefixes are whole combinations."""
        return self.axes[-1]


@dataclass(frozen=True)
class Matches:
    """`pairs` is (class_no, cell_no): which classes cover which `cells` (cell_no, people, the known values).

    `prefixes` is how they were found, its axes in an order of their own.
    """

    axes: tuple[KnownAxis, ...]
    cells: Relation
    pairs: Relation
    prefixes: Prefixes


@contextmanager
def matched(
    engine: Engine, classes: Relation, axes: Sequence[KnownAxis], people: Relation | FileRelation
) -> Iterator[Matches]:
    """The classes (class_no, the labels' columns) that cover the people of a table.

    Raises PolicyError for labels that are no range, or that a taxonomy does not have.
    """
    with matched_prefixes(engine, classes, axes, people) as found:
        covering = _pairs_of(engine, found)
        yield Matches(tuple(axes), found.cells, covering, found)
        engine.drop(covering)


@contextmanager
def matched_prefixes(
    engine: Engine, classes: Relation, axes: Sequence[KnownAxis], people: Relation | FileRelation
) -> Iterator[Prefixes]:
    """As `matched`, by different combinations of labels in place of classes."""
    cells = list_cells(engine, axes, people)
    with _prefixes(engine, classes, axes, cells) as found:
        yield found
    engine.drop(cells)


def list_cells(engine: Engine, axes: Sequence[KnownAxis], people: Relation | FileRelation) -> Relation:
    """The different combinations of known values (cell_no, people, the values)."""
    with read_exactly(engine, people) as read:
        return engine.materialise("cells", "attacking/covering/list_cells", people=read, axes=axes)


def cover(engine: Engine, classes: Relation, axes: Sequence[KnownAxis], cells: Relation) -> Relation:
    """Which classes cover which cells: (class_no, cell_no). Raises PolicyError for labels that cannot be read."""
    with _prefixes(engine, classes, axes, cells) as found:
        return _pairs_of(engine, found)


def _pairs_of(engine: Engine, found: Prefixes) -> Relation:
    """The classes and cells (class_no, cell_no) behind pairs of combinations."""
    holes = {"pairs": found.pairs, "cells": found.codes, "boxes": found.boxes}
    return engine.materialise("matches", "attacking/covering/list_pairs", axis=found.last, **holes)


@contextmanager
def _prefixes(engine: Engine, classes: Relation, axes: Sequence[KnownAxis], cells: Relation) -> Iterator[Prefixes]:
    """Which combinations of labels cover which cells, by one quasi-identifier after the other."""
    ready = _in_order(_covered(engine, classes, cells, axes))
    holes = {
        "boxes": engine.materialise("boxes", "attacking/covering/number_boxes", classes=classes, axes=ready),
        "cells": engine.materialise("numbered_cells", "attacking/covering/number_cells", cells=cells, axes=ready),
    }
    pairs = engine.load("pairs", {"cell": "BIGINT", "box": "BIGINT"}, [(1, 1)])
    for axis in ready:
        longer = engine.materialise("pairs", "attacking/covering/extend_pairs", pairs=pairs, axis=axis, **holes)
        engine.drop(pairs)
        pairs = longer
    yield Prefixes(tuple(ready), cells, holes["boxes"], holes["cells"], pairs)
    read_as = [(a.dictionary, a.labels, a.parts, a.chosen, a.spans) for a in ready]
    engine.drop(pairs, *holes.values(), *(relation for relations in read_as for relation in relations))


def _in_order(axes: Sequence[KnownAxis]) -> list[KnownAxis]:
    """The axes numbered, those of few labels first: fewer combinations begin alike where there are many."""
    ordered = sorted(axes, key=lambda axis: (axis.hierarchy.by_range, axis.different))
    return [replace(axis, number=number) for number, axis in enumerate(ordered, 1)]


def _covered(engine: Engine, classes: Relation, cells: Relation, axes: Sequence[KnownAxis]) -> list[KnownAxis]:
    """The axes with their known values, their labels and what these cover; all problems at once."""
    covered, problems = [], []
    for axis in axes:
        labels = engine.materialise("labels", "attacking/covering/number_labels", classes=classes, axis=axis)
        dictionary = engine.materialise("dictionary", "attacking/covering/number_values", cells=cells, axis=axis)
        ready = replace(axis, labels=labels, dictionary=dictionary, different=engine.count(labels))
        try:
            covered.append(_read(engine, ready))
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return covered


def _read(engine: Engine, axis: KnownAxis) -> KnownAxis:
    """The axis with the known values that its labels cover; raises PolicyError for labels that cannot be read."""
    parts = read_parts(engine, axis.labels)
    last = engine.count(axis.dictionary) - 1
    if axis.by_range:
        ranges = read_ranges(engine, parts, axis.kind)
        spans = span_ranges(engine, ranges, axis.dictionary, last, last)
        engine.drop(ranges)
    else:
        spans = _find_values(engine, axis, parts, last)
    reading = choose_reading(engine, spans, axis.axis.sets_first)
    unread = count_unread(engine, axis.labels, reading.chosen)["count"]
    if unread:
        hint = RANGE_FORMS if axis.by_range else ""
        raise PolicyError([Problem(axis.axis.name, f"{unread:,} of its labels are {_no_label(axis)}", hint)])
    return replace(axis, parts=parts, chosen=reading.chosen, spans=reading.spans)


def _find_values(engine: Engine, axis: KnownAxis, parts: Relation, null_code: int) -> Relation:
    """The codes of the known values that parts cover by a taxonomy, or by levels made of the values."""
    taxonomy = axis.hierarchy.taxonomy
    holes = {"dictionary": axis.dictionary}
    if taxonomy is None:
        labelled = engine.materialise("labelled", "attacking/covering/list_level_labels", axis=axis, **holes)
    else:
        nodes = taxonomies.load(engine, taxonomy, axis.value.name)
        labelled = engine.materialise("labelled", "attacking/covering/list_node_labels", nodes=nodes, **holes)
        engine.drop(nodes)
    spans = engine.materialise(
        "found",
        "attacking/covering/find_values",
        parts=parts,
        labelled=labelled,
        null_code=Value(null_code),
        open=taxonomy is None,
    )
    engine.drop(labelled)
    return spans


def _no_label(axis: KnownAxis) -> str:
    """What labels that cannot be read are not."""
    if axis.by_range:
        values = "number" if axis.kind == "real" else axis.kind
        return f"neither a range of {values}s nor NULL nor *"
    if axis.hierarchy.taxonomy is None:
        return "sets whose members cannot be read"
    return f"not in the taxonomy {axis.hierarchy.taxonomy.origin}"
