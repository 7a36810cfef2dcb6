"""Views that are kept, each with a mark as its comment, by which it is known as ours."""

from __future__ import annotations

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation, literal


def marked_views(engine: Engine, database: str, mark: str) -> list[Relation]:
    """The views of a database of DuckDB's that have this mark: nobody else's has."""
    rows = engine.execute(
        "SELECT database_name, schema_name, view_name FROM duckdb_views()"
        " WHERE lower(database_name) = lower($database) AND comment = $mark",
        {"database": database, "mark": mark},
    )
    return [Relation(row) for row in rows]


def drop_views(engine: Engine, views: list[Relation]) -> None:
    """Drop the views."""
    for view in views:
        engine.execute(f"DROP VIEW {view.sql()}")


def make_view(engine: Engine, view: Relation, select: str, mark: str) -> None:
    """Make a view of a SELECT, of its full name and with its mark; raises DatabaseError if that name is taken."""
    engine.execute(f"CREATE SCHEMA IF NOT EXISTS {Relation(view.parts[:-1]).sql()}")
    engine.execute(f"CREATE VIEW {view.sql()} AS\n{select}")
    engine.execute(f"COMMENT ON VIEW {view.sql()} IS {literal(mark)}")
