"""Steps that measure a requirement, each a template over the relations of those before it.

An `Engine` runs them, each as a table. `OneStatement` runs them as the named parts of one, so that what one step alone
reads is no table of its own, and columns that nothing reads are not worked out. A `Composer` writes them down, for a
database that is not ours: the definition of a requirement is the same in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from textwrap import wrap
from typing import Any, Protocol

from sqlglot import exp

from ldiv_db.database.dialects import bound, keep_columns, listed_rows, seconds_of_instants, written_name, written_tree
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Figure, Part, Relation, Value
from ldiv_db.database.templates import Statement, header, render
from ldiv_db.database.traits_there import TRAITS


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
