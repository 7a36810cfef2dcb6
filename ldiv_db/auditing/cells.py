"""Cells of cross-tables, audited by the rows of a release, each with the codes that its values have in the source.

Where all rows of a cell have one label, which covers its values, none but these rows stand under the values themselves,
and all of them do or none: their counts, by whatever else is published of them, are those of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.auditing.counting import require_same_rows
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, PolicyError, count_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.resolve import resolve_axes
from ldiv_db.policy.resolve import Described
from ldiv_db.recoding.encoded import Axis


@dataclass(frozen=True)
class CellColumn:
    """A quasi-identifier of cells: its label, or its bounds `low` and `high`, and `own`, the code in the source."""

    axis: Axis
    own: Identifier
    low: Identifier
    high: Identifier | None


def require_cells(
    engine: Engine,
    subject: Subject,
    rows: Relation,
    axes: Mapping[Identifier, Axis],
    described: Described,
    sensitive: Sequence[str],
) -> None:
    """Raise AuditError unless the release has the rows of its cells, each cell's under one label that covers it.

    `rows` are those that are to be published, with the codes of each of the `axes` of cells in a column beside.
    """
    released = described.released
    labels = [column for axis in axes.values() for column in released.columns_of(axis.name)]
    counted = replace(subject, labels=labels, ids=[])
    types = {column.name.lower(): column.type for column in columns_of(engine, subject.table)}
    same = {one.name for one in columns_of(engine, rows) if types.get(one.name.lower()) == one.type}
    kept = [name for name in released.keep if name in same]  # values of another type may be written otherwise
    require_same_rows(engine, counted, replace(counted, table=rows), [*sensitive, *kept], "cells")
    _require_whole(engine, rows, axes, described)


def _require_whole(engine: Engine, rows: Relation, axes: Mapping[Identifier, Axis], described: Described) -> None:
    """Raise AuditError unless all rows of a cell have one label, which covers its values."""
    source, released = described.source, described.released
    known = {qi.name: qi.column for qi in source.quasi_identifiers}
    columns = []
    for own, axis in axes.items():
        low, *high = map(Identifier, released.columns_of(axis.name))
        columns.append(CellColumn(axis, own, low, next(iter(high), None)))
    kinds = [one.kind if one.is_number or one.is_time else "text" for one in (known[a.name] for a in axes.values())]
    sets = [released.forms[axis.name] == "set" for axis in axes.values()]
    with engine.scope():
        cells = engine.materialise("cells", "auditing/list_cells", published=rows, columns=columns)
        try:
            labels = resolve_axes(engine, cells, list(axes.values()), kinds, sets)
        except PolicyError as error:
            raise AuditError(f"labels of cells cannot be read: {error}") from None
        divided = engine.scalar("auditing/count_divided", cells=cells, columns=columns, labels=labels)
    if divided:
        what = "stand under several labels, or under one that does not cover them: their counts are not the source's"
        found = f"rows of {count_phrase(divided, 'cell', 'cells')} of tables_of {what}"
        raise AuditError(f"the audit failed, nothing was published:\n{found}")
