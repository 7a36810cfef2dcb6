"""Recoding: from classes of codes to what is published, and what that costs.

Labels depend on the smallest and largest code of a class alone, so they are worked out once for every
distinct span and joined back; rows are touched only when the release is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ldiv_db.encoded import LOSS_UNIT, Axis, Encoded
from ldiv_db.engine import Engine
from ldiv_db.templates import Identifier, Relation, Value

#: The template of the release.
PUBLISHED = "publish/recode_rows"


@dataclass(frozen=True)
class Spans:
    """The labels and losses of one quasi-identifier's spans: `relation` is (low, high, label, lm, ncp)."""

    axis: Axis
    relation: Relation

    @property
    def lm(self) -> Identifier:
        return Identifier(f"{self.axis.code.name}_lm")

    @property
    def ncp(self) -> Identifier:
        return Identifier(f"{self.axis.code.name}_ncp")


@dataclass(frozen=True)
class Recoding:
    """Classes with their bounds (`classes`), and every quasi-identifier's spans."""

    assigned: Relation
    classes: Relation
    spans: tuple[Spans, ...]


def plan_recoding(engine: Engine, encoded: Encoded, assigned: Relation) -> Recoding:
    """The recoding of rows assigned to classes: `assigned` is (row_id, class_id); other rows are suppressed."""
    classes = engine.materialise(
        "classes", "publish/bound_classes", rows=encoded.rows, assigned=assigned, axes=encoded.axes
    )
    return Recoding(assigned, classes, tuple(_spans(engine, axis, classes) for axis in encoded.axes))


def _spans(engine: Engine, axis: Axis, classes: Relation) -> Spans:
    name = f"spans_{axis.code.name}"
    unit, null_code = Value(LOSS_UNIT), Value(axis.null_code)
    if axis.nodes is None:
        relation = engine.materialise(
            name,
            "publish/label_number_spans",
            classes=classes,
            dictionary=axis.dictionary,
            axis=axis,
            scale=Value(axis.scale),
            null_code=null_code,
            unit=unit,
        )
    else:
        relation = engine.materialise(
            name,
            "publish/label_tree_spans",
            classes=classes,
            nodes=axis.nodes,
            axis=axis,
            leaves=Value(axis.leaves),
            null_code=null_code,
            unit=unit,
        )
    return Spans(axis, relation)


@contextmanager
def published_rows(
    engine: Engine, encoded: Encoded, recoding: Recoding, seed: int, class_id: bool = False, last_class: int = 0
) -> Iterator[dict[str, Any]]:
    """What fills the template `PUBLISHED`: the published rows, in an order that carries no information.

    Class ids, if they are shown, follow `last_class`.
    """
    labels = engine.materialise(
        "labels", "publish/label_classes", classes=recoding.classes, spans=recoding.spans, seed=Value(seed)
    )
    yield {
        "rows": encoded.rows,
        "assigned": recoding.assigned,
        "labels": labels,
        "axes": encoded.axes,
        "sensitive": encoded.sensitive,
        "kept": encoded.kept,
        "class_id": class_id,
        "last_class": Value(last_class),
    }
    engine.drop(labels)
