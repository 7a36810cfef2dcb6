"""Subjects of audits: published tables and pairs, with what tells their classes apart and whose their rows are.

Classes are the combinations of quasi-identifiers as they stand in the table, NULL being a value like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ldiv_db.database.data_files import Table
from ldiv_db.database.equality import Reading, members_of
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.bags import ROW_UNITS
from ldiv_db.recoding.encoded import Renamed

#: What becomes of suppressed rows: they are judged like any others, or left out, or a NULL in the place of a sensitive
#: value is no value but counts in the size of its class: a share is that of the rows of whom an attacker must think.
Suppressed = Literal["judge", "ignore", "unknown"]


@dataclass(frozen=True)
class Pair:
    """An anatomised table: the sensitive table, the group that joins both, and its column of counts if it has one."""

    table: Table
    group: str
    count: str | None = None


def pair_of(table: Any, group: str | None, count: str | None, open_table: Callable[[Any, str], Table]) -> Pair | None:
    """The anatomised pair, if one is named; raises PolicyError for half of one."""
    if table is None and group is None and count is None:
        return None
    if table is None or group is None:
        raise refused("sensitive-table", "goes with --group: a pair is two tables joined by a column")
    return Pair(open_table(table, "sensitive-table"), group, count)


@dataclass(frozen=True)
class Subject:
    """A published table to be audited.

    Its classes are the distinct combinations of `labels` (the quasi-identifiers), of `ids` (columns of
    class ids) and of `known` (other sensitive attributes); those of a `pair` are its groups. A row is
    suppressed if all labels are `*` or NULL, or if its sensitive value is NULL.
    """

    table: Table
    labels: Sequence[str]
    ids: Sequence[str] = ()
    known: Sequence[str] = ()
    suppressed: Suppressed = "judge"
    pair: Pair | None = None
    #: The steps after which values of a sensitive column are one, by its name.
    same: Mapping[str, Reading] = field(default_factory=dict)
    #: The column that says whose a row is, where people are counted in place of rows; NULL is somebody of its own.
    person: str | None = None
    #: Whether classes must be good by their rows as well, where people are counted.
    by_rows: bool = False
    #: The column by which a person's rows are in their order, where the labels of all of them are one class.
    position: str | None = None
    #: Whether the rows at each position of the people of a class are a class, by themselves.
    each: bool = False
    #: What the second reading reads in its place, where rows of several tables were put together in another way.
    again: Subject | None = None
    #: Whether a row stands for somebody of the class who has no row of values, where its column `lacks` says so.
    lacking: bool = False
    #: The texts (number, text) for the numbers of a class column, by its name, where these stand in place of texts.
    written: Mapping[str, Relation] = field(default_factory=dict)
    #: Whether a value weighs for a person its share of their rows in the class, one of which is known.
    of_known_row: bool = False

    @property
    def of_rows(self) -> Subject:
        """The same where rows are counted."""
        return replace(self, person=None, by_rows=False, position=None)

    @property
    def of_sequences(self) -> Subject:
        """The same where labels are of all rows of a person: a position is a class where each is, and nothing else."""
        return replace(self, ids=[self.position] if self.each and self.position else [], position=None)

    @property
    def unit(self) -> int:
        """How many of those whom a requirement counts are one person, or row."""
        return ROW_UNITS if self.of_known_row else 1

    def is_set(self, sensitive: str) -> bool:
        """True if a row has a set of values of that column, so that its members are counted."""
        return members_of(self.same.get(sensitive, ())) is not None

    def counts_once(self, sensitive: str) -> bool:
        """True if whoever has several values of that column is counted once: people, and rows with sets."""
        return self.person is not None or self.is_set(sensitive)

    def sized(self, sensitive: str) -> Identifier:
        """The column of counts whose sum is the size of a class."""
        return Identifier("members" if self.counts_once(sensitive) else "rows")

    @property
    def class_columns(self) -> list[str]:
        return [*self.open_columns, *self.known]

    @property
    def open_columns(self) -> list[str]:
        """The class columns that may be shown."""
        return [self.pair.group] if self.pair else [*self.labels, *self.ids]

    @property
    def renamed(self) -> list[Renamed]:
        """The class columns, each under a name of its own: `c1`, `c2`."""
        return [Renamed(Identifier(name), Identifier(f"c{i}")) for i, name in enumerate(self.class_columns, 1)]
