"""Sets that a policy limits, audited by the labels that are published."""

from __future__ import annotations

from collections.abc import Mapping

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, count_phrase
from ldiv_db.database.names import Identifier
from ldiv_db.recoding.labels import as_labels, read_parts


def require_few(engine: Engine, table: Table, most: Mapping[str, int]) -> None:
    """Raise AuditError if a set has more values than the `most` of its column, NULL counted as one.

    Columns that the table lacks are passed over.
    """
    names = {column.name.lower() for column in columns_of(engine, table)}
    for name, allowed in most.items():
        if name.lower() not in names:
            continue
        with engine.scope():
            read = as_labels(engine, table, [name])
            labels = engine.materialise("labels", "auditing/list_sets", published=read, column=Identifier(name))
            large = engine.scalar("auditing/count_large", parts=read_parts(engine, labels), most=allowed)
        if large:
            have = count_phrase(large, "label has", "labels have")
            raise AuditError(f"{name}: {have} more than the {allowed} values that a set may have")
