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
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, Problem, nearest, refuse
from ldiv_db.database.templates import CallerView, Identifier, Relation, SqlType
from ldiv_db.database.warehouses import COUNTED, PLACE, Warehouse
from ldiv_db.policy.document import Policy
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sources import Frame
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.ledger_there import READ, READ_OF_SERIES, LedgerThere
from ldiv_db.publishing.plan_there import CountedSource
from ldiv_db.publishing.result import hash_rows
from ldiv_db.recoding.branches import counted_columns
from ldiv_db.running.estimate import READING
from ldiv_db.running.run_spec import RunSpec, resolve_algorithm


@contextmanager
def counted_source(
    given: PlannedThere,
    policy: Policy,
    folder: str | Path,
    listener: Listener | None,
    show_values: bool,
    workers: int | None = None,
    schema: str | None = None,
    writes: bool = False,
) -> Iterator[tuple[Context, Policy, InWarehouse]]:
    """The policy on the counts of its source, which are brought here, and where its release goes; within, all there is
    of one moment.

    `schema` is where the ledger lies there, `ldiv` by default. Where the warehouse takes back a table, all that is done
    within is one transaction, which is committed at the end; a run `writes`.
    """
    there = given.there
    refuse([*problems_of(policy), *unsupported(policy, there)])
    ledger = LedgerThere(there, schema or SCHEMA)
    written = named_table(policy.target.table or "", "target.table") if writes else None
    with (
        open_context(given.connection, listener, None, folder, show_values, workers) as context,
        there.moment(written),
    ):
        context.listener.on_stage(READING)
        source, counted = _counted(context, there, policy)
        ledger.bring(context.engine, READ_OF_SERIES if policy.is_series else READ)
        yield context, counted, InWarehouse(context.engine, source, policy.target, ledger)


def resolve_there(context: Context, counted: Policy, destination: InWarehouse) -> RunSpec:
    """What runs on the counts of a source; raises PolicyError for all problems at once."""
    resolved, algorithm = resolve_algorithm(
        context.engine, counted, context.folder, target=lambda found: destination.refuse()
    )
    return RunSpec(resolved, algorithm, destination)


def unsupported(policy: Policy, there: Warehouse) -> Iterator[Problem]:
    """The parts of a policy that counts do not serve, or a warehouse does not have, and what to do in their place."""
    if policy.key is not None and not there.traits.holds_off:
        yield Problem("key", f"two nights at once in {there.dialect} could publish somebody in two classes", ON_ROWS)
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
            yield Problem(
                f"sensitive.{name}.same", "a warehouse folds case and blanks in its own way", "fold them in a view"
            )


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
    if not engine.count(counts):
        raise InfeasibleError(f"{policy.source} is empty: there is nothing to publish")
    nulls = engine.record("recoding/input/count_nulls", rows=counts, columns=keys, weight=None)
    types = {column.name: SqlType(column.type) for column in columns_of(engine, counts)}
    keys = [replace(key, nullable=types[key.alias.name] if nulls[key.alias.name] else None) for key in keys]
    others = [
        ColumnThere(Identifier(column.name), Identifier(f"o{place}"), texts[column.name.lower()])
        for place, column in enumerate(columns)
        if column.name.lower() not in {name.lower() for name in wanted}
    ]
    keep = set[str]() if policy.key else {name.lower() for name in policy.keep}
    kept = [column for column in others if column.column.name.lower() in keep]
    number = next(name for name in (f"rows_{i}" for i in range(len(columns) + 1)) if name not in own)
    is_of_rows = policy.individual is not None or policy.key is not None
    placed = engine.view(
        "source",
        "publishing/warehouse/place_counts",
        counts=counts,
        counted=keys,
        kept=kept,
        content=_content(engine, there, table, [*keys, *(replace(c, as_text=True) for c in kept)]) if kept else None,
        others=[column for column in others if column not in kept],
        weight=WEIGHT,
        number=None if is_of_rows else Identifier(number),
    )
    by_name = {column.column.name.lower(): column for column in (*keys, *others)}
    here = Frame(CallerView(placed.parts, "source"), str(policy.source))
    # Named, as one that is left open would be taken from those that recode all rows by one rule.
    weight = None if is_of_rows else number
    counted = policy.model_copy(update={"source": here, "weight": weight, "algorithm": policy.algorithm})
    return CountedSource(there, table, by_name, keys, counts), counted


def _content(engine: Engine, there: Warehouse, table: Relation, columns: Sequence[ColumnThere]) -> Relation:
    """(content): a hash of a table's rows in these columns, by which a run knows that what it keeps has changed."""
    ordered = sorted(columns, key=lambda column: column.column.name.lower())
    found = there.hashed(table, [column.column.name for column in ordered])
    if not found:
        counts = count_rows(engine, there, "content", table, columns)
        found = hash_rows(engine, counts, [column.alias for column in ordered], WEIGHT, "")
        engine.drop(counts)
    return engine.load("hashed", {"content": "VARCHAR"}, [(found,)])


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
        elif name.lower() in (COUNTED.name, PLACE.name) and key != "identifiers":
            yield Problem(f"{key}.{name}", "is how a staged release counts its rows", "rename it in a view")
    alike = {name.lower() for name in names if [other.lower() for other in names].count(name.lower()) > 1}
    if alike:
        what = f"has columns that differ in case alone: {', '.join(n for n in names if n.lower() in alike)}"
        yield Problem("source", what, "rename them in a view")
