"""A model of dbt's: its SQL is the source, and `{{ this }}` the target; of several tables it names those of each.

The materialization `anonymized` in `sql/dbt` calls this by what `dbt_ldiv_db` gives to adapters. On dbt-duckdb's
connection dbt's transaction is joined: dbt commits, or rolls back after an error, so that release, audit and ledger row
are there with all else of the model, or nothing is. On other adapters it is a run in a warehouse, which ends before dbt
goes on. What it raises, dbt says of the model, and how to mend it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ldiv_db.database import migrate
from ldiv_db.database.addresses import address_beside
from ldiv_db.database.attach import open_address
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.context import Context, Listener, working_engine
from ldiv_db.database.counted import open_planned
from ldiv_db.database.dialects import without_rows
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, DatabaseError, Problem, nearest, refuse, refused
from ldiv_db.database.names import DIALECT, Identifier, Relation
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.policy.reading import Policy
from ldiv_db.policy.release_columns import centre_as
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.tables import numbers_as
from ldiv_db.publishing.result import Result
from ldiv_db.running.dbt_policy import Model, policy_of, read_policy_of
from ldiv_db.running.run import run
from ldiv_db.running.run_spec import resolve_algorithm
from ldiv_db.running.tables import open_tables, resolve_tables
from ldiv_db.running.there import unsupported

#: The first version of dbt-duckdb whose connections can roll back; before, a model that failed said so and went on.
LEAST_ADAPTER = (1, 11)
#: Seconds after which a model that is between two steps is taken for one that failed outside of them, as in a hook.
_LEFT = 60.0


class _Turn:
    """The turn of one model of several threads, until dbt commits it: what begins after sees what it published."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner: int | None = None
        self._since = 0.0
        self._is_at_work = False

    @contextmanager
    def step(self, is_last: bool = False) -> Iterator[None]:
        """A step of this thread's model, whose turn begins with it if need be; an error ends the turn, or the last."""
        with self._changed:
            while not self._is_ours():
                self._changed.wait(1)
            self._owner, self._is_at_work = threading.get_ident(), True
        try:
            yield
        except BaseException:
            is_last = True
            raise
        finally:
            with self._changed:
                self._owner, self._since, self._is_at_work = None if is_last else self._owner, time.monotonic(), False
                self._changed.notify_all()

    def _is_ours(self) -> bool:
        is_left = not self._is_at_work and time.monotonic() - self._since > _LEFT
        return self._owner in (None, threading.get_ident()) or is_left


_TURN = _Turn()


def prepare(session: Any, settings: str) -> None:
    """Read a model's policy, and bring the ledger up to date; models at once wait here for one another, until `end`.

    `settings` is a `Model` as JSON, the connection without a transaction. Raises LdivError for a version of dbt-duckdb
    that cannot roll back, for a policy that cannot be read, and where the ledger cannot be written.
    """
    with _TURN.step():
        _refuse_old_adapter()
        read_policy_of(Model(**json.loads(settings)))
        engine = Engine(session)
        with engine.transaction():  # before it is asked what is to be applied: two threads would both apply it
            migrate.migrate(engine)


def publish(session: Any, settings: str) -> dict[str, Any]:
    """Anonymize, audit and publish a model within dbt's open transaction; `settings` is a `Model` as JSON.

    Returns what was done. Raises LdivError if nothing was published.
    """
    with _TURN.step():
        if not Engine(session).in_transaction():
            what = "dbt has no transaction open, so that a failed audit could not be taken back"
            raise DatabaseError(f"{what}: remove disable_transactions from the profile")
        return _outcome(run(session, *policy_of(Model(**json.loads(settings)))))


@_TURN.step(is_last=True)
def end(session: Any, settings: str) -> None:
    """End the turn of a model that dbt has committed."""


def no_rows(session: Any, settings: str) -> dict[str, str]:
    """The SELECT of no rows with the columns of the release of each table of a model, by the name in its policy.

    It is '' where the policy is of one. Raises PolicyError if a policy misfits its source.
    """
    policy, folder = policy_of(Model(**json.loads(settings)))
    with working_engine(session) as engine:
        if policy.tables:
            return _no_rows_of_tables(engine, policy, folder, DIALECT)
        resolved, _ = resolve_algorithm(engine, policy, folder)
        return {"": _no_rows(policy, resolved.source.relation, resolved.columns, DIALECT)}


def no_rows_there(connection: Any, dialect: str, settings: str) -> dict[str, str]:
    """The same in a warehouse."""
    policy, folder = policy_of(Model(**json.loads(settings)))
    if policy.tables:
        with _attached(connection, dialect) as attached, working_engine(attached) as engine:
            return _no_rows_of_tables(engine, policy, folder, dialect)
    with open_planned(connection, {"dialect": dialect}) as planned:
        refuse([*problems_of(policy), *unsupported(policy, planned)])
        table = planned.source(policy.source, folder)
        return {"": _no_rows(policy, table, planned.columns(table), dialect)}


def _no_rows_of_tables(engine: Engine, policy: Policy, folder: Path, dialect: str) -> dict[str, str]:
    opened, found = open_tables(engine, Context(Listener(), folder), policy), dict[str, str]()
    sources = {name: Relation.parse(str(table.source)) for name, table in policy.tables.items()}
    every = numbers_as(policy.tables)
    for one in resolve_tables(opened):
        numbers = [shown for (name, _), shown in every.items() if name == one.name]
        numbers += filter(None, [one.resolved.released.position])
        own = one.resolved.policy
        found[one.name] = _no_rows(own, sources[one.name], one.resolved.columns, dialect, numbers)
    for name, rows in opened.public.items():
        there = {column.name.lower(): Identifier(column.name) for column in columns_of(engine, rows)}
        kept = {column: there[column.lower()] for column in policy.tables[name].keep}
        found[name] = without_rows(kept, sources[name], dialect)
    return found


def _no_rows(
    policy: Policy, source: Any, columns: Sequence[Column], dialect: str, numbers: Sequence[str] | None = None
) -> str:
    """The SELECT for one table; `numbers` are columns that stand for keys, by default those that link people's rows."""
    own, released = {column.name.lower(): Identifier(column.name) for column in columns}, policy.released
    lacking = [(key, name) for key, name in policy.roles() if name.lower() not in own]
    refuse(Problem(f"{key}.{name}", "is not a column of the source", nearest(name, own)) for key, name in lacking)
    shown: dict[str, Identifier | str] = dict.fromkeys(released.class_ids, "BIGINT")
    for name, form in released.forms.items():
        shown |= dict.fromkeys(released.columns_of(name), own[name.lower()] if form == "bounds" else "VARCHAR")
        shown |= dict.fromkeys(centre_as(name, form), "BIGINT")
    shown |= {name: own[name.lower()] for name in (*released.sensitive, *released.keep)}
    return without_rows(shown | dict.fromkeys(numbers or released.people, "BIGINT"), source, dialect)


def publish_there(
    connection: Any, dialect: str, settings: str, contract: str | None, name_of_type: Callable[[Any], str]
) -> dict[str, Any]:
    """Anonymize, audit and publish a model in a warehouse; `settings` is a `Model` as JSON. Returns the outcome.

    `contract` is a SELECT of the columns that the model's contract promises; `name_of_type` gives dbt's name of what
    the driver calls a type. The connection has no transaction open. Raises LdivError if nothing was published.
    """
    policy, folder = policy_of(Model(**json.loads(settings)))
    if policy.tables:
        with _TURN.step(is_last=True), _attached(connection, dialect) as attached:
            return _outcome(run(attached, policy, folder))
    with _TURN.step(is_last=True), open_planned(connection, {"dialect": dialect}) as planned:
        if contract is not None:
            planned.accept = partial(_hold_to_contract, planned, contract, name_of_type)
        return _outcome(run(planned, policy, folder))


@contextmanager
def _attached(connection: Any, dialect: str) -> Iterator[Any]:
    """Several tables are planned where their rows can be joined: a connection of DuckDB's to the same PostgreSQL."""
    if dialect != "postgres":
        what = "dbt publishes one release of several on dbt-duckdb and dbt-postgres alone"
        raise refused("tables", what, "copy their sources into a DuckDB file, and run `ldiv run` there")
    with open_address(address_beside(connection)) as attached:
        yield attached


def _hold_to_contract(there: Warehouse, contract: str, name_of_type: Callable[[Any], str], staged: Relation) -> None:
    described = there.described(contract), there.released(staged)
    promised, made = ({name: name_of_type(kind) for name, kind in columns} for columns in described)
    broken = [
        f"{name} is {made.get(name, 'no column')}, not {promised.get(name, 'a column')}"
        for name in sorted(promised.keys() | made.keys())
        if promised.get(name) != made.get(name)
    ]
    if broken:
        raise AuditError(f"the contract is broken: {', '.join(broken)}")


def _outcome(result: Result) -> dict[str, Any]:
    if result.figures:
        names = {"rows": "rows_published", "first": "rows_first_published", "release": "release"}
        return {name: result.figures[figure] for name, figure in names.items()}
    loss, earlier = result.loss, result.earlier
    return {
        "rows": loss.rows_published,
        "tables": len(result.tables),
        "suppressed": loss.rows_suppressed,
        "classes": loss.classes,
        "unchanged": earlier.unchanged,
        "warnings": [
            *([result.people] if result.people else []),
            *([] if earlier.unchanged else earlier.told(result.run_id)),
        ],
    }


def _refuse_old_adapter() -> None:
    try:
        found = version("dbt-duckdb")
    except PackageNotFoundError:
        raise DatabaseError("the materialization `anonymized` runs within dbt-duckdb, which is not installed") from None
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:3])
    if numbers < LEAST_ADAPTER:
        needed = ".".join(map(str, LEAST_ADAPTER))
        raise DatabaseError(f"dbt-duckdb {found} cannot roll back a model that fails: install {needed} or later")
