"""Hashes of what a table holds, whatever order its rows lie in: by these a release is known again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import FileRelation, Identifier, Relation


@dataclass(frozen=True)
class Content:
    """The number of rows of a table, its columns, and SHA-256 of both names and rows."""

    rows: int
    columns: tuple[str, ...]
    digest: str

    def as_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "columns": list(self.columns), "sha256": self.digest}


def content_of(engine: Engine, table: Relation | FileRelation) -> Content:
    """The content of a table, worked out by the database: values count as the texts that they are written as.

    The hash of a table tells who holds all of it but one row, and can guess that row, whether he is right: that of a
    source is for those who may read the source.
    """
    names = tuple(column.name for column in columns_of(engine, table))
    found = engine.record("reporting/hash_rows", source=table, columns=[Identifier(name) for name in names])
    whole = json.dumps([list(names), found["digest"]], ensure_ascii=False)
    return Content(int(found["rows"]), names, hashlib.sha256(whole.encode()).hexdigest())
