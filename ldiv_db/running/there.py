"""A run on a warehouse: it counts there, plans here as ever, and publishes and audits there.

One GROUP BY counts the rows that are equal in quasi-identifiers and sensitive values. In our own database, out of core,
these counts are the source of the same run as on any table; its release goes back as a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ldiv_db.database.catalog import SCHEMA, Column, columns_of, named_table
from ldiv_db.database.context import Context, Listener, open_context
from ldiv_db.database.counted import ON_ROWS, WEIGHT, ColumnThere, PlannedThere, count_rows
from ldiv_db.database.errors import Problem, nearest, refuse
from ldiv_db.database.templates import CallerView, Identifier, SqlType
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.policy.document import Policy
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sources import Frame
from ldiv_db.publishing.in_warehouse import CountedSource, InWarehouse
from ldiv_db.publishing.ledger_there import LedgerThere
from ldiv_db.recoding.branches import counted_columns
from ldiv_db.running.estimate import READING
from ldiv_db.running.run_spec import RunSpec, resolve_algorithm


@contextmanager
def resolved_there(
    given: PlannedThere,
    policy: Policy,
    folder: str | Path,
    listener: Listener | None,
    show_values: bool,
    workers: int | None = None,
    schema: str | None = None,
    writes: bool = False,
) -> Iterator[tuple[Context, RunSpec]]:
    """The policy held against the counts of its source, which are brought here; within, all there is of one moment.

    `schema` is where the ledger lies there, `ldiv` by default. Where the warehouse takes back a table, all that is done
    within is one transaction, which is committed at the end; a run `writes`.
    """
    refuse([*problems_of(policy), *unsupported(policy)])
    there = given.there
    ledger = LedgerThere(there, schema or SCHEMA)
    written = named_table(policy.target.table or "", "target.table") if writes else None
    with (
        open_context(given.connection, listener, None, folder, show_values, workers) as context,
        there.moment(written),
    ):
        context.listener.on_stage(READING)
        source, counted = _counted(context, there, policy)
        ledger.bring(context.engine)
        destination = InWarehouse(context.engine, source, policy.target, ledger)
        resolved, algorithm = resolve_algorithm(
            context.engine, counted, context.folder, target=lambda found: destination.refuse()
        )
        yield context, RunSpec(resolved, algorithm, destination)


def unsupported(policy: Policy) -> Iterator[Problem]:
    """The parts of a policy that counts do not serve, or a warehouse does not have, and what to do in their place."""
    if policy.key is not None:
        yield Problem("key", "counts do not say which row is which over time", ON_ROWS)
    if policy.individual is not None:
        yield Problem("individual", "counts do not say whose rows they are", ON_ROWS)
    if policy.decomposes:
        yield Problem("algorithm.name", f"{policy.algorithm.name} publishes tables of single rows", ON_ROWS)
    if policy.transparent:
        yield Problem("transparent", "transparent classes are made of rows", ON_ROWS)
    if policy.weight is not None:
        yield Problem("weight", "the warehouse counts its rows itself", "name the table of the rows, and leave it out")
    if policy.databases:
        yield Problem("databases", "are DuckDB's to attach", "name a table of the warehouse")
    if policy.target.table is None or policy.target.database is not None:
        yield Problem("target", "is not a table of the warehouse", "target: {table: …}")
    for name, setting in policy.sensitive.items():
        if setting.same:
            yield Problem(f"sensitive.{name}.same", "a warehouse has other letters and blanks", "fold them in a view")


def _counted(context: Context, there: Warehouse, policy: Policy) -> tuple[CountedSource, Policy]:
    """The source with its counts here, and the policy on these; raises PolicyError for too many of them."""
    engine, table = context.engine, there.source(policy.source, context.folder)
    columns = there.columns(table)
    texts = {column.name.lower(): column.type == "other" for column in columns}
    wanted = counted_columns(policy)
    refuse(_column_problems(policy, columns))
    own = {column.name.lower(): column.name for column in columns}
    keys = [
        ColumnThere(Identifier(own[name.lower()]), Identifier(f"k{place}"), texts[name.lower()])
        for place, name in enumerate(wanted)
    ]
    counts = count_rows(engine, there, "counts", table, keys)
    nulls = engine.record("recoding/input/count_nulls", rows=counts, columns=keys, weight=None)
    types = {column.name: SqlType(column.type) for column in columns_of(engine, counts)}
    keys = [replace(key, nullable=types[key.alias.name] if nulls[key.alias.name] else None) for key in keys]
    others = [
        ColumnThere(Identifier(column.name), Identifier(f"o{place}"), texts[column.name.lower()])
        for place, column in enumerate(columns)
        if column.name.lower() not in {name.lower() for name in wanted}
    ]
    number = next(name for name in (f"rows_{i}" for i in range(len(columns) + 1)) if name not in own)
    placed = engine.view(
        "source",
        "publishing/warehouse/place_counts",
        counts=counts,
        counted=keys,
        others=others,
        weight=WEIGHT,
        number=Identifier(number),
    )
    by_name = {column.column.name.lower(): column for column in (*keys, *others)}
    here = Frame(CallerView(placed.parts, "source"), str(policy.source))
    # Named, as one that is left open would be taken from those that recode all rows by one rule.
    counted = policy.model_copy(update={"source": here, "weight": number, "algorithm": policy.algorithm})
    return CountedSource(there, table, by_name, keys, counts), counted


def _column_problems(policy: Policy, columns: Sequence[Column]) -> Iterator[Problem]:
    """Columns that the table does not have, or that are not read: counting would fail later."""
    types = {column.name.lower(): column.type for column in columns}
    names = [column.name for column in columns]
    for key, name in policy.roles():
        if name.lower() not in types:
            yield Problem(f"{key}.{name}", "is not a column of the source", nearest(name, names))
        elif types[name.lower()] == "unread" and key != "identifiers":
            hint = "give numbers, texts or times in a view, or list it as identifier"
            yield Problem(f"{key}.{name}", "is of a type that is not read", hint)
    alike = {name.lower() for name in names if [other.lower() for other in names].count(name.lower()) > 1}
    if alike:
        what = f"has columns that differ in case alone: {', '.join(n for n in names if n.lower() in alike)}"
        yield Problem("source", what, "rename them in a view")
