"""People of several tables: whose the rows of each are, how many people have how many, and what can be required."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ldiv_db.auditing.people_names import CATEGORY_ROWS, are_few_kinds, tells_being, tells_one
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.links import BY_VALUES, REASONS, Key, Link, ProfiledTable, alike
from ldiv_db.measuring.starter_policy import by_column
from ldiv_db.measuring.suggestions import Most, required_of
from ldiv_db.measuring.uniqueness import RARE
from ldiv_db.policy.schema import PERSON
from ldiv_db.policy.sources import open_source
from ldiv_db.policy.tables import PolicyTable, named_in
from ldiv_db.recoding.links import LinkedTable, linked_rows, whole_tables

#: People who have so many rows each in a table of people are not whose these are, but who serves them.
_MANY = 4
#: Numbers of rows of a person that are shown.
_SHOWN = 6


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

    @property
    def roads(self) -> list[Link]:
        """The links that might be taken to people, or to rows of theirs; by values alone only by a key in use."""
        keys, tables = {link.parent for link in self.links.values()}, {self.people[0], *self.links}
        return [one for one in self.others if one.parent in keys or (one.parent[0] in tables and one.why != BY_VALUES)]

    def way(self, link: Link) -> list[Link]:
        """The link, and those that lead on from it to people."""
        return _way(self.links, link)


#: Whether a way from the first link's child by the others to people leads to whom the last says.
Agrees = Callable[[Sequence[Link], Link], bool]


def tree_of(
    tables: Sequence[ProfiledTable], links: Sequence[Link], agrees: Agrees = lambda way, direct: True
) -> Tree | None:
    """The tables that lead to people, None if none does.

    The table of people has the key to which most tables lead; one whose name says people comes before others, and one
    whose values have very many rows each, as lists of categories have, is none unless it says so.
    """
    by_name = {table.name: table for table in tables}
    roots = dict.fromkeys(link.parent for link in links)
    for table in tables if links else ():
        if table.tells_people and table.keys and not any(table.name == name for name, _ in roots):
            roots[table.name, min(table.keys, key=lambda key: not alike(key, "id", table))] = None
    found = [_tree(tables, links, people, agrees) for people in roots]

    def rank(tree: Tree) -> tuple[bool, float, int, int]:
        lost = sum(link.lost for link in tree.links.values())
        own = [link for name, link in tree.links.items() if not _of_other_people(by_name, tree, name)]
        why = sum(REASONS.index(link.why) for link in own)
        return tells_people(tree), _weight(by_name, tree, len(own)), -why, -lost

    def tells_people(tree: Tree) -> bool:
        direct = [link.child[1] for link in tree.links.values() if link.parent == tree.people]
        return tells_one(tree.people[1]) or by_name[tree.people[0]].tells_people or any(map(tells_one, direct))

    best = max(found, key=rank, default=None)
    if best is None or tells_people(best):
        return best
    if _is_list(by_name, best):
        return None
    whose = by_name[best.people[0]].profile.individual
    if whose is None:
        return replace(best, is_of_rows=True)
    return replace(best, people=(best.people[0], whose.column.name))


def _weight(tables: Mapping[str, ProfiledTable], tree: Tree, own: int) -> float:
    """How much speaks for the people of a tree: tables of `own` rows of theirs, how many they are, and what is told.

    There are more of whom others serve, and the tables of both are much the same ones.
    """
    table = tables[tree.people[0]]
    told = 1 + any(map(tells_being, table.singulars)) / 2 + bool(table.life) / 2
    listed = 0.5 if _is_list(tables, tree) else 1.0
    return math.log2(1 + own) * math.log2(1 + table.profile.rows) * told * listed


def _is_list(tables: Mapping[str, ProfiledTable], tree: Tree) -> bool:
    """True if rows of a table lead to few kinds of things, or very many to each."""
    counts = [tables[name].counted(link.child[1]) for name, link in tree.links.items() if link.parent == tree.people]
    rows = [(one.distinct, one.rows - one.nulls) for one in counts if one.distinct < one.rows - one.nulls]
    return any(are_few_kinds(kinds, of) or of >= CATEGORY_ROWS * kinds for kinds, of in rows)


def _of_other_people(tables: Mapping[str, ProfiledTable], tree: Tree, name: str) -> bool:
    """True if a table leads to people by way of others, as a shop's customers lead to who serves them."""
    if name not in tree.links:
        return False
    table, link = tables[name], tree.links[name]
    counted = table.counted(link.child[1])
    is_of_others = any(map(tells_being, table.singulars)) and counted.rows - counted.nulls >= _MANY * counted.distinct
    return is_of_others or _of_other_people(tables, tree, link.parent[0])


def _tree(tables: Sequence[ProfiledTable], links: Sequence[Link], people: Key, agrees: Agrees) -> Tree:
    known, by_name = _of_one_key(links, people), {table.name: table for table in tables}
    leading = _leading(known, people[0])
    taken: dict[str, Link] = {}
    left, depth = [table.name for table in tables if table.name in leading], {people[0]: 0}
    while left:
        ready = {name: [one for one in known if one.child[0] == name and one.parent[0] in depth] for name in left}
        ready = {name: own for name, own in ready.items() if own}
        waits = {name for name in ready if any(one.child[0] == name and one.parent[0] in left for one in known)}
        name = next((name for name in ready if name not in waits), next(iter(ready)))
        direct = [one for one in ready[name] if one.parent == people]
        able = [one for one in ready[name] if all(agrees(_way(taken, one), other) for other in direct[:1])]
        taken[name] = min(able, key=lambda one: (REASONS.index(one.why), one.lost, -depth[one.parent[0]]))
        depth[name] = depth[taken[name].parent[0]] + (taken[name].child[1] not in by_name[name].keys)
        left.remove(name)
    others = [one for one in links if one.child[0] in taken and one not in taken.values()]
    return Tree(people, taken, [one for one in others if one.child[0] not in _above(taken, one.parent[0])])


def _way(taken: Mapping[str, Link], link: Link) -> list[Link]:
    """The link, and those that lead on from it to people."""
    above = link.parent[0]
    return [link, *(_way(taken, taken[above]) if above in taken else [])]


def leads_alike(engine: Engine, tables: Sequence[ProfiledTable], way: Sequence[Link], direct: Link) -> bool:
    """True if all rows lead to the same people by a way and by a column that names these; else the column says whose.

    It is not counted where keys are read as another type.
    """
    if len(way) == 1:
        return True
    if any(link.cast for link in (*way, direct)):
        return False
    relations = {table.name: table.relation for table in tables}
    steps = [
        {"rows": relations[link.parent[0]], "key": Identifier(link.parent[1]), "owner": Identifier(above.child[1])}
        | {"alias": Identifier(f"t{number}")}
        for number, (link, above) in enumerate(pairwise(way))
    ]
    params = {"rows": relations[direct.child[0]], "column": Identifier(way[0].child[1])}
    astray = engine.scalar("measuring/profile/count_astray", **params, whose=Identifier(direct.child[1]), steps=steps)
    return not astray


def _above(taken: Mapping[str, Link], table: str) -> set[str]:
    """The table, and those that its rows lead through."""
    return {table} | (_above(taken, taken[table].parent[0]) if table in taken else set())


def _of_one_key(links: Iterable[Link], people: Key) -> list[Link]:
    """The links to one key of each table: that of people, or of those that are declared the one that most lead to."""
    away = [link for link in links if link.child[0] != people[0]]
    chosen = {people[0]: people[1]}
    for table in {link.parent[0] for link in away} - {people[0]}:
        own = [link for link in away if link.parent[0] == table]
        by_key = {key: [link for link in own if link.parent[1] == key] for key in (link.parent[1] for link in own)}

        def rank(key: str, by_key: Mapping[str, list[Link]] = by_key) -> tuple[int, int, int, str]:
            to_key = by_key[key]
            best = min(REASONS.index(one.why) for one in to_key)
            return best, -len(to_key), sum(one.lost for one in to_key), key

        chosen[table] = min(by_key, key=rank)
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


# -- how many rows they have -----------------------------------------------------------------------------


@dataclass(frozen=True)
class PeopleRows:
    """How many people have so many rows of a table, or so many at least."""

    rows: int
    people: int
    or_more: bool = False

    def __str__(self) -> str:
        return f"{self.rows}{' or more' if self.or_more else ''}: {self.people:,}"


def linked_as_read(
    engine: Engine, tables: Sequence[ProfiledTable], members: Mapping[str, Mapping[str, Any]], in_order: bool
) -> dict[str, Relation]:
    """The rows of each table as the policy reads them, with numbers for keys; perhaps rows of people are `in_order`."""
    linked = {}
    for table in tables:
        said = PolicyTable.model_validate(members[table.name])
        relation = table.relation if isinstance(said.source, str) else open_source(engine, said.source, Path())
        linked[table.name] = LinkedTable.opened(engine, table.name, said, relation, in_order)
    return linked_rows(engine, whole_tables(engine, linked), "profile", PERSON)


def count_people_rows(
    engine: Engine, rows: Mapping[str, Relation], members: Mapping[str, Mapping[str, Any]], tree: Tree
) -> dict[str, list[PeopleRows]]:
    """How many people have how many rows of each table; few people of many rows are counted together."""
    found = {}
    for name, relation in rows.items():
        with engine.scope():
            of_people = engine.count_groups("of_people", relation, (_owner(members[name]), "person"))
            counted = [PeopleRows(int(n), int(people)) for n, people in engine.tally(of_people, "rows")]
        found[name] = sorted(counted, key=lambda one: one.rows)
    people = sum(one.people for one in found[tree.people[0]])
    for name, counts in found.items():
        none = people - sum(one.people for one in counts)
        found[name] = _folded([PeopleRows(0, none), *counts] if none > 0 else counts)
    return found


def _folded(counts: list[PeopleRows]) -> list[PeopleRows]:
    """The first of the counts, and from the first one of few people on all together."""
    shown = next((i for i, one in enumerate(counts) if one.people < RARE), len(counts))
    shown = max(1, min(shown, len(counts) if len(counts) <= _SHOWN else _SHOWN - 1))
    first, others = counts[:shown], counts[shown:]
    if not others:
        return first
    together = sum(one.people for one in others)
    if together < RARE:
        *first, last = first
        return [*first, PeopleRows(last.rows, last.people + together, True)]
    return [*first, PeopleRows(others[0].rows, together, True)]


def _owner(member: Mapping[str, Any]) -> str:
    return str(member.get("person", PERSON))


def required_of_people(
    engine: Engine, rows: Mapping[str, Relation], members: Mapping[str, Mapping[str, Any]], most: Most
) -> list[dict[str, Any]]:
    """What the people of each table allow of each sensitive column, and of those without a value."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table, member in members.items():
        for name in member.get("sensitive", ()):
            params = {"rows": rows[table], "person": Identifier(_owner(member)), "value": Identifier(name)}
            counted = engine.record("measuring/profile/count_people", **params)
            people, largest, values = (int(counted[key] or 0) for key in ("people", "most", "different"))
            each = required_of(values, largest, people) if largest < people else []
            found[named_in(table, name)] = [most.of(one) for one in each]
    return [*by_column(found), {"k": most.k}]
