"""Connections to databases by their client, and its extensions: the only module that imports `duckdb`.

Extensions are loaded where they are: in DuckDB's folder, or in a wheel `duckdb-extension-NAME` for this very version.
Where they are not it is said how they are installed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from ldiv_db.database import interrupts
from ldiv_db.database.data_files import Table
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.failures import first_sentence
from ldiv_db.database.names import Identifier, literal

#: What the client has: connections, relations, whose rows a caller may read on, and its errors.
Connection = duckdb.DuckDBPyConnection
ClientRelation = duckdb.DuckDBPyRelation
ClientError = duckdb.Error
StoppedError = duckdb.InterruptException
#: The last version of DuckDB for which PyPI has wheels of extensions.
_LAST_WHEELS = "1.5.5"
#: The optimizer that before DuckDB 1.6 takes parts of a statement for one that are not: the scans of two tables of one
#: layout in attached databases, and the arms of a union that share joins.
_MERGING, _MENDED = "common_subplan", [1, 6]
#: Those who have it off in this process, by the file of their database, and what the last of them puts back: it is one
#: setting for all connections to a database.
_apart: dict[str | None, list[Any]] = {}
_apart_lock = threading.Lock()
#: Extensions that another needs loaded first: it would look for them in DuckDB's folder alone.
_NEEDS = {"iceberg": ("avro",)}


@dataclass(frozen=True)
class Settings:
    """The machine's resources that a database of ours may use; None leaves the database's default."""

    threads: int | None = None
    memory_limit: str | None = None
    temp_directory: str | None = None


@contextmanager
def open_database(
    path: str | Path, read_only: bool = False, create: bool = False, settings: Settings | None = None
) -> Iterator[Connection]:
    """A connection to the file at `path`; raises DatabaseError if it is missing (unless `create`), or locked."""
    path = str(path)
    if path != ":memory:" and not create and not Path(path).is_file():
        raise DatabaseError(f"no database file {path}")
    connection = connect(path, read_only, settings)
    with closing(connection), stoppable(connection), parts_apart(connection):
        yield connection


def connect(path: str, read_only: bool = False, settings: Settings | None = None) -> Connection:
    """A connection to the database file at `path`, made if it is not there; raises DatabaseError if it cannot be."""
    config: dict[str, Any] = {name: value for name, value in vars(settings or Settings()).items() if value is not None}
    try:
        return duckdb.connect(path, read_only=read_only and path != ":memory:", config=config)
    except ClientError as error:
        raise DatabaseError(f"cannot open {path}: {first_sentence(str(error))}") from error


def stoppable(connection: Connection) -> AbstractContextManager[None]:
    """A context in which Ctrl-C stops what the connection does."""
    return interrupts.stopping(connection.interrupt)


def merges_parts(optimizers_off: str) -> bool:
    """True if DuckDB may take parts of a statement for one that are not, as these optimizers alone are off."""
    return _numbers(database_version()) < _MENDED and _MERGING not in optimizers_off.split(",")


@contextmanager
def parts_apart(connection: Any) -> Iterator[None]:
    """Within, no two parts of a statement are taken for one that are not; what was set is put back at the end."""
    if not merges_parts(""):
        yield
        return
    ((file,),) = connection.execute(
        "SELECT path FROM duckdb_databases() WHERE NOT internal ORDER BY database_oid ASC NULLS LAST LIMIT 1"
    ).fetchall()
    with _apart_lock:
        ((before,),) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        off = merges_parts(before) and attempt(connection, _turned_off(f"{before},{_MERGING}".strip(","))) is None
        held = _apart.setdefault(file, [])
        held.append(None)
    try:
        yield
    finally:
        with _apart_lock:
            held.remove(None)
            held += [(connection.cursor(), before)] if off else []  # a transaction that failed takes no setting
            if None not in held:
                for other, was in _apart.pop(file):
                    attempt(other, _turned_off(was))


def _turned_off(optimizers: str) -> str:
    return f"SET GLOBAL disabled_optimizers = {literal(optimizers)}"


def relation_of(connection: Connection, table: Table) -> ClientRelation:
    """A table, view or file as a relation of the client's; raises DatabaseError if it is not there, or closed."""
    try:
        return connection.sql(f"FROM {table.sql()}")
    except ClientError as error:
        raise DatabaseError(f"{table} cannot be read here: {first_sentence(str(error))}") from None


def attempt(connection: Any, sql: str) -> str | None:
    """Run a statement that may hold a secret; what the database says if it fails, which may quote it as well."""
    try:
        connection.execute(sql).fetchall()
    except StoppedError:
        raise KeyboardInterrupt from None
    except ClientError as error:
        return str(error) or type(error).__name__
    return None


def database_version() -> str:
    """The version of the database library."""
    return str(duckdb.__version__)


def load_extension(connection: Any, name: str, why: str) -> None:
    """Load an extension, for `why`, and those that it needs; raises DatabaseError with how to install them."""
    names = (*_NEEDS.get(name, ()), name)
    for one in names:
        if not _is_loaded(connection, one):
            is_here = f"{_what_is_there(one)} (this is {database_version()})"
            raise DatabaseError(f"{why} needs DuckDB's extension {one}, {is_here}: {ways_to_install(name)}")


def _is_loaded(connection: Any, name: str) -> bool:
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


def extensions_here(connection: Any) -> set[str]:
    """The extensions that are there for this version of DuckDB: built in, installed, or in a wheel."""
    listed = connection.execute("SELECT extension_name, loaded OR installed FROM duckdb_extensions()").fetchall()
    return {name for name, is_here in listed if is_here or wheel_of(name) is not None}


def ways_to_install(name: str) -> str:
    """How an extension is installed for this version of DuckDB, with those that it needs."""
    version, names = database_version(), (*_NEEDS.get(name, ()), name)
    fitting = version if _numbers(version) <= _numbers(_LAST_WHEELS) else _LAST_WHEELS
    wheels = " ".join(f"duckdb-extension-{one.replace('_', '-')}=={fitting}" for one in names)
    installs = "; ".join(f"INSTALL {one}" for one in names)
    return (
        f"online, `python -c \"import duckdb; duckdb.sql('{installs}')\"`; where DuckDB's server cannot be reached,"
        f" `pip install duckdb=={fitting} {wheels}`"
    )


def _what_is_there(name: str) -> str:
    if wheel_of(name) is not None:
        return "whose wheel here cannot be loaded"
    others = sorted(folder.name.removeprefix("v") for folder in _folder_of(name).glob("v*"))
    return f"whose wheel here is for DuckDB {others[-1]}" if others else "which is not here"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
