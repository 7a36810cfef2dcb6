"""DuckDB's own extensions: loaded where they are, and said how to install where they are not.

They are found in DuckDB's folder of extensions, or in a wheel `duckdb-extension-NAME` for this very version of DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ldiv_db.database.engine import attempt, database_version
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.templates import Identifier, literal

#: The last version of DuckDB for which PyPI has wheels of extensions.
_LAST_WHEELS = "1.5.5"
#: What an extension cannot be loaded without: it would be looked for in DuckDB's folder alone.
_NEEDS = {"iceberg": ("avro",)}


def load_extension(connection: Any, name: str, why: str) -> None:
    """Have the extension loaded, and those that it needs; raises DatabaseError that says how to install them.

    `why` is what needs it.
    """
    names = (*_NEEDS.get(name, ()), name)
    for one in names:
        if not _is_loaded(connection, one):
            raise DatabaseError(f"{why} needs DuckDB's extension {one}, {_how_to_install(one, names)}")


def _is_loaded(connection: Any, name: str) -> bool:
    """Whether the extension is loaded, or could be."""
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
    """Where the wheel of the extension has its files, one folder a version; a path that is not there without it."""
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
