"""Equality of values: two are one if they are equal and written alike. The database holds others equal as well.

=================  ==================================================  ==============================================
type               values that it holds equal and writes differently   what is done
=================  ==================================================  ==============================================
text               by a collation of the column or the connection:     compared by bytes: columns are read without
                   `Ab` and `aB`, `é` and `e`                          their collation, the connection's is set aside
FLOAT, DOUBLE      -0.0 and 0.0, the signs of NaN                      they count as one value; each row is published
                                                                       with its own
LIST, STRUCT, …    those that have such members                        refused where they occur
INTERVAL           1 day and 24 hours, 1 month and 30 days             refused
VARIANT            1 as INTEGER and as BIGINT, 1.0 and 1.00            refused
any other          none: numbers, times, BLOB, BIT, UUID, ENUM, JSON   compared as they are
=================  ==================================================  ==============================================

What is refused is refused as a quasi-identifier or sensitive column; a column that is kept is copied as it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from ldiv_db.database.catalog import Column, columns_of, definition_of, is_foreign
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, Problem, count_phrase, refuse
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import render

_REFUSED = {
    "INTERVAL": "holds intervals, of which 1 day and 24 hours are equal",
    "VARIANT": "holds variants, of which 1 as INTEGER and 1 as BIGINT are equal",
}
_NESTED = ("STRUCT", "MAP", "UNION", "TUPLE")
#: The ways in which equal values may differ as written: by the sign of a zero or NaN, or as their members or parts are.
Looseness = Literal["signs", "members"]
#: Steps after which texts are one: with blanks and dashes of one kind, and none that is not seen; in small letters,
#: composed. `macros/same.j2` has them too, and the dbt package.
Step = Literal["trim", "casefold"]


@dataclass(frozen=True)
class Members:
    """The last step of a column of sets: each becomes the list of its different members in order, NULL if it has none.

    A text has a `separator` between its members, and blanks, brackets and quotes at their ends are left out; without
    one it is a list. The steps before are taken of each member: what they fold may be the separator.
    """

    separator: str | None = None
    #: Tells this step from others, which are words.
    members: Literal[True] = True

    @property
    def between(self) -> Value | None:
        return None if self.separator is None else Value(self.separator)


#: How a sensitive column is read: texts after some steps, and sets as their members.
Reading = Sequence[Step | Members]


def members_of(reading: Reading) -> Members | None:
    """How the members of sets are read; None for a column of single values."""
    return next((step for step in reading if isinstance(step, Members)), None)


#: Collations that compare by bytes, as the setting `default_collation` writes them.
_BY_BYTES = ("", "binary", "c", "posix")


def equal_problems(key: str, column: Column) -> list[Problem]:
    """The problem with a type of which one value would stand for another that is written differently."""
    reasons = [why for name, why in _REFUSED.items() if name in column.type]
    return [Problem(key, why, "give a number or a text in a view") for why in reasons[:1]]


def is_nested(column: Column) -> bool:
    """True if the column's values have members."""
    return column.type.endswith("]") or column.type.startswith(_NESTED)


def looseness(column: Column) -> Looseness | None:
    """The way in which equal values of the column may be written differently, or None. Text is compared by bytes."""
    if column.is_float:
        return "signs"
    return "members" if is_nested(column) or any(name in column.type for name in _REFUSED) else None


def text_with_collation(engine: Engine, source: Table) -> list[Column]:
    """The columns of text if one of them has a collation; files have none."""
    if isinstance(source, FileRelation) or " COLLATE " not in _definition(engine, source):
        return []
    return [column for column in columns_of(engine, source) if column.type == "VARCHAR"]


def _definition(engine: Engine, source: Relation) -> str:
    """The statement that makes a table; of a view, and of what another database holds, one that makes its columns."""
    if not is_foreign(engine, source) and (found := definition_of(engine, source)):
        return found
    name = f"ldiv_{uuid.uuid4().hex[:8]}_types"
    engine.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {source.sql()} LIMIT 0")
    try:
        return definition_of(engine, Relation(("temp", "main", name))) or ""
    finally:
        with suppress(DatabaseError):  # the first error is the one to report
            engine.execute(f"DROP TABLE {name}")


def refuse_respelt(engine: Engine, rows: Table, columns: Sequence[tuple[str, Identifier]]) -> None:
    """Raise PolicyError for the columns, by the keys that name them, of which equal values are written differently."""
    problems = []
    for key, column in columns:
        count = engine.scalar("database/count_respelt", rows=rows, column=column)
        if count:
            one, more = "value that is equal to another", "values that are equal to others"
            what = f"has {count_phrase(count, one, more)} and written differently"
            problems.append(Problem(key, what, "write them alike in a view"))
    refuse(problems)


@contextmanager
def read_exactly(engine: Engine, source: Table, apart: Collection[str] = ()) -> Iterator[Table]:
    """A view of the table or file whose text is compared by bytes, and whose zeros and NaNs have no sign.

    The table itself if it needs none. Raises PolicyError if a column of `apart`, by which classes are told apart, has
    equal values that are written differently.
    """
    columns, wanted = columns_of(engine, source), {name.lower() for name in apart}
    loose = [column.name for column in columns if column.name.lower() in wanted and looseness(column)]
    refuse_respelt(engine, source, [(name, Identifier(name)) for name in loose])
    texts = {column.name for column in text_with_collation(engine, source)}
    if not texts and not any(column.is_float for column in columns):
        yield source
        return
    read = [
        {"name": Identifier(column.name), "by_bytes": column.name in texts, "is_float": column.is_float, "same": ()}
        for column in columns
    ]
    with _view(engine, "exact", source, read) as view:
        yield view


@contextmanager
def read_as_one(engine: Engine, source: Table, same: Mapping[str, Reading]) -> Iterator[Table]:
    """A view of the table or file in which texts that are one after the steps of their column are equal, and sets too.

    `same` has the steps by column; the table itself if it has none of these.
    """
    steps = {name.lower(): taken for name, taken in same.items() if taken}
    names = [column.name for column in columns_of(engine, source)] if steps else []
    if not any(name.lower() in steps for name in names):
        yield source
        return
    taken = {name: steps.get(name.lower(), ()) for name in names}
    lists = [name for name, own in taken.items() if (members := members_of(own)) and members.separator is None]
    read = [
        {"name": Identifier(name), "by_bytes": own and name not in lists, "is_float": False, "same": own}
        for name, own in taken.items()
    ]
    with _view(engine, "as_one", source, read) as view:
        yield view


@contextmanager
def _view(engine: Engine, name: str, source: Table, columns: Sequence[dict[str, Any]]) -> Iterator[Relation]:
    """A TEMP view of the table or file with its columns read so; it is gone at the end."""
    view = Relation(("temp", "main", f"ldiv_{uuid.uuid4().hex[:8]}_{name}"))
    read = render("database/read_columns", {"source": source, "columns": columns}, of_view=True)
    read.sql = f"CREATE TEMP VIEW {view.sql()} AS\n{read.sql}"
    engine.rows(read)
    try:
        yield view
    finally:
        with suppress(DatabaseError):  # after a failure the transaction may be gone, and the view with it
            engine.execute(f"DROP VIEW IF EXISTS {view.sql()}")


@contextmanager
def compared_by_bytes(engine: Engine) -> Iterator[None]:
    """Within, text without a collation is compared by bytes; raises DatabaseError where settings forbid that."""
    before, locked = (engine.snapshot.settings[name] for name in ("default_collation", "lock_configuration"))
    if before.lower() in _BY_BYTES:
        yield
        return
    if locked:
        raise DatabaseError(f"default_collation is {before}, by which values that differ are equal, and is locked")
    with engine.setting("default_collation", ""):
        yield
