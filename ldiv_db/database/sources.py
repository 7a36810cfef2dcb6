"""Where rows come from: the table, view or data files that a policy or a command names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ldiv_db.database import catalog, csv_files
from ldiv_db.database.catalog import columns_of, named_table
from ldiv_db.database.connections import load_extension
from ldiv_db.database.data_files import ICEBERG_STATE, FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, nearest, refused
from ldiv_db.database.names import Identifier, Relation

#: The signs of a pattern of files.
_PATTERN = set("*?[")
#: A file of the log of Delta Lake, one a version.
_VERSION = re.compile(r"\d{20}(\.checkpoint.*\.parquet|\.json)")

#: How a query begins that stands where the name of a table is taken.
_QUERY = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)


def resolve_source(engine: Engine, source: str, folder: Path, key: str = "source") -> Table:
    """The table, view or data files that `key` names; raises PolicyError, with the nearest name, if there is none.

    Files are one, a pattern, or a folder: of Parquet files, or of a table of Delta Lake or Iceberg; of the latter also
    the file in which the table has one of its states.
    """
    catalog.compare_here(engine)
    file = files_of(engine, folder / source) if source.strip() else None
    if file is not None and not _is_table(engine, source):
        _refuse_missing(engine, file, source, key)
        if file.reader == "read_csv":
            return csv_files.with_form(engine, file, source, key)
        try:
            columns_of(engine, file)
        except DatabaseError as error:
            kind = file.reader.removeprefix("read_").removesuffix("_scan").capitalize()
            raise refused(key, f"{source} cannot be read as {kind}") from error
        return file
    relation = named_table(source, key)
    if bring := getattr(engine.connection, "bring", None):  # of a warehouse, whose tables are counted as they are named
        bring(relation)
    found = catalog.looked_up(engine, relation)  # what a caller registered, or a temporary table, comes first
    if found is None:
        tables = list_tables(engine)
        in_main = [table.partition(".")[2] for table in tables if table.startswith(("main.", "public."))]
        hint = '{query: "SELECT …"}' if _QUERY.match(source) else nearest(source, tables + in_main)
        raise refused(key, f"no table or view {source}", hint)
    return found


def list_tables(engine: Engine) -> list[str]:
    """The names of all tables and views outside system schemas, as a policy writes them: `schema.name`."""
    every = (relation.parts for relation, _ in every_table(engine))
    return [written(Relation(parts[1:])) for parts in every if parts[0] == engine.snapshot.current]


def every_table(engine: Engine) -> list[tuple[Relation, bool]]:
    """All tables and views of all databases outside system schemas, by schema and name; True of views."""
    rows = engine.execute(
        "SELECT table_catalog, table_schema, table_name, table_type = 'VIEW' FROM information_schema.tables"
        " WHERE table_catalog NOT IN ('system', 'temp')"
        " AND table_schema NOT IN ('information_schema', 'pg_catalog', 'pg_toast')"
        " ORDER BY table_schema ASC NULLS LAST, table_name ASC NULLS LAST, table_catalog ASC NULLS LAST"
    )
    return [(Relation(tuple(place)), is_view) for *place, is_view in rows]


def written(relation: Relation) -> str:
    """A name as a policy writes it, with quotes where it takes them."""
    return ".".join(part if re.fullmatch(r"\w+", part) else Identifier(part).sql() for part in relation.parts)


def files_of(engine: Engine, path: Path) -> FileRelation | None:
    """The way to read the files at a path, or of a pattern; None if the database does not read them."""
    if path.name.endswith(ICEBERG_STATE) and path.parent.name == "metadata":
        return _iceberg(engine, path)
    if not path.is_dir():
        file = FileRelation.of(str(path))
        return replace(file, hive=True) if file and _PATTERN & set(file.path) and not path.is_file() else file
    if (path / "_delta_log").is_dir():
        load_extension(engine.connection, "delta", "a table of Delta Lake")
        return FileRelation("delta_scan", str(path), version=_version(path))
    if (path / "metadata").is_dir():
        return _iceberg(engine, path)
    has_files = next(path.rglob("*.parquet"), None) is not None
    return FileRelation("read_parquet", f"{path}/**/*.parquet", hive=True) if has_files else None


def _version(path: Path) -> int | None:
    """The newest version of a table of Delta Lake, None without any: a file of the log is whole, or is not there."""
    numbers = [int(file.name[:20]) for file in (path / "_delta_log").iterdir() if _VERSION.fullmatch(file.name)]
    return max(numbers, default=None)


def _iceberg(engine: Engine, path: Path) -> FileRelation:
    """The current state of a table of Iceberg, by the file that `version-hint.text` names; or the state's own file."""
    load_extension(engine.connection, "iceberg", "a table of Iceberg")
    hint = path / "metadata" / "version-hint.text"
    name = hint.read_text().strip() if hint.is_file() else ""
    states = [hint.with_name(f"{start}{name}{ICEBERG_STATE}") for start in ("v", "")]
    state = next((state for state in states if name and state.is_file()), path)
    return FileRelation("iceberg_scan", str(state))


def _refuse_missing(engine: Engine, file: FileRelation, source: str, key: str) -> None:
    """Raise PolicyError if no file is there, or one that would be read as a pattern."""
    path = Path(file.path)
    if file.reader == "iceberg_scan" and path.is_dir() and not (path / "metadata" / "version-hint.text").is_file():
        # The newest file need not be what was committed: only the catalog knows.
        what = f"{source} has no metadata/version-hint.text to say which state of the table is the current one"
        raise refused(key, what, f"name the state's own file, {source}/metadata/…{ICEBERG_STATE}")
    if file.reader.endswith("_scan") and path.exists():
        return
    if path.is_file():
        if _PATTERN & set(file.path):
            what = f"{source} has one of * ? [ in its path, which would be read as a pattern"
            raise refused(key, what)
        return
    found = engine.execute("SELECT count(*) FROM glob($p)", {"p": file.path}) if file.hive else [(0,)]
    if not found[0][0]:
        raise refused(key, f"no file {source}")


def _is_table(engine: Engine, name: str) -> bool:
    """True if a table or view has that very name, which may end like a file's."""
    try:
        return catalog.table_exists(engine, named_table(name, "source"))
    except PolicyError:
        return False
