"""Kinds of tables beside a tree of people: who else has rows, what anybody may look up, and what nothing names.

Lists and products are named by rows of people, by many each or not all at all, and say nothing of anybody. What has one
row for each of few people, as their addresses, is theirs, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldiv_db.auditing.people_names import tells_being, tells_serving, tells_somebody
from ldiv_db.database.errors import count_phrase
from ldiv_db.measuring.links import Link, ProfiledTable
from ldiv_db.measuring.people_of_tables import Tree

Kind = Literal["people", "of people", "public", "of others", "of nobody"]
PEOPLE: Final = "people"
OF_PEOPLE: Final = "of people"
PUBLIC: Final = "public"
OF_OTHERS: Final = "of others"
OF_NOBODY: Final = "of nobody"
#: Rows of a list are named by so many rows each on average, or so large a share of them by none.
_MANY, _UNNAMED = 4, 0.25


@dataclass(frozen=True)
class Placed:
    """What the rows of a table are, and why it is thought so."""

    kind: Kind
    why: str


def place_tables(tables: Sequence[ProfiledTable], links: Sequence[Link], tree: Tree) -> dict[str, Placed]:
    """The kind of each table, in their order."""
    found = _Places(tables, links, tree).found()
    return {table.name: found[table.name] for table in tables}


class _Places:
    def __init__(self, tables: Sequence[ProfiledTable], links: Sequence[Link], tree: Tree) -> None:
        self._tables = {table.name: table for table in tables}
        self._links, self._tree = links, tree
        self._placed = dict[str, Placed]()

    def found(self) -> dict[str, Placed]:
        """The kinds: first of the tree, then of what is other people's, then of what these or nobody's name."""
        self._placed[self._tree.people[0]] = Placed(PEOPLE, self._why_people())
        self._placed |= {
            name: Placed(OF_PEOPLE, f"{_said(link)} ({link.why})") for name, link in self._tree.links.items()
        }
        for find in (self._others, self._theirs, self._below_others, self._listed):
            while more := dict(find()):
                self._placed |= more
        told = "no column links it to another table"
        return {name: Placed(OF_NOBODY, told) for name in self._tables} | self._placed

    def _why_people(self) -> str:
        name, key = self._tree.people
        direct = [link for link in self._tree.links.values() if link.parent == (name, key)]
        leading = count_phrase(len(self._tree.links), "table leads", "tables lead")
        told = [f"{leading} to {key}, {len(direct)} of them directly"]
        told += ["by its name its rows are people"] if self._tables[name].tells_people else []
        if columns := self._tables[name].life:
            told.append(f"it has {', '.join(columns[:3])}")
        return "; ".join(told)

    def _left(self) -> Iterator[ProfiledTable]:
        yield from (table for name, table in self._tables.items() if name not in self._placed)

    def _naming(self, table: ProfiledTable, *kinds: Kind) -> list[Link]:
        """The links to a table from those of some kinds; of all that have one, where none is said."""
        every = [link for link in self._links if link.parent[0] == table.name]
        asked = kinds or (PEOPLE, OF_PEOPLE, PUBLIC, OF_OTHERS)
        return [link for link in every if (of := self._placed.get(link.child[0])) and of.kind in asked]

    def _named(self, table: ProfiledTable, *kinds: Kind) -> list[Link]:
        """The links from a table to those of some kinds."""
        own = [link for link in self._links if link.child[0] == table.name]
        return [link for link in own if (of := self._placed.get(link.parent[0])) and of.kind in kinds]

    def _others(self) -> Iterator[tuple[str, Placed]]:
        """Tables of other people: by what one row is called, or as they tell of lives."""
        for table in self._left():
            columns = table.life
            told = f"it has {', '.join(columns[:3])}" if columns else ""
            told = told or ("by its name its rows are people" if _are_people(table) else "")
            told = told or ("by its name each row is somebody's" if any(map(tells_somebody, table.singulars)) else "")
            if told:
                roles = [".".join(link.child) for link in self._naming(table)]
                named = f", named by {', '.join(roles[:3])}" if roles else ""
                yield table.name, Placed(OF_OTHERS, f"other people than {self._tree.people[0]}: {told}{named}")

    def _theirs(self) -> Iterator[tuple[str, Placed]]:
        """Tables of which few rows name each row, and no list would have so few: what these say is of somebody."""
        for table in self._left():
            links = self._naming(table, PEOPLE, OF_OTHERS, OF_PEOPLE)
            of_people = [link for link in links if self._placed[link.child[0]].kind in (PEOPLE, OF_OTHERS)]
            close = links if self._has_events(table) else of_people
            if close and all(self._is_close(table, link) for link in links):
                what = f"{'.'.join(close[0].child)} names nearly each of its rows, and few rows have each in common"
                yield table.name, Placed(OF_OTHERS, f"{what}: it tells of them; join what may be published in a view")

    def _is_close(self, table: ProfiledTable, link: Link) -> bool:
        child = self._tables[link.child[0]].counted(link.child[1])
        rows = child.rows - child.nulls - link.lacking
        return rows < _MANY * child.distinct and child.distinct >= (1 - _UNNAMED) * table.profile.rows

    def _has_events(self, table: ProfiledTable) -> bool:
        """True if rows outside the tree that have times, more than its own, belong to rows of a table."""
        below = [self._tables[one.child[0]] for one in self._links if one.parent[0] == table.name]
        return any(
            one.name not in self._placed and one.profile.rows > table.profile.rows and _has_times(one) for one in below
        )

    def _below_others(self) -> Iterator[tuple[str, Placed]]:
        """Tables whose rows lead to other people's, and that no published rows name."""
        for table in self._left():
            if (links := self._named(table, OF_OTHERS)) and not self._naming(table, OF_PEOPLE, PEOPLE):
                many = many_to_many(table, self._links)
                yield table.name, Placed(OF_OTHERS, f"{many}{_said(links[0])}, which has other people")

    def _listed(self) -> Iterator[tuple[str, Placed]]:
        """Lists and products: what rows that are placed name, and what names these, but for what names people."""
        for table in self._left():
            many = many_to_many(table, self._links)
            if links := self._naming(table):
                yield table.name, Placed(PUBLIC, f"{many}a list that {'.'.join(links[0].child)} names; nobody's rows")
            elif links := self._named(table, PUBLIC):
                if who := names_somebody(table):
                    yield table.name, Placed(OF_OTHERS, f"{who[0]} may say whose its rows are")
                else:
                    yield table.name, Placed(PUBLIC, f"{many}{_said(links[0])}, a list; leads to nobody")


def _are_people(table: ProfiledTable) -> bool:
    return any(tells_being(name) or tells_serving(name) for name in table.singulars)


def _said(link: Link) -> str:
    return f"its {link.child[1]} names {link.parent[0]}"


def many_to_many(table: ProfiledTable, links: Sequence[Link]) -> str:
    """That a table is there to link two others, for what follows; empty if it is not."""
    named = dict.fromkeys(link.parent[0] for link in links if link.child[0] == table.name)
    columns = {link.child[1] for link in links if link.child[0] == table.name}
    if len(named) < 2 or len(table.columns) - len(columns) > 2 or table.keys:
        return ""
    return f"many-to-many, {' and '.join(list(named)[:2])}: "


def names_somebody(table: ProfiledTable) -> list[str]:
    """The columns that name somebody, as e-mail addresses do; what a thing is called does not."""
    found = [name for name in table.columns if tells_somebody(name) or tells_serving(name)]
    return [name for name in found if name.lower() not in _CALLED]


#: What things are called as well as people.
_CALLED = {"name", "names", "title", "label", "nom", "nome", "nombre", "naam", "nama", "key", "number", "adi"}


def _has_times(table: ProfiledTable) -> bool:
    return any(column.is_time for column in table.columns.values())


def kept_in(table: ProfiledTable, placed: Mapping[str, Placed], links: Sequence[Link]) -> list[str]:
    """The columns of a list that are published as they are: those that name nobody."""
    others = {link.child[1] for link in links if link.child[0] == table.name and placed[link.parent[0]].kind != PUBLIC}
    return [name for name in table.columns if name not in others and name not in names_somebody(table)]
