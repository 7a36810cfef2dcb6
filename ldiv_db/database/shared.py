"""What several connections to one database read at the same time: copies of TEMP tables in a database in memory.

TEMP tables are seen by the connection alone that made them. Nothing goes to a disk that did not before, and nothing is
left where a process dies.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

from ldiv_db.database import interrupts
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.templates import Identifier, Relation


@contextmanager
def shared_memory(engine: Engine) -> Iterator[Callable[[Relation], Relation]]:
    """Within, what copies a table to where every connection to the engine's database sees it."""
    name = f"ldiv_{uuid.uuid4().hex[:8]}_shared"
    engine.execute(f"ATTACH ':memory:' AS {Identifier(name).sql()} (READ_WRITE)")
    try:
        yield partial(_copied, engine, name)
    finally:
        with suppress(DatabaseError):  # the first error is the one to report
            engine.execute(f"DETACH {Identifier(name).sql()}")


def _copied(engine: Engine, database: str, table: Relation) -> Relation:
    """The copy of a table."""
    copy = Relation((database, "main", table.name))
    engine.execute(f"CREATE TABLE {copy.sql()} AS SELECT * FROM {table.sql()}")
    return copy


@contextmanager
def another_connection(engine: Engine) -> Iterator[Any]:
    """Another connection to the engine's database, closed at the end; Ctrl-C stops what it does."""
    with closing(engine.connection.cursor()) as connection, interrupts.stopping(connection.interrupt):
        yield connection
