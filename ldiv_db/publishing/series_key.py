"""The key of a series: which column it is, and that its values are written as they were in all releases before.

Keys are hashed as text. Under another column, or another type that is written otherwise (1 and 1.0), everybody would
count as new and be published once more, in other groups, and comparing releases would tell what the check cannot see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import PolicyError, Problem

INTEGER, TEXT = "integer", "text"
_INTEGERS = re.compile(r"UHUGEINT|DECIMAL\(\d+,0\)")
_TEXTS = re.compile(r"VARCHAR|UUID|ENUM\(.*", re.DOTALL)
#: The way out for releases that are not of the series.
ANOTHER_TARGET = "give another target to other releases"


@dataclass(frozen=True)
class Key:
    """The column that says which row is which, and how its values are written: `integer`, `text`, or its type."""

    name: str
    kind: str

    def is_written_as(self, other: Key | None) -> bool:
        """Whether keys are surely the same text as the other's: it is known, and of the same kind."""
        return other is not None and self.kind == other.kind


def key_of(column: Column) -> Key:
    """The key that is such a column of the source."""
    if column.is_integer or _INTEGERS.fullmatch(column.type):
        return Key(column.name, INTEGER)
    return Key(column.name, TEXT if _TEXTS.fullmatch(column.type) else column.type)


def check_key(key: Key, before: Key | None) -> None:
    """Raise PolicyError unless the key is that of the releases before; integers and text are looked into later."""
    if before is None:
        return
    if key.name.lower() != before.name.lower():
        what = f"the releases were made with the key {before.name}, with {key.name} everybody would count as new"
        raise PolicyError([Problem("key", what, ANOTHER_TARGET)])
    if key.kind != before.kind and {key.kind, before.kind} != {INTEGER, TEXT}:
        what = (
            f"{key.name} was {before.kind} in the releases before and is {key.kind}: keys would be written otherwise,"
            " and everybody count as new"
        )
        raise PolicyError([Problem("key", what, f"make it {before.kind} again, in a view")])
