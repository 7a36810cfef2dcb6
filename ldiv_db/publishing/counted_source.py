"""A release whose rows lie in a warehouse: their counts stand for them here, and the plan made of these goes there.

What is written there is read again, as counts, by the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.auditing.kept import count_kept, not_measured
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.counted import CONTENT, WEIGHT, ColumnThere, RepeatedRows, TableThere
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.database.readings import read_by
from ldiv_db.database.unchanged import hash_of, is_unchanged, stamp_of
from ldiv_db.database.warehouses import COUNTED, PLACE, Warehouse
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.settings import QuasiIdentifier
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.fingerprints import ReadColumn, hash_rows
from ldiv_db.recoding.encode import KEY, ORDER
from ldiv_db.recoding.encoded import Axis, SensitiveAxis
from ldiv_db.recoding.units import PERSON_NO, POSITION

#: Where the templates of releases in warehouses are.
SQL = "publishing/warehouse"
#: The most rows that one row of a plan stands for: a warehouse may hold a list of as many.
_REPEATED = 1_000_000
#: What a release has of numbers that are drawn here.
_NUMBERS = (PERSON_NO, POSITION)


@dataclass(frozen=True)
class CountedSource:
    """A source of a warehouse, and the counts of its equal rows here: (keys by their working names, `weight`).

    `keys` are the quasi-identifiers, then the sensitive columns and whose the rows are; `columns` are all, by their
    names in lower case. `number` is what the counts are called where they are the source of a run; None where each
    counted row is a row of it. `content` is a hash of the rows with what is `kept`, if anything is, and `stamp` what
    the database calls the table as it was counted.
    """

    source: TableThere
    columns: dict[str, ColumnThere]
    keys: Sequence[ColumnThere]
    counts: Relation
    number: str | None
    kept: Sequence[str]
    content: str | None
    stamp: tuple[Any, ...]

    @property
    def there(self) -> Warehouse:
        return self.source.there

    @property
    def table(self) -> Relation:
        return self.source.table

    def kept_warnings(self, kept: Sequence[Column], individual: Column | None) -> list[str]:
        """The warnings of kept columns: the rows that they single out are counted there, and no more."""
        if not kept:
            return []
        shown = {one.column.name: (one.column, one.as_text) for one in (self.columns[one.name.lower()] for one in kept)}
        of = {"source": self.table, "person": Identifier(individual.name) if individual else None, "weight": None}
        found = count_kept(lambda *asked, **more: self.there.rows(self.there.written(*asked, **more)), shown, **of)
        told = [column.warning for column in found if column.warning]
        return [*told, not_measured(list(shown), "what follows from kept columns")]

    def as_audited(
        self, engine: Engine, resolved: Resolved, staged: Relation, others: Sequence[Relation] = ()
    ) -> Relation:
        """The rows of a release, and those that they are appended to, as a view here on their counts."""
        there, released = self.there, resolved.released
        linked = released.people if released.position else []
        told = [column.name for column in resolved.source.sensitive]
        names = [*released.class_ids, *released.identifying, *told, *linked]
        texts = {key.column.name.lower() for key in self.keys if key.as_text}
        columns = [
            ColumnThere(Identifier(name), Identifier(name), name.lower() in texts) for name in dict.fromkeys(names)
        ]
        parts = [
            TableThere(there, table).count(engine, "written", columns, counted, COUNTED)
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
        return place_counts(engine, TableThere(self.there, self.table), wanted, keep, self.number is None)

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
    engine: Engine, source: TableThere, wanted: Sequence[str], keep: Sequence[str], is_of_rows: bool
) -> tuple[CountedSource, Relation]:
    """The counts of a table by the columns that are `wanted`, and a view of them that is the source of a run.

    It has all columns of the table, in those that are kept a hash of the rows, NULL in the others.
    """
    there = source.there
    stamp = stamp_of(there, source.table)  # before rows are looked at: a change in between is found
    own = {column.name.lower(): column for column in source.columns}
    wanted, keep = [name.lower() for name in wanted], [name.lower() for name in keep]

    def listed(letter: str, names: Sequence[str]) -> list[ColumnThere]:
        found = [(own[name], Identifier(f"{letter}{place}")) for place, name in enumerate(names)]
        return [ColumnThere(Identifier(column.name), alias, column.type == "other") for column, alias in found]

    keys, others = listed("k", wanted), listed("o", [name for name in own if name not in wanted])
    kept = _by_name(column for column in others if column.column.name.lower() in keep)
    counts = source.count(engine, "counts", keys, hashed=kept if there.traits.hashed else ())
    nulls = engine.record("recoding/input/count_nulls", rows=counts, columns=keys, weight=None)
    types = {column.name: SqlType(column.type) for column in columns_of(engine, counts)}
    keys = [replace(key, nullable=types[key.alias.name] if nulls[key.alias.name] else None) for key in keys]
    number = None if is_of_rows else next(name for i in range(len(own) + 1) if (name := f"rows_{i}") not in own)
    content = _content(engine, source, counts, keys, kept) if kept else None
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
    return CountedSource(source, named, keys, counts, number, keep, content, stamp), placed


def _by_name(columns: Iterable[ColumnThere]) -> list[ColumnThere]:
    """The columns in an order that runs have in common which list them in others."""
    return sorted(columns, key=lambda column: column.column.name.lower())


def _content(
    engine: Engine,
    source: TableThere,
    counts: Relation,
    keys: Sequence[ColumnThere],
    kept: Sequence[ColumnThere],
) -> str:
    """A hash of a table's rows, by which a run knows that what it keeps has changed.

    It is that of the counts, where these have hashes; else all that is kept is brought here, and what equal rows have
    of it counted.
    """
    names = [column.alias for column in _by_name(keys)]
    if source.there.traits.hashed:
        return hash_rows(engine, counts, [*names, CONTENT], WEIGHT, "")
    rows = source.count(engine, "content", [*keys, *(replace(column, as_text=True) for column in kept)])
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
        flow.know(numbers=[kept.alias for kept in encoded.kept if kept.alias in _NUMBERS])
        flow.step("stretches", "list_stretches", codes=[column["code"] for column in coded])
        source = {"counts": self._counts(), "keys": self.source.keys, "weight": WEIGHT}
        return flow.step("planned", "list_combinations", axes=encoded.axes, told=encoded.told, **source)

    def _coded(self) -> tuple[Relation, Relation, list[dict[str, Any]]]:
        """The rows that are planned, the cells of them that the counts are of, and the columns that tell these.

        The counts have values of each, `alias`, and `dictionary` is (value, code); without one a row has these values.
        """
        engine, encoded, source = self.engine, self.classes.encoded, self.classes.resolved.source
        if source.key is not None:  # each row is one
            return encoded.rows, encoded.rows, [_as_it_is(KEY, self._column(source.key.name))]
        person = [encoded.individual] if encoded.individual else []
        found: list[Axis | SensitiveAxis] = [*encoded.axes, *encoded.told, *person]
        coded = [_told_by(axis, there) for axis, there in zip(found, self.source.keys, strict=False)]
        for number in (number for number, _ in self._readings):
            coded[number]["alias"] = _read(self.source.keys[number])
        if source.order is not None:
            coded.append(_as_it_is(ORDER, self._column(source.order.name)))
        codes = dict.fromkeys([*(column["code"].name for column in coded), *(axis.code.name for axis in encoded.told)])
        cells = engine.group("cells", encoded.counted, *codes, row_id=("min", "row_id"))
        return encoded.members(self.classes.recoding.dealt), cells, coded

    @property
    def _readings(self) -> list[tuple[int, QuasiIdentifier]]:
        """The quasi-identifiers that the policy says how to read, each with its place among the keys."""
        every = enumerate(self.classes.resolved.policy.quasi_identifiers.values())
        return [(number, qi) for number, qi in every if qi.is_read]

    def _counts(self) -> Relation:
        """The counts, with what is read of their values beside these."""
        counts, keys = self.source.counts, self.source.keys
        if not self._readings:
            return counts
        read = [(keys[number].alias.name, _read(keys[number]).name) for number, _ in self._readings]
        both = self.engine.select("both", counts, *(column.name for column in columns_of(self.engine, counts)), *read)
        told = zip(read, self._readings, strict=True)
        found = read_by(self.engine, both, [qi.reading(alias) for (_, alias), (_, qi) in told])
        assert isinstance(found, Relation)  # noqa: S101 - no file
        return found

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
        read = [self.classes.encoded.axes[number].name for number, _ in self._readings]
        for span in self.classes.recoding.spans:
            own = self._column(span.axis.name) if span.form == "value" and span.axis.name not in read else None
            for shown in span.shown:
                column, text = (own.column, own.as_text) if own else (shown.column, False)
                found.append(PublishedColumn(column, shown.alias, text, name=shown.column, planned=own is None))
        for place, attribute in enumerate(self.classes.encoded.told):
            own, blank = self._column(attribute.column.name), place == 0 and self.classes.recoding.blanked is not None
            found.append(PublishedColumn(own.column, own.alias, own.as_text, name=attribute.column, blank=blank))
        for kept in self.classes.encoded.kept:
            planned = kept.alias in _NUMBERS
            own = ColumnThere(kept.column, kept.alias) if planned else self._column(kept.column.name)
            found.append(PublishedColumn(own.column, own.alias, own.as_text, name=kept.column, planned=planned))
        return found

    def _column(self, name: str) -> ColumnThere:
        return self.source.columns[name.lower()]


def _told_by(axis: Axis | SensitiveAxis, key: ColumnThere) -> dict[str, Any]:
    """How rows have a key: by a code, or as it is where equal values are written differently."""
    if isinstance(axis, SensitiveAxis) and axis.own:
        return _as_it_is(axis.own, key)
    return {"table": axis.table, "code": axis.code, "dictionary": axis.dictionary, "alias": key.alias}


def _as_it_is(column: Identifier, key: ColumnThere) -> dict[str, Any]:
    return {"code": column, "alias": key.alias, "dictionary": None}


def _read(key: ColumnThere) -> Identifier:
    """The column of what is read of a key's values."""
    return Identifier(f"{key.alias.name}_read")
