"""Links between several tables: which column names the rows of another, and by which way each leads to people.

A column links to a key, whose values are one row's each, if its values are among them and the schema declares it, or
else their names agree, or where nothing else tells, if the values alone leave no doubt. Everything is counted in the
database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from ldiv_db.auditing.people_names import CATEGORY_ROWS, FEW_VALUES, tells_being, tells_one, tells_serving
from ldiv_db.database.catalog import Column, columns_of, full_name
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.lineage import foreign_keys
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.measuring.profile import ColumnProfile, Profile
from ldiv_db.measuring.roles import IDENTIFIER, singulars, stems, tells_life, tells_sex

DECLARED, BY_NAME, BY_VALUES = "declared as a foreign key", "names and values", "values alone"
REASONS = (DECLARED, BY_NAME, BY_VALUES)
#: Names of keys that say nothing of what they number, and of what rows of any table have.
_BARE = {"id", "key", "nr", "no", "num", "number", "code", "uuid", "guid", "name", "title", "label", "description"}
#: Words beside what a column is called after.
_AROUND = {"via", "by", "of", "to", "ref", "fk"}
#: The key of a table: (table, column).
Key = tuple[str, str]


@dataclass(frozen=True)
class ProfiledTable:
    """One of several tables: its name among them, the source as it was named, and its profile.

    Columns are `hidden`, each for its reason, whatever the profile takes them for.
    """

    name: str
    source: str
    relation: Table
    profile: Profile
    columns: Mapping[str, Column]
    hidden: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, engine: Engine, name: str, source: str, relation: Table, profile: Profile) -> ProfiledTable:
        return cls(name, source, relation, profile, {column.name: column for column in columns_of(engine, relation)})

    @property
    def singulars(self) -> set[str]:
        """What one of its rows may be called."""
        return singulars(self.name) | (singulars(self.relation.name) if isinstance(self.relation, Relation) else set())

    @property
    def tells_people(self) -> bool:
        """True if its rows are people by its name, or what each is one person's."""
        return any(map(tells_one, self.singulars))

    @property
    def life(self) -> list[str]:
        """The columns that tell of one life: names of a person or a birth, and a sex beside one of these."""
        found = [name for name in self.columns if tells_life(name)]
        return found and [name for name in self.columns if name in found or tells_sex(name)]

    def counted(self, name: str) -> ColumnProfile:
        """A column in counts."""
        return next(column for column in self.profile.columns if column.column.name == name)

    @property
    def keys(self) -> list[str]:
        """The columns that have a value of their own in every row that has one."""
        found = [c.column.name for c in self.linking if 2 <= c.distinct == c.rows - c.nulls]
        return [name for name in found if not tells_life(name)]

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

    child: Key
    parent: Key
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
    declared = _Declared(engine, tables)
    found = [link for child in tables for link in _links_of(engine, child, tables, declared)]
    pairs = [(child, parent) for child in tables for parent in tables if child is not parent]
    return _furthest(tables, found) or [link for child, parent in pairs for link in _shared(engine, child, parent)]


class _Declared:
    """The foreign keys of tables, as declared, each followed through columns that are foreign keys themselves."""

    def __init__(self, engine: Engine, tables: Sequence[ProfiledTable]) -> None:
        self._keys_of, self._full = cache(partial(foreign_keys, engine)), cache(partial(full_name, engine))
        own = {table.name: table.relation for table in tables}
        self._names = {self._full(table): name for name, table in own.items() if isinstance(table, Relation)}

    def keys(self, child: ProfiledTable, column: str) -> set[Key] | None:
        """The keys of the tables whose rows a column names, in lower case; None if it is no foreign key."""
        found, place = set[Key](), (child.relation, column.lower())
        seen = {place}
        while isinstance(place[0], Relation) and (told := self._keys_of(place[0]).get(place[1])) and told not in seen:
            place, name = told, self._names.get(self._full(told[0]))
            seen.add(told)
            found |= {(name, told[1])} if name else set()
        return found if len(seen) > 1 else None


def _links_of(
    engine: Engine, child: ProfiledTable, tables: Sequence[ProfiledTable], declared: _Declared
) -> Iterator[Link]:
    """The links of each column of a table to keys of others, by the best reason that it has for any."""
    registers = any(table.tells_people for table in tables)
    keys = [
        (parent, key)
        for parent in tables
        if parent is not child
        for key in parent.keys
        if not (registers and _is_of_others(parent, key))
    ]
    for column in child.linking:
        name = column.column.name
        said = declared.keys(child, name)
        named = [(parent, key) for parent, key in keys if (parent.name, key.lower()) in (said or ())]
        by_name = [(parent, key) for parent, key in keys if alike(name, key, parent)]
        by_name = by_name or [(parent, key) for parent, key in keys if shortens(name, key, parent)]
        of_values = [] if said is not None else [
            (parent, key) for parent, key in keys if _is_told_by_values(child, column, parent, parent.counted(key))
        ]  # fmt: skip
        fitting = next((one for one in zip((named, by_name, of_values), REASONS, strict=True) if one[0]), ([], ""))
        for parent, key in fitting[0]:
            link, known = _held(engine, child, name, parent, key, fitting[1])
            lost = column.distinct - known  # strangers, and what cannot be read as the key
            if known and lost <= (0 if fitting[1] == BY_VALUES else known):
                yield link


def _is_of_others(table: ProfiledTable, key: str) -> bool:
    """True if a column says by its name that it names people, whom the table is not called after."""
    own = any(tells_one(name) or tells_serving(name) for name in table.singulars)
    return (tells_being(key) or tells_serving(key)) and not own


def _furthest(tables: Sequence[ProfiledTable], links: Sequence[Link]) -> list[Link]:
    """The links without those to a key that itself names rows of a table that its values name as well.

    Of two tables with one key, each naming the other's rows, the one is named that is called after people or the key,
    or has it as its first.
    A table whose first key names rows of another has no further one, but one that is called after it: a year in which
    few got a prize is none.
    """
    by_name = {table.name: table for table in tables}
    every = {(link.child, link.parent): REASONS.index(link.why) for link in links}

    def rank(key: Key) -> tuple[bool, bool, bool, int]:
        table = by_name[key[0]]
        is_first = key[1] in table.keys[:1]
        return table.tells_people, alike(key[1], "id", table), is_first, -list(by_name).index(key[0])

    def goes_on(key: Key) -> list[Key]:
        above = [above for below, above in every if below == key]
        return [one for one in above if (one, key) not in every or rank(one) > rank(key)]

    def stays(link: Link) -> bool:
        if any((link.child, above) in every for above in goes_on(link.parent)):
            return False
        back = every.get((link.parent, link.child), len(REASONS))
        if back < REASONS.index(link.why) or (back == REASONS.index(link.why) and rank(link.child) > rank(link.parent)):
            return False  # the other table names rows of this one
        table, key = by_name[link.parent[0]], link.parent[1]
        before = table.keys[: table.keys.index(key)] if key in table.keys else []
        own = link.why != BY_NAME or alike(key, "id", table)
        return own or not any(goes_on((table.name, one)) for one in before)

    return [link for link in links if stays(link)]


def _shared(engine: Engine, child: ProfiledTable, parent: ProfiledTable) -> Iterator[Link]:
    """Columns of the same people by their names, most of whose values the other has too."""
    ours, theirs = ([c.column.name for c in one.linking if tells_one(c.column.name)] for one in (child, parent))
    for name, other in ((name, other) for name in ours for other in theirs if alike(name, other)):
        link, known = _held(engine, child, name, parent, other, BY_NAME)
        if 2 * known >= child.counted(name).distinct:
            yield replace(link, lacking=0, strangers=0)


def alike(column: str, key: str, parent: ProfiledTable | None = None) -> bool:
    """True if the names say that the column names rows of the table, whose key that is."""
    called = parent.singulars if parent else set[str]()
    ours = {_bare(stem) for stem in stems(column)}
    theirs = {_bare(stem) for stem in (*stems(key, called), *called)}
    return bool((ours & theirs) - _BARE)


def shortens(column: str, key: str, parent: ProfiledTable) -> bool:
    """True if a column is called after a table in short, as `cust_nr` or `ship_via`, and by the key nothing else is."""
    ours, called = words_of(column), {"".join(words_of(name)) for name in parent.singulars}
    short = [word for word in ours if word not in _BARE | _AROUND]
    is_own = {word for word in words_of(key) if word not in _BARE} <= called
    return is_own and len(ours) > 1 and len(short) == 1 and any(_is_short_for(short[0], name) for name in called)


def _is_short_for(short: str, name: str) -> bool:
    """True if the letters of a word stand in a name in their order, the first of both being one."""
    rest = iter(name)
    return 3 <= len(short) < len(name) and short[0] == name[0] and all(letter in rest for letter in short)


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())


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
    if 0 < key.largest < 2 * key.distinct and not (tells_one(name) and parent.tells_people):
        return False  # 1, 2, 3 …, among which any small numbers are
    names = column.texts is not None or column.role == IDENTIFIER  # ages are numbers, and so are most keys
    if tells_being(name) and parent.tells_people:
        return names
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
