"""Recoding: from classes of codes to what is published, and what that costs.

Labels depend on the smallest and largest code of a class alone, or on its set of codes, so they are worked out
once for every distinct span or set and joined back; rows are touched only when the release is written.

A set stands in place of the lowest common ancestor where that loses less. A set of m leaves has LM
(m - 1) / (leaves - 1) and NCP m / leaves, as a node with m leaves would have. Written, it is `{a, b}`: its leaves'
labels in the order of the tree, NULL for the leaf of NULL. A label that is empty, says NULL, begins or ends with a
blank, or has one of , " { } in it stands in double quotes, which are doubled in it. A node whose own label begins with
{ is published as a set of one, so that a value that begins with { is a set and any other is the label of a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation, Value
from ldiv_db.database.table_queries import Aggregate
from ldiv_db.policy.release_columns import CENTRES, Form, centre_as, columns_as
from ldiv_db.recoding.cross_tables import CrossTables
from ldiv_db.recoding.encoded import LOSS_UNIT, NUMBER_SCALE, Axis, Encoded

#: The template of the release.
PUBLISHED = "recoding/publish/recode_rows"
#: From so many rows on, labels are ordered, and what classes publish is written down, once for all that have them.
MANY_ROWS = 100_000
#: The bits that a number may have which tells what a class publishes.
_BITS = 126
#: The forms by which more is published of a class than its bounds tell.
_TOLD = ("set", *CENTRES)
#: The columns that spans have in place of a label.
_SHOWN = {"bounds": ("smallest", "largest"), "value": ("value",)}


@dataclass(frozen=True)
class SpanColumn:
    """A published column of a quasi-identifier: `value` in its spans, `alias` among the labels of a class."""

    value: Identifier
    alias: Identifier
    column: Identifier
    #: Whether it has labels, texts that are ordered by their bytes.
    is_text: bool = True


@dataclass(frozen=True)
class Spans:
    """The spans of one quasi-identifier, as they are published, and their loss.

    `relation` is (low, high, lm, ncp) and the values that `form` takes: a label, perhaps by the number of its set, the
    smallest and the largest value, or the only value. Of means and medians it is by the number of that, as of a set.
    """

    axis: Axis
    relation: Relation
    form: Form | Literal["value"] = "label"
    #: The sets, which `relation` tells from spans by their `set_no`: (set_no, code) of their members, and the
    #: (class_id, set_no) of classes that are published as one, until these have its number.
    members: Relation | None = None
    placed: Relation | None = None

    place = NamedAfter("{0.axis.code.name}_place")

    @property
    def set_no(self) -> Identifier | None:
        """The classes' column of the number of their set, 0 for none."""
        return Identifier(f"{self.axis.code.name}_set") if self.members or self.form in CENTRES else None

    @property
    def shown(self) -> list[SpanColumn]:
        """The columns that the quasi-identifier is published in."""
        form: Form = "label" if self.form == "value" else self.form
        centres = centre_as(self.axis.name, form)
        values = [*_SHOWN.get(self.form, ("label",)), *("centre" for _ in centres)]
        return [
            SpanColumn(
                Identifier(value), Identifier(f"{self.axis.code.name}_{value}"), Identifier(column), value == "label"
            )
            for value, column in zip(values, [*columns_as(self.axis.name, form), *centres], strict=True)
        ]


@dataclass(frozen=True)
class Assignment:
    """Rows assigned to classes: `assigned` is (row_id, class_id), each row at most once; the rest is suppressed.

    With `dealt` cells are assigned, (row_id of the cell, class_id, how many of its rows), the last column of that name.

    Where classes are published as more than the values that occur in them, as under a global recoding, `classes` is
    (class_id, rows, smallest and largest code by quasi-identifier); otherwise they are bounded by their rows. `blanked`
    is (class_id, code): values of the first sensitive attribute that are published as NULL. With `stars` bounds that
    are the whole domain are published as a star. Under `cross` the given classes also have the `cell` of each, and are
    published as all values of that by the quasi-identifiers of these tables.
    """

    assigned: Relation
    _: KW_ONLY
    classes: Relation | None = None
    cross: CrossTables | None = None
    blanked: Relation | None = None
    stars: bool = False
    dealt: Identifier | None = None


@dataclass(frozen=True)
class Recoding:
    """Classes with their bounds (`classes`), each quasi-identifier's spans, and values not shown (`blanked`)."""

    assigned: Relation
    classes: Relation
    spans: tuple[Spans, ...]
    blanked: Relation | None = None
    #: Of a plan of cells the column of `assigned` that says how many rows of each.
    dealt: Identifier | None = None


def plan_recoding(engine: Engine, encoded: Encoded, assignment: Assignment, forms: Mapping[str, Form]) -> Recoding:
    """The recoding of rows assigned to classes; `forms` says as what a quasi-identifier is published, if not labels."""
    assigned, dealt = assignment.assigned, assignment.dealt
    classes = _bounded(engine, encoded, assignment, {name for name, form in forms.items() if form == "set"})
    rows = encoded.members(dealt)
    flow = EngineFlow(engine, "recoding/publish", rows=rows, assigned=assigned, classes=classes, unit=LOSS_UNIT)
    spans = [_labelled(flow, axis, forms.get(axis.name, "label")) for axis in encoded.axes]
    if assignment.stars:
        spans = [_starred(flow, span) for span in spans]
    if any(span.form in _TOLD for span in spans):
        flow.know(dealt=dealt, owners=assignment.classes)
        found = [_of_members(flow, span, assignment.cross) for span in spans]
        sets = [span for span in found if span.placed]
        flow.replace("classes", "place_sets", sets=sets)
        engine.drop(*(span.relation for span in spans if span.form in _TOLD))
        engine.drop(*(span.placed for span in sets if span.placed))
        spans = found
    return Recoding(assigned, flow["classes"], tuple(spans), assignment.blanked, dealt)


def _bounded(engine: Engine, encoded: Encoded, assignment: Assignment, sets: set[str]) -> Relation:
    """The classes with the bounds that they are given, or those of their rows, as all have of which `sets` are told."""
    assigned, given, dealt = assignment.assigned, assignment.classes, assignment.dealt
    sets = sets - {axis.name for axis in assignment.cross.axes} if assignment.cross else sets
    if given and not sets:
        return given
    own = encoded.bound_classes(engine, assigned, "classes", dealt)
    if given is None:
        return own
    columns: dict[bool, list[str]] = {True: [], False: []}
    for axis in encoded.axes:
        columns[axis.name in sets] += [axis.low.name, axis.high.name]
    both = {"left_columns": ["class_id", "rows", *columns[True]], "right_columns": columns[False]}
    return engine.join("classes", own, given, "class_id", **both)


def label_spans(engine: Engine, axis: Axis, classes: Relation, form: Form = "label") -> Spans:
    """The labels of the classes' spans, between the columns of the quasi-identifier's bounds."""
    return _labelled(EngineFlow(engine, "recoding/publish", classes=classes, unit=LOSS_UNIT), axis, form)


def _labelled(flow: EngineFlow, axis: Axis, form: Form) -> Spans:
    name, labelled = f"spans_{axis.code.name}", {"axis": axis}
    if axis.nodes is not None:
        return Spans(axis, flow.step(name, "label_tree_spans", **labelled), form)
    return Spans(axis, flow.step(name, "label_number_spans", bounds=form == "bounds", **labelled), form)


def _starred(flow: EngineFlow, span: Spans) -> Spans:
    """The spans with stars in place of the whole domain; the spans as they were are dropped."""
    labels = [shown.value for shown in span.shown if shown.value.name != "centre"]
    shown = {"shown": labels, "bounds": span.form == "bounds"}
    name = f"starred_{span.axis.code.name}"
    starred = flow.step(name, "star_spans", spans=span.relation, axis=span.axis, **shown)
    flow.engine.drop(span.relation)
    return replace(span, relation=starred)


def _of_members(flow: EngineFlow, span: Spans, cross: CrossTables | None) -> Spans:
    """The spans with what is told of the members of classes, or of those of cells; as they are if that is nothing."""
    if span.form == "set":
        return _set(flow, span, cross if cross and span.axis in cross.axes else None)
    return _centred(flow, span) if span.form in CENTRES else span


def _set(flow: EngineFlow, span: Spans, cross: CrossTables | None = None) -> Spans:
    """The spans and sets of a quasi-identifier that has a taxonomy, perhaps those of the cells of `cross`."""
    engine, code = flow.engine, span.axis.code.name
    flow.know(axis=span.axis, spans=span.relation)
    whose = {"classes": cross.bounds, "assigned": cross.placed} if cross else {}
    members = flow.step(f"members_{code}", "list_set_members", **whose)
    sets = flow.step(f"sets_{code}", "list_sets", members=members)
    first: dict[str, Aggregate] = {name: ("min", name) for name in ("class_id", "low", "high", "leaves")}
    numbered = engine.group(f"numbered_{code}", sets, "set_no", **first)
    placed = engine.select(f"placed_{code}", sets, "class_id", "set_no")
    labelled = flow.step(f"labelled_{code}", "label_sets", numbered=numbered, members=members)
    both = {"left_columns": ["set_no"], "right_columns": ["code"]}
    codes = engine.join(f"set_members_{code}", numbered, members, "class_id", **both)
    engine.drop(sets, members, numbered)
    if cross:
        of_class = {"left_columns": ["class_id"], "right_columns": ["set_no"]}
        placed = engine.join(f"placed_{code}", flow["owners"], placed, ("cell", "class_id"), **of_class)
    return replace(span, relation=labelled, members=codes, placed=placed)


def _centred(flow: EngineFlow, span: Spans) -> Spans:
    """The spans of whole numbers with the means or medians of the classes that have them."""
    engine, code = flow.engine, span.axis.code.name
    if span.axis.scale == NUMBER_SCALE:
        raise refused(f"output.{span.axis.name}", f"a {span.form} is of numbers less than {NUMBER_SCALE:,} apart")
    flow.know(axis=span.axis, spans=span.relation)
    centred = flow.step(f"centred_{code}", "find_centres", median=span.form == "median")
    labelled = flow.step(f"labelled_{code}", "label_centres", centred=centred)
    placed = engine.select(f"placed_{code}", centred, "class_id", "set_no")
    engine.drop(centred)
    return replace(span, relation=labelled, placed=placed)


def keep_types(engine: Engine, recoding: Recoding, names: Collection[str]) -> Recoding:
    """The recoding with values in place of labels for those quasi-identifiers of that name that no class generalises.

    What it loses, and the text of what it publishes, is the same.
    """
    asked = [span for span in recoding.spans if span.axis.name in names and span.form in ("label", "set")]
    if not asked:
        return recoding
    counts = engine.record("recoding/publish/count_generalised", spans=asked)
    kept = [span.axis.name for span in asked if not counts[span.axis.code.name]]
    flow = EngineFlow(engine, "recoding/publish")

    def shown(span: Spans) -> Spans:
        if span.axis.name not in kept:
            return span
        name = f"values_{span.axis.code.name}"
        return Spans(span.axis, flow.step(name, "value_spans", spans=span.relation, axis=span.axis), "value")

    return replace(recoding, spans=tuple(map(shown, recoding.spans)))


@dataclass(frozen=True)
class ClassNumbers:
    """How published classes are numbered: from the number `after` on, which says no more than the classes themselves.

    Those of classes that look alike here, but not where they are published, are in an order by the `seed`.
    """

    after: int = 0
    seed: Value | None = None


@contextmanager
def published_rows(
    engine: Engine,
    encoded: Encoded,
    recoding: Recoding,
    numbers: ClassNumbers | None = None,
    texts: bool = False,
    lists: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    """Parameters of the template `PUBLISHED`: the published rows, in an order that carries no information.

    The `numbers` of classes are published if they are given. As `texts` all columns are text, for a file that has no
    types; sets of the quasi-identifiers `lists` are lists.
    """
    flow = EngineFlow(
        engine,
        "recoding/publish",
        rows=encoded.members(recoding.dealt),
        assigned=recoding.assigned,
        dealt=recoding.dealt,
        blanked=recoding.blanked,
        sensitive=encoded.told,
        kept=encoded.kept,
    )
    many = encoded.row_count >= MANY_ROWS
    flow.step("labels", "label_classes", classes=recoding.classes, spans=recoding.spans, many=many)
    if numbers:
        composed = _composed(flow, encoded, recoding)
        flow.replace("labels", "number_classes", composed=composed, seed=numbers.seed)
        engine.drop(*([composed] if composed else []))
    listed = [shown.alias for span in recoding.spans if span.axis.name in lists for shown in span.shown]
    if listed:  # once a class, and after the labels have ordered them
        flow.replace("labels", "list_members", listed=listed)
    shown = [shown for span in recoding.spans for shown in span.shown]
    last = numbers.after if numbers else 0
    yield flow.params("recode_rows", shown=shown, class_id=numbers is not None, last_class=last, texts=texts)
    engine.drop(flow["labels"])


def _composed(flow: EngineFlow, encoded: Encoded, recoding: Recoding) -> Relation | None:
    """(class_id, composition): the number of rows of each sensitive value as the digits of one number.

    None of few rows, where more than the values of one attribute is published, and where the number may be too large.
    """
    is_one = len(encoded.told) == 1 and not encoded.kept and recoding.blanked is None and not encoded.told[0].own
    if not is_one or encoded.row_count < MANY_ROWS:
        return None
    engine, (attribute,) = flow.engine, encoded.told
    base, values = (engine.most(recoding.classes, "rows") or 0) + 1, engine.count(attribute.dictionary)
    if (base**values).bit_length() > _BITS:
        return None
    weights = [(code, base ** (code - 1)) for code in range(1, values + 1)]
    places = engine.load("places", {"code": "INTEGER", "weight": "HUGEINT"}, weights)
    composed = flow.step("composed", "compose_classes", places=places, sensitive=attribute)
    engine.drop(places)
    return composed
