"""References that are no links: columns which would be published, and whose values are keys of people or of their rows.

As they are they name people, and lead to rows by another road than that which the policy takes. A column is one of them
if the schema declares it, or its name is that of the key, or if it is no accident that its values are among the keys:
of so many keys in so wide a range few other values would be. Keys such as 1, 2, 3 … have any small number among them:
there a name that tells people, or one of what people are to each other, decides. Of a quasi-identifier, whose labels
are of several values, values alone are noted and refuse nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from ldiv_db.auditing.people_names import tells_one
from ldiv_db.database.catalog import Column, columns_of, full_name
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase, refuse
from ldiv_db.database.lineage import foreign_keys
from ldiv_db.database.names import Relation
from ldiv_db.policy.tables import PolicyTable, named_in
from ldiv_db.recoding.links import LinkedTable, register_of

#: Names of keys that say nothing of whose they are.
_BARE = {"id", "key", "nr", "no", "num", "number", "code", "uuid", "guid", "name"}
#: How a name ends that may be that of a reference: `ward_id`, `WardId`.
_REFERS = re.compile(r".*([a-z0-9](Id|ID|Nr|No|Key)|_(id|nr|no|key|code|ref))")
#: What rows name by what it is to them, and by what was done: `reports_to`, `created_by`, `previous_stay`.
_RELATED = re.compile(
    r".*(?i:manage|boss|supervis|superior|chief|leader|mentor|advis|tutor|partner|guardian|sibling|friend|follow|refer)"
    r"|.*(?i:parent|previous|prior|predecess|success|repl[iy])"
    r"|.*([a-z0-9](By|To)|(?i:_(by|to)))(?![a-z])"
)
#: The chance that it is by accident that all values found are among the keys, from which on it is none.
_CHANCE = 1e-3
#: The share of the people whom the values of a column name that may be a reference to them.
_MANY = 0.25
#: The characters that texts of keys are taken to be made of.
_CHARACTERS = 36


@dataclass(frozen=True)
class _Keys:
    """The keys of people, or of the rows of a table that others may name: `of` says whose."""

    engine: Engine
    table: LinkedTable
    column: Column
    of: str
    is_of_rows: bool

    @cached_property
    def counts(self) -> dict[str, Any]:
        """How many there are, how many are whole numbers, the lowest and highest of these, and the longest text."""
        return self.engine.record("auditing/tables/measure_keys", rows=self.table.rows, key=self.column.name)

    @property
    def density(self) -> float:
        """The share of the values which they might have that they do have: 1 of 1, 2, 3 …, small where few fit."""
        found = self.counts
        if not found["keys"]:
            return 1.0
        if found["numbers"] == found["keys"]:
            return float(found["keys"] / (found["high"] - found["low"] + 1))
        return float(min(1.0, found["keys"] / float(_CHARACTERS) ** found["longest"]))

    def is_named_by(self, column: str) -> bool:
        """True if the column is called as they are, or with something before it: `ship_customer_id`."""
        own, name = self.column.name, column
        if own.lower() in _BARE or not name.lower().endswith(own.lower()):
            return False
        before = name[: -len(own)]
        return not before or not before[-1].isalnum() or (before[-1].islower() and name[len(before)].isupper())


@dataclass(frozen=True)
class _Published:
    """A table, what a policy says of it, its rows with their columns, and the keys that it declares to name others."""

    name: str
    table: PolicyTable
    rows: Table
    columns: Mapping[str, Column]
    declared: Mapping[str, tuple[Relation, str]]

    @classmethod
    def of(cls, engine: Engine, name: str, table: PolicyTable, source: Table, rows: Table) -> _Published:
        columns = {column.name.lower(): column for column in columns_of(engine, source)}
        return cls(name, table, rows, columns, foreign_keys(engine, source) if isinstance(source, Relation) else {})

    def listed(self, *roles: str) -> Iterator[tuple[str, Column]]:
        """The columns with one of these roles, each with it, but for those in whose place numbers are published."""
        links = {name.lower() for name in (self.table.owner, self.table.own_key) if name}
        every = ((role, name.lower()) for role in roles for name in getattr(self.table, role))
        return ((role, self.columns[name]) for role, name in every if name in self.columns.keys() - links)


@dataclass(frozen=True)
class _Reference:
    """A column of a table that may name people, or rows of theirs, by their keys."""

    engine: Engine
    one: _Published
    role: str
    column: Column
    keys: _Keys

    @property
    def may_be(self) -> bool:
        """True if its values can be these keys at all, and are not the keys themselves."""
        ours, theirs = self.column, self.keys.column
        same = self.one.name == self.keys.table.name and ours.name.lower() == theirs.name.lower()
        return not same and ((ours.is_integer and theirs.is_integer) or ours.published == theirs.published)

    @property
    def is_said(self) -> bool:
        """True if the schema declares it, or its name, with its values."""
        if self.keys.is_named_by(self.column.name) or self._is_declared:
            return self.known > 0
        related, of_rows = bool(_RELATED.match(self.column.name)), self.keys.is_of_rows
        tells = related and self.keys.table.name == self.one.name if of_rows else related or tells_one(self.column.name)
        return tells and self.known == self._values > 0

    @property
    def _is_declared(self) -> bool:
        place, key = self.one.declared.get(self.column.name.lower(), (None, ""))
        source = self.keys.table.relation
        if place is None or not isinstance(source, Relation) or key != self.keys.column.name.lower():
            return False
        return full_name(self.engine, place) == full_name(self.engine, source)

    @property
    def is_told_by_values(self) -> bool:
        """True if so many of its values are keys that it is no accident."""
        rare = self.keys.density < 1 and 2 * self.known >= self._values
        return rare and self.keys.density**self.known < _CHANCE

    @property
    def may_refer(self) -> bool:
        """True if all its values are keys of people, of whom they are many, and its name is that of a reference.

        It may be an accident all the same. A few values are rather those of a list of kinds.
        """
        if self.keys.is_of_rows or self.one.table.public or not _REFERS.fullmatch(self.column.name):
            return False
        return self.known == self._values and self.known >= _MANY * self.keys.counts["keys"] > 0

    @property
    def known(self) -> int:
        """How many of its values are keys."""
        return int(self._counts["people"] - self._counts["lacking_values"])

    @property
    def _values(self) -> int:
        return int(self._counts["people"])

    @cached_property
    def _counts(self) -> dict[str, Any]:
        others = {"others": self.keys.table.rows, "key": self.keys.column.name}
        return self.engine.record("recoding/tables/count_links", rows=self.one.rows, column=self.column.name, **others)

    @property
    def why(self) -> str:
        values = count_phrase(self.known, "value is a key", "values are keys")
        return f"{values} of {self.keys.of} ({named_in(self.keys.table.name, self.keys.column.name)})"

    def problem(self) -> Problem:
        """That it is refused, and what to do instead."""
        ways = ["list it under identifiers", "join what is needed of them in a query, or CAST it there if it is no key"]
        if self.keys.is_of_rows and not self.one.table.public and self.one.name != self.keys.table.name:
            ways.insert(1, f"say parent: {{{self.column.name}: {self.keys.table.name}}} if it is the way to people")
        key = f"tables.{self.one.name}.{self.role}.{self.column.name}"
        return Problem(key, f"{self.why}: published, it names them, and links rows of several", "; ".join(ways))

    def note(self) -> str:
        """What is to be said of one that is left out, or that only may be one."""
        name = named_in(self.one.name, self.column.name)
        if self.role == "identifiers":
            own = self.one.table.owner or "nobody"
            return f"{name} is left out: {self.why}; rows are those of {own}, and nothing is promised to these"
        return f"{name} is published, and {self.why}: if it refers to them, list it under identifiers"


def check_references(
    engine: Engine, tables: Mapping[str, LinkedTable], public: Mapping[str, tuple[PolicyTable, Table]]
) -> list[str]:
    """Raise PolicyError for columns that would be published and are keys; returns what is to be said of others."""
    every = [_Published.of(engine, name, one.table, one.relation, one.rows) for name, one in tables.items()]
    every += [_Published.of(engine, name, table, rows, rows) for name, (table, rows) in public.items()]
    looked_up = {name.lower() for table, _ in public.values() for name in table.keep}
    problems, told = list[Problem](), list[str]()
    for keys, one in product([*_keys_of(engine, tables)], every):
        for role, column in one.listed("keep", "quasi_identifiers", "sensitive", "identifiers"):
            found = _Reference(engine, one, role, column, keys)
            if not found.may_be:
                continue
            is_left_out = role == "identifiers"
            is_looked_up = not one.table.public and column.name.lower() in looked_up
            by_values = not (is_left_out or is_looked_up or found.is_said)
            is_told = by_values and found.is_told_by_values
            if found.is_said or (is_told and role != "quasi_identifiers"):  # whose labels are of several values
                told += [found.note()] if is_left_out else []
                problems += [] if is_left_out else [found.problem()]
            elif is_told or (by_values and found.may_refer):
                told.append(found.note())
    refuse(problems)
    return told


def _keys_of(engine: Engine, tables: Mapping[str, LinkedTable]) -> Iterator[_Keys]:
    """The keys of people, and of rows that a policy says to have one."""
    of_people = [table for table in tables.values() if table.table.person]
    register = register_of(engine, of_people) or of_people[0]
    yield _Keys(engine, register, register.column(register.owner), "people", False)
    for table in tables.values():
        if len(table.table.key_parts) == 1:
            yield _Keys(engine, table, table.column(table.table.key_parts[0]), f"rows of {table.name}", True)
