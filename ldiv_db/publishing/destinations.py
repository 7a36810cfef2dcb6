"""The destination that a policy names, of one table or of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ldiv_db.database import catalog
from ldiv_db.database.catalog import new_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Relation
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.in_database import InDatabase, InOtherDatabase
from ldiv_db.publishing.in_file import DatabaseFile, DataFile, Folder


def destination_of(engine: Engine, target: Target, folder: Path, columns: list[str]) -> Destination:
    """The destination of a table with these columns that a policy names; `folder` is where relative files lie.

    Raises PolicyError for what is no name of a table.
    """
    refuse_half_taken_back(engine)
    table = new_table(engine, target.table, "target.table", target.file is not None) if target.table else Relation(())
    if target.database is not None:
        schema = table.parts[0] if len(table.parts) > 1 else catalog.main_schema(engine, target.database)
        return InOtherDatabase(engine, Relation((target.database, schema, table.name)), target)
    if target.file is None:
        home = catalog.located(engine, table)
        is_beside = engine.catalog and target.if_exists != "append" and engine.snapshot.is_in_memory(home[0])
        return InOtherDatabase(engine, Relation(home), target) if is_beside else InDatabase(engine, table)
    path = (folder / target.file).resolve()
    if target.format == "duckdb":
        return DatabaseFile(engine, path, target.file, table)
    return DataFile(engine, path, target.file, target.format or "", columns)


def destination_of_tables(engine: Engine, targets: Sequence[Target], folder: Path) -> Destination:
    """The destination of several tables: the folder of their files, or that of the first, where the others go too."""
    first = destination_of(engine, targets[0], folder, [])
    if not isinstance(first, DataFile):
        return first
    own = targets[0].folder or Path()  # what is a link there is no file of ours
    return Folder(engine, (folder / own).resolve(), str(own), [Path(one.file or "").name for one in targets])


def refuse_half_taken_back(engine: Engine) -> None:
    """Raise PolicyError where the ledger would be in a database that cannot take back a table that was made."""
    if engine.snapshot.kind(engine.catalog or engine.snapshot.current) == "mysql":
        what = "MySQL commits every table by itself, so that release and ledger would not be all or nothing"
        raise refused("database", what, "give --catalog FILE, and a target with `file:`")
