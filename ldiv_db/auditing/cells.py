"""Cells of cross-tables, audited by the rows of a release, each with the codes that its values have in the source.

Where all rows of a cell have one label, which covers its values, none but these rows stand under the values themselves,
and all of them do or none: their counts, by whatever else is published of them, are those of the source.

Of a release that is published nobody knows which row was which. Its cells are then counted as questions to it are
answered, by sensitive values as well, and the counts of the source must lie between these bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.auditing.counting import require_same_rows
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, PolicyError, count_phrase, in_words, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.questions import count_by
from ldiv_db.measuring.asking.answer import AskRequest, Bounds, answer
from ldiv_db.measuring.resolve import resolve_axes
from ldiv_db.policy.document import Policy
from ldiv_db.policy.quasi_identifiers import open_columns
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


def crossed_names(policy: Policy) -> list[str]:
    """The columns of the policy's cross-tables."""
    return list(dict.fromkeys(name for table in policy.tables_of for name in table))


#: The rows of cells by their values, between bounds, and the most of any other cell.
Cells = tuple[dict[tuple[Any, ...], Bounds], int]


def cells_of(engine: Engine, table: Table, policy: Policy, folder: Path, columns: Sequence[str]) -> Cells:
    """The cells by columns of a release under the policy, or of its source, whose bounds are one.

    Raises PolicyError for labels that do not tell single values.
    """
    found = answer(engine, table, AskRequest(query=count_by(columns), folder=folder), policy, 0, "")
    return {values: figures[0] for values, figures in found.groups}, found.unlisted or 0


def unaudited_cells(engine: Engine, table: Table, policy: Policy, folder: Path) -> str:
    """Audit the cells of a published table by its source; why that cannot be done, empty if it was or none are named.

    Cells are those of each cross-table and of all of them, by sensitive values as well, and these alone: that no
    value moved between merged cells. Raises AuditError where counts of the source are not between the table's bounds.
    """
    if not policy.tables_of:
        return ""
    values = [name for name, setting in policy.sensitive.items() if not setting.set]
    try:
        if policy.weight:
            raise refused("source", "holds counts")
        source = open_columns(engine, policy, folder)
        tables = ([], *policy.tables_of, crossed_names(policy))
        for names in {frozenset(table): table for table in tables}.values():
            if columns := [*names, *values]:
                own = cells_of(engine, table, policy, folder, columns)
                _require_counts(own, cells_of(engine, source, policy, folder, columns), len(names))
    except PolicyError as error:
        return f"the cells of tables_of were not checked, as their source cannot be read: {in_words(error)}"
    return ""


def _require_counts(published: Cells, source: Cells, width: int) -> None:
    """Raise AuditError unless the source's cells, of so many columns, have as many rows as the release says."""
    bounds, most = published
    counts = {cell: rows.low for cell, rows in source[0].items()}
    other = Bounds(0, 0, most)
    pairs = ((cell, bounds.get(cell, other), counts.get(cell, 0)) for cell in counts.keys() | bounds.keys())
    if wrong := {cell[:width] for cell, own, rows in pairs if not own.low <= rows <= own.high}:
        what = f"the table has other counts of {count_phrase(len(wrong), 'cell', 'cells')} of tables_of than the source"
        raise AuditError(f"{what}. Is this the source that the release was made of, as it was?")
