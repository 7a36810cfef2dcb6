"""The copy of the source that everything else reads: the policy's columns under working names, in one scan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested, refuse_respelt, text_with_collation
from ldiv_db.database.errors import InfeasibleError
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
    """What is copied of a source: `types` are its columns by names in lower case, `beside` what is taken as well."""

    engine: Engine
    policy: Policy
    types: Mapping[str, Column]
    beside: Sequence[Renamed] = ()

    def take(self, source: Relation | FileRelation) -> tuple[Relation, int, int]:
        """A TEMP copy of what the policy needs, the source's row count, and how many rows a NULL left out.

        Raises InfeasibleError for an empty source and for NULLs that the policy rejects, PolicyError for values that
        are equal and written differently, so that one would stand for another.
        """
        engine = self.engine
        rows_in = engine.count(source)
        snapshot = self._copy(source)
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
        return renamed("q", self.policy.quasi_identifiers)

    @property
    def _sensitive(self) -> list[Renamed]:
        return renamed("s", self.policy.sensitive)

    def _copy(self, source: Relation | FileRelation) -> Relation:
        policy = self.policy
        required = self._identifying if policy.nulls == "suppress" else []
        required = required + (self._sensitive if policy.nulls_sensitive == "suppress" else [])
        individual = renamed("p", [policy.individual] if policy.individual else [])
        compared = self._identifying + self._sensitive + individual
        columns = [*compared, *renamed("k", policy.keep), *self.beside]
        shown = {column.alias.name for column in columns if column.alias.name[0] in "kw"}
        collated = {column.name.lower() for column in text_with_collation(self.engine, source)}
        return self.engine.materialise(
            "snapshot",
            "recoding/input/snapshot_source",
            source=source,
            columns=columns,
            texts=[column for column in columns if column.column.name.lower() in collated],
            # Which of two equal zeros would stand for both would depend on the order of the rows.
            floats=[c for c in columns if self._type(c).is_float and c.alias.name not in shown],
            required=required,
        )

    def _type(self, column: Renamed) -> Column:
        return self.types[column.column.name.lower()]

    def _reject_nulls(self, snapshot: Relation) -> None:
        policy = self.policy
        rejected = self._identifying if policy.nulls == "reject" else []
        rejected = rejected + (self._sensitive if policy.nulls_sensitive == "reject" else [])
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
