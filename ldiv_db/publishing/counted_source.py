"""A source that lies in a warehouse, as the counts of its equal rows stand for it here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.counted import WEIGHT, ColumnThere, count_rows
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, SqlType
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.publishing.fingerprints import ReadColumn, hash_rows

#: Where the templates of releases in warehouses are.
SQL = "publishing/warehouse"


@dataclass(frozen=True)
class CountedSource:
    """A source of a warehouse, and the counts of its equal rows here: (keys by their working names, `weight`).

    `keys` are the quasi-identifiers, then the sensitive columns and whose the rows are; `columns` are all, by their
    names in lower case. `number` is what the counts are called where they are the source of a run; None where each
    counted row is a row of it. `kept` is what is told of those that are published as they are.
    """

    there: Warehouse
    table: Relation
    columns: dict[str, ColumnThere]
    keys: Sequence[ColumnThere]
    counts: Relation
    number: str | None
    kept: Sequence[str] = ()

    def recounted(self, engine: Engine, columns: Sequence[ReadColumn]) -> Relation:
        """The source as a run read it that read other columns."""
        wanted = [name for name, _, *kept in columns if not kept]
        kept = [name for name, _, *kept in columns if kept]
        listed = self.there.columns(self.table)
        return place_counts(engine, self.there, self.table, listed, wanted, kept, self.number is None)[1]


def place_counts(
    engine: Engine,
    there: Warehouse,
    table: Relation,
    columns: Sequence[Column],
    wanted: Sequence[str],
    keep: Sequence[str],
    is_of_rows: bool,
) -> tuple[CountedSource, Relation]:
    """The counts of a table by the columns that are `wanted`, and a view of them that is the source of a run.

    It has all columns of the table, in those that are kept a hash of the rows, NULL in the others.
    """
    texts = {column.name.lower(): column.type == "other" for column in columns}
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
    kept = [column for column in others if column.column.name.lower() in {name.lower() for name in keep}]
    number = next(name for name in (f"rows_{i}" for i in range(len(columns) + 1)) if name not in own)
    placed = engine.view(
        "source",
        f"{SQL}/place_counts",
        counts=counts,
        counted=keys,
        kept=kept,
        content=_content(engine, there, table, [*keys, *(replace(c, as_text=True) for c in kept)]) if kept else None,
        others=[column for column in others if column not in kept],
        weight=WEIGHT,
        number=None if is_of_rows else Identifier(number),
    )
    by_name = {column.column.name.lower(): column for column in (*keys, *others)}
    return CountedSource(there, table, by_name, keys, counts, None if is_of_rows else number), placed


def _content(engine: Engine, there: Warehouse, table: Relation, columns: Sequence[ColumnThere]) -> Relation:
    """(content): a hash of a table's rows in these columns, by which a run knows that what it keeps has changed."""
    ordered = sorted(columns, key=lambda column: column.column.name.lower())
    found = there.hashed(table, [column.column.name for column in ordered])
    if not found:
        counts = count_rows(engine, there, "content", table, columns)
        found = hash_rows(engine, counts, [column.alias for column in ordered], WEIGHT, "")
        engine.drop(counts)
    return engine.load("hashed", {"content": "VARCHAR"}, [(found,)])
