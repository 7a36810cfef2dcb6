"""Steps that measure a requirement, each a template over the relations of those before it.

An `Engine` runs them, each as a table. `OneStatement` runs them as the named parts of one, so that what one step alone
reads is no table of its own, and columns that nothing reads are not worked out. A `Composer` writes them down
(`composer.py`), for a database that is not ours: the definition of a requirement is the same in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Figure, Part, Relation, Value
from ldiv_db.database.templates import Statement


class Steps(Protocol):
    """Steps that are run, or written down."""

    def materialise(self, name: str, template: str, **params: Any) -> Relation:
        """The relation of what `template` selects."""

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """The relation of rows made in Python; `columns` is name to SQL type."""

    def drop(self, *relations: Relation) -> None:
        """Say that relations are needed no more."""

    def sum_of(self, rows: Relation, column: str) -> Value | Figure:
        """The sum of a column of whole numbers, 0 without rows, as a parameter of a template takes it."""

    def refuse_any(self, problem: Callable[[str], Problem], template: str, **params: Any) -> None:
        """Refuse to judge if what `template` has `found` (one row) is not 0; `problem` says it of the number."""


class OneStatement:
    """The parts of a statement as they come; `keep` runs it. Templates of the parts may read what stays meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._values: dict[str, Any] = {}
        self._parts: dict[Part, Statement] = {}

    def materialise(self, name: str, template: str, **params: Any) -> Relation:
        """The part that `template` selects."""
        part = self._engine.part(name)
        self._parts[part] = self._engine.rendered(template, self._values, **params)
        return part

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """A TEMP table of rows made in Python, which the engine's scope drops."""
        return self._engine.load(name, columns, rows)

    def drop(self, *relations: Relation) -> None:
        """Nothing: parts are gone with their statement, which is still to read what was loaded."""

    def sum_of(self, rows: Relation, column: str) -> Value | Figure:
        if rows not in self._parts:
            return self._engine.sum_of(rows, column)
        return Figure(self.materialise("sum", "database/sum_column", rows=rows, column=column), "total")

    def refuse_any(self, problem: Callable[[str], Problem], template: str, **params: Any) -> None:
        self._engine.refuse_any(problem, self._asking(template, params))

    def least(self, rows: Relation, column: str) -> Any:
        """The smallest value of a column: the statement is run."""
        ((value,),) = self.rows("database/summarise_column", rows=rows, column=column, conditions=[], function="min")
        return value

    def keep(self, name: str, template: str, **params: Any) -> Relation:
        """As `materialise`, the TEMP table of it: the statement is run."""
        return self._engine.make(name, self._ending_with(self.materialise(name, template, **params)))

    def record(self, template: str, **params: Any) -> dict[str, Any]:
        """The single row that `template` selects, as a dict by column name: the statement is run."""
        return self._engine.record(self._asking(template, params))

    def rows(self, template: str, **params: Any) -> list[tuple[Any, ...]]:
        """As `record`, all rows."""
        return self._engine.rows(self._asking(template, params))

    def records(self, template: str, **params: Any) -> list[dict[str, Any]]:
        """As `rows`, each a dict by column name."""
        return self._engine.records(self._asking(template, params))

    def _asking(self, template: str, params: Mapping[str, Any]) -> Statement:
        """The parts so far, and what a template selects of them; it becomes no part."""
        before = dict(self._values), dict(self._parts)
        statement = self._ending_with(self.materialise("asked", template, **params))
        self._values, self._parts = before
        return statement

    def _ending_with(self, last: Relation) -> Statement:
        named = ",\n".join(f"{part.sql()} AS (\n{step.sql}\n)" for part, step in self._parts.items())
        steps = tuple(self._parts.values())
        reads = [relation for step in steps for relation in step.reads]
        sql = f"WITH {named}\nSELECT * FROM {last.sql()}"
        return Statement(steps[-1].template, sql, dict(self._values), reads, parts=steps)


def counting(select: str) -> str:
    """The SELECT of a single number that counts the rows of another SELECT."""
    return f"SELECT count(*) AS counted FROM (\n{select}\n) AS found"
