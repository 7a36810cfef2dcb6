"""Published labels held against known values: which classes cover whom.

A label of a tree covers the leaves below its node; a range, or two bounds, the values between; a set what its
members cover; NULL covers NULL, and `*` everything. By what is read here `matching` puts classes and people together.

Labels are read as `measure` reads them; but there a label stands for leaves of a source's domain, to be weighed by what
it loses, and here for those of the known people's values, perhaps of a few columns, that it covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.auditing.counting import Counted
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation, SqlType
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.quasi_identifiers import Hierarchy
from ldiv_db.policy.resolve import Described
from ldiv_db.recoding import labels
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.making import Level

#: The kind of values that are compared as text, by a taxonomy.
TEXT = "text"
#: The key of a policy that names a population.
KEY = "require.population"
#: Types whose values a label may write otherwise, beside numbers: `yes` is true, `1.50` is 1.5.
_RESPELT = ("BOOLEAN", "DATE", "TIME", "TIMESTAMP")
#: A relation that is not made yet.
NONE = Relation(())


@dataclass(frozen=True, kw_only=True)
class KnownAxis(LabelAxis):
    """A quasi-identifier as published and as known; `number` is its place among those that are matched."""

    known: Identifier
    kind: str
    value: Identifier
    number: int = 1
    #: The type of known values that are compared as text: labels that are such values may be written otherwise.
    type: SqlType | None = None

    @property
    def by_range(self) -> bool:
        return self.hierarchy.by_range

    @property
    def levels(self) -> tuple[Level, ...]:
        return self.hierarchy.levels

    code = NamedAfter("code_{0.number}")
    table = NamedAfter("t_{0.number}")
    kind_no = NamedAfter("kind_{0.number}")
    kind_table = NamedAfter("k_{0.number}")
    prefix = NamedAfter("prefix_{0.number}")

    @property
    def parent(self) -> Identifier:
        return Identifier(f"prefix_{self.number - 1}")


def known_as(
    axis: LabelAxis, known: Identifier, value: Identifier, kind: str, typed: SqlType | None = None
) -> KnownAxis:
    """The same as people know it: their column, and the working name and the kind of its values."""
    label = (axis.name, axis.columns, axis.hierarchy, axis.sets_first)
    return KnownAxis(*label, kind=kind, known=known, value=value, type=typed)


@dataclass(frozen=True, kw_only=True)
class ReadAxis(KnownAxis):
    """A quasi-identifier whose labels and known values were read.

    `dictionary` is (value, code, position) of the known values, `labels` (the columns, value_no, written, rows) of the
    published ones, `parts` and `chosen` what they were read as, `spans` (value_no, low, high) the codes that each
    covers. Codes that the same labels cover are of one of `kinds` (code, cells, kind_no); a label and each kind that it
    covers share one node, in `label_nodes` (value_no, node) and `kind_nodes` (kind_no, cells, node). `size` is how many
    labels and kinds there are, `share` how many of all pairs of a class and a combination of values the labels allow.
    """

    dictionary: Relation
    labels: Relation
    parts: Relation
    chosen: Relation
    spans: Relation
    kinds: Relation
    label_nodes: Relation
    kind_nodes: Relation
    size: tuple[int, int]
    share: float

    @property
    def made(self) -> list[Relation]:
        """All relations of the axis."""
        return [one for one in vars(self).values() if isinstance(one, Relation)]


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
        typed = SqlType(column.type) if kind == TEXT and (column.is_fractional or column.type in _RESPELT) else None
        known.append(known_as(axis, Identifier(column.name), Identifier(f"v{number}"), kind or TEXT, typed))
    refuse(problems)
    return known


def label_axes(described: Described) -> list[LabelAxis]:
    """The quasi-identifiers of a release under a policy, each with the columns that it is published in."""
    forms = described.released.forms
    return [
        LabelAxis(
            qi.name,
            tuple(map(Identifier, described.released.columns_of(qi.name))),
            qi.hierarchy,
            forms[qi.name] == "set",
        )
        for qi in described.source.quasi_identifiers
    ]


def within(counts: Counted, axes: Sequence[LabelAxis]) -> list[LabelAxis]:
    """The axes with the names that their columns have among the classes."""
    aliases = {renamed.column: renamed.alias for renamed in counts.renamed}
    return [replace(axis, columns=tuple(aliases[column] for column in axis.columns)) for axis in axes]


def open_population(
    engine: Engine, name: str, folder: Path, axes: Sequence[LabelAxis]
) -> tuple[Table, list[KnownAxis]]:
    """The table of a population, and the quasi-identifiers by which its people are known: all of them."""
    people = resolve_source(engine, name, folder, KEY)
    columns = columns_of(engine, people)
    names = {column.name.lower() for column in columns}
    lacking = [axis.name for axis in axes if axis.name.lower() not in names]
    if lacking:
        raise PolicyError([Problem(KEY, f"{name} has no column {', '.join(lacking)}", "make a view that has it")])
    return people, known_axes(axes, columns, KEY)


def _kind(hierarchy: Hierarchy, column: Column) -> str | None:
    if hierarchy.by_time:
        return column.kind if column.is_time else None
    if not hierarchy.by_range:
        return TEXT
    if column.is_number:
        return "real"
    return column.kind if column.is_time else None


def list_cells(engine: Engine, axes: Sequence[KnownAxis], people: Table, person: Identifier | None = None) -> Relation:
    """The different combinations of known values (cell_no, people, the values), a `person` once if that is known."""
    with read_exactly(engine, people) as read:
        return engine.materialise("cells", "attacking/covering/list_cells", people=read, axes=axes, person=person)


def read_axes(engine: Engine, classes: Relation, cells: Relation, axes: Sequence[KnownAxis]) -> list[ReadAxis]:
    """The axes with their known values, their labels and what these cover; all problems at once."""
    covered, problems = [], []
    for axis in axes:
        numbered = labels.number_labels(engine, classes, axis)
        flow = EngineFlow(engine, "attacking/covering", classes=classes, cells=cells, axis=axis, labels=numbered)
        flow.step("dictionary", "number_values")
        try:
            covered.append(_read(flow, axis))
        except PolicyError as error:
            problems += error.problems
    refuse(problems)
    return covered


def _read(flow: EngineFlow, axis: KnownAxis) -> ReadAxis:
    """The axis with the known values that its labels cover, and the nodes that they share with these.

    Raises PolicyError for labels that cannot be read.
    """
    engine, published, dictionary = flow.engine, flow["labels"], flow["dictionary"]
    parts, last = labels.read_parts(engine, published), engine.count(dictionary) - 1
    if axis.by_range:
        ranges = labels.read_ranges(engine, parts, axis.kind)
        spans = labels.span_ranges(engine, ranges, dictionary, last, last)
        engine.drop(ranges)
    else:  # the codes that parts cover by a taxonomy, or by levels made of the values
        taxonomy = axis.hierarchy.taxonomy
        nodes = None if taxonomy is None else taxonomies.load(engine, taxonomy, axis.value.name)
        known = {"nodes": nodes, "levels": axis.levels, "type": axis.type}
        spans = labels.find_values(engine, parts, dictionary, last, **known)
        engine.drop(*([nodes] if nodes else []))
    chosen, covered = labels.choose_reading(engine, spans, axis.sets_first)
    unread = labels.count_unread(engine, published, chosen)["count"]
    if unread:
        hint = labels.RANGE_FORMS if axis.by_range else "ranges are read only under `numeric: true`, without a taxonomy"
        what = f"{unread:,} of its labels are {_no_label(axis)}"
        raise PolicyError([Problem(f"quasi_identifiers.{axis.name}", what, hint)])
    flow.know(spans=covered, levels=engine.count(dictionary).bit_length() + 1)
    flow.step("kinds", "number_kinds")
    flow.step("label_nodes", "list_label_nodes")
    flow.step("kind_nodes", "list_kind_nodes")
    found = flow.record("count_covered")
    pairs = engine.count(flow["classes"]) * engine.count(flow["cells"])
    made = {name: flow[name] for name in ("dictionary", "labels", "spans", "kinds", "label_nodes", "kind_nodes")}
    made |= {"parts": parts, "chosen": chosen}
    size, share = (engine.count(published), found["kinds"]), int(found["pairs"]) / max(pairs, 1)
    return ReadAxis(**vars(axis) | made, size=size, share=share)


def _no_label(axis: KnownAxis) -> str:
    if axis.by_range:
        values = "number" if axis.kind == "real" else axis.kind
        return f"neither a range of {values}s nor NULL nor *"
    if axis.hierarchy.taxonomy is None:
        return "sets whose members cannot be read"
    return f"not in the taxonomy {axis.hierarchy.taxonomy.origin}"
