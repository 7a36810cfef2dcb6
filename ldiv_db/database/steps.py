"""What a requirement is measured by: steps, each a template over the relations of those before it.

An `Engine` runs them. A `Composer` writes them down as the named parts of one statement, for a database that is not
ours: the definition of a requirement is the same in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ldiv_db.database.errors import Problem
from ldiv_db.database.templates import Figure, Relation, Value


class Steps(Protocol):
    """Steps that are run, or written down."""

    def materialise(self, name: str, template: str, **holes: Any) -> Relation:
        """The relation of what `template` selects."""

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """The relation of rows made in Python; `columns` is name to SQL type."""

    def drop(self, *relations: Relation) -> None:
        """Say that relations are needed no more."""

    def sum_of(self, rows: Relation, column: str) -> Value | Figure:
        """The sum of a column of whole numbers, 0 without rows, as a hole of a template takes it."""

    def refuse_any(self, problem: Callable[[str], Problem], template: str, **holes: Any) -> None:
        """Refuse to judge if what `template` has `found` (one row) is not 0; `problem` says it of the number."""
