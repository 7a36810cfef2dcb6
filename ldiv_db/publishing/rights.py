"""What a run needs to be allowed: looked up before any work, and named with the grants that are lacking."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ldiv_db.database import catalog, foreign, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.postgres import ADD, CHANGE, READ, REMOVE, Right, grants_lacking, user_of
from ldiv_db.database.templates import Relation
from ldiv_db.policy.document import Target
from ldiv_db.publishing.destinations import Destination, InDatabase, InFile, InOtherDatabase

#: The tables of the ledger that every run reads, and writes; and what one writes that recodes globally.
_READ = ("run", "run_secret", "taxonomy", "taxonomy_node")
_WRITTEN, _RULES = ("run", "run_requirement", "run_secret"), ("run_recoding", "run_column", "run_rule")
#: What it takes to see whether there is a ledger, and of which version.
_LOOK = (Right("USAGE", catalog.SCHEMA), Right(READ, catalog.SCHEMA, "migration"))
_MIGRATE = "ldiv migrate (on this database, as its owner)"


def require_rights(destination: Destination, target: Target, columns: Iterable[str], has_rules: bool) -> None:
    """Raise DatabaseError if a run may not write its release, of these columns, or its row of the ledger.

    If it `has_rules` it enters how it recodes as well. What a plan has open for reading alone is judged as it would be
    for a run. Raises also where the ledger could not be brought up to date.
    """
    engine, table = destination.engine, _table_of(destination)
    ledger = catalog.catalog_of(engine, catalog.catalog_table(engine, "run"))
    home = ledger if table is None else catalog.catalog_of(engine, table)
    if isinstance(destination, InFile):
        _require_folder(destination.path.parent)
    lines = []
    for database in dict.fromkeys((home, ledger)):
        _require_file(catalog.file_of(engine, database))
        if foreign.kind_of(engine, database) != "postgres":
            continue
        user, is_read_only = user_of(engine, database)
        if is_read_only:
            raise DatabaseError("the server takes no writes here: it is a standby, or the session is set to read only")
        if table is not None and database == home:
            lines += grants_lacking(engine, database, _on_target(engine, target, table, columns))
        if database == ledger:
            lines += _lacking_on_ledger(engine, database, user, _on_ledger(target, has_rules))
    if lines:
        what = "the user lacks rights that this run needs; the owner of the database gives them:"
        raise DatabaseError("\n  ".join([what, *dict.fromkeys(lines)]))
    migrate.pending(engine)


def refuse_read_only(destination: Destination) -> None:
    """Raise DatabaseError if the connection has a database that a run writes open for reading only."""
    engine, table = destination.engine, _table_of(destination)
    for place in (catalog.catalog_table(engine, "run"), *([table] if table else [])):
        database = catalog.catalog_of(engine, place)
        if foreign.is_read_only(engine, database):
            raise DatabaseError(f"{database} is open read-only on this connection, and a run writes there")


def _table_of(destination: Destination) -> Relation | None:
    """The table that a release becomes, None if that is a file."""
    return destination.table if isinstance(destination, InDatabase | InOtherDatabase) else None


def _require_file(name: str | None) -> None:
    """Raise DatabaseError if the file of a database may not be written to, or its log beside it."""
    if name is not None and Path(name).exists():
        if not os.access(name, os.W_OK):
            raise DatabaseError(
                f"{name} may not be written to: its owner has to allow it, or give --catalog and `file:`"
            )
        _require_folder(Path(name).parent)


def _require_folder(folder: Path) -> None:
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise DatabaseError(f"no file can be made in {folder}: its owner has to allow it")


def _lacking_on_ledger(engine: Engine, database: str, user: str, ledger: Sequence[Right]) -> list[str]:
    """What the owner of the database has to run so that the user may use the ledger."""
    is_there = catalog.table_exists(engine, catalog.catalog_table(engine, "migration"))
    lacking = grants_lacking(engine, database, _LOOK)
    if is_there and lacking:
        return [*lacking, *grants_lacking(engine, database, ledger)]
    to_make = _to_migrate(engine) if is_there and migrate.pending(engine) else [] if is_there else _LOOK
    if to_make and grants_lacking(engine, database, to_make):
        return [_MIGRATE, *(right.grant(user) for right in (*_LOOK, *ledger))]
    return [] if to_make else grants_lacking(engine, database, ledger)


def _to_migrate(engine: Engine) -> list[Right]:
    """What it takes to bring a ledger up to date: tables are made, and altered by their owner."""
    names = ("migration", "run", "release", "series")
    there = [name for name in names if catalog.table_exists(engine, catalog.catalog_table(engine, name))]
    return [Right("CREATE", catalog.SCHEMA), *(Right("OWNER", catalog.SCHEMA, name) for name in there)]


def _on_ledger(target: Target, has_rules: bool) -> list[Right]:
    """What entering a run takes; one whose release is moved into place later is settled, or taken back."""
    found = [(READ, name) for name in _READ]
    found += [(ADD, name) for name in (*_WRITTEN, *(_RULES if has_rules else ()))]
    if target.file is not None or target.database is not None:
        found += [(CHANGE, "run"), *((verb, name) for name in (*_WRITTEN, *_RULES) for verb in (READ, REMOVE))]
    return [Right(verb, catalog.SCHEMA, name) for verb, name in dict.fromkeys(found)]


def _on_target(engine: Engine, target: Target, table: Relation, columns: Iterable[str]) -> list[Right]:
    """What writing the release takes: to make its table, to empty and fill one, or to own one that is made anew."""
    _, schema, name = catalog.located(engine, table)
    verbs = [READ, ADD]
    if not catalog.table_exists(engine, table):
        return [Right("USAGE", schema), Right("CREATE", schema)]
    if target.if_exists != "append":
        is_alike = {column.name for column in catalog.columns_of(engine, table)} == set(columns)
        verbs = [*verbs, REMOVE] if is_alike and target.database is None else ["OWNER"]
    makes = [Right("CREATE", schema)] if verbs == ["OWNER"] else []
    return [Right("USAGE", schema), *makes, *(Right(verb, schema, name) for verb in verbs)]
