"""A database that may not be written, and its catalog in a file of its own.

The source is attached read-only and names are looked up in it; the catalog is attached as `CATALOG`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ldiv_db.database.engine import Engine, Settings, open_database
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.templates import Identifier, literal

#: The name under which the catalog's file is attached, and the source's if its own name is taken.
CATALOG, _SOURCE = "ldiv_catalog", "ldiv_source"


@contextmanager
def open_with_catalog(
    path: Path, catalog: Path, read_only: bool = False, settings: Settings | None = None
) -> Iterator[Any]:
    """A connection on which `path` (or memory) is the current database, read-only, and `catalog` is `CATALOG`.

    The catalog's file is made if it is not there, unless `read_only`; it is removed again if nothing came to be
    in it. Raises DatabaseError if a file is missing, locked or no database, PolicyError if both are the same.
    """
    in_memory = str(path) == ":memory:"
    if not in_memory and not path.is_file():
        raise DatabaseError(f"no database file {path}")
    if read_only and not catalog.is_file():
        raise DatabaseError(f"no catalog file {catalog}; `ldiv migrate --catalog` makes one")
    if not in_memory and catalog.exists() and catalog.samefile(path):
        raise PolicyError([Problem("--catalog", f"{catalog} is the database itself", "leave it out")])
    with open_database(":memory:", settings=settings) as connection:
        engine = Engine(connection)
        is_new = not catalog.exists()
        _attach(engine, catalog, CATALOG, read_only)
        try:
            if not in_memory:
                _attach_source(engine, path)
            yield connection
        finally:
            if is_new and _is_empty(engine):
                connection.close()
                catalog.unlink(missing_ok=True)


def _attach_source(engine: Engine, path: Path) -> None:
    """Attach the source under the name that it has when it is opened alone, and look names up in it."""
    try:
        _attach(engine, path, None, read_only=True)
    except DatabaseError as error:
        if "already exists" not in str(error):
            raise
        _attach(engine, path, _SOURCE, read_only=True)
    ((name,),) = engine.execute(
        "SELECT database_name FROM duckdb_databases()"
        " WHERE NOT internal AND path IS NOT NULL AND database_name <> $catalog",
        {"catalog": CATALOG},
    )
    engine.execute(f"USE {Identifier(name).sql()}")


def _attach(engine: Engine, path: Path, name: str | None, read_only: bool) -> None:
    alias = f" AS {Identifier(name).sql()}" if name else ""
    options = " (READ_ONLY)" if read_only else ""
    try:
        engine.execute(f"ATTACH {literal(str(path))}{alias}{options}")
    except DatabaseError as error:
        raise DatabaseError(f"cannot open {path}: {str(error).splitlines()[0]}") from error


def _is_empty(engine: Engine) -> bool:
    """Whether nothing came to be in the catalog; not, if the connection can no longer say so."""
    with suppress(DatabaseError):
        if engine.in_transaction():
            engine.execute("ROLLBACK")
        counts = engine.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name = $d", {"d": CATALOG})
        return bool(counts[0][0] == 0)
    return False
