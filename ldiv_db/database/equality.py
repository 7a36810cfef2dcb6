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
from typing import Literal

from ldiv_db.database.catalog import Column, columns_of, definition_of, is_foreign
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, Problem, count_phrase, refuse
from ldiv_db.database.names import Identifier, Relation, Value, literal

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
_TRIMMED = (
    "trim(regexp_replace(regexp_replace(regexp_replace({0}, '\\p{{Cf}}+', '', 'g'),"
    " '[\\p{{Pd}}\\x{{2212}}]', '-', 'g'), '[\\s\\v\\x{{85}}\\pZ]+', ' ', 'g'))"
)
#: A member of a set without blanks of any kind, brackets and quotes at its ends: many files have `[HIV, 'flu']`.
STRIPPED = "regexp_replace(x, '^[\\s\\pZ\\[\\]{}\"'']+|[\\s\\pZ\\[\\]{}\"'']+$', '', 'g')"


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


def text_with_collation(engine: Engine, source: Relation | FileRelation) -> list[Column]:
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


def refuse_respelt(engine: Engine, rows: Relation | FileRelation, columns: Sequence[tuple[str, Identifier]]) -> None:
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
def read_exactly(
    engine: Engine, source: Relation | FileRelation, apart: Collection[str] = ()
) -> Iterator[Relation | FileRelation]:
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
    with _view(engine, "exact", _exactly(columns, texts), source) as view:
        yield view


@contextmanager
def read_as_one(
    engine: Engine, source: Relation | FileRelation, same: Mapping[str, Reading]
) -> Iterator[Relation | FileRelation]:
    """A view of the table or file in which texts that are one after the steps of their column are equal, and sets too.

    `same` has the steps by column; the table itself if it has none of these.
    """
    steps = {name.lower(): taken for name, taken in same.items() if taken}
    names = [column.name for column in columns_of(engine, source)] if steps else []
    if not any(name.lower() in steps for name in names):
        yield source
        return
    read = ", ".join(_as_one(Identifier(name).sql(), steps.get(name.lower(), ())) for name in names)
    with _view(engine, "as_one", read, source) as view:
        yield view


@contextmanager
def _view(engine: Engine, name: str, columns: str, source: Relation | FileRelation) -> Iterator[Relation]:
    """A TEMP view of the columns, given as SQL, of the table or file; it is gone at the end."""
    view = Relation(("temp", "main", f"ldiv_{uuid.uuid4().hex[:8]}_{name}"))
    engine.execute(f"CREATE TEMP VIEW {view.sql()} AS SELECT {columns} FROM {in_from(source)}")
    try:
        yield view
    finally:
        with suppress(DatabaseError):  # after a failure the transaction may be gone, and the view with it
            engine.execute(f"DROP VIEW IF EXISTS {view.sql()}")


def _as_one(name: str, steps: Reading) -> str:
    """The column of a view as SQL: its bytes, without what the steps take away."""
    members = members_of(steps)
    if members is None:
        return f"{_folded(f'decode(encode({name}))' if steps else name, steps)} AS {name}"
    value = name
    if members.separator is not None:
        split = f"string_split(decode(encode({name})), {literal(members.separator)})"
        value = f"[m FOR m IN [{_folded(STRIPPED, steps)} FOR x IN {split}] IF m <> '']"
    return f"nullif(list_sort(list_distinct({value}), 'ASC', 'NULLS LAST'), []) AS {name}"


def _folded(text: str, steps: Reading) -> str:
    if "trim" in steps:
        text = _TRIMMED.format(text)
    return f"nfc_normalize(lower({text}))" if "casefold" in steps else text


def _exactly(columns: Sequence[Column], texts: Collection[str]) -> str:
    expressions = []
    for column in columns:
        name = Identifier(column.name).sql()
        if column.name in texts:
            expressions.append(f"decode(encode({name})) AS {name}")
        elif column.is_float:
            expressions.append(
                f"CASE WHEN {name} = 0 THEN 0 WHEN isnan({name}) THEN CAST('nan' AS FLOAT) ELSE {name} END AS {name}"
            )
        else:
            expressions.append(name)
    return ", ".join(expressions)


def in_from(source: Relation | FileRelation) -> str:
    """The table or file as FROM takes it, without bound values."""
    return source.sql() if isinstance(source, Relation) else source.sql(literal(source.path))


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
