"""Drafts of taxonomies from the values of a column, to be edited: by what values begin with, by words, by quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import equal_problems, is_nested
from ldiv_db.database.errors import Problem, nearest, refuse
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.measuring.roles import MANY_VALUES, falling_lengths, is_code
from ldiv_db.measuring.uniqueness import summarise
from ldiv_db.taxonomies.readers import prefix_levels
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL

Way = Literal["prefixes", "words", "quantiles"]
WAYS: tuple[Way, ...] = get_args(Way)


def draft_levels(
    engine: Engine, table: Relation | FileRelation, column: Column, by: str | None = None
) -> tuple[str, list[list[str]]]:
    """How values were grouped, and the lines of a level file: from each value to the root, as long as one another.

    Raises PolicyError for a column that takes no level file, and for a way that is none or not for its type.
    """
    summary = summarise(engine, table, column, engine.count(table))
    problems = equal_problems("column", column)
    if is_nested(column) or not 0 < summary.distinct <= MANY_VALUES:
        what = f"{column.name} has {summary.distinct:,} different values, a level file takes 1 to {MANY_VALUES:,}"
        problems.append(Problem("column", what, "take `prefix:`, `dates:`, `ranges:` or `numeric: true` in the policy"))
    if by is not None and by not in WAYS:
        problems.append(Problem("by", f"no way {by!r}", nearest(by, WAYS)))
    texts = summary.texts
    if texts is not None and (texts.unlisted or texts.stars):
        what = f"{texts.unlisted + texts.stars:,} values are `*`, empty, a level's name, or have blanks at their ends"
        problems.append(Problem("column", what, "change them in a view"))
    way = by or ("quantiles" if texts is None else "prefixes" if is_code(summary, texts) else "words")
    if (way == "quantiles") != (texts is None):
        problems.append(Problem("by", f"{column.name} is {column.shown}, and quantiles are of numbers and times"))
    refuse(problems)
    name = Identifier(column.name)
    if texts is not None and way == "prefixes":
        levels = prefix_levels(falling_lengths(max(2, texts.longest)))
        rows = engine.rows("taxonomies/list_paths", rows=table, column=name, levels=levels)
    else:
        rows = engine.rows("taxonomies/draft_groups", rows=table, column=name, quantiles=way == "quantiles")
    return way, [_line(row) for row in rows]


def _line(row: Sequence[str | None]) -> list[str]:
    """A value and the groups above it; where it has none on a level the one below is said again, as level files do."""
    line: list[str] = []
    for label in row:
        line.append(line[-1] if label is None else label)
    return [*line, ROOT_LABEL]
