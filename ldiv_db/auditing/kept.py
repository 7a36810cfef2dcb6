"""What columns that are kept tell: whom their values single out, and what else of a row follows from them.

A column under `keep` stands beside labels and sensitive values as it is. Whoever knows its value of a person finds the
person's row by it where few rows have that value, and a column that goes with a quasi-identifier says again what its
labels leave out. What follows from a column is counted as Goodman and Kruskal's lambda is: the rows whose other value
is guessed right by the most frequent one beside each value, beyond those that the most frequent one of all gives. One
row of each value proves nothing, since it stands for itself alone, and counts for neither: so a copy reaches 1, and a
column that has nothing to do with the other about 0, however many values it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

from ldiv_db.auditing.people_names import NEARLY_UNIQUE, tells_one
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.names import Identifier
from ldiv_db.display import per_cent
from ldiv_db.policy.resolve import Source

#: A value that so many rows have singles them out; that is told where it is this share of the rows.
FEW, SINGLED_OUT = 2, Fraction(1, 10)
#: What follows is told from this share on,
FOLLOWS = Fraction(1, 3)
#: by no more than so many values that single rows out,
MANY = 100_000
#: and where so many rows, and this share of them, are left to guess.
_LEAST, _LEAST_SHARE = 10, Fraction(1, 100)

_WAY_OUT = "Generalise it under `quasi_identifiers`, or leave it out, unless nobody can know it of anybody"

#: The template that counts them, also in a warehouse.
COUNTED = "auditing/kept/count_values"
Rows = Iterable[Sequence[Any]]
#: Columns by the names that are told, as the table that is read calls them.
Named = Mapping[str, Identifier]


@dataclass(frozen=True)
class Follows:
    """How much of `other` follows from a kept column, and how much of that from `other`: shares, None if too few rows
    are left to guess."""

    other: str
    from_kept: Fraction | None
    from_other: Fraction | None

    @property
    def share(self) -> Fraction:
        return max(self.from_kept or Fraction(0), self.from_other or Fraction(0))

    def __str__(self) -> str:
        one, other = ("it", self.other) if self.from_kept == self.share else (self.other, "it")
        return f"{other} follows from {one} in {per_cent(self.share)} of the rows, beyond its most frequent value"


@dataclass(frozen=True)
class KeptColumn:
    """A kept column: the rows, those of a value that one row has, or at most `FEW`, and what goes with it."""

    name: str
    rows: int
    different: int
    single: int
    few: int
    follows: tuple[Follows, ...] = ()
    of_people: bool = False

    @property
    def singles_out(self) -> bool:
        return self.few >= SINGLED_OUT * self.rows

    @property
    def links_rows(self) -> bool:
        """True if rows are counted, and it says whose they are, of whom some have several: which is told by itself."""
        return not self.of_people and tells_one(self.name) and self.different <= NEARLY_UNIQUE * self.rows

    @property
    def is_compared(self) -> bool:
        """True if it is held against other columns: all of a row follows from what nearly every row has for itself."""
        return 1 < self.different <= (MANY if self.singles_out else NEARLY_UNIQUE * self.rows)

    @property
    def warning(self) -> str:
        """What is told of it, without a value; empty if nothing is, or if it is there to link the rows of people."""
        if self.links_rows:
            return ""
        parts = [self._singled] if self.singles_out else []
        parts += [str(one) for one in self.follows if one.share >= FOLLOWS]
        return f"{self.name} is kept as it is: {'; '.join(parts)}. {_WAY_OUT}" if parts else ""

    @property
    def _singled(self) -> str:
        two = f", and {self.few - self.single:,} one that two have" if self.few > self.single else ""
        return f"{self.single:,} of {self.rows:,} rows have a value that nobody else has{two}, and are found by it"


def measure_kept(
    engine: Engine,
    table: Table,
    kept: Named,
    others: Named,
    person: Identifier | None = None,
    weight: Identifier | None = None,
) -> list[KeptColumn]:
    """What each kept column of a table tells, two statements; people are counted where a `person` is named."""
    if not kept:
        return []
    plain = {name: (column, False) for name, column in kept.items()}
    found = count_kept(engine.rows, plain, source=table, person=person, weight=weight)
    pairs = [(one.name, other) for one in found if one.is_compared for other in others]
    follows: dict[str, list[Follows]] = {name: [] for name in kept}
    if pairs:
        named = dict.fromkeys([*(kept[one] for one, _ in pairs), *others.values()])
        working = {column: Identifier(f"c{i}") for i, column in enumerate(named)}
        both = [(working[kept[one]], working[others[other]]) for one, other in pairs]
        asked = [{"number": i, "one": one, "other": other} for i, (one, other) in enumerate(both)]
        columns = [{"column": column, "alias": alias} for column, alias in working.items()]
        params = {"source": table, "weight": weight, "columns": columns, "pairs": asked}
        for row in engine.records("auditing/kept/compare_columns", **params):
            one, other = pairs[row["pair"]]
            from_kept = _share(row["rows"], row["other_guessed"], row["different"], row["other_largest"])
            from_other = _share(row["rows"], row["guessed"], row["other_different"], row["largest"])
            follows[one].append(Follows(other, from_kept, from_other))
    return [replace(one, follows=tuple(follows[one.name]), of_people=person is not None) for one in found]


def count_kept(ask: Callable[..., Rows], columns: Mapping[str, tuple[Identifier, bool]], **of: Any) -> list[KeptColumn]:
    """Kept columns by the names that are told, as a template counts them: asked here, or in a warehouse.

    Each comes with whether it is compared as text.
    """
    listed = [{"number": i, "column": one, "as_text": as_text} for i, (one, as_text) in enumerate(columns.values())]
    found = sorted(ask(COUNTED, columns=listed, most=FEW, **of), key=itemgetter(0))  # the number of the column
    return [
        KeptColumn(name, int(rows), int(different), int(single), int(few))
        for name, (_, rows, different, single, few) in zip(columns, found, strict=True)
    ]


def _share(rows: int, guessed: int, given: int, largest: int) -> Fraction | None:
    """The share of the rows that are guessed by so many values that are `given`, of those that are left to guess."""
    left = rows - given - (largest - 1)
    if left < _LEAST or left < _LEAST_SHARE * rows:
        return None
    return max(Fraction(0), Fraction(guessed - given - (largest - 1), left))


def kept_warnings(engine: Engine, table: Table, kept: Named, others: Named, **counted: Identifier | None) -> list[str]:
    """The warnings of the kept columns that tell more than a class does, as `measure_kept` has them."""
    return [column.warning for column in measure_kept(engine, table, kept, others, **counted) if column.warning]


def warn_of_kept(engine: Engine, source: Source) -> list[str]:
    """The warnings of the kept columns of a source, where it lies."""
    told = [*(qi.column for qi in source.quasi_identifiers), *source.sensitive]
    kept, others = ({one.name: Identifier(one.name) for one in columns} for columns in (source.keep, told))
    person = Identifier(source.individual.name) if source.individual else None
    with read_exactly(engine, source.relation) as read:
        return kept_warnings(engine, read, kept, others, person=person)


def warn_of_release(
    engine: Engine, subject: Subject, sensitive: Sequence[str], kept: Sequence[str] | None = None
) -> list[str]:
    """The warnings of a published table: how few rows its kept columns single out, and which values follow from them.

    Without a policy, which would name those that are `kept`, all columns are that have no other role.
    """
    table = subject.table
    if subject.pair or (isinstance(table, FileRelation) and table.form and table.form.is_exported):
        return []
    columns = {column.name.lower(): Identifier(column.name) for column in columns_of(engine, table)}
    taken = {name.lower() for name in (*subject.labels, *subject.ids, *sensitive, subject.person or "")}
    asked = [name for name in columns if name not in taken] if kept is None else map(str.lower, kept)
    named = {columns[name].name: columns[name] for name in asked if name in columns}
    values = {name: columns[name.lower()] for name in sensitive}
    if kept and hasattr(engine.connection, "there"):
        return [not_measured(kept)]
    person = Identifier(subject.person) if subject.person else None
    with read_exactly(engine, table) as read:
        return kept_warnings(engine, read, named, values, person=person)


def not_measured(kept: Sequence[str], what: str = "what kept columns tell") -> str:
    """That a warehouse, which counts the columns that a call names, was not asked about kept ones."""
    return f"{what} ({', '.join(kept)}) is not measured in a warehouse"


def warn_of_source(engine: Engine, table: Table, kept: Sequence[str], quasi_identifiers: Sequence[str]) -> list[str]:
    """The warnings of how a source's kept columns go with its quasi-identifiers, as far as it has them."""
    columns = {column.name.lower(): Identifier(column.name) for column in columns_of(engine, table)}
    named, others = (
        {name: columns[name.lower()] for name in names if name.lower() in columns}
        for names in (kept, quasi_identifiers)
    )
    with read_exactly(engine, table) as read:
        found = measure_kept(engine, read, named, others) if others else []
    return [alone.warning for one in found if (alone := replace(one, single=0, few=0)).warning]
