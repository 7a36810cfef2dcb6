"""How a quasi-identifier can be generalised without anybody's help: ranges, stretches of time, prefixes, its values.

Numbers and times become ranges, times of few values stretches of time. A text is published as itself or as `*`; up to
so many values stand in a level file, into which groups can be written. Codes of one length lose their last characters.
Times of a few values are generalised by stretches, and codes of more values by prefixes. Of texts with few rows each,
which may name people, those of very many values have no way, and of the others this is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import equal_problems, is_nested
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.inferred import covers
from ldiv_db.policy.people_columns import FEW_VALUES
from ldiv_db.profiling.summary import Summary, Texts
from ldiv_db.recoding.bounds import bounds_of, refuse_odd_years
from ldiv_db.taxonomies import taxonomy as taxonomies

#: Texts of up to this many values get a level file, of up to so many others are themselves or `*`.
LISTED_VALUES, MANY_VALUES = 1_000, 10_000
#: What is asked of texts that may name people.
_QUESTION = "; few rows have each: DOES IT NAME PEOPLE? Then move it to `identifiers`"
#: The stretches of time, rising.
DATES = ("day", "month", "quarter", "year")
#: What columns of postal codes are called.
_POSTAL = re.compile(r"(^|[^a-z])(zip|zip_?codes?|postal(_?codes?)?|post_?codes?|plz)($|[^a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Way:
    """How a quasi-identifier is generalised: as a policy says it, in words, and the level file that must be written."""

    settings: dict[str, Any]
    said: str
    file: str = ""


class WayFinder:
    """Finds the way of one quasi-identifier after the other, so that no two of them share a level file."""

    def __init__(self, engine: Engine, table: Relation | FileRelation) -> None:
        self._engine = engine
        self._table = table
        self._known = taxonomies.stored(engine)
        self._taken: set[str] = set()

    def find(self, summary: Summary) -> tuple[Way | None, str]:
        """The way of a column, or None and the reason why it takes a taxonomy that only the user can make."""
        column = summary.column
        if problems := equal_problems("", column):
            return None, problems[0].what
        if not summary.distinct:
            return None, "holds nothing but NULL"
        if is_nested(column):
            return None, "holds several values a row: give one of them in a view"
        if column.name in self._known and self._covers(column):
            return Way({"taxonomy": column.name}, "values: the catalog's taxonomy of this name"), ""
        if summary.texts is None:
            return self._on_a_line(summary)
        return self._of_text(summary, summary.texts)

    def _covers(self, column: Column) -> bool:
        """Whether the catalog's taxonomy of the column's name has a leaf for each of its values."""
        taxonomy = taxonomies.fetch(self._engine, column.name)
        return taxonomy is not None and covers(self._engine, taxonomy, self._table, column)

    def _on_a_line(self, summary: Summary) -> tuple[Way | None, str]:
        """The way of numbers or times; None if some of them have no place, as infinities have."""
        column = summary.column
        check: Callable[..., Any] = refuse_odd_years if column.is_time else bounds_of
        try:
            check(self._engine, self._table, Identifier(column.name), column)
        except PolicyError as error:
            return None, error.problems[0].what
        if column.is_time and summary.distinct <= FEW_VALUES:
            return Way({"taxonomy": {"dates": list(DATES)}}, "times: stretches of time"), ""
        return Way({"numeric": True}, "times: ranges" if column.is_time else "numbers: ranges"), ""

    def _of_text(self, summary: Summary, texts: Texts) -> tuple[Way | None, str]:
        if texts.stars:
            return None, "holds `*`, which in a release stands for anything"
        may_name = summary.has_few_rows and not is_postal(summary)
        if may_name and summary.distinct > LISTED_VALUES:
            what = f"{summary.distinct:,} different texts of few rows each, as names of people are"
            return None, f"{what}: give a taxonomy if they are none"
        asked = _QUESTION if may_name else ""
        if is_code(summary, texts) and not texts.starred:
            lengths = falling_lengths(texts.longest)
            return Way({"taxonomy": {"prefix": lengths}}, f"codes: prefixes{asked}"), ""
        if summary.distinct <= LISTED_VALUES and not texts.unlisted:
            file = self._file_name(summary.column.name)
            return Way({"taxonomy": {"file": file}}, f"texts: a level file{asked}", file), ""
        if summary.distinct <= MANY_VALUES:
            return Way({"taxonomy": {"prefix": [max(1, texts.longest)]}}, f"texts: themselves or `*`{asked}"), ""
        return None, f"{summary.distinct:,} different texts take a taxonomy of yours"

    def _file_name(self, column: str) -> str:
        """A file's name for a column's taxonomy that any file system takes, and that no other column has."""
        stem = re.sub(r"[^\w-]+", "_", column)[:60]
        name, number = f"{stem}.csv", 1
        while name.lower() in self._taken:
            number += 1
            name = f"{stem}_{number}.csv"
        self._taken.add(name.lower())
        return name


def is_postal(summary: Summary) -> bool:
    """Whether a column has postal codes, by its name."""
    return bool(_POSTAL.search(summary.column.name))


def is_code(summary: Summary, texts: Texts) -> bool:
    """Whether the beginnings of a column's texts mean something: postal codes by their name, codes of one length."""
    if texts.longest < 2:
        return False
    alike = texts.shortest == texts.longest and not texts.uncoded
    return is_postal(summary) or (alike and summary.distinct > FEW_VALUES)


def falling_lengths(longest: int) -> list[int]:
    """The lengths of prefixes of codes of that length, from 2 on: up to five, the whole code first."""
    return list(range(longest, 0, -max(1 if longest == 2 else 2, -(-longest // 5))))


def files_of(ways: Iterable[Way | None]) -> list[str]:
    """The level files that must be written."""
    return [way.file for way in ways if way and way.file]
