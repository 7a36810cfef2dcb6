"""Columns of a release: the form in which each quasi-identifier is published, its columns and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import Problem, nearest, refuse
from ldiv_db.database.names import Identifier

#: A label (of a tree, or of a range), the label or the set of the values where that loses less, or two bounds.
#: A range may have the mean or the median of its class's numbers beside it.
Centre = Literal["mean", "median"]
Form = Literal["label", "set", "bounds", "mean", "median"]
CENTRES: tuple[Centre, ...] = get_args(Centre)
CLASS_ID = "class_id"
#: The type of a column of labels, and of one of lists: the members of a set, or the label alone.
LABEL, LABELS = "VARCHAR", "VARCHAR[]"
#: Types of which a value is the same whether it is read as such or as text, and that tell nothing beside their values,
#: as the members of an enum would.
_KEPT = ("BOOLEAN", "TIME", "UUID", "BLOB", "BIT")
#: Those among numbers and the others that come back from a Parquet file as something else.
_NOT_IN_PARQUET = ("HUGEINT", "UHUGEINT", "BIT")


def keeps_type(column: Column, form: str | None) -> bool:
    """True if values that are not generalised keep their type in a file of this form, or in a table (None)."""
    if form == "csv" or (form == "parquet" and column.type in _NOT_IN_PARQUET):
        return False
    return column.is_number or column.is_time or column.type in _KEPT


@dataclass(frozen=True)
class PublishedColumn:
    """The published column of an attribute, perhaps with one of upper bounds; `alias` is its working name."""

    column: Identifier
    alias: Identifier
    high: Identifier | None = None


def columns_as(name: str, form: Form) -> tuple[str, ...]:
    """The columns of a quasi-identifier's labels."""
    return (f"{name}_min", f"{name}_max") if form == "bounds" else (name,)


def centre_as(name: str, form: str) -> tuple[str, ...]:
    """The column of the means or medians of a quasi-identifier, if it has one."""
    return (f"{name}_{form}",) if form in CENTRES else ()


@dataclass(frozen=True)
class ReleaseColumns:
    """The columns of a release: quasi-identifiers in their forms, sensitive and kept columns, perhaps class ids."""

    forms: Mapping[str, Form]
    sensitive: tuple[str, ...]
    keep: tuple[str, ...] = ()
    has_class_ids: bool = False
    #: The column of a number that links the rows of a person, and that of their places, if there are such.
    person: str | None = None
    position: str | None = None
    #: The quasi-identifiers whose sets are written as lists.
    lists: tuple[str, ...] = ()
    #: The most values of a set of each quasi-identifier whose sets are limited.
    most: Mapping[str, int] = field(default_factory=dict)

    @property
    def all(self) -> list[str]:
        """All of them, in their order."""
        return [*self.class_ids, *self.identifying, *self.sensitive, *self.keep, *self.people]

    @property
    def people(self) -> list[str]:
        """The columns that link the rows of a person, and number them, if there are such."""
        return [name for name in (self.person, self.position) if name]

    @property
    def identifying(self) -> list[str]:
        """The columns that quasi-identifiers are published in: rows that agree on them are a class."""
        return [c for name, form in self.forms.items() for c in (*columns_as(name, form), *centre_as(name, form))]

    @property
    def centres(self) -> dict[str, str]:
        """The columns of means and medians, each with that of the ranges which these lie in."""
        return {column: name for name, form in self.forms.items() for column in centre_as(name, form)}

    def columns_of(self, name: str) -> tuple[str, ...]:
        """The columns of a quasi-identifier's labels."""
        return columns_as(name, self.forms[name])

    @property
    def class_ids(self) -> list[str]:
        """The column of class ids, if there is one: it tells classes apart that are published alike."""
        return [CLASS_ID] if self.has_class_ids else []

    def class_ids_among(self, names: Sequence[str]) -> list[str]:
        """The same of a table of these columns that anybody may have made: it may lack it."""
        return self.class_ids if CLASS_ID in map(str.lower, names) else []

    def types(self, columns: Sequence[Column]) -> dict[str, str]:
        """The type of every column of a release of a source with `columns`, in their order, where labels are text."""
        types = {column.name.lower(): column.published for column in columns}
        found = dict.fromkeys(self.class_ids, "BIGINT")
        for name, form in self.forms.items():
            label = LABELS if name in self.lists else LABEL
            kind = types[name.lower()] if form == "bounds" else label
            found |= dict.fromkeys(columns_as(name, form), kind) | dict.fromkeys(centre_as(name, form), "BIGINT")
        found |= {name: types[name.lower()] for name in [*self.sensitive, *self.keep]}
        return found | dict.fromkeys(self.people, "BIGINT")

    def clashes(self) -> Iterator[Problem]:
        """Columns that we would add under a name that the release has already, and lists of what has no members."""
        for name in self.lists:
            if self.forms[name] != "set":
                yield Problem(f"output.{name}", "a list is of the members of a set", "recode: set, if it is no number")
        taken = {name.lower() for name in [*self.sensitive, *self.keep]}
        taken |= {name.lower() for name, form in self.forms.items() if form != "bounds"}
        added = {
            column: name for name, form in self.forms.items() if form == "bounds" for column in columns_as(name, form)
        }
        added |= self.centres
        for column, name in added.items():
            if column.lower() in taken:
                key = name if column in self.centres else "bounds"
                what = f"{name} would be published as {column}, which the source has already"
                yield Problem(f"output.{key}", what)
        named = taken | {column.lower() for column in [*added, *self.class_ids]}
        for key, of_people in (("person", self.person), ("position", self.position)):
            if of_people and of_people.lower() in named:
                yield Problem(f"output.{key}", f"the release has a column {of_people} already", "give it another name")
            named |= {(of_people or "").lower()}
        if self.has_class_ids and CLASS_ID in taken:
            yield Problem(f"output.{CLASS_ID}", "the source has a column of that name")


def published_columns(
    released: ReleaseColumns, names: Sequence[str], others: Mapping[str, str | None]
) -> list[PublishedColumn]:
    """The published columns of every attribute; raises PolicyError for all that lack, `others` (key to name) too."""
    known = {name.lower() for name in names}
    found, problems = [], []
    for number, (name, form) in enumerate(released.forms.items(), 1):
        low, high = columns_as(name, "bounds")
        bounded = {low.lower(), high.lower()} <= known
        if name.lower() in known and not (bounded and form == "bounds"):
            found.append(PublishedColumn(Identifier(name), Identifier(f"q{number}")))
        elif bounded:
            found.append(PublishedColumn(Identifier(low), Identifier(f"q{number}"), Identifier(high)))
        else:
            what = f"the published table has neither {name} nor {low} and {high}"
            problems.append(Problem(f"quasi_identifiers.{name}", what, nearest(name, names)))
    for number, name in enumerate(released.sensitive, 1):
        found.append(PublishedColumn(Identifier(name), Identifier(f"s{number}")))
    asked = {**{f"sensitive.{name}": name for name in released.sensitive}, **others}
    problems += [
        Problem(key, f"the published table has no column {name}", nearest(name, names))
        for key, name in asked.items()
        if name and name.lower() not in known
    ]
    refuse(problems)
    return found
