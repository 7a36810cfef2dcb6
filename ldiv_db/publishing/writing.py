"""Rows of a release as they are written, and whether all of them were."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ldiv_db.database import postgres
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.policy.targets import Target


def write_rows(
    engine: Engine,
    where: Table,
    target: Target,
    template: str,
    params: Mapping[str, Any],
    types: Callable[[], Mapping[str, str]] = dict,
) -> str:
    """Write the rows of a template to a file or a table; returns what is to be said of that.

    A table of PostgreSQL's gets the `types` and keeps what is granted on it.
    """
    if isinstance(where, FileRelation):
        engine.export(Path(where.path), target.format or "", template, **params)
    elif postgres.is_in_postgres(engine, where):
        with engine.scope():
            rows = engine.materialise("release", template, **params)
            return postgres.make_table(engine, where, rows, types(), target.lose)
    else:
        engine.create(where, template, replace=target.if_exists == "replace", **params)
    return ""


def require_rows(written: int, expected: int) -> None:
    """Raise AuditError unless as many rows were written as were to be."""
    if written != expected:
        raise AuditError(f"{written:,} rows were written in place of the {expected:,} to be published")
