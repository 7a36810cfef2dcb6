"""Writes steps down as the named parts of one statement, in place of running them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from textwrap import wrap
from typing import Any

from ldiv_db.database.errors import Problem
from ldiv_db.database.portable import ending, listed_rows, written_name, written_step
from ldiv_db.database.templates import Figure, Identifier, Relation, header, render

#: What a comment of the statement has beside its dashes at most.
WIDTH = 116
#: What stands before the lines of a step.
_MARGIN = "  "


@dataclass(frozen=True)
class Doubt:
    """What leaves a verdict open: how often it was found, and what it is."""

    count: Figure
    problem: str


class Composer:
    """The steps of one SELECT in a dialect; `text` is all of it.

    Nothing is asked of a database: what an engine would refuse after a count is a doubt, for the statement to tell.
    """

    def __init__(self, dialect: str, taken: Iterable[str] = ()) -> None:
        """`taken` are names that no step may have: those of the tables that the statement reads."""
        self.dialect = dialect
        self._taken = {name.lower() for name in taken}
        self.doubts: list[Doubt] = []
        self._parts: list[str] = []
        self._sums: dict[tuple[Relation, str], Figure] = {}

    def materialise(self, name: str, template: str, **holes: Any) -> Relation:
        """The step of what `template` selects."""
        head = header(template)
        about = [str(head["returns"]), *([str(head["implements"])] if "implements" in head else [])]
        return self._add(name, written_step(render(template, holes), self.dialect, _MARGIN), about)

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """The step of rows that are written out; `columns` is name to SQL type."""
        return self._add(name, listed_rows(columns, rows, self.dialect, _MARGIN), [", ".join(columns)])

    def drop(self, *relations: Relation) -> None:
        """Nothing: a step is gone with its statement."""

    def sum_of(self, rows: Relation, column: str) -> Figure:
        """The sum of a column of whole numbers, 0 without rows."""
        if (rows, column) not in self._sums:
            total = self.materialise(
                f"{rows.name}_{column}", "database/sum_column", rows=rows, column=Identifier(column)
            )
            self._sums[rows, column] = Figure(total, "total")
        return self._sums[rows, column]

    def refuse_any(self, problem: Callable[[str], Problem], template: str, **holes: Any) -> None:
        """Note as a doubt what `template` has `found`."""
        found = self.materialise("doubt", template, **holes)
        self.doubts.append(Doubt(Figure(found, "found"), str(problem("some"))))

    def text(self, last: str, **holes: Any) -> str:
        """The statement whose SELECT is what the template `last` selects of the steps."""
        select = written_step(render(last, holes), self.dialect)
        parts = ["WITH\n" + ",\n\n".join(self._parts), select, ending(self.dialect)]
        return "\n".join(part for part in parts if part)

    def _free(self, name: str) -> str:
        """The name, with a number behind it if it is taken."""
        first = name if len(name) > 1 else f"by_{name}"  # single letters are what templates call tables
        numbered = (f"{first}_{number}" for number in count(2))
        free = next(found for found in chain([first], numbered) if found not in self._taken)
        self._taken.add(free)
        return free

    def _add(self, name: str, select: str, about: Sequence[str]) -> Relation:
        relation = Relation((self._free(name),))
        comment = "".join(f"-- {line}\n" for sentence in about for line in wrap(sentence, WIDTH))
        self._parts.append(f"{comment}{written_name(relation.name, self.dialect)} AS (\n{select}\n)")
        return relation
