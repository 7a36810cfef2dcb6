"""Roles of columns where links are known: what names rows of people's tables, of other people's, and of lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ldiv_db.measuring.generalisations import CODED, LISTED_VALUES, Generalisation
from ldiv_db.measuring.kinds_of_tables import OF_OTHERS, PUBLIC, Placed, kept_in
from ldiv_db.measuring.links import Link, ProfiledTable
from ldiv_db.measuring.profile import NOT_NAMED, ColumnProfile
from ldiv_db.measuring.roles import IDENTIFIER, KEPT, OFTEN_UNIQUE, QUASI_IDENTIFIER, SENSITIVE


def with_roles(table: ProfiledTable, links: Sequence[Link], placed: Mapping[str, Placed]) -> ProfiledTable:
    """The table with its columns in the roles that its links give them, unless roles were said."""
    if any(column.reason == NOT_NAMED for column in table.profile.columns):
        return table
    own = {link.child[1]: link for link in reversed(links) if link.child[0] == table.name}
    return _with_columns(table, (_by_link(one, own.get(one.column.name), placed) for one in table.profile.columns))


def as_list(table: ProfiledTable, links: Sequence[Link], placed: Mapping[str, Placed]) -> ProfiledTable:
    """A table of nobody's rows with its columns kept as they are, but for those that name somebody."""
    kept, every = kept_in(table, placed, links), table.profile.columns
    columns = (
        replace(one, role=KEPT, reason="of a list", way=None) if one.column.name in kept else _hidden(one, one.reason)
        for one in every
    )
    return _with_columns(table, columns)


def _with_columns(table: ProfiledTable, columns: Iterable[ColumnProfile]) -> ProfiledTable:
    """The table with these columns, but for those that are hidden whatever they are."""
    why = table.hidden
    shown = (_hidden(one, why[one.column.name]) if one.column.name in why else one for one in columns)
    return replace(table, profile=replace(table.profile, columns=tuple(shown)))


def _hidden(column: ColumnProfile, why: str) -> ColumnProfile:
    return replace(column, role=IDENTIFIER, reason=why, way=None)


def _by_link(column: ColumnProfile, link: Link | None, placed: Mapping[str, Placed]) -> ColumnProfile:
    """The column by what it names: a value of a list is one of a kind, and any other names somebody's row."""
    if link is None or column.role == SENSITIVE:
        return column
    of = placed[link.parent[0]].kind
    told = f"names rows of {link.parent[0]}" + {OF_OTHERS: ", which are other people's", PUBLIC: ", a list"}.get(of, "")
    few = column.distinct <= min(LISTED_VALUES, OFTEN_UNIQUE * column.rows)
    if of == PUBLIC and few:
        if column.role == QUASI_IDENTIFIER and column.texts is not None:
            return column
        way = Generalisation(CODED, f"{told}: themselves or sets")
        return replace(column, role=QUASI_IDENTIFIER, reason=way.said, way=way)
    return _hidden(column, told)
