"""The similarity attack on what a run is to publish: rows whose class tells the category of their sensitive value.

A class whose values all are of one category tells it for certain, however many different values there are
((l,alpha) paper, Section 2). Counted on the source, where rows that agree on all quasi-identifiers are a class, and
on the classes that can be told apart in the release.
"""

from __future__ import annotations

from collections.abc import Mapping

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.publishing.result import Similarity
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.recoding.recode import Recoding
from ldiv_db.requirements import Attribute, Categories, Classes


def measure_similarity(
    engine: Engine, encoded: Encoded, recoding: Recoding, attributes: Mapping[str, Attribute], class_id: bool
) -> tuple[Similarity, ...]:
    """The attack on every sensitive attribute that has categories; `class_id` says whether classes have one."""
    asked = [
        (axis, categories)
        for axis in encoded.sensitive
        if (categories := attributes[axis.column.name].categories) is not None
    ]
    if not asked:
        return ()
    before = engine.materialise("cells", "local/number_cells", rows=encoded.rows, axes=encoded.axes)
    after = published_members(engine, recoding, class_id)
    similarities = tuple(
        Similarity(
            axis.column.name,
            _open_rows(engine, encoded, before, axis, categories),
            _open_rows(engine, encoded, after, axis, categories),
        )
        for axis, categories in asked
    )
    engine.drop(before, after)
    return similarities


def published_members(engine: Engine, recoding: Recoding, class_id: bool) -> Relation:
    """(row_id, class_no) of the published rows."""
    holes = {"classes": recoding.classes, "spans": recoding.spans}
    labels = engine.materialise("labels", "recoding/publish/label_classes", many=False, **holes)
    seats = engine.materialise(
        "seats", "recoding/publish/name_classes", assigned=recoding.assigned, labels=labels, class_id=class_id
    )
    engine.drop(labels)
    return seats


def _open_rows(engine: Engine, encoded: Encoded, members: Relation, axis: SensitiveAxis, categories: Categories) -> int:
    """The rows of the classes (row_id, class_no) that hold one category."""
    counts = engine.materialise("counts", "local/count_classes", members=members, rows=encoded.rows, sensitive=[axis])
    histogram = engine.materialise(
        "histogram",
        "local/list_histogram",
        counts=counts,
        dictionary=axis.dictionary,
        key=axis.code,
        summed=False,
        as_codes=False,
    )
    classes = Classes(engine, histogram)
    summary = classes.by_category(categories).summary
    rows = engine.record("attacking/count_few_values", summary=summary, most=Value(1))["rows"]
    classes.drop()
    engine.drop(counts, histogram)
    return int(rows or 0)
