"""Columns whose values look like sets of members, each of which counts as one value."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import rows_phrase
from ldiv_db.database.templates import Relation


@dataclass(frozen=True)
class LikelySets:
    """What looks like sets: a text has a `separator` between its members, a list None.

    `values` split into members which others have too, in `rows` of the `whole`; `most` rows have the most frequent
    member, the `largest` number the most frequent value.
    """

    separator: str | None
    rows: int
    values: int
    largest: int
    most: int
    whole: int

    @property
    def setting(self) -> str:
        """What a policy says of them."""
        return f'set: "{self.separator}"' if self.separator else "set: true"

    def __str__(self) -> str:
        split = f"split at `{self.separator}` into members" if self.separator else "are lists of members"
        known = f"{self.values:,} of its values, in {self.rows:,} of {self.whole:,} rows, {split} that others have too"
        member = f"the most frequent member is in {rows_phrase(self.most)}"
        counted = f"{member}, the most frequent value in {self.largest:,}"
        return f"{known}, and each counts as one value: {counted}; `{self.setting}` counts members"


def find_sets(engine: Engine, values: Relation, kind: str) -> LikelySets | None:
    """The sets that `values` (value, rows) of that SQL type look like; None if they do not, or are of another type."""
    lists = kind.endswith("]")
    if not lists and kind != "VARCHAR":
        return None
    found = engine.records("requirements/reading/find_sets", totals=values, lists=lists)
    return LikelySets(**found[0]) if found else None
