"""A run on a warehouse: it counts there, plans here as ever, and publishes and audits there.

One GROUP BY counts the rows that are equal in quasi-identifiers and sensitive values. In our own database, out of core,
these counts are the source of the same run as on any table; its release goes back as a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ldiv_db.database.catalog import SCHEMA, Column, named_table
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, Problem, nearest, refuse
from ldiv_db.database.names import CallerView
from ldiv_db.database.warehouses import COUNTED, PLACE, Warehouse
from ldiv_db.policy.document import Policy
from ldiv_db.policy.limits import limit_problems
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sources import Frame
from ldiv_db.publishing.counted_source import place_counts
from ldiv_db.publishing.history import new_run
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.ledger_there import LedgerThere
from ldiv_db.recoding.counting import counted_columns
from ldiv_db.running.estimate import READING
from ldiv_db.running.rights import require_rights_there


@contextmanager
def counted_source(
    engine: Engine, context: Context, there: Warehouse, policy: Policy, schema: str | None
) -> Iterator[tuple[Policy, InWarehouse]]:
    """The policy on the counts of its source, which are brought here, and where its release goes.

    All that a run reads there before it plans is of one moment, if the warehouse has transactions: it ends as the run
    lets go of its source. `schema` is where the ledger lies there, `ldiv` by default.
    """
    refuse([*problems_of(policy), *unsupported(policy, there)])
    wanted, roles = counted_columns(policy), policy.roles()
    target, ledger = named_table(policy.target.table or "", "target.table"), LedgerThere(there, schema or SCHEMA)
    there.run = f"ldiv_db {(run_id := new_run())}"
    require_rights_there(there, policy, target, ledger)
    there.refuse_place(target)
    with ExitStack() as reading:
        reading.enter_context(there.moment())
        context.listener.on_stage(READING)
        table = there.source(policy.source, context.folder)
        columns = there.columns(table)
        refuse(_column_problems(roles, columns))
        is_of_rows, kept = bool(policy.individual or policy.key), () if policy.key else policy.keep
        source, placed = place_counts(engine, there, table, columns, wanted, kept, is_of_rows)
        if not engine.count(source.counts):
            raise InfeasibleError(f"{policy.source} is empty: there is nothing to publish")
        # Named, as an algorithm that is left open would be taken from those that recode all rows by one rule.
        here = Frame(CallerView(placed.parts, "source"), str(policy.source))
        changes = {"source": here, "weight": source.number, "algorithm": policy.algorithm}
        ledger.bring(engine)
        place = InWarehouse(engine, source, policy.target, target, ledger)
        place.run_id, place.held = run_id, reading
        yield policy.model_copy(update=changes), place


def unsupported(policy: Policy, there: Warehouse) -> Iterator[Problem]:
    """The parts of a policy that counts do not serve, or a warehouse does not have, and what to do in their place."""
    places = ["a warehouse"] if there.traits.holds_off else ["a warehouse", "a warehouse without locks"]
    return limit_problems(policy, *places, dialect=there.dialect)


def _column_problems(roles: Sequence[tuple[str, str]], columns: Sequence[Column]) -> Iterator[Problem]:
    types = {column.name.lower(): column.type for column in columns}
    names = [column.name for column in columns]
    for key, name in roles:
        if name.lower() not in types:
            yield Problem(f"{key}.{name}", "is not a column of the source", nearest(name, names))
        elif types[name.lower()] == "unread" and key != "identifiers":
            hint = "give numbers, texts or times in a view, or list it as identifier"
            yield Problem(f"{key}.{name}", "is of a type that is not read", hint)
        elif name.lower() in (COUNTED.name, PLACE.name) and key != "identifiers":
            yield Problem(f"{key}.{name}", "is how a staged release counts its rows", "rename it in a view")
    alike = {name.lower() for name in names if [other.lower() for other in names].count(name.lower()) > 1}
    if alike:
        what = f"has columns that differ in case alone: {', '.join(n for n in names if n.lower() in alike)}"
        yield Problem("source", what, "rename them in a view")
