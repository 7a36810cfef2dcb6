"""Published tables of a policy, and the sources of several, opened by what it calls them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from ldiv_db.database.addresses import address_of
from ldiv_db.database.attach import attach_address
from ldiv_db.database.catalog import main_schema, named_table, table_exists
from ldiv_db.database.context import Listener, Listening, hearing_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import nearest, refused
from ldiv_db.database.lineage import same_file
from ldiv_db.database.names import Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.stages import timed, work_of
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.release_columns import columns_as
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.sources import open_source
from ldiv_db.policy.targets import Target

Asked = TypeVar("Asked", bound=Listening)


def settled_by(policy: Policy, names: Iterable[str]) -> Policy:
    """The policy of a release with these columns, which show whether a column that it leaves open has bounds."""
    known, settled = {name.lower() for name in names}, dict(policy.quasi_identifiers)
    for name, qi in policy.quasi_identifiers.items():
        bounded = known.issuperset(map(str.lower, columns_as(name, "bounds")))
        if policy.output.bounds and qi.is_open and not (bounded and name.lower() in known):
            settled[name] = qi.settled(numeric=bounded)
    return policy.model_copy(update={"quasi_identifiers": settled})


def open_each(
    engine: Engine, policy: Policy, folder: Path, key: Literal["source", "target"], names: Iterable[str]
) -> dict[str, Table]:
    """The sources, or the published tables, of the tables with these names; raises PolicyError for all not there."""
    problems, found = Problems(), dict[str, Table]()
    for name in names:
        with problems.collected():
            if key == "source":
                found[name] = open_source(engine, policy.tables[name].source, folder, f"tables.{name}.source")
            else:
                found[name] = open_target(engine, policy, policy.tables[name].target, folder, f"tables.{name}.target")
    problems.refuse()
    return found


def tell_of_each(engine: Engine, listener: Listener, policy: Policy, folder: Path, stage: str) -> None:
    """Tell who listens what a stage is expected to take of each published table, one after the other."""
    tables = open_each(engine, policy, folder, "target", members_of(policy))
    listener.on_expected([timed(stage, *work_of(engine, table)).of(name) for name, table in tables.items()])


def asked_of(request: Asked, name: str, own: Policy) -> tuple[Asked, Policy]:
    """What is asked of one of several tables that are published apart, and its policy."""
    of_one: dict[str, Any] = {"table": str(own.target), "listener": hearing_of(name, request.heard)}
    return replace(request, **of_one), own


def open_target(engine: Engine, policy: Policy, target: Target, folder: Path, key: str = "target") -> Table:
    """A published table where a policy has it go, read until the engine is closed; raises PolicyError if it is gone."""
    if target.format == "duckdb":
        path = folder / (target.file or "")
        if not path.is_file():
            raise refused(f"{key}.file", f"no file {target.file}")
        there = engine.snapshot.databases.values()
        database = next((known.name for known in there if known.file and same_file(known.file, path)), None)
        return _table_in(engine, database or _attached(engine, str(path)), target, key)
    if target.database is not None:
        if target.database not in policy.databases:
            raise refused(
                f"{key}.database", f"no database {target.database!r}", nearest(target.database, policy.databases)
            )
        if target.database.lower() not in engine.snapshot.databases:
            _attached(engine, policy.databases[target.database], target.database, folder)
        return _table_in(engine, target.database, target, key)
    return resolve_source(engine, str(target), folder, key)


def _attached(engine: Engine, text: str, name: str = "ldiv_published", folder: Path = Path()) -> str:
    """The name of a database that is attached for reading until the engine is closed."""
    attach_address(engine, address_of(text).in_folder(folder), name, read_only=True)
    engine.attached_for_it.append(name)
    return name


def _table_in(engine: Engine, database: str, target: Target, key: str) -> Table:
    parts = named_table(target.table or "", key).parts
    table = Relation((database, *(parts if len(parts) > 1 else (main_schema(engine, database), *parts))))
    if not table_exists(engine, table):
        raise refused(key, f"no table {target.table} in {target.file or target.database}")
    return table
