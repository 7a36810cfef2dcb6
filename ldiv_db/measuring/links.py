"""Links between several tables: which column names the rows of another, and by which way each leads to people.

A column links to a key, whose values are one row's each, if its values are among them and the schema declares it, or
their names agree, or where nothing else tells, if the values alone leave no doubt. Everything is counted in the
database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.auditing.people_names import CATEGORY_ROWS, FEW_VALUES, tells_one
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.lineage import foreign_keys
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.measuring.profile import ColumnProfile, Profile
from ldiv_db.measuring.roles import IDENTIFIER, stems

DECLARED, BY_NAME, BY_VALUES = "declared as a foreign key", "names and values", "values alone"
_REASONS = (DECLARED, BY_NAME, BY_VALUES)
#: Names of keys that say nothing of what they number.
_BARE = {"id", "key", "nr", "no", "num", "number", "code", "uuid", "guid"}


@dataclass(frozen=True)
class ProfiledTable:
    """One of several tables: its name among them, the source as it was named, and its profile."""

    name: str
    source: str
    relation: Relation | FileRelation
    profile: Profile
    columns: Mapping[str, Column]

    @classmethod
    def of(
        cls, engine: Engine, name: str, source: str, relation: Relation | FileRelation, profile: Profile
    ) -> ProfiledTable:
        return cls(name, source, relation, profile, {column.name: column for column in columns_of(engine, relation)})

    @property
    def relation_name(self) -> str:
        """The name of the table itself, in lower case; empty of a file."""
        return self.relation.name.lower() if isinstance(self.relation, Relation) else ""

    def counted(self, name: str) -> ColumnProfile:
        """A column in counts."""
        return next(column for column in self.profile.columns if column.column.name == name)

    @property
    def keys(self) -> list[str]:
        """The columns that have a value of their own in every row that has one."""
        return [c.column.name for c in self.linking if 2 <= c.distinct == c.rows - c.nulls]

    @property
    def linking(self) -> list[ColumnProfile]:
        """The columns of types by which rows are linked."""
        found = ((c, self.columns[c.column.name]) for c in self.profile.columns if c.distinct and not c.decimals)
        return [c for c, kind in found if not (kind.is_time or kind.type == "BOOLEAN" or is_nested(kind))]


@dataclass(frozen=True)
class Link:
    """A column of a table that names rows of another by their key, both (table, column).

    Of the rows `unknown` have no value, and `lacking` one that the other table has not, which are so many `strangers`.
    The values are read as `cast`, a type, where the key has another.
    """

    child: tuple[str, str]
    parent: tuple[str, str]
    why: str
    unknown: int
    lacking: int
    strangers: int
    cast: str = ""

    @property
    def lost(self) -> int:
        """The rows that belong to nobody."""
        return self.unknown + self.lacking

    def __str__(self) -> str:
        return f"{'.'.join(self.child)} → {'.'.join(self.parent)}"


def find_links(engine: Engine, tables: Sequence[ProfiledTable]) -> list[Link]:
    """All links between the tables, also those of which one alone can be taken.

    Where no table has one row a person, they link rows of the same people in several.
    """
    pairs = [(child, parent) for child in tables for parent in tables if child is not parent]
    found = [link for child, parent in pairs for link in _between(engine, child, parent)]
    return found or [link for child, parent in pairs for link in _shared(engine, child, parent)]


def _between(engine: Engine, child: ProfiledTable, parent: ProfiledTable) -> Iterator[Link]:
    declared = foreign_keys(engine, child.relation) if isinstance(child.relation, Relation) else {}
    keys = parent.keys
    for column in child.linking:
        name = column.column.name
        for key in keys:
            if declared.get(name.lower(), "").lower() == parent.relation_name:
                why = DECLARED
            elif _alike(name, key, parent.name):
                why = BY_NAME
            elif _is_told_by_values(child, column, parent, parent.counted(key)):
                why = BY_VALUES
            else:
                continue
            link, known = _held(engine, child, name, parent, key, why)
            lost = column.distinct - known  # strangers, and what cannot be read as the key
            if known and lost <= (0 if why == BY_VALUES else known):
                yield link


def _shared(engine: Engine, child: ProfiledTable, parent: ProfiledTable) -> Iterator[Link]:
    """Columns of the same people by their names, most of whose values the other has too."""
    ours, theirs = ([c.column.name for c in one.linking if tells_one(c.column.name)] for one in (child, parent))
    for name, other in ((name, other) for name in ours for other in theirs if _alike(name, other, "")):
        link, known = _held(engine, child, name, parent, other, BY_NAME)
        if 2 * known >= child.counted(name).distinct:
            yield replace(link, lacking=0, strangers=0)


def _alike(column: str, key: str, table: str) -> bool:
    """True if the names say that the column names rows of the table, whose key that is."""
    ours = {_bare(stem) for stem in stems(column)}
    theirs = {_bare(stem) for stem in (*stems(key, table), table, table.removesuffix("s"))}
    return bool((ours & theirs) - _BARE)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def _is_told_by_values(child: ProfiledTable, column: ColumnProfile, parent: ProfiledTable, key: ColumnProfile) -> bool:
    """True if it is no accident that values of a column, few rows each, are among the keys, should they all be."""
    name, among = column.column.name, column.distinct <= key.distinct
    same = child.columns[name].type == parent.columns[key.column.name].type
    if not (same and among) or column.is_measure or column.distinct <= FEW_VALUES:
        return False
    if column.rows >= CATEGORY_ROWS * column.distinct:
        return False
    names = column.texts is not None or column.role == IDENTIFIER  # ages are numbers, and so are most keys
    return column.is_coded or (names and 2 * column.distinct >= key.distinct and name not in child.keys)


def _held(
    engine: Engine, child: ProfiledTable, column: str, parent: ProfiledTable, key: str, why: str
) -> tuple[Link, int]:
    """The link, and how many of the column's values the key has."""
    ours, theirs = child.columns[column], parent.columns[key]
    differs = ours.published != theirs.published and not (ours.is_number and theirs.is_number)
    cast, rows = theirs.published if differs else "", child.relation
    with engine.scope():
        if cast:
            kind = {"column": Identifier(column), "kind": SqlType(cast)}
            rows = engine.materialise("cast", "measuring/profile/cast_column", rows=rows, **kind)
        params = {"rows": rows, "column": column, "others": parent.relation, "key": key}
        found = {name: int(count) for name, count in engine.record("recoding/tables/count_links", **params).items()}
    counts = (found["unknown"], found["lacking"], found["lacking_values"])
    link = Link((child.name, column), (parent.name, key), why, *counts, cast=cast)
    return link, found["people"] - found["lacking_values"]


# -- whose rows they are -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """The table of people with the column that says who they are, and for each other one that leads there its link.

    `others` are links that might be taken. `is_of_rows` says that nothing tells whose the rows of that table are.
    """

    people: tuple[str, str]
    links: Mapping[str, Link]
    others: Sequence[Link]
    is_of_rows: bool = False

    def key_of(self, table: str) -> str:
        """The key by which rows of other tables belong to that table's; empty if none do, or it is that of people."""
        own = (link.parent for link in self.links.values() if link.parent[0] == table)
        return next((key for name, key in own if (name, key) != self.people), "")


def tree_of(tables: Sequence[ProfiledTable], links: Sequence[Link]) -> Tree | None:
    """The tables that lead to people, None if none does.

    The table of people has the key to which most tables lead; one whose name says people comes before others.
    """
    found = [_tree(tables, links, people) for people in dict.fromkeys(link.parent for link in links)]
    profiles = {table.name: table.profile for table in tables}

    def rank(tree: Tree) -> tuple[bool, int, int, int]:
        lost = sum(link.lost for link in tree.links.values())
        direct = [link.child[1] for link in tree.links.values() if link.parent == tree.people]
        return _tells_people(tree) or any(map(tells_one, direct)), len(tree.links), profiles[tree.people[0]].rows, -lost

    best = max(found, key=rank, default=None)
    if best is None or rank(best)[0]:
        return best
    table, whose = best.people[0], profiles[best.people[0]].individual
    if whose is None:
        return replace(best, is_of_rows=True)
    return replace(best, people=(table, whose.column.name))


def _tells_people(tree: Tree) -> bool:
    """True if the key says by its name, or that of its table, that its values are people."""
    return tells_one(tree.people[1]) or tells_one("_".join(tree.people))


def _tree(tables: Sequence[ProfiledTable], links: Sequence[Link], people: tuple[str, str]) -> Tree:
    known = _of_one_key(links, people)
    leading = _leading(known, people[0])
    taken: dict[str, Link] = {}
    left, depth = [table.name for table in tables if table.name in leading], {people[0]: 0}
    while left:
        ready = {name: [one for one in known if one.child[0] == name and one.parent[0] in depth] for name in left}
        ready = {name: own for name, own in ready.items() if own}
        waits = {name for name in ready if any(one.child[0] == name and one.parent[0] in left for one in known)}
        name = next((name for name in ready if name not in waits), next(iter(ready)))
        taken[name] = min(ready[name], key=lambda one: (one.lost, -depth[one.parent[0]], _REASONS.index(one.why)))
        depth[name] = depth[taken[name].parent[0]] + 1
        left.remove(name)
    others = [one for one in links if one.child[0] in taken and one not in taken.values()]
    return Tree(people, taken, [one for one in others if one.child[0] not in _above(taken, one.parent[0])])


def _above(taken: Mapping[str, Link], table: str) -> set[str]:
    """The table, and those that its rows lead through."""
    return {table} | (_above(taken, taken[table].parent[0]) if table in taken else set())


def _of_one_key(links: Iterable[Link], people: tuple[str, str]) -> list[Link]:
    """The links to one key of each table: that of people, and else the one that most lead to, with fewest rows lost."""
    away = [link for link in links if link.child[0] != people[0]]
    chosen = {people[0]: people[1]}
    for table in {link.parent[0] for link in away} - {people[0]}:
        own = [link for link in away if link.parent[0] == table]
        by_key = {key: [link for link in own if link.parent[1] == key] for key in (link.parent[1] for link in own)}
        chosen[table] = min(by_key, key=lambda key: (-len(by_key[key]), sum(one.lost for one in by_key[key]), key))
    return [
        link for link in away if chosen[link.parent[0]] == link.parent[1] and link.child[1] != chosen.get(link.child[0])
    ]


def _leading(links: Sequence[Link], root: str) -> set[str]:
    """The tables from which links lead to a root."""
    found, before = {root}, set[str]()
    while found != before:
        before = found
        found = found | {link.child[0] for link in links if link.parent[0] in found}
    return found - {root}
