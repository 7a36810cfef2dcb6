"""What the form of a published table says beyond its classes: the order of its rows, its numbers, what lies beside it.

Whoever has the source, or a table in the same order, holds the k-th row of a class for the k-th of its people. So rows
are looked at in the order in which they lie. Where the values of a class rise or fall they stand as anybody could put
them, and nothing is told; any other order may be that of the source. Numbers of classes that do not rise with the
labels may be the order in which classes were made, which follows from sensitive values. Nothing is promised of either;
a release of ours has neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.disclosure import Attack, gain_of
from ldiv_db.auditing.audit import Counted
from ldiv_db.database.catalog import catalog_of, free_bytes, full_name, relations_in
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.recoding.encoded import Renamed

#: The database of temporary tables, and of frames.
TEMPORARY = "temp"


def look_at_form(engine: Engine, counts: Counted, sensitive: Sequence[str]) -> Attack:
    """What order, numbers and surroundings of a table say; `counts` are its classes by any sensitive attribute."""
    table = counts.subject.table
    order = _order(engine, counts, sensitive) if sensitive else Attack("form", None, ())
    figures = order.figures | _numbers(engine, counts) | _surroundings(engine, table)
    return replace(order, figures=figures)


def _order(engine: Engine, counts: Counted, sensitive: Sequence[str]) -> Attack:
    """What the order of rows says of their sensitive values."""
    table = counts.subject.table
    values = [Renamed(Identifier(name), Identifier(f"v{i}")) for i, name in enumerate(sensitive, 1)]
    holes: dict[str, Any] = {"class_columns": counts.columns, "values": values}
    with engine.scope():
        with read_exactly(engine, table) as read:
            placed = engine.materialise("placed", "attacking/form/place_rows", published=read, **holes)
        beyond = Value(counts.rows + 1)  # more than any rank
        unordered = engine.record("attacking/form/count_unordered_rows", placed=placed, beyond=beyond, **holes)
    share = Fraction(unordered["rows"], unordered["all_rows"]) if unordered["all_rows"] else None
    gain = gain_of("share of rows in classes with an order of their own", share, None)
    return Attack("form", None, (gain,), {"classes_with_an_order": unordered["classes"]})


def _numbers(engine: Engine, counts: Counted) -> dict[str, Any]:
    """How often numbers of classes fall where labels rise; nothing for classes without numbers, or without labels."""
    labels, ids = counts.columns[: len(counts.subject.labels)], counts.columns[len(counts.subject.labels) :]
    if not labels or not ids:
        return {}
    holes = {"classes": counts.listed, "labels": labels, "ids": ids}
    return {"numbers_against_labels": engine.scalar("attacking/form/count_falling_numbers", **holes)}


def _surroundings(engine: Engine, table: Relation | FileRelation) -> dict[str, Any]:
    """What else is in the file: other tables and dropped data in a database, entries beside the data in Parquet."""
    if isinstance(table, FileRelation):
        if table.reader != "read_parquet":
            return {}
        return {"metadata_entries": engine.scalar("attacking/form/count_metadata", path=Value(table.path))}
    database = catalog_of(engine, table)
    if database.lower() == TEMPORARY:  # a frame, or what its caller keeps: nobody is given what lies beside it
        return {}
    _, *own = full_name(engine, table)
    others = [other for other in relations_in(engine, database) if [part.lower() for part in other.parts] != own]
    return {"other_tables": len(others), "free_bytes": free_bytes(engine, database)}
