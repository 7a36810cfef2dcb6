"""Questions, and rows with weights, as one SELECT for another database that has the published table.

What labels cover stands in the SELECT as rows that are written out: labels are public, and no other database has to
read them, or to know a tree. They are those of a table here; rows with another label are counted, never passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.composer import Composer
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.questions import Asked, Grouping, read_question
from ldiv_db.measuring.asking.answer import AskRequest
from ldiv_db.measuring.asking.cells import Part, cut
from ldiv_db.measuring.asking.columns import Labelled, columns_asked, crossed_columns
from ldiv_db.measuring.asking.inquiry import Inquiry
from ldiv_db.policy.document import Policy
from ldiv_db.recoding.labels import as_labels, labels_there, lists_among


def ask_statement(engine: Engine, table: Table, request: AskRequest, policy: Policy | None, at: Composer) -> str:
    """The answer as one SELECT on `request.table` in a database of `at`'s dialect; `table` here has its labels.

    A row a figure of a group: the groups, each with whether it is known which that is; figure (its number; 0 is how
    many rows the group has), low, estimate, high; and how many rows have a label that is `unread`, which is to be 0.
    """
    question = read_question(request.query)
    crossed = crossed_columns(question, policy)
    table, there = _labelled(engine, table, policy, at, request.table)
    columns, _ = columns_asked(engine, table, [*question.columns, *crossed], policy, Path(request.folder))
    with engine.scope():
        inquiry = Inquiry.of(engine, table, question, columns, crossed)
        parts = {name: _there(engine, at, part) for name, part in inquiry.parts.items()}
        flow = replace(inquiry, parts=parts).answering(at, there, request.left_out or 0)
        return at.text(flow.path("list_bounds"), **flow.params("list_bounds"))


def expand_statement(
    engine: Engine, table: Table, names: Sequence[str], policy: Policy | None, folder: Path, at: Composer, there: Table
) -> str:
    """A SELECT of the rows of `there` with all values that labels of these columns stand for, each with its `weight`.

    `sum(weight)` is then the estimate of `ask`. Numbers that are not whole are the middle of their range; a label that
    is known by no value stays as it is. Raises PolicyError for columns that are no labels.
    """
    table, there = _labelled(engine, table, policy, at, there)
    published = [column.name for column in columns_of(engine, table)]
    asked = names or [*(policy.quasi_identifiers if policy else published)]
    columns, _ = columns_asked(engine, table, asked, policy, folder)
    labelled = [column for column in columns.values() if isinstance(column, Labelled)]
    with engine.scope():
        spread = []
        for place, column in enumerate(labelled, 1):
            part = _cut_to_values(engine, table, column, place)
            shares = engine.materialise(
                "shares", "measuring/asking/list_shares", labels=part.labels, cells=part.cells, part=part
            )
            spread.append(replace(part, cells=_listed(engine, at, "shares", shares, part)))
        labels = {name.name.lower() for part in spread for name in part.columns}
        others = [Identifier(name) for name in published if name.lower() not in labels]
        return at.text("measuring/asking/expand_rows", published=there, spread=spread, others=others)


def _labelled(engine: Engine, table: Table, policy: Policy | None, at: Composer, there: Table) -> tuple[Table, Table]:
    """The table here and the one there with labels in place of their lists."""
    lists = lists_among(engine, table, policy.quasi_identifiers if policy else None)
    return as_labels(engine, table, [column.name for column in lists]), labels_there(at, there, lists)


def _cut_to_values(engine: Engine, table: Table, column: Labelled, place: int) -> Part:
    """The column cut into its values, or where these have no distance into its labels."""
    try:
        return cut(engine, table, Part(place, column, grouping=Grouping(column.name)))
    except PolicyError:
        return cut(engine, table, Part(place, column, figures=[Asked("sum", column.name)]))


def _there(engine: Engine, at: Composer, part: Part) -> Part:
    """The column with its labels and cells as rows that are written out."""
    if part.labels is None or part.cells is None:
        return part
    cells = engine.select_among("cells", part.cells, part.labels, "value_no")
    labels = _listed(engine, at, "labels", part.labels, part)
    return replace(part, labels=labels, cells=_listed(engine, at, "cells", cells, part))


def _listed(engine: Engine, at: Composer, name: str, made: Relation, part: Part) -> Relation:
    """A relation of labels as rows that are written out, in an order that is the same each time."""
    columns = {c.name: c.type for c in columns_of(engine, made) if c.name not in ("rows", "written")}
    kinds = {name: "DOUBLE" if kind == "HUGEINT" else kind for name, kind in columns.items()}
    rows = sorted(engine.columns(made, *columns), key=lambda row: [(value is None, str(value)) for value in row])
    return at.load(f"{name}_of_{part.column.name}", kinds, rows)
