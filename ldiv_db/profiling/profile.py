"""Profiles: how identifying a table's columns are, and which l its sensitive values allow.

Everything is counts: no value of the table is read, NULL being a value like any other wherever rows are
told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, nearest
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import Distribution

#: A column that is no fraction and has more different values than this share of the rows is taken for an identifier.
NEARLY_UNIQUE = 0.95
#: Rows in combinations of fewer than this many rows are counted as rare.
RARE = 5
#: Values of a sensitive column whose rows are listed, the most frequent first.
HISTOGRAM = 50
IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE, OTHER = "identifier", "quasi-identifier", "sensitive", "other"


@dataclass(frozen=True)
class ColumnProfile:
    """A column: its SQL type, its role, different values that are not NULL, NULLs, rows of the most frequent value."""

    column: Column
    role: str
    distinct: int
    nulls: int
    most: int


@dataclass(frozen=True)
class Uniqueness:
    """How far the combination of the quasi-identifiers tells rows apart.

    `unique_rows` counts rows whose combination occurs once, `rare_rows` those whose combination occurs
    fewer than `RARE` times; `unique_without` is the unique rows when that column is left out.
    """

    combinations: int
    unique_rows: int
    rare_rows: int
    unique_without: dict[str, int]


@dataclass(frozen=True)
class SensitiveProfile:
    """A sensitive column: how often its values occur, NULL being one, without the values."""

    name: str
    distribution: Distribution
    nulls: int

    @property
    def entropy(self) -> float:
        """Shannon's entropy of the values, in bits."""
        return self.distribution.bits


@dataclass(frozen=True)
class Profile:
    """What is known of a table; `uniqueness` is None if there is no quasi-identifier."""

    table: str
    rows: int
    columns: tuple[ColumnProfile, ...]
    uniqueness: Uniqueness | None
    sensitive: tuple[SensitiveProfile, ...]

    def of_role(self, role: str) -> list[ColumnProfile]:
        """The columns of a role, in the table's order."""
        return [column for column in self.columns if column.role == role]

    def as_dict(self) -> dict[str, Any]:
        """The profile as JSON has it; shares are of all rows, 0..1."""
        return {
            "table": self.table,
            "rows": self.rows,
            "columns": [self._column(column) for column in self.columns],
            "uniqueness": self._uniqueness(),
            "sensitive": [self._sensitive(column) for column in self.sensitive],
        }

    def _column(self, profile: ColumnProfile) -> dict[str, Any]:
        return {
            "column": profile.column.name,
            "type": profile.column.shown,
            "role": profile.role,
            "distinct": profile.distinct,
            "nulls": profile.nulls,
            "largest_share": profile.most / self.rows,
        }

    def _uniqueness(self) -> dict[str, Any] | None:
        uniqueness = self.uniqueness
        if uniqueness is None:
            return None
        return {
            "combinations": uniqueness.combinations,
            "unique_rows": uniqueness.unique_rows,
            "unique_share": uniqueness.unique_rows / self.rows,
            f"rows_below_{RARE}": uniqueness.rare_rows,
            f"share_below_{RARE}": uniqueness.rare_rows / self.rows,
            "contributions": [
                {"column": name, "unique_rows_without": rows, "explains": uniqueness.unique_rows - rows}
                for name, rows in uniqueness.unique_without.items()
            ],
        }

    def _sensitive(self, profile: SensitiveProfile) -> dict[str, Any]:
        return {
            "column": profile.name,
            "distinct": profile.distribution.distinct,
            "nulls": profile.nulls,
            "largest_share": profile.distribution.counts[0] / self.rows,
            "largest_l": profile.distribution.largest_l,
            "entropy": profile.entropy,
            "histogram": list(profile.distribution.counts[:HISTOGRAM]),
        }


@dataclass(frozen=True)
class _LeftOut:
    """A quasi-identifier with its number from 1, and the others, which remain when it is left out."""

    number: Value
    alias: Identifier
    others: Sequence[Renamed]


def profile_table(
    engine: Engine,
    table: Relation | FileRelation,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Profile:
    """The profile of a table; `progress` hears how many of the columns are counted.

    Without `quasi_identifiers` roles are guessed: nearly unique columns that hold no fractions are
    identifiers, the rest quasi-identifiers. Raises PolicyError for columns that the table lacks or that
    have two roles, InfeasibleError for an empty table.
    """
    columns = columns_of(engine, table)
    asked = _resolve(columns, quasi_identifiers or (), sensitive)
    rows = engine.count(table)
    if rows == 0:
        raise InfeasibleError(f"{table} is empty: there is nothing to profile")
    with read_exactly(engine, table) as read:
        profiles: list[ColumnProfile] = []
        for profile in _columns(engine, read, columns, rows, asked, guess=quasi_identifiers is None):
            profiles.append(profile)
            progress(len(profiles), len(columns))
        return Profile(
            table=str(table),
            rows=rows,
            columns=tuple(profiles),
            uniqueness=_uniqueness(engine, read, [c.column.name for c in profiles if c.role == QUASI_IDENTIFIER]),
            sensitive=tuple(_sensitive(engine, read, column) for column in profiles if column.role == SENSITIVE),
        )


def _resolve(columns: Sequence[Column], quasi_identifiers: Sequence[str], sensitive: Sequence[str]) -> dict[str, str]:
    """The role of every column that was named, by its name in lower case; raises PolicyError for all bad names."""
    names = [column.name for column in columns]
    known = {name.lower() for name in names}
    roles: dict[str, str] = {}
    problems = []
    for key, role, asked in (("qi", QUASI_IDENTIFIER, quasi_identifiers), ("sensitive", SENSITIVE, sensitive)):
        for name in asked:
            if name.lower() not in known:
                problems.append(Problem(key, f"the table has no column {name!r}", nearest(name, names)))
            elif roles.setdefault(name.lower(), role) != role:
                problems.append(Problem(key, f"{name!r} is a quasi-identifier already"))
    if problems:
        raise PolicyError(problems)
    return roles


def _columns(
    engine: Engine,
    table: Relation | FileRelation,
    columns: Sequence[Column],
    rows: int,
    asked: dict[str, str],
    guess: bool,
) -> Iterator[ColumnProfile]:
    """Every column in its order."""
    for column in columns:
        counts = engine.record("profiling/summarise_column", source=table, column=Identifier(column.name))
        distinct = int(counts["different"])
        role = asked.get(column.name.lower()) or _guessed(column, distinct, rows, guess)
        yield ColumnProfile(column, role, distinct, int(counts["nulls"]), int(counts["most"]))


def _guessed(column: Column, distinct: int, rows: int, guess: bool) -> str:
    """The role of a column that nobody named; quasi-identifiers are guessed only where none was named."""
    fractional = column.is_number and not column.is_integer
    if distinct > NEARLY_UNIQUE * rows and not fractional:
        return IDENTIFIER
    return QUASI_IDENTIFIER if guess else OTHER


def _uniqueness(engine: Engine, table: Relation | FileRelation, names: Sequence[str]) -> Uniqueness | None:
    """The uniqueness of the combination of `names`, with and without each: two statements."""
    if not names:
        return None
    columns = [Renamed(Identifier(name), Identifier(f"q{i}")) for i, name in enumerate(names, 1)]
    cells = engine.materialise("cells", "profiling/count_combinations", source=table, columns=columns)
    numbered = [
        _LeftOut(Value(i), column.alias, [other for other in columns if other is not column])
        for i, column in enumerate(columns, 1)
    ]
    whole, *parts = engine.records("profiling/measure_uniqueness", cells=cells, columns=numbered, rare=Value(RARE))
    engine.drop(cells)
    return Uniqueness(
        combinations=int(whole["combinations"]),
        unique_rows=int(whole["unique_rows"]),
        rare_rows=int(whole["rare_rows"]),
        unique_without={names[int(part["left_out"]) - 1]: int(part["unique_rows"]) for part in parts},
    )


def _sensitive(engine: Engine, table: Relation | FileRelation, profile: ColumnProfile) -> SensitiveProfile:
    counts = engine.rows("profiling/count_values", source=table, column=Identifier(profile.column.name))
    return SensitiveProfile(profile.column.name, Distribution([count for (count,) in counts]), profile.nulls)
