"""A release whose rows lie in a warehouse: their counts stand for them here, and the plan made of these goes there.

What is written there is read again, as counts, by the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.auditing.kept import count_kept, not_measured
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.counted import CONTENT, WEIGHT, ColumnThere, RepeatedRows, count_rows
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.database.unchanged import hash_of, is_unchanged, stamp_of
from ldiv_db.database.warehouses import COUNTED, PLACE, Warehouse
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.resolve import Resolved
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.fingerprints import ReadColumn, hash_rows
from ldiv_db.recoding.encode import KEY
from ldiv_db.recoding.encoded import Axis, SensitiveAxis
from ldiv_db.recoding.units import PERSON_NO

#: Where the templates of releases in warehouses are.
SQL = "publishing/warehouse"
#: The most rows that one row of a plan stands for: a warehouse may hold a list of as many.
_REPEATED = 1_000_000


@dataclass(frozen=True)
class CountedSource:
    """A source of a warehouse, and the counts of its equal rows here: (keys by their working names, `weight`).

    `keys` are the quasi-identifiers, then the sensitive columns and whose the rows are; `columns` are all, by their
    names in lower case. `number` is what the counts are called where they are the source of a run; None where each
    counted row is a row of it. `content` is a hash of the rows with what is `kept`, if anything is, and `stamp` what
    the database calls the table as it was counted.
    """

    there: Warehouse
    table: Relation
    columns: dict[str, ColumnThere]
    keys: Sequence[ColumnThere]
    counts: Relation
    number: str | None
    kept: Sequence[str]
    content: str | None
    stamp: tuple[Any, ...]

    def kept_warnings(self, kept: Sequence[str], individual: Column | None) -> list[str]:
        """The warnings of kept columns: the rows that they single out are counted there, and no more."""
        if not kept:
            return []
        shown = {one.column.name: (one.column, one.as_text) for one in (self.columns[name.lower()] for name in kept)}
        of = {"source": self.table, "person": Identifier(individual.name) if individual else None, "weight": None}
        found = count_kept(lambda *asked, **more: self.there.rows(self.there.written(*asked, **more)), shown, **of)
        told = [column.warning for column in found if column.warning]
        return [*told, not_measured(list(shown), "what follows from kept columns")]

    def as_audited(
        self, engine: Engine, resolved: Resolved, staged: Relation, others: Sequence[Relation] = ()
    ) -> Relation:
        """The rows of a release, and those that they are appended to, as a view here on their counts."""
        there, released = self.there, resolved.released
        names = [*released.class_ids, *released.identifying, *(column.name for column in resolved.source.sensitive)]
        texts = {key.column.name.lower() for key in self.keys if key.as_text}
        columns = [
            ColumnThere(Identifier(name), Identifier(name), name.lower() in texts) for name in dict.fromkeys(names)
        ]
        parts = [
            count_rows(engine, there, "written", table, columns, counted, COUNTED)
            for table, counted in [(staged, there.counted(staged)), *((other, None) for other in others)]
        ]
        counts, *more = sorted(parts, key=lambda part: not engine.count(part))  # of no rows a driver tells no types
        for part in more:
            engine.extend(counts, part)
        rows = engine.view("published", "database/repeat_counts", counts=counts, columns=columns, weight=COUNTED)
        has_more = bool(released.keep or released.people) and not (others or resolved.source.key)
        kept = hash_of(there, staged, sorted(released.all)) or None if has_more else ""
        return RepeatedRows(rows.parts, counts=counts, weight=COUNTED, kept=kept)

    def recounted(self, engine: Engine, columns: Sequence[ReadColumn]) -> Relation:
        """The source as a run read it that read other columns."""
        wanted = [name for name, _, *kept in columns if not kept]
        return self._counted_again(engine, wanted, [name for name, _, *kept in columns if kept])[1]

    def _counted_again(
        self, engine: Engine, wanted: Sequence[str], keep: Sequence[str]
    ) -> tuple[CountedSource, Relation]:
        listed = self.there.columns(self.table)
        return place_counts(engine, self.there, self.table, listed, wanted, keep, self.number is None)

    def is_as_counted(self, engine: Engine) -> bool:
        """True if the rows there are still those that were counted, with what was hashed of them."""
        self.there.refresh(self.table)
        if is_unchanged(self.there, self.table, self.stamp, engine.total(self.counts, WEIGHT.name)):
            return True
        if {column.name.lower() for column in self.there.columns(self.table)} != set(self.columns):
            return False
        with engine.scope():
            now, _ = self._counted_again(engine, [key.column.name for key in self.keys], self.kept)
            hashes = [
                source.content or hash_rows(engine, source.counts, [key.alias for key in source.keys], WEIGHT, "")
                for source in (self, now)
            ]
        return hashes[0] == hashes[1]


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
    stamp = stamp_of(there, table)  # before rows are looked at: a change in between is found
    own = {column.name.lower(): column for column in columns}
    wanted, keep = [name.lower() for name in wanted], [name.lower() for name in keep]

    def listed(letter: str, names: Sequence[str]) -> list[ColumnThere]:
        found = [(own[name], Identifier(f"{letter}{place}")) for place, name in enumerate(names)]
        return [ColumnThere(Identifier(column.name), alias, column.type == "other") for column, alias in found]

    keys, others = listed("k", wanted), listed("o", [name for name in own if name not in wanted])
    kept = _by_name(column for column in others if column.column.name.lower() in keep)
    counts = count_rows(engine, there, "counts", table, keys, hashed=kept if there.traits.hashed else ())
    nulls = engine.record("recoding/input/count_nulls", rows=counts, columns=keys, weight=None)
    types = {column.name: SqlType(column.type) for column in columns_of(engine, counts)}
    keys = [replace(key, nullable=types[key.alias.name] if nulls[key.alias.name] else None) for key in keys]
    number = None if is_of_rows else next(name for i in range(len(own) + 1) if (name := f"rows_{i}") not in own)
    content = _content(engine, there, table, counts, keys, kept) if kept else None
    placed = engine.view(
        "source",
        f"{SQL}/place_counts",
        counts=counts,
        counted=keys,
        kept=kept,
        content=engine.load("hashed", {"content": "VARCHAR"}, [(content,)]) if content else None,
        others=[column for column in others if column not in kept],
        weight=WEIGHT,
        number=number,
    )
    named = {column.column.name.lower(): column for column in (*keys, *others)}
    return CountedSource(there, table, named, keys, counts, number, keep, content, stamp), placed


def _by_name(columns: Iterable[ColumnThere]) -> list[ColumnThere]:
    """The columns in an order that runs have in common which list them in others."""
    return sorted(columns, key=lambda column: column.column.name.lower())


def _content(
    engine: Engine,
    there: Warehouse,
    table: Relation,
    counts: Relation,
    keys: Sequence[ColumnThere],
    kept: Sequence[ColumnThere],
) -> str:
    """A hash of a table's rows, by which a run knows that what it keeps has changed.

    It is that of the counts, where these have hashes; else all that is kept is brought here, and what equal rows have
    of it counted.
    """
    names = [column.alias for column in _by_name(keys)]
    if there.traits.hashed:
        return hash_rows(engine, counts, [*names, CONTENT], WEIGHT, "")
    rows = count_rows(engine, there, "content", table, [*keys, *(replace(column, as_text=True) for column in kept)])
    found = hash_rows(engine, rows, [*names, *(column.alias for column in kept)], WEIGHT, "")
    engine.drop(rows)
    return found


@dataclass(frozen=True)
class PublishedColumn(ColumnThere):
    """A column of a release: `planned` by its combination, or a column of the source as it is."""

    name: Identifier = field(kw_only=True)
    planned: bool = False
    #: Whether some of its values are not shown.
    blank: bool = False


@dataclass(frozen=True)
class PlanThere:
    """The plan of new classes: which combinations of values are published with which labels."""

    engine: Engine
    source: CountedSource
    classes: NewClasses

    def combinations(self, params: dict[str, Any]) -> Relation:
        """The plan as it goes there, a TEMP table here; `params` are those of the rows that are published."""
        encoded = self.classes.encoded
        rows, cells, coded = self._coded()
        flow = EngineFlow(self.engine, SQL, **params | {"rows": rows, "cells": cells, "coded": coded})
        flow.know(number=PERSON_NO if self.classes.resolved.released.person else None)
        flow.step("stretches", "list_stretches", codes=[column["code"] for column in coded])
        source = {"counts": self.source.counts, "keys": self.source.keys, "weight": WEIGHT}
        return flow.step("planned", "list_combinations", axes=encoded.axes, told=encoded.told, **source)

    def _coded(self) -> tuple[Relation, Relation, list[dict[str, Any]]]:
        """The rows that are planned, the cells of them that the counts are of, and the columns that tell these.

        The counts have values of each, `alias`, and `dictionary` is (value, code).
        """
        engine, encoded, key = self.engine, self.classes.encoded, self.classes.resolved.source.key
        if key is not None:  # each row is one
            rows = engine.select("keyed", encoded.rows, "row_id", ("row_id", "code"), (KEY.name, "value"))
            column = {"table": Identifier("t_key"), "code": Identifier("code"), "dictionary": rows}
            return rows, rows, [column | {"alias": self._column(key.name).alias}]
        person = [encoded.individual] if encoded.individual else []
        found: list[Axis | SensitiveAxis] = [*encoded.axes, *encoded.told, *person]
        coded: list[dict[str, Any]] = [
            {"table": column.table, "code": column.code, "dictionary": column.dictionary, "alias": there.alias}
            for column, there in zip(found, self.source.keys, strict=False)
        ]
        codes = [column["code"].name for column in coded]
        cells = engine.group("cells", encoded.counted, *codes, row_id=("min", "row_id"))
        return encoded.members(self.classes.recoding.dealt), cells, coded

    def counted(self, params: dict[str, Any], published: Sequence[PublishedColumn]) -> tuple[Relation, str]:
        """The different rows of a release with their counts, and the SELECT of the types that they have there.

        `params` are those of the rows that are published.
        """
        flow = EngineFlow(self.engine, SQL, **params)
        counted = flow.step("counted", "count_published", place=PLACE, weight=COUNTED, most=_REPEATED)
        types = {column.name: SqlType(column.type) for column in columns_of(self.engine, counted)}
        counting = [PublishedColumn(name, name, name=name, planned=True) for name in (PLACE, COUNTED)]
        columns = [replace(column, nullable=types[column.name.name]) for column in (*published, *counting)]
        return counted, self.source.there.written(f"{SQL}/type_plan", source=self.source.table, columns=columns)

    def columns(self) -> list[PublishedColumn]:
        """The columns of the release, in its order."""
        ids = Identifier(CLASS_ID)
        has_ids = self.classes.resolved.released.has_class_ids
        found = [PublishedColumn(ids, ids, name=ids, planned=True)] if has_ids else []
        for span in self.classes.recoding.spans:
            own = self._column(span.axis.name) if span.form == "value" else None
            for shown in span.shown:
                column, text = (own.column, own.as_text) if own else (shown.column, False)
                found.append(PublishedColumn(column, shown.alias, text, name=shown.column, planned=own is None))
        for place, attribute in enumerate(self.classes.encoded.told):
            own, blank = self._column(attribute.column.name), place == 0 and self.classes.recoding.blanked is not None
            found.append(PublishedColumn(own.column, own.alias, own.as_text, name=attribute.column, blank=blank))
        for kept in self.classes.encoded.kept:
            planned = kept.alias == PERSON_NO
            own = ColumnThere(kept.column, kept.alias) if planned else self._column(kept.column.name)
            found.append(PublishedColumn(own.column, own.alias, own.as_text, name=kept.column, planned=planned))
        return found

    def _column(self, name: str) -> ColumnThere:
        return self.source.columns[name.lower()]
