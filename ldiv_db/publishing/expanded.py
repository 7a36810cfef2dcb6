"""The view that a policy has beside its target (`expand`): each label spread over its values, with weights.

It is the SELECT of `ldiv sql expand`, of the release and its policy alone, and tells no more. It has a mark by which
later runs to the same target know it, and replace or drop it; anything else of its name is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.database import lineage
from ldiv_db.database.catalog import is_ours, located, looked_up, named_table, same_table
from ldiv_db.database.composer import Composer
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.names import DIALECT, Relation
from ldiv_db.database.snapshot import DUCKDB
from ldiv_db.database.views import drop_views, make_view, marked_views
from ldiv_db.measuring.asking.statement import expand_statement
from ldiv_db.policy.resolve import Resolved


def _views_of(engine: Engine, table: Relation) -> tuple[list[Relation], str]:
    """The views that runs made beside a table of DuckDB's, and their mark."""
    database, schema, name = located(engine, table)
    mark = f"ldiv: {schema}.{name} with each label spread over its values"
    is_duckdb = engine.snapshot.kind(database) == DUCKDB.type
    return marked_views(engine, database, mark) if is_duckdb else [], mark


def refuse_view(engine: Engine, name: str, table: Relation, sources: Sequence[Table]) -> None:
    """Raise PolicyError for a view of a `name` that is taken, or that cannot be made beside the table."""
    view, database = named_table(name, "expand"), located(engine, table)[0]
    kind = engine.snapshot.traits(database)
    if kind != DUCKDB:
        hint = "leave it out: `ldiv sql expand` prints the SELECT"
        raise refused("expand", f"a view is made in DuckDB, and the target is in {kind.name}", hint)
    if located(engine, view)[0].lower() != database.lower():
        raise refused("expand", f"{view} is in another database than its table", "name one of the same")
    if is_ours(engine, view) or same_table(engine, view, table):
        raise refused("expand", f"{view} is the target, or in the catalog's own schema", "give another name")
    there = looked_up(engine, view)
    if there is None:
        return
    if not any(same_table(engine, view, own) for own in _views_of(engine, table)[0]):
        raise refused("expand", f"{view} exists, and no run to {table} made it", "drop it, or give another name")
    if any(isinstance(source, Relation) and lineage.reads_table(engine, source, view) for source in sources):
        raise refused("expand", f"{view} is read by the source", "give another name")


def renew_view(engine: Engine, resolved: Resolved, table: Relation) -> None:
    """Make the view of a table that was written, in its transaction; those of earlier runs to the table are dropped."""
    before, mark = _views_of(engine, table)
    drop_views(engine, before)
    expand = resolved.policy.expand
    if expand is None:
        return
    there, at = Relation(located(engine, table)[1:]), Composer(DIALECT, [table.name])  # as the file's readers name it
    select = expand_statement(engine, table, expand.columns, resolved.policy, resolved.folder, at, there)
    make_view(engine, Relation(located(engine, named_table(expand.view, "expand"))), select, mark)
