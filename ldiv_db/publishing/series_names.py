"""Names of series: `file.duckdb:schema.prefix`, or without a file; the same series in any spelling."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ldiv_db.database.templates import Relation

#: The schema of a file's tables where none is named.
MAIN = "main"


def known_as(text: str, path: Path | None, known: Mapping[str, str | None], schema: str) -> str:
    """The name among the `known` of the series that `text` names, or `text` itself if there is none.

    The known names come with the whole path of their file; `path` is that of the text's file, `schema` where tables
    lie that name none. Names of tables are compared as the database does, without regard to case.
    """
    if text in known:
        return text
    (file, tables), where = _spelling(text, schema), str(path)
    for name in known:
        if (file, tables) == _spelling(name, schema):
            return name
    for name, known_file in known.items():
        if path is not None and known_file == where and tables == _spelling(name, schema)[1]:
            return name
    return text


def series_file_of(text: str) -> Path | None:
    """The file in the name of a series, by its whole path; None if it names none."""
    file = text.rpartition(":")[0]
    return Path(file).resolve() if file else None


def _spelling(text: str, schema: str) -> tuple[str, tuple[str, ...]]:
    """The file, as short as it can be, and the schema and prefix, of a series in lower case."""
    file, _, prefix = text.rpartition(":")
    parts = tuple(part.lower() for part in _parts(prefix))
    return os.path.normpath(file) if file else "", (MAIN if file else schema.lower(), *parts)[-2:]


def _parts(prefix: str) -> tuple[str, ...]:
    try:
        return Relation.parse(prefix).parts
    except Exception:  # the ledger has names without their quotes, which need not be read as names again
        return tuple(prefix.split("."))
