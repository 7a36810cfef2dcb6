"""Means and medians of classes, audited by the numbers of the rows behind them and by the ranges beside them."""

from __future__ import annotations

from collections.abc import Mapping

from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, count_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.labels import read_parts, read_ranges


def require_true(engine: Engine, subject: Subject, centre: str, axis: Axis, median: bool) -> None:
    """Raise AuditError unless a column is the mean or median of its class's numbers.

    The subject's table has the rows that are published, each with the code of its number in the column `axis.code`.
    """
    params = {"published": subject.table, "class_columns": subject.renamed, "centre": Identifier(centre)}
    wrong = engine.scalar("auditing/count_miscentred", **params, axis=axis, median=median)
    _require_none(centre, wrong, "is not that of the numbers behind")


def require_within(engine: Engine, table: Relation | FileRelation, centres: Mapping[str, str]) -> None:
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
