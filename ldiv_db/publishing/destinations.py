"""The destination that a policy names, of one table or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ldiv_db.database import catalog
from ldiv_db.database.catalog import new_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Relation
from ldiv_db.policy.targets import FLAT, ONLY, Target
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.in_database import InDatabase, InOtherDatabase
from ldiv_db.publishing.in_file import DatabaseFile, DataFile, Folder, ReleasesFolder, within

#: Those of the one table of a release, or of each of its tables by the ending of its name.
Columns = Sequence[str] | Mapping[str, Sequence[str]]


def destination_of(engine: Engine, targets: Mapping[str, Target], folder: Path, columns: Columns = ()) -> Destination:
    """The destination of all tables that a policy publishes, by its targets; `folder` is where relative files lie.

    `columns` are those of a file; a prefix stands for the tables of its releases. Raises PolicyError for what is no
    name of a table.
    """
    refuse_half_taken_back(engine)
    first, tables = next(iter(targets.values())), dict[str, Relation]()
    for name, target in targets.items():
        key, text = key_of(target, name), None if target.format in FLAT else target.prefix or target.table
        tables[name] = new_table(engine, text, key, target.file is not None) if text else Relation(())
    if first.database is not None:
        there = in_database(engine, first.database, tables)
        _require_own(targets, {name: table.parts for name, table in there.items()})
        return InOtherDatabase(engine, there, targets)
    if first.file is None:
        homes = {name: catalog.located(engine, table) for name, table in tables.items()}
        _require_own(targets, homes)
        is_memory = engine.snapshot.is_in_memory(next(iter(homes.values()))[0])
        is_beside = engine.catalog and first.if_exists != "append" and is_memory
        there = {name: Relation(home) for name, home in homes.items()}
        return InOtherDatabase(engine, there, targets) if is_beside else InDatabase(engine, tables)
    path = (folder / first.file).resolve()
    if first.format == "duckdb":
        _require_own(targets, {name: within("", table).parts for name, table in tables.items()})
        return DatabaseFile(engine, path, first.file, tables)
    if ONLY in targets and not isinstance(columns, Mapping):
        return DataFile(engine, path, first.file, first.format or "", columns)
    own = first.folder or Path()  # what is a link there is no file of ours
    files = {name: Path(target.file or "").name for name, target in targets.items()}
    named = (engine, (folder / own).resolve(), str(own), files)
    return ReleasesFolder(*named, columns) if isinstance(columns, Mapping) else Folder(*named)


def _require_own(targets: Mapping[str, Target], places: Mapping[str, Sequence[str]]) -> None:
    """Raise PolicyError if two targets are one table, in whatever spelling."""
    taken = dict[tuple[str, ...], str]()
    for name, place in places.items():
        other = taken.setdefault(tuple(part.lower() for part in place), name)
        if other != name:
            raise refused(key_of(targets[name], name), f"is that of {other} already", "name another table")


def key_of(target: Target, name: str = ONLY) -> str:
    """The key of the policy that names the table of a target, or its prefix; `name` is what the policy calls it."""
    own = "target.table" if target.prefix is None else "target.prefix"
    return f"tables.{name}.{own}" if name else own


def in_database(engine: Engine, database: str, tables: Mapping[str, Relation]) -> dict[str, Relation]:
    """The tables with their places in a database that is attached."""
    schemas = {n: t.parts[0] if len(t.parts) > 1 else catalog.main_schema(engine, database) for n, t in tables.items()}
    return {name: Relation((database, schemas[name], table.name)) for name, table in tables.items()}


def refuse_half_taken_back(engine: Engine) -> None:
    """Raise PolicyError where the ledger would be in a database that cannot take back a table that was made."""
    if engine.snapshot.kind(engine.catalog or engine.snapshot.current) == "mysql":
        what = "MySQL commits every table by itself, so that release and ledger would not be all or nothing"
        raise refused("database", what, "give --catalog FILE, and a target with `file:`")
