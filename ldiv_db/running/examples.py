"""A few rows of a release side by side with what they were, for the screen of those who may see values.

No table that stays has them, nor their order: whoever has the release and the policy learns nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain

from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.result import Example
from ldiv_db.recoding.encoded import Axis, Renamed

#: How many rows are shown.
EXAMPLES = 3


@dataclass(frozen=True)
class Owned:
    """A quasi-identifier, and the column beside published rows that has their codes of it in the source."""

    axis: Axis
    own: Identifier


def examples(classes: NewClasses) -> tuple[Example, ...]:
    """The columns that are published, each with what a few rows were and what is published of them."""
    engine, encoded = classes.engine, classes.encoded
    owned = [Owned(axis, classes.spare(f"own_{number}")) for number, axis in enumerate(encoded.axes, 1)]
    ends = [classes.resolved.released.columns_of(axis.name) for axis in encoded.axes]
    names = [*chain.from_iterable(ends), *(axis.column.name for axis in encoded.told)]
    columns = {"owned": owned, "published": [Identifier(name) for name in names]}
    with engine.scope():
        few = replace(classes, recoding=replace(classes.recoding, assigned=_few(classes)))
        rows = few.rows_with([Renamed(one.own, one.axis.code) for one in owned])
        found = zip(*engine.rows("running/list_beside", rows=rows, **columns), strict=True)
    texts = [["NULL" if value is None else value for value in column] for column in found]
    if not texts:
        return ()
    after = iter(texts[len(owned) :])
    shown = [list(map(" .. ".join, zip(*(next(after) for _ in own), strict=True))) for own in ends]
    recoded = zip(encoded.axes, texts, shown, strict=False)
    kept = zip(encoded.told, after, strict=True)
    return (
        *(Example(axis.name, was, now) for axis, was, now in recoded),
        *(Example(axis.column.name, same, same) for axis, same in kept),
    )


def _few(classes: NewClasses) -> Relation:
    """Rows with their classes, spread evenly over all that are assigned; of cells one row each."""
    engine, recoding = classes.engine, classes.recoding
    columns = [Identifier("row_id"), Identifier("class_id")]
    spread = {"rows": recoding.assigned, "columns": columns, "limit": Value(EXAMPLES)}
    some = engine.materialise("some", "running/demo/list_rows", **spread)
    if recoding.dealt is None:
        return some
    return engine.select("one_of_each", some, "row_id", "class_id", constants={recoding.dealt.name: 1})
