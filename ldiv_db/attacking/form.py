"""The attack by the form of a table: what its order, its numbers and what lies beside it say beyond its classes.

Whoever has the source, or a table in the same order, holds the k-th row of a class for the k-th of its people. So rows
are looked at in the order in which they lie. Where the values of a class rise or fall they stand as anybody could put
them, and nothing is told; any other order may be that of the source. Numbers of classes that do not rise with the
labels may be the order in which classes were made, which follows from sensitive values. Nothing is promised of either;
a release of ours has neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.attacking.base import Attacker
from ldiv_db.attacking.gains import Attack, Gain, gain_of
from ldiv_db.database.catalog import catalog_of, full_name, relations_in
from ldiv_db.database.databases import free_bytes, metadata_entries
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.recoding.encoded import Renamed

#: The database of temporary tables, and of frames.
TEMPORARY = "temp"


class Form(Attacker):
    """The attack by order, numbers and surroundings of a table."""

    names = ("form",)
    of_values = False
    words: ClassVar = {
        "classes_with_an_order": "classes that may still be in the source's order",
        "free_bytes": "free bytes in the file",
        "other_tables": "other tables in the file",
    }

    def attacks(self) -> Iterator[Attack]:
        table, engine = self.table.first.subject.table, self.table.engine
        if isinstance(table, Relation) and hasattr(engine.connection, "there"):
            figures = self._numbers() | {"order": "a warehouse's counts have none"}
            yield Attack("form", None, (), figures)
            return
        gains, figures = self._order(table) if self.table.columns.sensitive else ((), {})
        yield Attack("form", None, gains, figures | self._numbers() | _surroundings(engine, table))

    def _order(self, table: Relation | FileRelation) -> tuple[tuple[Gain, ...], dict[str, Any]]:
        """The gain by the order of rows, which may tell their sensitive values."""
        counts = self.table.first
        values = [
            Renamed(Identifier(name), Identifier(f"v{i}")) for i, name in enumerate(self.table.columns.sensitive, 1)
        ]
        flow = EngineFlow(self.table.engine, "attacking/form", class_columns=counts.columns, values=values)
        with flow.scope():
            with read_exactly(flow.engine, table) as read:
                flow.step("placed", "place_rows", published=read)
            unordered = flow.record("count_unordered_rows", beyond=counts.rows + 1)  # more than any rank
        share = Fraction(unordered["rows"], unordered["all_rows"]) if unordered["all_rows"] else None
        gain = gain_of("share of rows that may still be in the source's order (0 is best)", share, None)
        return (gain,), {"classes_with_an_order": unordered["classes"]}

    def _numbers(self) -> dict[str, Any]:
        """Counts numbers of classes that fall where labels rise; nothing for classes without either."""
        counts = self.table.first
        width = len(counts.subject.labels)
        labels, ids = counts.columns[:width], counts.columns[width:]
        if not labels or not ids:
            return {}
        params = {"classes": counts.listed, "labels": labels, "ids": ids}
        found = self.table.engine.scalar("attacking/form/count_falling_numbers", **params)
        return {"numbers_against_labels": found}


def _surroundings(engine: Engine, table: Relation | FileRelation) -> dict[str, Any]:
    """Counts what else the file holds: other tables and dropped data in a database, entries in Parquet metadata."""
    if isinstance(table, FileRelation):
        return {} if table.reader != "read_parquet" else {"metadata_entries": metadata_entries(engine, table.path)}
    database = catalog_of(engine, table)
    if database.lower() == TEMPORARY:  # a frame, or what its caller keeps: nobody is given what lies beside it
        return {}
    _, *own = full_name(engine, table)
    others = [other for other in relations_in(engine, database) if [part.lower() for part in other.parts] != own]
    return {"other_tables": len(others), "free_bytes": free_bytes(engine, database)}
