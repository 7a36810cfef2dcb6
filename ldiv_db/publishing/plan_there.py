"""The plan of a release whose rows lie in a warehouse, made here from counts, and what its audit reads of it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.counted import WEIGHT, ColumnThere, RepeatedRows, count_rows
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, SqlType, Value
from ldiv_db.database.warehouses import COUNTED, PLACE
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.publishing.counted_source import SQL, CountedSource
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.recoding.encode import KEY
from ldiv_db.recoding.encoded import Axis, SensitiveAxis
from ldiv_db.recoding.units import PERSON_NO

#: The most rows that one row of a plan stands for: a warehouse may hold a list of as many.
_REPEATED = 1_000_000


@dataclass(frozen=True)
class PublishedColumn(ColumnThere):
    """A column of a release: `planned` by its combination, or a column of the source as it is."""

    name: Identifier = field(kw_only=True)
    planned: bool = False
    #: Whether some of its values are not shown.
    blank: bool = False


@dataclass(frozen=True)
class _Coded:
    """A column of rows that the counts have as values, `alias`: `dictionary` is (value, code)."""

    table: Identifier
    code: Identifier
    dictionary: Relation
    alias: Identifier


@dataclass(frozen=True)
class PlanThere:
    """The plan of new classes: which combinations of values are published with which labels."""

    engine: Engine
    source: CountedSource
    classes: NewClasses

    def combinations(self, params: dict[str, Any]) -> Relation:
        """The plan as it goes there, a TEMP table here; `params` are those of the rows that are published."""
        engine, encoded, recoding = self.engine, self.classes.encoded, self.classes.recoding
        number = PERSON_NO if self.classes.resolved.released.person else None
        rows, cells, coded = self._coded()
        codes = [column.code for column in coded]
        stretches = engine.materialise(
            "stretches",
            f"{SQL}/list_stretches",
            assigned=recoding.assigned,
            rows=rows,
            cells=cells,
            codes=codes,
            dealt=recoding.dealt,
            number=number,
        )
        return engine.materialise(
            "planned",
            f"{SQL}/list_combinations",
            counts=self.source.counts,
            cells=cells,
            stretches=stretches,
            labels=params["labels"],
            blanked=recoding.blanked,
            keys=self.source.keys,
            axes=encoded.axes,
            told=encoded.told,
            coded=coded,
            shown=params["shown"],
            number=number,
            weight=WEIGHT,
            class_id=params["class_id"],
            last_class=params["last_class"],
        )

    def _coded(self) -> tuple[Relation, Relation, list[_Coded]]:
        """The rows that are planned, the cells of them that the counts are of, and the columns that tell these."""
        engine, encoded, key = self.engine, self.classes.encoded, self.classes.resolved.source.key
        if key is not None:  # each row is one
            rows = engine.select("keyed", encoded.rows, "row_id", ("row_id", "code"), (KEY.name, "value"))
            return rows, rows, [_Coded(Identifier("t_key"), Identifier("code"), rows, self._column(key.name).alias)]
        person = [encoded.individual] if encoded.individual else []
        found: list[Axis | SensitiveAxis] = [*encoded.axes, *encoded.told, *person]
        coded = [
            _Coded(column.table, column.code, column.dictionary, there.alias)
            for column, there in zip(found, self.source.keys, strict=False)
        ]
        codes = [column.code.name for column in coded]
        cells = engine.group("cells", encoded.counted, *codes, row_id=("min", "row_id"))
        return encoded.members(self.classes.recoding.dealt), cells, coded

    def counted(self, params: dict[str, Any], published: Sequence[PublishedColumn]) -> tuple[Relation, str]:
        """The different rows of a release with their counts, and the SELECT of the types that they have there.

        `params` are those of the rows that are published.
        """
        engine, more = self.engine, {"place": PLACE, "weight": COUNTED, "most": Value(_REPEATED)}
        taken = ("rows", "assigned", "labels", "blanked", "shown", "sensitive", "dealt", "class_id", "last_class")
        template = f"{SQL}/count_published"
        counted = engine.materialise("counted", template, **{name: params[name] for name in taken}, **more)
        types = {column.name: SqlType(column.type) for column in columns_of(engine, counted)}
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

    def as_audited(self, staged: Relation, others: Sequence[Relation]) -> Relation:
        """The rows that are staged, and those that they are appended to, as a view here on their counts."""
        engine, there, released = self.engine, self.source.there, self.classes.resolved.released
        names = [*released.class_ids, *released.identifying, *(c.name for c in self.classes.resolved.source.sensitive)]
        texts = {key.column.name.lower() for key in self.source.keys if key.as_text}
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
        return RepeatedRows(rows.parts, counts=counts, weight=COUNTED)

    def _column(self, name: str) -> ColumnThere:
        return self.source.columns[name.lower()]
