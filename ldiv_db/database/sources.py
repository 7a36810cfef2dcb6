"""DuckDB's own extensions: loaded where they are, and said how to install where they are not.

They are found in DuckDB's folder of extensions, or in a wheel `duckdb-extension-NAME` for this very version of DuckDB.

A query as a source: one SELECT, without side effects, of which a TEMP view is made.

DuckDB itself says what a statement is: it serialises SELECTs alone. Functions that read files, and those that give one
value for one argument, are allowed; those that write, draw or count are not.

Where rows come from: the table, view or data file that a policy or a command names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, csv_files, databases
from ldiv_db.database.catalog import columns_of, named_table
from ldiv_db.database.connections import attempt, database_version
from ldiv_db.database.data_files import ICEBERG_STATE, FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, nearest, refused
from ldiv_db.database.names import Identifier, Relation, literal

#: The last version of DuckDB for which PyPI has wheels of extensions.
_LAST_WHEELS = "1.5.5"
#: Extensions that another needs loaded first: it would look for them in DuckDB's folder alone.
_NEEDS = {"iceberg": ("avro",)}


def load_extension(connection: Any, name: str, why: str) -> None:
    """Load the extension, and those that it needs; raises DatabaseError that says how to install them.

    `why` is what needs it.
    """
    names = (*_NEEDS.get(name, ()), name)
    for one in names:
        if not _is_loaded(connection, one):
            raise DatabaseError(f"{why} needs DuckDB's extension {one}, {_how_to_install(one, names)}")


def _is_loaded(connection: Any, name: str) -> bool:
    """True if the extension is loaded, or could be."""
    ((loaded,),) = connection.execute(
        "SELECT coalesce(bool_or(loaded), false) FROM duckdb_extensions() WHERE extension_name = $name", {"name": name}
    ).fetchall()
    if loaded:
        return True
    file = wheel_of(name)
    if file is not None and attempt(connection, f"LOAD {literal(str(file))}") is None:
        return True
    quoted = Identifier(name).sql()
    if attempt(connection, f"LOAD {quoted}") is None:
        return True
    return attempt(connection, f"INSTALL {quoted}") is None and attempt(connection, f"LOAD {quoted}") is None


def wheel_of(name: str) -> Path | None:
    """The extension's file in a wheel that is installed, None if there is none for this version of DuckDB."""
    file = _folder_of(name) / f"v{database_version()}" / f"{name}.duckdb_extension"
    return file if file.is_file() else None


def _folder_of(name: str) -> Path:
    """The folder of the extension's files in its wheel, one subfolder a version; a missing path without the wheel."""
    found = find_spec(f"duckdb_extension_{name}")
    home = Path(found.origin).parent if found and found.origin else Path("no-such-folder")
    return home / "extensions"


def _how_to_install(name: str, names: Sequence[str]) -> str:
    """Why the extension is not to be had, and how all of `names` are installed."""
    version = database_version()
    fitting = version if _numbers(version) <= _numbers(_LAST_WHEELS) else _LAST_WHEELS
    wheels = " ".join(f"duckdb-extension-{one.replace('_', '-')}=={fitting}" for one in names)
    installs = "; ".join(f"INSTALL {one}" for one in names)
    return (
        f"{_what_is_there(name)} (this is {version}): online, `python -c \"import duckdb; duckdb.sql('{installs}')\"`;"
        f" where DuckDB's server cannot be reached, `pip install duckdb=={fitting} {wheels}`"
    )


def _what_is_there(name: str) -> str:
    if wheel_of(name) is not None:
        return "whose wheel here cannot be loaded"
    others = sorted(folder.name.removeprefix("v") for folder in _folder_of(name).glob("v*"))
    return f"whose wheel here is for DuckDB {others[-1]}" if others else "which is not here"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


#: The functions of tables that a query may call: they read.
_TABLES = {
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto", "range", "generate_series", "unnest", "glob", "delta_scan", "iceberg_scan", "sqlite_scan",
    "postgres_scan", "mysql_scan", "repeat", "repeat_row",
}  # fmt: skip


def name_of_query(text: str) -> str:
    """The name of a query that has been given none: its text may name values of the data."""
    return f"query {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def parse_select(engine: Engine, text: str, key: str) -> tuple[str, Any]:
    """The query, and its tree as the database serialises it; raises PolicyError unless it is one SELECT."""
    query = text.strip().rstrip(";")
    ((tree,),) = engine.execute("SELECT json_serialize_sql($query)", {"query": query})
    parsed = json.loads(tree)
    if parsed.get("error") or len(parsed["statements"]) != 1:
        raise refused(key, "takes one SELECT", "make a table or a view of anything else")
    return query, parsed["statements"][0]


def view_of_query(engine: Engine, text: str, key: str) -> Relation:
    """A TEMP view of the query; raises PolicyError unless it is one SELECT without side effects that can be read."""
    databases.compare_here(engine)
    query, tree = parse_select(engine, text, key)
    if called := sorted(set(_refused(engine, tree))):
        what = f"calls {', '.join(called)}, which may have side effects, or give other rows when it is read again"
        raise refused(key, what)
    try:
        return engine.view_of("query", query)
    except DatabaseError as error:
        reason = error.message.splitlines()[0].partition(": ")[2] or "it cannot be read"
        raise refused(key, f"cannot be read: {reason}") from None


def _refused(engine: Engine, tree: Any) -> Iterator[str]:
    """The functions called anywhere in the statement that are not allowed."""
    volatile = {
        name
        for (name,) in engine.execute(
            "SELECT lower(function_name) FROM duckdb_functions()"
            " WHERE has_side_effects OR function_type = 'table_macro'"
        )
    }
    for is_table, name in calls_in(tree):
        if name in volatile or (is_table and name not in _TABLES):
            yield name


def calls_in(tree: Any) -> Iterator[tuple[bool, str]]:
    """For every function that is called: True if it gives a table, and its name."""
    if isinstance(tree, list):
        for part in tree:
            yield from calls_in(part)
        return
    if not isinstance(tree, dict):
        return
    if tree.get("type") == "TABLE_FUNCTION":
        yield True, str(tree["function"]["function_name"]).lower()
        yield from calls_in(tree["function"].get("children", []))
        return
    if tree.get("class") == "FUNCTION":
        yield False, str(tree["function_name"]).lower()
    for part in tree.values():
        yield from calls_in(part)


def reads_as(tree: Any, name: str) -> bool:
    """True if the statement reads a table by that name alone, without a schema, and names none so itself (`WITH`)."""
    nodes = list(_nodes_in(tree))
    tables = [node for node in nodes if node.get("type") == "BASE_TABLE"]
    read = {table["table_name"].lower() for table in tables if not table["schema_name"]}
    made = {entry["key"].lower() for node in nodes for entry in node.get("cte_map", {}).get("map", [])}
    return name in read - made


def _nodes_in(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for part in parts:
        yield from _nodes_in(part)


#: A file of the log of Delta Lake, one a version.
_VERSION = re.compile(r"\d{20}(\.checkpoint.*\.parquet|\.json)")


def resolve_source(engine: Engine, source: str, folder: Path, key: str = "source") -> Relation | FileRelation:
    """The table, view or data files that `key` names; raises PolicyError, with the nearest name, if there is none.

    Files are one, a pattern, or a folder: of Parquet files, or of a table of Delta Lake or Iceberg; of the latter also
    the file in which the table has one of its states.
    """
    databases.compare_here(engine)
    file = files_of(engine, folder / source) if source.strip() else None
    if file is not None and not _is_table(engine, source):
        _refuse_missing(engine, file, source, key)
        if file.reader == "read_csv":
            return csv_files.with_form(engine, file, source, key)
        _refuse_unreadable(engine, file, source, key)
        return file
    relation = named_table(source, key)
    if bring := getattr(engine.connection, "bring", None):  # of a warehouse, whose tables are counted as they are named
        bring(relation)
    found = catalog.looked_up(engine, relation)  # what a caller registered, or a temporary table, comes first
    if found is None:
        tables = catalog.list_tables(engine)
        in_main = [table.partition(".")[2] for table in tables if table.startswith(("main.", "public."))]
        hint = nearest(source, tables + in_main)
        raise refused(key, f"no table or view {source}", hint)
    return found


def files_of(engine: Engine, path: Path) -> FileRelation | None:
    """The way to read the files at a path, or of a pattern; None if the database does not read them."""
    if path.name.endswith(ICEBERG_STATE) and path.parent.name == "metadata":
        return _iceberg(engine, path)
    if not path.is_dir():
        file = FileRelation.of(str(path))
        return replace(file, hive=True) if file and _is_pattern(file.path) and not path.is_file() else file
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


def _is_pattern(path: str) -> bool:
    return bool(set("*?[") & set(path))


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
        if _is_pattern(file.path):
            what = f"{source} has one of * ? [ in its path, which would be read as a pattern"
            raise refused(key, what)
        return
    found = engine.execute("SELECT count(*) FROM glob($p)", {"p": file.path}) if file.hive else [(0,)]
    if not found[0][0]:
        raise refused(key, f"no file {source}")


def _refuse_unreadable(engine: Engine, file: FileRelation, source: str, key: str) -> None:
    """Raise PolicyError if the file is not what its ending says."""
    try:
        columns_of(engine, file)
    except DatabaseError as error:
        kind = file.reader.removeprefix("read_").removesuffix("_scan").capitalize()
        raise refused(key, f"{source} cannot be read as {kind}") from error


def _is_table(engine: Engine, name: str) -> bool:
    """True if a table or view has that very name, which may end like a file's."""
    try:
        return catalog.table_exists(engine, named_table(name, "source"))
    except PolicyError:
        return False
