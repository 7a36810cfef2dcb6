"""The copy of the source that everything else reads: the columns with a role under working names, in one scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested, refuse_respelt, text_with_collation
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.policy.resolve import Nulls, Source
from ldiv_db.recoding.encoded import Renamed


def renamed(letter: str, names: Iterable[str]) -> list[Renamed]:
    """Columns under working names: the letter and their number from 1."""
    return [Renamed(Identifier(name), Identifier(f"{letter}{i}")) for i, name in enumerate(names, 1)]


def names_of(columns: Iterable[Column]) -> list[str]:
    """The columns' names."""
    return [column.name for column in columns]


def signed_columns(engine: Engine, source: Source) -> list[Renamed]:
    """The sensitive columns, under names of their own, in which a zero or NaN has a sign: it is published so."""
    pairs = zip(renamed("w", names_of(source.sensitive)), source.sensitive, strict=True)
    floats = [column for column, of in pairs if of.is_float]
    signed = engine.record("recoding/input/count_signed", source=source.relation, columns=floats) if floats else {}
    return [column for column in floats if signed[column.alias.name]]


@dataclass(frozen=True)
class Snapshot:
    """What is copied of a source; `beside` is taken as well."""

    engine: Engine
    source: Source
    beside: Sequence[Renamed] = ()

    def take(self) -> tuple[Relation, int, int]:
        """A TEMP copy of its columns, the source's row count, and how many rows a NULL left out.

        Raises InfeasibleError for an empty source and for NULLs that the policy rejects, PolicyError for values that
        are equal and written differently, so that one would stand for another.
        """
        engine, source = self.engine, self.source.relation
        rows_in = engine.count(source)
        snapshot = self._copy()
        kept = engine.count(snapshot)
        if rows_in == 0:
            raise InfeasibleError(f"{source} is empty: there is nothing to publish")
        if kept == 0:
            raise InfeasibleError(f"every one of the {rows_in:,} rows has a NULL that the policy suppresses")
        self._reject_nulls(snapshot)
        self._refuse_respelt(snapshot)
        return snapshot, rows_in, rows_in - kept

    @property
    def _identifying(self) -> list[Renamed]:
        return renamed("q", [qi.name for qi in self.source.quasi_identifiers])

    @property
    def _sensitive(self) -> list[Renamed]:
        return renamed("s", names_of(self.source.sensitive))

    def _copy(self) -> Relation:
        source = self.source
        individual = renamed("p", [source.individual.name] if source.individual else [])
        compared = self._identifying + self._sensitive + individual
        columns = [*compared, *renamed("k", names_of(source.keep)), *self.beside]
        shown = {column.alias.name for column in columns if column.alias.name[0] in "kw"}
        collated = {column.name.lower() for column in text_with_collation(self.engine, source.relation)}
        return self.engine.materialise(
            "snapshot",
            "recoding/input/snapshot_source",
            source=source.relation,
            columns=columns,
            texts=[column for column in columns if column.column.name.lower() in collated],
            # Which of two equal zeros would stand for both would depend on the order of the rows.
            floats=[c for c in columns if self._type(c).is_float and c.alias.name not in shown],
            required=self._where("suppress"),
        )

    def _where(self, nulls: Nulls) -> list[Renamed]:
        """The columns whose NULLs are to be treated that way."""
        source = self.source
        found = self._identifying if source.nulls == nulls else []
        return found + (self._sensitive if source.nulls_sensitive == nulls else [])

    def _type(self, column: Renamed) -> Column:
        return self.source.types[column.column.name]

    def _reject_nulls(self, snapshot: Relation) -> None:
        rejected = self._where("reject")
        if not rejected:
            return
        counts = self.engine.record("recoding/input/count_nulls", rows=snapshot, columns=rejected)
        found = {column.column.name: counts[column.alias.name] for column in rejected if counts[column.alias.name]}
        if found:
            text = ", ".join(f"{name} in {count:,} rows" for name, count in found.items())
            raise InfeasibleError(
                f"NULLs: {text}. Set nulls (quasi-identifiers) or nulls_sensitive to suppress or value to go on"
            )

    def _refuse_respelt(self, snapshot: Relation) -> None:
        keys = {"quasi_identifiers": self._identifying, "sensitive": self._sensitive}
        nested = [(f"{key}.{c.column.name}", c.alias) for key, columns in keys.items() for c in columns
                  if is_nested(self._type(c))]  # fmt: skip
        refuse_respelt(self.engine, snapshot, nested)
