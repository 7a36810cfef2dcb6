"""Means and medians of classes, audited by the numbers of the rows behind them and by the ranges beside them."""

from __future__ import annotations

from collections.abc import Mapping

from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, count_phrase, rows_phrase
from ldiv_db.database.names import Identifier
from ldiv_db.policy.release_columns import Form
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.labels import read_parts, read_ranges


def require_all(left_out: int) -> None:
    """Raise AuditError if rows are left out, whose numbers who knows all of them could infer."""
    if left_out:
        what = f"{rows_phrase(left_out)} left out, and means and medians would tell whose"
        raise AuditError(f"{what}: leave them out of `output`, or take a requirement that all rows can meet")


def require_true(engine: Engine, subject: Subject, axes: Mapping[str, Axis], forms: Mapping[str, Form]) -> None:
    """Raise AuditError unless columns are the means or medians, as `forms` says, of their classes' numbers.

    The subject's table has the rows that are published, each with the code of its number in the column `axis.code`.
    """
    params = {"published": subject.table, "class_columns": subject.renamed}
    for name, axis in axes.items():
        told = {"centre": Identifier(name), "axis": axis, "median": forms[axis.name] == "median"}
        wrong = engine.scalar("auditing/count_miscentred", **params, **told)
        _require_none(name, wrong, "is not that of the numbers behind")


def require_within(engine: Engine, table: Table, centres: Mapping[str, str]) -> None:
    """Raise AuditError unless means and medians lie in their ranges, and stand beside ranges alone.

    `centres` has the column of the ranges of each; those that the table lacks are passed over.
    """
    names = {column.name.lower() for column in columns_of(engine, table)}
    for centre, ranges in centres.items():
        if {centre.lower(), ranges.lower()} <= names:
            with engine.scope():
                columns = {"column": Identifier(ranges), "centre": Identifier(centre)}
                labels = engine.materialise("labels", "auditing/list_centres", published=table, **columns)
                read = read_ranges(engine, read_parts(engine, labels), "integer")
                wrong = engine.scalar("auditing/count_outside", labels=labels, ranges=read)
            _require_none(centre, wrong, f"is not in the range {ranges} of")


def _require_none(centre: str, wrong: int, what: str) -> None:
    if wrong:
        raise AuditError(f"{centre} {what} {count_phrase(wrong, 'class', 'classes')}")
