"""The rights that a run needs, looked up before work starts: errors name the grants that are lacking."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.database import catalog, migrate, postgres
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import Relation
from ldiv_db.database.postgres import ADD, CHANGE, READ, REMOVE, Ask, Right, grants_lacking
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.policy.document import Policy
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing import ledger_there
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.in_database import InTables
from ldiv_db.publishing.in_file import InFile
from ldiv_db.publishing.ledger import RELEASE_TABLES, SERIES_TABLES
from ldiv_db.publishing.ledger_there import LedgerThere

#: The tables of the ledger that every run reads here, and writes; and what one writes that recodes globally.
_READ = ("run", "run_secret", "run_report_secret", "release", "taxonomy", "taxonomy_node")
_WRITTEN = ("run", "run_requirement", "run_secret", "run_report_secret")
_RULES = ("run_recoding", "run_column", "run_rule")
_MIGRATE = "ldiv migrate (on this database, as its owner)"


def require_rights(destination: Destination, policy: Policy, name: str = ONLY) -> None:
    """Raise DatabaseError if a run may not write its release, of several the named table, or its row of the ledger.

    What a plan has open for reading alone is judged as it would be for a run. Raises also where the ledger could not be
    brought up to date.
    """
    engine, table = destination.engine, destination.tables[name] if isinstance(destination, InTables) else None
    ledger = catalog.catalog_of(engine, catalog.catalog_table(engine, "run"))
    home = ledger if table is None else catalog.catalog_of(engine, table)
    if isinstance(destination, InFile):
        _require_folder(destination.path.parent)
    lines: list[str] = []
    for database in dict.fromkeys((home, ledger)):
        _require_file(engine.snapshot[database].file)
        if engine.snapshot.kind(database) != "postgres":
            continue
        ask = partial(postgres.ask_postgres, engine, database)
        user = postgres.writing_user(ask)
        if table is not None and database == home:
            _, schema, name = catalog.located(engine, table)
            lines += grants_lacking(ask, _on_target(policy, schema, name, postgres.columns_held(ask, schema, name)))
        if database == ledger:
            lines += _lacking_on_ledger(engine, ask, user, _on_ledger(policy, catalog.SCHEMA, _READ))
    _require_none(lines)
    migrate.pending(engine)


def require_rights_there(there: Warehouse, policy: Policy, target: Relation | None, ledger: LedgerThere) -> None:
    """The same of a run in a warehouse, as far as that says what a user may do: PostgreSQL does."""
    if there.dialect != "postgres":
        return
    with there.moment():  # of its own, as who lacks rights cannot even keep others off the target
        _require_none(_lacking_there(there, policy, target, ledger))


def _lacking_there(there: Warehouse, policy: Policy, target: Relation | None, ledger: LedgerThere) -> list[str]:
    user, run = postgres.writing_user(there.rows), ledger.table("run")
    on_ledger = [Right("USAGE", run.parts[-2]), *_on_ledger(policy, run.parts[-2], ledger_there.READ)]
    lines = []
    if target:
        *schema, name = target.parts[-2:]
        place = schema[0] if schema else postgres.schema_of(there.rows)
        on_target = _on_target(policy, place, name, postgres.columns_held(there.rows, place, name))
        # What is staged lies beside the target, and whoever keeps others off a table may do more than add to it.
        locks = [Right(REMOVE, place, name)] if Right(ADD, place, name) in on_target else []
        lines = grants_lacking(there.rows, [*on_target[:1], Right("CREATE", place), *on_target[1:], *locks])
    to_make = [Right("CREATE", run.parts[-2])] if ledger.lacking() else []
    lacks = bool(grants_lacking(there.rows, to_make))
    return [*lines, *(_for_owner(user, on_ledger) if lacks else grants_lacking(there.rows, on_ledger))]


def _require_none(lacking: Sequence[str]) -> None:
    if lacking:
        what = "the user lacks rights that this run needs; the owner of the database gives them:"
        raise DatabaseError("\n  ".join([what, *dict.fromkeys(lacking)]))


def refuse_read_only(destination: Destination) -> None:
    """Raise DatabaseError if the connection has a database that a run writes open for reading only."""
    engine, own = destination.engine, destination.tables.values() if isinstance(destination, InTables) else ()
    for place in (catalog.catalog_table(engine, "run"), *own):
        database = catalog.catalog_of(engine, place)
        if engine.snapshot[database].is_read_only:
            raise DatabaseError(f"{database} is open read-only on this connection, and a run writes there")


def _require_file(name: str | None) -> None:
    """Raise DatabaseError if the file of a database may not be written to, or its log beside it."""
    if name is not None and Path(name).exists():
        if not os.access(name, os.W_OK):
            hint = "its owner has to allow it, or give --catalog and `file:`"
            raise DatabaseError(f"{name} may not be written to: {hint}")
        _require_folder(Path(name).parent)


def _require_folder(folder: Path) -> None:
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise DatabaseError(f"no file can be made in {folder}: its owner has to allow it")


def _lacking_on_ledger(engine: Engine, ask: Ask, user: str, ledger: Sequence[Right]) -> list[str]:
    """The statements by which the owner of the database lets the user use the ledger."""
    # What it takes to see whether there is a ledger, and of which version.
    look = (Right("USAGE", catalog.SCHEMA), Right(READ, catalog.SCHEMA, "migration"))
    is_there = catalog.table_exists(engine, catalog.catalog_table(engine, "migration"))
    lacking = grants_lacking(ask, look)
    if is_there and lacking:
        return [*lacking, *grants_lacking(ask, ledger)]
    to_make: Sequence[Right] = [] if is_there else look
    if is_there and migrate.pending(engine):  # tables are made, and altered by their owner
        tables = [catalog.catalog_table(engine, name) for name in ("migration", "run", "release", "series")]
        owned = [Right("OWNER", catalog.SCHEMA, table.name) for table in tables if catalog.table_exists(engine, table)]
        to_make = [Right("CREATE", catalog.SCHEMA), *owned]
    if grants_lacking(ask, to_make):
        return _for_owner(user, (*look, *ledger))
    return [] if to_make else grants_lacking(ask, ledger)


def _for_owner(user: str, ledger: Sequence[Right]) -> list[str]:
    """What the owner does where there is no ledger, and the user cannot make one."""
    return [_MIGRATE, *(right.grant(user) for right in ledger)]


def _on_ledger(policy: Policy, schema: str, read: Collection[str]) -> list[Right]:
    """The rights to enter a run; one whose release is moved into place later is settled, or taken back."""
    target, name = policy.target, policy.algorithm.name
    has_rules = name in ALGORITHMS and algorithm_of(name).traits.recodes_globally
    found = [*((READ, name) for name in read), (READ, migrate.LOCK), (CHANGE, migrate.LOCK)]
    found += [(ADD, name) for name in (*_WRITTEN, *(_RULES if has_rules else ()))]
    if policy.is_series:
        found += [(verb, name) for name in (*SERIES_TABLES, *RELEASE_TABLES) for verb in (READ, ADD)]
        found.append((CHANGE, "series"))
    if target.is_elsewhere:
        found += [(CHANGE, "run"), *((verb, name) for name in (*_WRITTEN, *_RULES) for verb in (READ, REMOVE))]
    return [Right(verb, schema, name) for verb, name in dict.fromkeys(found)]


def _on_target(policy: Policy, schema: str, name: str, held: Collection[str]) -> list[Right]:
    """The rights to write the release: to make its table, to empty and fill one, or to own one that is made anew."""
    target, verbs = policy.target, [READ, ADD]
    if not held:
        return [Right("USAGE", schema), Right("CREATE", schema)]
    if target.if_exists != "append" and not policy.is_series:
        is_alike = set(held) == set(policy.released.all)
        verbs = [*verbs, REMOVE] if is_alike and target.database is None else ["OWNER"]
    makes = [Right("CREATE", schema)] if verbs == ["OWNER"] else []
    return [Right("USAGE", schema), *makes, *(Right(verb, schema, name) for verb in verbs)]
