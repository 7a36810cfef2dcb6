"""Steps that an engine runs as one statement: its named parts, of which the last is kept as a table.

What one step alone reads is then no table of its own, made, filled and dropped, and columns that nothing reads are not
worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.templates import Figure, Identifier, Part, Relation, Statement, Value


class OneStatement:
    """The parts of a statement as they come; `keep` runs it. Templates of the parts may read what stays meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._values: dict[str, Any] = {}
        self._parts: dict[Part, Statement] = {}

    def materialise(self, name: str, template: str, **holes: Any) -> Relation:
        """The part that `template` selects."""
        part = self._engine.part(name)
        self._parts[part] = self._engine.rendered(template, self._values, **holes)
        return part

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """A TEMP table of rows made in Python, which the engine's scope drops."""
        return self._engine.load(name, columns, rows)

    def drop(self, *relations: Relation) -> None:
        """Nothing: parts are gone with their statement, which is still to read what was loaded."""

    def sum_of(self, rows: Relation, column: str) -> Value | Figure:
        """The sum of a column of whole numbers, 0 without rows."""
        if rows not in self._parts:
            return self._engine.sum_of(rows, column)
        return Figure(self.materialise("sum", "database/sum_column", rows=rows, column=Identifier(column)), "total")

    def refuse_any(self, problem: Callable[[str], Problem], template: str, **holes: Any) -> None:
        """Raise PolicyError if what `template` has `found` is not 0, asked of the parts so far."""
        before = dict(self._values), dict(self._parts)
        found = self.materialise("found", template, **holes)
        self._engine.refuse_found(problem, self._ending_with(found))
        self._values, self._parts = before

    def keep(self, name: str, template: str, **holes: Any) -> Relation:
        """As `materialise`, the TEMP table of it: the statement is run."""
        return self._engine.make(name, self._ending_with(self.materialise(name, template, **holes)))

    def _ending_with(self, last: Relation) -> Statement:
        named = ",\n".join(f"{part.sql()} AS (\n{step.sql}\n)" for part, step in self._parts.items())
        steps = tuple(self._parts.values())
        reads = [relation for step in steps for relation in step.reads]
        sql = f"WITH {named}\nSELECT * FROM {last.sql()}"
        return Statement(steps[-1].template, sql, dict(self._values), reads, parts=steps)
