"""Questions, and rows with weights, as one SELECT for another database that has the published table.

What labels cover stands in the SELECT as rows that are written out: labels are public, and no other database has to
read them, or to know a tree. They are those of a table here; rows with another label are counted, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.composer import Composer
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.questions import Asked, Grouping, Question, read_question
from ldiv_db.measuring.asking.answer import AskRequest
from ldiv_db.measuring.asking.cells import CutAxis, Uses, cut
from ldiv_db.measuring.asking.columns import Labelled, columns_asked
from ldiv_db.measuring.asking.inquiry import Inquiry
from ldiv_db.policy.document import Policy
from ldiv_db.recoding.labels import as_labels, labels_there, lists_among


def ask_statement(engine: Engine, table: Table, request: AskRequest, policy: Policy | None, at: Composer) -> str:
    """The answer as one SELECT on `request.table` in a database of `at`'s dialect; `table` here has its labels.

    A row a figure of a group: the groups, each with whether it is known which that is; figure (its number; 0 is how
    many rows the group has), low, estimate, high; and how many rows have a label that is `unread`, which is to be 0.
    """
    question = read_question(request.query)
    table, there = _labelled(engine, table, policy, at, request.table)
    columns, _ = columns_asked(engine, table, question, policy, Path(request.folder))
    with engine.scope():
        inquiry = Inquiry.of(engine, table, question, columns)
        labelled = [
            replace(axis, labels=_listed(engine, at, axis.labels, axis), cells=_listed(engine, at, axis.cells, axis))
            for axis in inquiry.cuts.values()
        ]
        flow = inquiry.answering(at, there, labelled, request.left_out or 0)
        return at.text(flow.path("list_bounds"), **flow.params("list_bounds"))


class _Spread:
    """A column that is spread over its values: `shares` has its labels, each with values and their shares."""

    table = NamedAfter("s{0.place}")

    def __init__(self, axis: CutAxis, shares: Relation) -> None:
        self.place, self.columns, self.shares, self.name = axis.place, axis.columns, shares, Identifier(axis.name)


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
    question = Question(items=(*((name, Grouping(name)) for name in asked), ("", Asked("count"))))
    columns, _ = columns_asked(engine, table, question, policy, folder)
    labelled = [column for column in columns.values() if isinstance(column, Labelled)]
    with engine.scope():
        axes = [_cut_to_values(engine, table, column, place) for place, column in enumerate(labelled, 1)]
        spread = []
        for axis in axes:
            how = {"by_middle": axis.on_line and not axis.unit, "is_time": axis.is_time, "on_line": axis.on_line}
            shares = engine.materialise(
                "shares", "measuring/asking/list_shares", labels=axis.labels, cells=axis.cells, axis=axis, **how
            )
            spread.append(_Spread(axis, _listed(engine, at, shares, axis)))
        labels = {column.name.lower() for axis in axes for column in axis.columns}
        others = [Identifier(name) for name in published if name.lower() not in labels]
        return at.text("measuring/asking/expand_rows", published=there, spread=spread, others=others)


def _labelled(engine: Engine, table: Table, policy: Policy | None, at: Composer, there: Table) -> tuple[Table, Table]:
    """The table here and the one there with labels in place of their lists."""
    lists = lists_among(engine, table, policy.quasi_identifiers if policy else None)
    return as_labels(engine, table, [column.name for column in lists]), labels_there(at, there, lists)


def _cut_to_values(engine: Engine, table: Table, column: Labelled, place: int) -> CutAxis:
    """The column cut into its values, or where these have no distance into its labels."""
    try:
        return cut(engine, table, column, Uses(grouping=Grouping(column.name)), place)
    except PolicyError:
        return cut(engine, table, column, Uses(is_summed=True), place)


def _listed(engine: Engine, at: Composer, made: Relation, axis: CutAxis) -> Relation:
    """A relation of labels as rows that are written out."""
    columns = {c.name: c.type for c in columns_of(engine, made) if c.name not in ("rows", "written")}
    kinds = {name: "DOUBLE" if kind == "HUGEINT" else kind for name, kind in columns.items()}
    return at.load(f"{made.name.split('_', 3)[3]}_of_{axis.name}", kinds, [*_sorted(engine.columns(made, *columns))])


def _sorted(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows in an order of their own, so that a statement is the same each time."""
    yield from sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])
