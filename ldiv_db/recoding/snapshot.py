"""The snapshot of a source that all else reads: its columns with a role under working names, in one scan, and checked.

Refused are values without a place on a line, counts that count nobody, and keys that do not tell rows apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

from ldiv_db.database.catalog import Column
from ldiv_db.database.counted import WEIGHT
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested, looseness, refuse_respelt, text_with_collation
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, count_phrase, rows_phrase
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.policy.resolve import Nulls, Source
from ldiv_db.recoding.encoded import Renamed

#: Differences from here on are beyond doubles, or of integers beyond the widest type.
_WIDEST, _WIDEST_INTEGER = 1.7e308, 2**127
#: Of the years 1 to 9999, counted from 1970; and the microseconds of a day.
_FIRST_DAY, _LAST_DAY, _MICROSECONDS = -719_162, 2_932_896, 86_400_000_000


def bounds_of(engine: Engine, rows: Table, code: Identifier, column: Column) -> tuple[float, float]:
    """The smallest and the largest position in `code`, which holds the values of `column`; zeros if there are none.

    Raises PolicyError for infinities and NaN, and for numbers so far apart that no type holds the distance.
    """
    found = engine.record("recoding/input/bound_numbers", rows=rows, column=code, kind=column.kind)
    smallest, largest = found["smallest"] or 0, found["largest"] or 0
    if found["unplaced"] or not (abs(smallest) < float("inf") and abs(largest) < float("inf")):
        raise _refused(column, "holds NaN or infinity, which no range covers")
    if not largest - smallest < (_WIDEST_INTEGER if column.kind == "integer" else _WIDEST):
        raise _refused(column, "holds numbers too far apart to compare")
    return smallest, largest


def refuse_odd_years(engine: Engine, rows: Table, code: Identifier, column: Column) -> None:
    """Raise PolicyError unless all years have up to four digits: labels of others would be ambiguous."""
    smallest, largest = bounds_of(engine, rows, code, column)
    day = 1 if column.kind == "date" else _MICROSECONDS
    if smallest < _FIRST_DAY * day or largest >= (_LAST_DAY + 1) * day:
        raise _refused(column, "holds years outside 1 to 9999")


def _refused(column: Column, what: str) -> PolicyError:
    return PolicyError([Problem(f"quasi_identifiers.{column.name}", what)])


#: Equal rows are counted where there are at least so many rows, and so many a different one.
COUNTED_FROM, EQUAL_ROWS = 100_000, 2
#: More rows than this no source may count: more than could be published, and sums stay far from overflowing.
MOST_COUNTED = 10**11


def renamed(letter: str, names: Iterable[str]) -> list[Renamed]:
    """Columns under working names: the letter and their number from 1."""
    return [Renamed(Identifier(name), Identifier(f"{letter}{i}")) for i, name in enumerate(names, 1)]


def names_of(columns: Iterable[Column]) -> list[str]:
    """The columns' names."""
    return [column.name for column in columns]


def read_columns(source: Source) -> list[Renamed]:
    """The columns with a role, as every copy of a source has them."""
    named = {
        "q": [qi.name for qi in source.quasi_identifiers],
        "s": names_of(source.sensitive),
        "p": names_of(one for one in (source.individual, source.person) if one),
        "k": names_of(source.keep),
        "o": names_of(one for one in (source.order,) if one),
    }
    return [column for letter, names in named.items() for column in renamed(letter, names)]


def shown_of(source: Source) -> list[str]:
    """The quasi-identifiers that are published as they are."""
    return [qi.name for qi in source.quasi_identifiers if qi.hierarchy.is_shown]


def loose(source: Source, columns: Iterable[Renamed]) -> list[Renamed]:
    """The columns with how equal values of theirs may be written differently."""
    return [replace(column, loose=looseness(source.types[column.column.name])) for column in columns]


def signed_columns(engine: Engine, source: Source) -> list[Renamed]:
    """The sensitive columns, under names of their own, in which a zero or NaN has a sign: it is published so."""
    pairs = zip(renamed("w", names_of(source.sensitive)), source.sensitive, strict=True)
    floats = [column for column, of in pairs if of.is_float]
    signed = engine.record("recoding/input/count_signed", source=source.relation, columns=floats) if floats else {}
    return [column for column in floats if signed[column.alias.name]]


def own_columns(engine: Engine, source: Source) -> list[Renamed]:
    """The sensitive columns, under names of their own, in which equal values are written differently."""
    texts = [column for column in renamed("w", names_of(source.sensitive)) if source.same.get(column.column.name)]
    return [*signed_columns(engine, source), *texts]


@dataclass(frozen=True)
class Copied:
    """A TEMP copy of a source, the source's rows, and how many of them a NULL left out.

    `weight` is the copy's column of counts, None if it has rows alone.
    """

    snapshot: Relation
    rows_in: int
    left_out: int
    weight: Identifier | None


@dataclass(frozen=True)
class CopiedColumns:
    """A copy of a source's columns: those with a role, and `side_columns`.

    Some are published as they are, not by a code of theirs. Of a source that counts equal rows all of these are copied,
    or, if they may stay `counted`, each with its count; so are the rows of any source that may be counted and has many
    equal ones.
    """

    engine: Engine
    source: Source
    side_columns: Sequence[Renamed] = ()
    counted: bool = False

    def take(self) -> Copied:
        """A TEMP copy of its columns, checked.

        Raises InfeasibleError for an empty source and for NULLs that the policy rejects, PolicyError for values that
        are equal and written differently, so that one would stand for another.
        """
        copied = self.taken()
        self.check(copied.snapshot, copied.weight)
        return copied

    def taken(self) -> Copied:
        """The copy, with rows in it; raises InfeasibleError without any. What stands in them is not checked."""
        engine, source = self.engine, self.source.relation
        # All that is read is of one moment, also where others write to the database of the source.
        with engine.transaction() if isinstance(source, Relation) and engine.snapshot.others else nullcontext():
            rows_in = engine.count(source) if self.source.weight is None else count_weights(engine, self.source)
            grouped = self.counted and rows_in >= COUNTED_FROM and self._repeats(rows_in)
            snapshot = self.copy(grouped)
        weight = WEIGHT if grouped or (self.counted and self._counts) else None
        kept = engine.count_weighted(snapshot, weight)
        if rows_in == 0:
            raise InfeasibleError(f"{self.source.name} is empty: there is nothing to publish")
        if kept == 0:
            raise InfeasibleError(f"every one of the {rows_in:,} rows has a NULL that the policy suppresses")
        return Copied(snapshot, rows_in, rows_in - kept, weight)

    def copy(self, grouped: bool = False) -> Relation:
        """A TEMP copy of its columns, without the rows that a NULL leaves out; not checked. Equal rows may be one.

        Of counts that were brought from a warehouse it is a view.
        """
        source, columns = self.source, self._columns
        collated = {column.name.lower() for column in text_with_collation(self.engine, source.relation)}
        is_ours = source.place is not None and self.counted  # counts of a warehouse, which nobody else changes
        return (self.engine.view if is_ours else self.engine.materialise)(
            "snapshot",
            "recoding/input/snapshot_source",
            source=source.relation,
            columns=columns,
            texts=[column for column in columns if column.column.name.lower() in collated],
            # Which of two equal zeros would stand for both would depend on the order of the rows.
            floats=[c for c in columns if self._type(c).is_float and not self._is_shown(c)],
            required=self.where_nulls("suppress"),
            alike=None if source.sensitive else Identifier("s1"),
            counted=self._counts if self.counted else None,
            repeated=None if self.counted else self._counts,
            grouped=WEIGHT if grouped else None,
        )

    def check(self, snapshot: Relation, weight: Identifier | None = None) -> None:
        """Raise for NULLs that the policy rejects, and for values that are equal and written differently."""
        self._reject_nulls(snapshot, weight)
        self._refuse_respelt(snapshot)

    def _repeats(self, rows: int) -> bool:
        """True if equal rows are many, and written alike in all columns, so that one stands for the others."""
        source, columns = self.source, self._columns
        if source.weight or source.individual or source.person or self.side_columns:
            return False
        if any(
            looseness(self._type(c)) == "members" or (self._type(c).is_float and self._is_shown(c)) for c in columns
        ):
            return False
        found = self.engine.scalar("recoding/input/estimate_cells", source=source.relation, columns=columns)
        return bool(found * EQUAL_ROWS <= rows)

    @cached_property
    def _with_role(self) -> list[Renamed]:
        same = self.source.same
        return [self._cast(replace(c, same=same.get(c.column.name, ()))) for c in read_columns(self.source)]

    @property
    def _columns(self) -> list[Renamed]:
        return [*self._with_role, *map(self._cast, self.side_columns)]

    @property
    def _counts(self) -> Renamed | None:
        weight = self.source.weight
        return Renamed(Identifier(weight.name), WEIGHT) if weight else None

    def where_nulls(self, treated: Nulls) -> list[Renamed]:
        """The columns whose NULLs are to be treated so."""
        said = {"q": self.source.nulls, "s": self.source.nulls_sensitive}
        return [column for column in self._with_role if said.get(column.alias.name[0]) == treated]

    def _type(self, column: Renamed) -> Column:
        return self.source.types[column.column.name]

    def _cast(self, column: Renamed) -> Renamed:
        of = self._type(column)
        return column if of.published == of.type else replace(column, cast=SqlType(of.published))

    def _is_shown(self, column: Renamed) -> bool:
        return column.alias.name[0] in "kw" or column.column.name in shown_of(self.source)

    def _reject_nulls(self, snapshot: Relation, weight: Identifier | None) -> None:
        rejected = self.where_nulls("reject")
        if not rejected:
            return
        counts = self.engine.record("recoding/input/count_nulls", rows=snapshot, columns=rejected, weight=weight)
        found = [(column.column.name, counts[column.alias.name]) for column in rejected]
        nulls = ", ".join(f"{name} in {rows_phrase(count)}" for name, count in found if count)
        if nulls:
            hint = "Set nulls (quasi-identifiers) or nulls_sensitive to suppress or value to go on"
            raise InfeasibleError(f"NULLs: {nulls}. {hint}")

    def _refuse_respelt(self, snapshot: Relation) -> None:
        keys = {"q": "quasi_identifiers", "s": "sensitive"}
        nested = [
            (f"{keys[column.alias.name[0]]}.{column.column.name}", column.alias)
            for column in self._with_role
            if column.alias.name[0] in keys and is_nested(self._type(column)) and not self._is_shown(column)
        ]
        refuse_respelt(self.engine, snapshot, nested)


def count_weights(engine: Engine, source: Source) -> int:
    """The rows that the counts of the source add up to; raises PolicyError unless all are positive whole numbers."""
    assert source.weight is not None  # noqa: S101 - the caller has looked
    weight = Identifier(source.weight.name)
    found = engine.record("recoding/input/count_weights", source=source.relation, weight=weight, most=MOST_COUNTED)
    most = f"more than {MOST_COUNTED:,}"
    wrong = {"missing": "NULL", "zero": "zero", "negative": "negative", "fractions": "no whole number", "high": most}
    listed = [f"{what} in {count_phrase(found[name], 'row', 'rows')}" for name, what in wrong.items() if found[name]]
    if found["rows"] > MOST_COUNTED:
        listed.append(f"{most} in total")
    if listed:
        what = f"{source.weight.name} is {', '.join(listed)}"
        hint = "takes positive whole numbers: how many equal rows there are"
        if found["zero"] or found["missing"]:
            query = f'source: {{query: "… WHERE {weight.sql()} > 0"}}'
            hint += f"; a line of none stands for nobody: leave such lines out, by `{query}`"
        raise PolicyError([Problem("weight", what, hint)])
    return int(found["rows"])


def require_keys(engine: Engine, source: Source, rows: Relation, key: Identifier) -> None:
    """Raise InfeasibleError unless there are rows, each with a key of its own."""
    counts = engine.record("recoding/input/count_keys", rows=rows, key=key)
    if counts["rows"] == 0:
        raise InfeasibleError(f"{source.name} has no rows to publish")
    if counts["missing"] or counts["doubled"]:
        missing = count_phrase(counts["missing"], "row has", "rows have")
        shared = count_phrase(counts["doubled"], "row shares its", "rows share theirs")
        raise InfeasibleError(f"key {source.key_name}: {missing} none, and {shared}; a key must distinguish rows")
