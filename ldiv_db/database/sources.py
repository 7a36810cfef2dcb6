"""Where rows come from: the table, view or data file that a policy or a command names."""

from __future__ import annotations

from pathlib import Path

from ldiv_db.database import catalog
from ldiv_db.database.catalog import columns_of, qualify
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem, nearest
from ldiv_db.database.templates import FileRelation, Relation


def resolve_source(engine: Engine, source: str, folder: Path, key: str = "source") -> Relation | FileRelation:
    """The table, view or data file that `key` names; raises PolicyError, with the nearest name, if there is none."""
    file = FileRelation.of(str(folder / source))
    if file is not None and not _is_table(engine, source):
        if set("*?[") & set(file.path):
            raise PolicyError(
                [Problem(key, f"{source} has one of * ? [ in its path, which would be read as a pattern")]
            )
        if not Path(file.path).is_file():
            raise PolicyError([Problem(key, f"no file {source}")])
        _refuse_unreadable(engine, file, source, key)
        return file
    relation = qualify(engine, source, key)
    frame = Relation(("temp", "main", relation.name))  # what a caller registered, or a temporary table: looked up first
    if len(relation.parts) == 1 and catalog.table_exists(engine, frame):
        return frame
    if not catalog.table_exists(engine, relation):
        tables = catalog.list_tables(engine)
        in_main = [table.partition(".")[2] for table in tables if table.startswith(("main.", "public."))]
        hint = nearest(source, tables + in_main)
        raise PolicyError([Problem(key, f"no table or view {source}", hint)])
    return relation


def _refuse_unreadable(engine: Engine, file: FileRelation, source: str, key: str) -> None:
    """Raise PolicyError if the file is not what its ending says."""
    try:
        columns_of(engine, file)
    except DatabaseError as error:
        kind = file.reader.removeprefix("read_").capitalize()
        raise PolicyError([Problem(key, f"{source} cannot be read as {kind}")]) from error


def _is_table(engine: Engine, name: str) -> bool:
    """Whether a table or view has that very name, which may end like a file's."""
    try:
        return catalog.table_exists(engine, qualify(engine, name, "source"))
    except PolicyError:
        return False
