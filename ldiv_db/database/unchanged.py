"""Whether a table of a warehouse has the rows that it had at an earlier moment, where the database tells without them.

What it tells is no more than that nothing has changed: where it cannot, or says otherwise, rows are counted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldiv_db.database.names import Relation, literal
from ldiv_db.database.warehouses import Warehouse


def stamp_of(there: Warehouse, table: Relation) -> tuple[Any, ...]:
    """What a table is called at this moment, which has begun with a look at its rows; empty where that is not known."""
    asked = there.traits.stamp.format(table=literal(there.name(table)))
    return next(iter(there.rows(asked)), ()) if asked else ()


def is_unchanged(there: Warehouse, table: Relation, stamp: tuple[Any, ...], rows: int) -> bool:
    """True if a table of an earlier stamp, with so many rows then, is known to have the same ones."""
    if not stamp:
        return False
    asked = there.traits.unchanged.format(name=there.name(table), rows=rows, asked=stamp[-1])

    def is_the_same_table() -> bool:
        return stamp_of(there, table)[:1] == stamp[:1]

    # Then once more, as nobody exchanges a table that is being read.
    return is_the_same_table() and (not asked or (there.rows(asked) == [(True,)] and is_the_same_table()))


def hash_of(there: Warehouse, table: Relation, columns: Sequence[str]) -> str:
    """What the rows' values in these columns hash to, whatever the order of the rows, if a function is known."""
    if not there.traits.hashed:
        return ""
    hashed = there.traits.hashed.format(", ".join(there.name(name) for name in columns))
    ((found,),) = there.rows(f"SELECT {hashed} FROM {there.name(table)}")
    return str(found)
