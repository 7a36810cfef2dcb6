"""The copy of the source that everything else reads: the policy's columns under working names, in one scan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested, looseness, refuse_respelt, text_with_collation
from ldiv_db.database.errors import InfeasibleError, numbered
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.policy import Policy
from ldiv_db.recoding.encoded import Renamed


def renamed(letter: str, names: Iterable[str]) -> list[Renamed]:
    """Columns under working names: the letter and their number from 1."""
    return [Renamed(Identifier(name), Identifier(f"{letter}{i}")) for i, name in enumerate(names, 1)]


def signed_columns(
    engine: Engine, policy: Policy, types: Mapping[str, Column], source: Relation | FileRelation
) -> list[Renamed]:
    """The sensitive columns, under names of their own, in which a zero or NaN has a sign: it is published so."""
    floats = [column for column in renamed("w", policy.sensitive) if types[column.column.name.lower()].is_float]
    signed = engine.record("recoding/input/count_signed", source=source, columns=floats) if floats else {}
    return [column for column in floats if signed[column.alias.name]]


@dataclass(frozen=True)
class Snapshot:
    """What is copied of a source: `types` are its columns by names in lower case, `beside` what is taken as well.

    Columns whose working names begin with a letter of `shown` are published as they are, not by a code of theirs.
    """

    engine: Engine
    policy: Policy
    types: Mapping[str, Column]
    beside: Sequence[Renamed] = ()
    shown: str = "kw"

    def take(self, source: Relation | FileRelation) -> tuple[Relation, int, int]:
        """A TEMP copy of what the policy needs, the source's row count, and how many rows a NULL left out.

        Raises InfeasibleError for an empty source and for NULLs that the policy rejects, PolicyError for values that
        are equal and written differently, so that one would stand for another.
        """
        engine = self.engine
        rows_in = engine.count(source)
        snapshot = self.copy(source)
        kept = engine.count(snapshot)
        if rows_in == 0:
            raise InfeasibleError(f"{source} is empty: there is nothing to publish")
        if kept == 0:
            raise InfeasibleError(f"every one of the {rows_in:,} rows has a NULL that the policy suppresses")
        self.check(snapshot)
        return snapshot, rows_in, rows_in - kept

    def copy(self, source: Relation | FileRelation) -> Relation:
        """A TEMP copy of what the policy needs, without the rows that a NULL leaves out; not checked."""
        policy = self.policy
        individual = renamed("p", [policy.individual] if policy.individual else [])
        kept = renamed("k", policy.keep)
        columns = [*self._identifying, *self._sensitive, *individual, *kept, *self.beside]
        collated = {column.name.lower() for column in text_with_collation(self.engine, source)}
        return self.engine.materialise(
            "snapshot",
            "recoding/input/snapshot_source",
            source=source,
            columns=columns,
            texts=[column for column in columns if column.column.name.lower() in collated],
            # Which of two equal zeros would stand for both would depend on the order of the rows.
            floats=[c for c in columns if self._type(c).is_float and not self._is_shown(c)],
            required=self._where_nulls("suppress"),
        )

    def check(self, snapshot: Relation) -> None:
        """Raise for NULLs that the policy rejects, and for values that are equal and written differently."""
        self._reject_nulls(snapshot)
        self._refuse_respelt(snapshot)

    def loose(self, columns: Iterable[Renamed]) -> list[Renamed]:
        """The columns with how equal values of theirs may be written differently."""
        return [replace(column, loose=looseness(self._type(column))) for column in columns]

    @property
    def _identifying(self) -> list[Renamed]:
        return renamed("q", self.policy.quasi_identifiers)

    @property
    def _sensitive(self) -> list[Renamed]:
        return renamed("s", self.policy.sensitive)

    def _where_nulls(self, treated: str) -> list[Renamed]:
        """The columns whose NULLs the policy wants to be treated so."""
        identifying = self._identifying if self.policy.nulls == treated else []
        return identifying + (self._sensitive if self.policy.nulls_sensitive == treated else [])

    def _type(self, column: Renamed) -> Column:
        return self.types[column.column.name.lower()]

    def _is_shown(self, column: Renamed) -> bool:
        return column.alias.name[0] in self.shown

    def _reject_nulls(self, snapshot: Relation) -> None:
        rejected = self._where_nulls("reject")
        if not rejected:
            return
        counts = self.engine.record("recoding/input/count_nulls", rows=snapshot, columns=rejected)
        nulls = [f"{c.column.name} in {counts[c.alias.name]:,} rows" for c in rejected if counts[c.alias.name]]
        if nulls:
            raise InfeasibleError(
                f"NULLs: {', '.join(nulls)}. Set nulls (quasi-identifiers) or nulls_sensitive to suppress or value"
                " to go on"
            )

    def _refuse_respelt(self, snapshot: Relation) -> None:
        coded = {"quasi_identifiers": self._identifying, "sensitive": self._sensitive}
        nested = [
            (f"{key}.{column.column.name}", column.alias)
            for key, columns in coded.items()
            for column in columns
            if is_nested(self._type(column)) and not self._is_shown(column)
        ]
        refuse_respelt(self.engine, snapshot, nested)


def require_keys(engine: Engine, policy: Policy, rows: Relation, key: Identifier) -> None:
    """Raise InfeasibleError unless there are rows, each with a key of its own."""
    counts = engine.record("recoding/input/count_keys", rows=rows, key=key)
    if counts["rows"] == 0:
        raise InfeasibleError(f"{policy.source} has no rows to publish")
    if counts["missing"] or counts["doubled"]:
        missing = numbered(counts["missing"], "row has", "rows have")
        raise InfeasibleError(
            f"key {policy.key}: {missing} none, and {counts['doubled']:,} rows share theirs; a key tells rows apart"
        )
