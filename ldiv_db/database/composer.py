"""Steps written down as the named parts of one SELECT, for a database that is not ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from textwrap import wrap
from typing import Any

from sqlglot import exp

from ldiv_db.database.dialects import bound, keep_columns, listed_rows, seconds_of_instants, written_name, written_tree
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Figure, Relation
from ldiv_db.database.templates import header, render
from ldiv_db.database.traits_there import TRAITS

#: The most characters of a comment of the statement beside its dashes.
WIDTH = 116
#: The indent of the lines of a step.
_MARGIN = "  "


@dataclass(frozen=True)
class Doubt:
    """A reason for an open verdict, and how often it was found."""

    count: Figure
    problem: str


@dataclass(frozen=True)
class _Part:
    """A step: its name, its SELECT (as text if of rows that are written out), and sentences that say what it is."""

    name: str
    select: exp.Expr | str
    about: Sequence[str]


class Composer:
    """The steps of one SELECT in a dialect; what an engine would refuse after a count is a doubt, for it to tell."""

    def __init__(self, dialect: str, taken: Iterable[str] = ()) -> None:
        """`taken` are names that no step may have: those of the tables that the statement reads."""
        self.dialect = dialect
        #: True if the times that steps place on a line are points in time, rather than days.
        self.has_instants = False
        self._taken = {name.lower() for name in taken}
        self.doubts: list[Doubt] = []
        self._parts: list[_Part] = []
        self._sums: dict[tuple[Relation, str], Figure] = {}

    def materialise(self, name: str, template: str, **params: Any) -> Relation:
        """The step of what `template` selects."""
        head = header(template)
        about = [str(head["returns"]), *([str(head["implements"])] if "implements" in head else [])]
        select = bound(render(template, params), self.dialect)
        if self.has_instants and self.dialect == "postgres":
            select = seconds_of_instants(select)
        return self._add(name, select, about)

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        return self._add(name, listed_rows(columns, rows, self.dialect, _MARGIN), [", ".join(columns)])

    def drop(self, *relations: Relation) -> None:
        """Nothing: a step is gone with its statement."""

    def sum_of(self, rows: Relation, column: str) -> Figure:
        if (rows, column) not in self._sums:
            total = self.materialise(f"{rows.name}_{column}", "database/sum_column", rows=rows, column=column)
            self._sums[rows, column] = Figure(total, "total")
        return self._sums[rows, column]

    def refuse_any(self, problem: Callable[[str], Problem], template: str, **params: Any) -> None:
        """Note as a doubt what `template` has `found`."""
        found = self.materialise("doubt", template, **params)
        self.doubts.append(Doubt(Figure(found, "found"), str(problem("some"))))

    def text(self, last: str, **params: Any) -> str:
        """The statement whose SELECT is what the template `last` selects of the steps."""
        select = bound(render(last, params), self.dialect)
        parts = ",\n\n".join(self._written(part) for part in self._read_by(select))
        texts = [f"WITH\n{parts}", written_tree(select, self.dialect), TRAITS[self.dialect].ending]
        return "\n".join(text for text in texts if text)

    def _read_by(self, last: exp.Expr) -> list[_Part]:
        """The steps that `last` reads, and those that these read, each with the columns that are read."""
        readers, kept = [last], list[_Part]()
        for part in reversed(self._parts):
            reading = [tree for tree in readers if any(t.name == part.name for t in tree.find_all(exp.Table))]
            if reading:
                kept.insert(0, part)
                if not isinstance(part.select, str):
                    keep_columns(part.select, reading)
                    readers.append(part.select)
        return kept

    def _written(self, part: _Part) -> str:
        comment = "".join(f"-- {line}\n" for sentence in part.about for line in wrap(sentence, WIDTH))
        text = part.select if isinstance(part.select, str) else written_tree(part.select, self.dialect, _MARGIN)
        return f"{comment}{written_name(part.name, self.dialect)} AS (\n{text}\n)"

    def _free(self, name: str) -> str:
        """The name, with a number behind it if it is taken."""
        first = name if len(name) > 1 else f"by_{name}"  # single letters are what templates call tables
        numbered = (f"{first}_{number}" for number in count(2))
        free = next(found for found in chain([first], numbered) if found not in self._taken)
        self._taken.add(free)
        return free

    def _add(self, name: str, select: exp.Expr | str, about: Sequence[str]) -> Relation:
        self._parts.append(_Part(self._free(name), select, about))
        return Relation((self._parts[-1].name,))
