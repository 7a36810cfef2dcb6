"""Names and values of statements: what a template takes, and never the text of one for the other.

A name is quoted by sqlglot; a value travels as a bound parameter.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.errors import TemplateError

DIALECT = "duckdb"


def literal(value: Any) -> str:
    """A value as SQL writes it, for what takes no bound one: a view, the name of a file to write or attach."""
    from sqlglot import exp  # noqa: PLC0415 - what writes no SQL does without

    return exp.convert(value).sql(dialect=DIALECT)


@functools.lru_cache(maxsize=4096)
def _quote(name: str) -> str:
    from sqlglot import exp  # noqa: PLC0415 - as in `literal`

    return exp.to_identifier(name, quoted=True).sql(dialect=DIALECT)


@dataclass(frozen=True)
class Identifier:
    """A column name, of any characters."""

    name: str

    def sql(self) -> str:
        return _quote(self.name)


@dataclass(frozen=True)
class NamedAfter:
    """A column that is called after what has it: with `low = NamedAfter("{0.name}_low")` that of `q1` is `q1_low`."""

    pattern: str

    def __get__(self, owner: Any, kind: type) -> Identifier:
        return Identifier(self.pattern.format(owner))


@dataclass(frozen=True)
class Relation:
    """A table or view by its parts, `(catalog, schema, name)` or fewer."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Relation:
        """The relation that `text` names, e.g. `main.patients` or `"my schema"."my table"`."""
        from sqlglot import exp  # noqa: PLC0415 - as in `literal`

        table = exp.to_table(text, dialect=DIALECT)
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            raise ValueError(f"{text!r} is more than a name")
        return cls(tuple(part.name for part in table.parts))

    @property
    def name(self) -> str:
        return self.parts[-1]

    def beside(self, name: str) -> Relation:
        """The table of that name in the schema of this one."""
        return Relation((*self.parts[:-1], name))

    def sql(self) -> str:
        return ".".join(Identifier(part).sql() for part in self.parts)

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class CallerView(Relation):
    """A TEMP view of a query or a frame that a caller gave; messages call it `what`."""

    what: str

    def __str__(self) -> str:
        return f"the {self.what}"


@dataclass(frozen=True)
class Part(Relation):
    """A relation that is a part of the statement that reads it, under a name that no table has."""


@dataclass(frozen=True)
class SqlType:
    """The type of a column as the database says it, without the values of an enum: `INTEGER`, `STRUCT(a DATE[])`."""

    name: str

    @property
    def kind(self) -> str:
        """`instant` of a point in time, which is written with its zone; `other` of any other type."""
        return "instant" if self.name == "TIMESTAMP WITH TIME ZONE" else "other"

    def sql(self) -> str:
        if not re.fullmatch(r'(?:\w|[ ,()\[\]]|"(?:[^"]|"")*")+', self.name):
            raise TemplateError(f"{self.name!r} is not the name of a type")
        return self.name


@dataclass(frozen=True)
class Value:
    """A value; it travels as a bound parameter and is never printed."""

    value: Any


@dataclass(frozen=True)
class Figure:
    """A number that another step works out: a column of a relation of one row."""

    relation: Relation
    column: str

    def sql(self) -> str:
        return f"(SELECT {Identifier(self.column).sql()} FROM {self.relation.sql()})"
