"""Where rows come from: the table, view or data file that a policy or a command names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ldiv_db.database import catalog
from ldiv_db.database.catalog import columns_of, qualify
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem, nearest
from ldiv_db.database.extensions import load_extension
from ldiv_db.database.templates import FileRelation, Relation


def resolve_source(engine: Engine, source: str, folder: Path, key: str = "source") -> Relation | FileRelation:
    """The table, view or data files that `key` names; raises PolicyError, with the nearest name, if there is none.

    Files are one, a pattern, or a folder: of Parquet files, or of a table of Delta Lake or Iceberg.
    """
    file = files_of(engine, folder / source) if source.strip() else None
    if file is not None and not _is_table(engine, source):
        _refuse_missing(engine, file, source, key)
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


def files_of(engine: Engine, path: Path) -> FileRelation | None:
    """How the files at a path, or of a pattern, are read; None if they are none that the database reads."""
    if not path.is_dir():
        file = FileRelation.of(str(path))
        return replace(file, hive=True) if file and _is_pattern(file.path) and not path.is_file() else file
    if (path / "_delta_log").is_dir():
        load_extension(engine.connection, "delta", "a table of Delta Lake")
        return FileRelation("delta_scan", str(path))
    if (path / "metadata").is_dir():
        load_extension(engine.connection, "iceberg", "a table of Iceberg")
        return FileRelation("iceberg_scan", str(path))
    has_files = next(path.rglob("*.parquet"), None) is not None
    return FileRelation("read_parquet", f"{path}/**/*.parquet", hive=True) if has_files else None


def _is_pattern(path: str) -> bool:
    return bool(set("*?[") & set(path))


def _refuse_missing(engine: Engine, file: FileRelation, source: str, key: str) -> None:
    """Raise PolicyError if no file is there, or one that would be read as a pattern."""
    if file.reader.endswith("_scan"):
        return
    if Path(file.path).is_file():
        if _is_pattern(file.path):
            what = f"{source} has one of * ? [ in its path, which would be read as a pattern"
            raise PolicyError([Problem(key, what)])
        return
    found = engine.execute("SELECT count(*) FROM glob($p)", {"p": file.path}) if file.hive else [(0,)]
    if not found[0][0]:
        raise PolicyError([Problem(key, f"no file {source}")])


def _refuse_unreadable(engine: Engine, file: FileRelation, source: str, key: str) -> None:
    """Raise PolicyError if the file is not what its ending says."""
    try:
        columns_of(engine, file)
    except DatabaseError as error:
        kind = file.reader.removeprefix("read_").removesuffix("_scan").capitalize()
        raise PolicyError([Problem(key, f"{source} cannot be read as {kind}")]) from error


def _is_table(engine: Engine, name: str) -> bool:
    """Whether a table or view has that very name, which may end like a file's."""
    try:
        return catalog.table_exists(engine, qualify(engine, name, "source"))
    except PolicyError:
        return False
