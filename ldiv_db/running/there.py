"""A run on a warehouse: it counts there, plans here as ever, and publishes and audits there.

One GROUP BY counts the rows that are equal in quasi-identifiers and sensitive values. In our own database, out of core,
these counts are the source of the same run as on any table; its release goes back as a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ldiv_db.database.attach import named_databases
from ldiv_db.database.catalog import SCHEMA, Column, named_table
from ldiv_db.database.context import Context, working_engine
from ldiv_db.database.counted import CountedConnection, TableThere, memory_for_counts, spare_threads
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, Problem, nearest, refuse
from ldiv_db.database.names import CallerView
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.warehouses import COUNTED, PLACE, Warehouse
from ldiv_db.policy.document import Policy
from ldiv_db.policy.limits import limit_problems
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sources import Frame
from ldiv_db.publishing.counted_source import place_counts
from ldiv_db.publishing.history import new_run
from ldiv_db.publishing.ledger_there import LedgerThere
from ldiv_db.publishing.place_there import PlaceThere
from ldiv_db.recoding.counting import counted_columns
from ldiv_db.running.estimate import READING
from ldiv_db.running.rights import require_rights_there

#: Types that are not read, and those whose values are read as texts, which have another order.
_UNREAD, _OF_ORDER = ("unread",), ("unread", "other")


@contextmanager
def opened_there(
    there: Warehouse, policy: Policy, context: Context, schema: str | None
) -> Iterator[tuple[Engine, Policy]]:
    """An engine with the counts of a policy's source, and the policy on these, whose release goes there.

    All that a run reads there before it plans is of one moment, if the warehouse has transactions: it ends as the run
    lets go of its source. `schema` is where the ledger lies there, `ldiv` by default.
    """
    refuse([*problems_of(policy), *unsupported(policy, there)])
    target = None if policy.target.is_elsewhere else named_table(policy.target.table or "", "target.table")
    ledger = LedgerThere(there, schema or SCHEMA)
    there.run = f"ldiv_db {(run_id := new_run())}"
    require_rights_there(there, policy, target, ledger)
    if target:
        there.refuse_place(target)
    known = {name.lower() for name in policy.quasi_identifiers}
    with (
        memory_for_counts(there.settings) as here,
        working_engine(CountedConnection(here, there, known), context.listener) as engine,
        named_databases(engine, policy.databases, context.folder, policy.target.database),
        ExitStack() as reading,
    ):
        reading.enter_context(there.moment())
        context.listener.on_stage(READING)
        table = there.source(policy.source, context.folder)
        read = TableThere(there, table)
        refuse(_column_problems(policy, read.columns))
        is_of_rows = any(limit_problems(policy, "weight"))
        wanted, kept = counted_columns(policy), () if policy.key else policy.keep
        if target is None:  # what is kept comes here
            wanted, kept = list(dict.fromkeys([*wanted, *kept])), ()
        source, placed = place_counts(engine, read, wanted, kept, is_of_rows)
        for population in {spec.argument["population"] for spec in policy.require if spec.counts_people}:
            resolve_source(engine, population, context.folder, "require.population")  # counted now, as the source is
        if not engine.count(source.counts):
            raise InfeasibleError(f"{policy.source} is empty: there is nothing to publish")
        spare_threads(engine, source.counts, policy.part_rows)
        place = PlaceThere(engine, source, ledger, reading, run_id)
        counts = Frame(CallerView(placed.parts, "source"), str(policy.source), place)
        # Named, as an algorithm that is left open would be taken from those that recode all rows by one rule.
        changes = {"source": counts, "weight": source.number, "algorithm": policy.algorithm}
        ledger.bring(engine)
        yield engine, policy.model_copy(update=changes)


def unsupported(policy: Policy, there: Warehouse) -> Iterator[Problem]:
    """The parts of a policy that counts do not serve, or a warehouse does not have, and what to do in their place."""
    places = ["a warehouse"] if there.traits.holds_off else ["a warehouse", "a warehouse without locks"]
    return limit_problems(policy, *places, dialect=there.dialect)


def _column_problems(policy: Policy, columns: Sequence[Column]) -> Iterator[Problem]:
    types = {column.name.lower(): column.type for column in columns}
    names = [column.name for column in columns]
    order = policy.individual.order if policy.individual else None
    for key, name in policy.roles():
        if name.lower() not in types:
            yield Problem(f"{key}.{name}", "is not a column of the source", nearest(name, names))
        elif types[name.lower()] in (_OF_ORDER if name == order else _UNREAD if key != "identifiers" else ()):
            hint = "give numbers, texts or times in a view, or list it as identifier"
            yield Problem(f"{key}.{name}", "is of a type that is not read", hint)
        elif name.lower() in (COUNTED.name, PLACE.name) and key != "identifiers":
            yield Problem(f"{key}.{name}", "is how a staged release counts its rows", "rename it in a view")
    alike = {name.lower() for name in names if [other.lower() for other in names].count(name.lower()) > 1}
    if alike:
        what = f"has columns that differ in case alone: {', '.join(n for n in names if n.lower() in alike)}"
        yield Problem("source", what, "rename them in a view")
