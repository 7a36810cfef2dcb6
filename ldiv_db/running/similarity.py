"""The similarity attack on a run: a class whose values all are of one category tells it for certain.

However many different values there are ((l,alpha) paper, Section 2). It is counted on the source, where rows that agree
on all quasi-identifiers are a class, and on the classes that can be told apart in the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldiv_db.algorithms.local.class_checker import count_classes
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
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
    before = engine.number_groups("cells", encoded.counted, *encoded.codes, number="class_no")
    after = published_members(engine, recoding, class_id)
    made = {"rows": encoded.members(recoding.dealt), "members": after, "dealt": recoding.dealt}
    similarities = tuple(
        Similarity(
            axis.column.name,
            _open_rows(engine, axis, categories, rows=encoded.counted, members=before, weight=encoded.weight),
            _open_rows(engine, axis, categories, **made),
        )
        for axis, categories in asked
    )
    engine.drop(before, after)
    return similarities


def published_members(engine: Engine, recoding: Recoding, class_id: bool) -> Relation:
    """(row_id, class_no) of the published rows, or cells with how many of each."""
    labelled = {"classes": recoding.classes, "spans": recoding.spans, "many": False}
    labels = engine.materialise("labels", "recoding/publish/label_classes", **labelled)
    number = ("class_id" if class_id else "label_rank", "class_no")
    columns, tables = ["row_id", *([recoding.dealt.name] if recoding.dealt else [])], (recoding.assigned, labels)
    members = engine.join("members", *tables, "class_id", left_columns=columns, right_columns=[number])
    engine.drop(labels)
    return members


def _open_rows(engine: Engine, axis: SensitiveAxis, categories: Categories, **members: Any) -> int:
    """The rows of the classes that hold one category; `members` are counted as `count_classes` has it."""
    counts = count_classes(engine, [axis], **members)
    values = {"dictionary": axis.dictionary, "key": axis.code, "summed": False, "as_codes": False}
    histogram = engine.materialise("histogram", "local/list_histogram", counts=counts, **values)
    classes = Classes(engine, histogram)
    summary = classes.by_category(categories).summary
    rows = engine.total(summary, "rows", Where("values", 1, "<="))
    classes.drop()
    engine.drop(counts, histogram)
    return rows
