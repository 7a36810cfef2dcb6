"""A release that is planned but not written: what those of all algorithms have in common.

Rows are matched by their key with what earlier releases published: a row that was published stays where it is, the
others may be given to new groups. An algorithm says which, and what the tables are made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, numbered
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.policy.resolve import Resolved, Source
from ldiv_db.publishing import series_ledger as ledger
from ldiv_db.publishing.pairings import Combined
from ldiv_db.publishing.series_key import ANOTHER_TARGET
from ldiv_db.publishing.series_ledger import Series
from ldiv_db.publishing.series_tables import Expected, Tables
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.running.run import Listener


@dataclass(frozen=True)
class Start:
    """What a release starts from: a policy held against its source, the series so far, and what errors may name."""

    engine: Engine
    resolved: Resolved
    series: Series
    listener: Listener
    show_values: bool = False

    @property
    def source(self) -> Source:
        return self.resolved.source


@dataclass(frozen=True)
class Matched:
    """The source's `rows` with what earlier releases made of them, and all keys `known` to these.

    `rows` is the encoded table with group_id (NULL if not published before), waited, changed and is_new.
    """

    rows: Relation
    known: Relation
    rows_in: int
    left_out: int


@dataclass(frozen=True)
class Draft(ABC):
    """A release that is planned but not written; `shown` is (row_id, group_no, ...) of its new groups, from 1."""

    start: Start
    matched: Matched
    shown: Relation
    groups_new: int
    rows_new: int

    @property
    @abstractmethod
    def limits(self) -> list[tuple[str, int]]:
        """Each sensitive attribute with its l: nobody may come to more than 1/l."""

    @property
    def combined(self) -> Combined | None:
        """What becomes of combinations of sensitive values, None if the algorithm knows none."""
        return None

    def written(self, tables: Tables) -> Tables:
        """Of the tables that a release may have those that this one has."""
        return tables if self.combined and self.combined.published else tables.plain

    @property
    def threshold(self) -> int | None:
        """After how many releases a row has waited too long, None if there is no such number."""
        return None

    @abstractmethod
    def write(self, tables: Tables, before: Tables | None) -> None:
        """Make the tables; what was published before stays as it is in the tables `before`."""

    @abstractmethod
    def audit(self, tables: Tables, expected: Expected) -> list[Audit]:
        """The audits of the tables as they stand, one a sensitive attribute; raises AuditError if one fails."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """What the result says of the algorithm's work."""

    @property
    def notes(self) -> list[str]:
        """What the user should hear of it."""
        return []


#: Plans the next release; raises before any work if it cannot be made.
Maker = Callable[[Start], Draft]


def match_rows(start: Start, rows: Relation, rows_in: int, left_out: int) -> Matched:
    """The encoded rows, matched with earlier releases by the hashes of their keys.

    Raises PolicyError if keys are written otherwise than in earlier releases, so that they would not be matched.
    """
    engine, series = start.engine, start.series
    known = ledger.known_keys(engine, series)
    if not (series.is_new or series.key.is_written_as(series.key_before)):
        _check_spelling(start, rows, known)
    matched = engine.materialise("matched", "publishing/match_rows", rows=rows, known=known, release=Value(series.next))
    engine.drop(rows)
    return Matched(matched, known, rows_in, left_out)


def _check_spelling(start: Start, rows: Relation, known: Relation) -> None:
    """Raise PolicyError if keys of another type than before, or of one not noted, are not written as before."""
    name = key_name(start.source)
    key = Identifier(name)
    found = start.engine.record(
        "publishing/count_respelt",
        source=start.source.relation,
        rows=rows,
        known=known,
        key=Renamed(key, key),
        secret=Value(start.series.secret),
    )
    if found["respelt"]:
        what = f"{name} has {found['respelt']:,} of the keys of earlier releases written otherwise"
        raise PolicyError([Problem("key", what, "write them as before, in a view")])
    if not found["met"]:
        what = f"{name} has no key of earlier releases: everybody would count as new"
        raise PolicyError([Problem("key", what, ANOTHER_TARGET)])


def key_name(source: Source) -> str:
    """The column that says which row is which over time."""
    return source.key.name if source.key else ""


def require_keys(engine: Engine, source: Source, rows: Relation, key: Identifier) -> None:
    """Raise InfeasibleError unless there are rows, each with a key of its own."""
    found = engine.record("publishing/count_keys", rows=rows, key=key)
    if found["rows"] == 0:
        raise InfeasibleError(f"{source.name} has no rows to publish")
    if found["missing"] or found["doubled"]:
        missing = numbered(found["missing"], "row has", "rows have")
        shared = f"{found['doubled']:,} rows share theirs"
        raise InfeasibleError(f"key {key_name(source)}: {missing} none, and {shared}; a key tells rows apart")
