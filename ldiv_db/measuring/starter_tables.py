"""A policy of several tables to start from: made of their profiles and links, as YAML with the reasons for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, count_phrase, rows_phrase
from ldiv_db.database.given_queries import written_query
from ldiv_db.database.names import Relation
from ldiv_db.measuring.kinds_of_tables import (
    OF_NOBODY,
    OF_OTHERS,
    OF_PEOPLE,
    PEOPLE,
    PUBLIC,
    Placed,
    place_tables,
)
from ldiv_db.measuring.links import Link, ProfiledTable
from ldiv_db.measuring.people_of_tables import (
    PeopleRows,
    Tree,
    count_people_rows,
    leads_alike,
    linked_as_read,
    required_of_people,
    tree_of,
)
from ldiv_db.measuring.profile import ColumnProfile
from ldiv_db.measuring.roles import IDENTIFIER, KEPT, QUASI_IDENTIFIER, SENSITIVE
from ldiv_db.measuring.roles_by_links import as_list, with_roles
from ldiv_db.measuring.starter_policy import (
    StarterPolicy,
    block,
    described,
    flow,
    level_files,
    make_starter_policy,
    policy_lines,
    target_of,
    written_text,
)
from ldiv_db.measuring.suggestions import MOST, Known, Most, suggest

#: Of more rows each on average all of a person, or of a row above, have one label.
_MANY = 6
#: What a policy says of those against whom it protects.
_KNOWN = (
    "Withstands who knows everybody's row in the table of people, and of the one person sought one row of another",
    "table; not who knows several rows of a person, or one row of everybody. `known: all` withstands these.",
)
#: What a text is in the query that a policy reads where the source has none.
_NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Started:
    """A policy of one or several tables to start from, or none with the `reason`; of several what they are.

    The `tables` have the roles that their links give columns, and `people_rows` for each how many people have how many
    rows.
    """

    starter: StarterPolicy | None
    reason: str
    tree: Tree | None = None
    placed: Mapping[str, Placed] = field(default_factory=dict)
    tables: Sequence[ProfiledTable] = ()
    notes: Sequence[str] = ()
    people_rows: Mapping[str, Sequence[PeopleRows]] = field(default_factory=dict)


def start_policy(
    engine: Engine,
    tables: Sequence[ProfiledTable],
    links: Sequence[Link] = (),
    most: Most = MOST,
    lasts: bool = True,
) -> Started:
    """A policy of a table, or of those that lead to people; notes say what of others, and of rows, is left out.

    Of several tables no more is required than `most`, against who knows what it says. Files are published where the
    database does not last.
    """
    if len(tables) == 1:
        (table,) = tables
        return Started(*make_starter_policy(engine, table.profile, table.relation, table.source, lasts))
    tree = tree_of(tables, links, lambda way, direct: leads_alike(engine, tables, way, direct))
    if tree is None:
        names = ", ".join(table.name for table in tables)
        why = f"no link between {names}: no column has the values of another table's key, under a like name"
        if links:
            why = f"no link between {names} leads to people: the keys are those of lists, as of kinds or places"
        return Started(None, f"{why}; make one in a view, or profile each table by itself")
    placed = place_tables(tables, links, tree)
    as_found = [_in_role(table, links, placed) for table in tables]
    found = Started(None, "", tree, placed, as_found, tuple(_of_roads(engine, tables, tree)))
    return _of_tree(engine, found, tree, most, lasts)


def _in_role(table: ProfiledTable, links: Sequence[Link], placed: Mapping[str, Placed]) -> ProfiledTable:
    kind = placed[table.name].kind
    if kind == PUBLIC:
        return as_list(table, links, placed)
    return with_roles(table, links, placed) if kind in (PEOPLE, OF_PEOPLE) else table


def _of_tree(engine: Engine, found: Started, tree: Tree, most: Most, lasts: bool) -> Started:
    """What was found with a policy of the tables that lead to people and of lists, or why there is none."""
    made, by_name = dict[str, _Member](), {table.name: table for table in found.tables}
    for name in (tree.people[0], *tree.links):
        made[name] = _Member(engine, by_name[name], tree, made, most.known)
    members = [made[name] for name in by_name if name in made]
    found = replace(found, notes=[*(note for one in members for note in one.notes()), *found.notes])
    if not any(one.roles[QUASI_IDENTIFIER] for one in members):
        return replace(found, reason="no policy to start from: no column can be generalised")
    if files := [one.name for one in members if isinstance(one.table.relation, FileRelation) and one.query]:
        why = f"{files[0]} is a file, which a query must read: load it into a table"
        return replace(found, reason=f"no policy was made: {why}")
    said = {one.name: one.described(lasts) for one in members}
    try:
        rows = linked_as_read(engine, [one.table for one in members], said, most.known == "all")
    except PolicyError as error:
        return replace(found, reason=f"no policy was made: {error.message}")
    if empty := [name for name, relation in rows.items() if not engine.count(relation)]:
        why = f"no row of {empty[0]} that can be read leads to somebody"
        return replace(found, reason=f"no policy was made: {why}")
    lists = [_List(engine, table) for name, table in by_name.items() if found.placed[name].kind == PUBLIC]
    policy: dict[str, Any] = {"individual": tree.people[1], **({"known": 1} if most.known == 1 else {})}
    policy["tables"] = said | {one.name: one.described(lasts) for one in lists}
    policy["require"] = required_of_people(engine, rows, said, most)
    if any("position" in map(str.lower, one.table.columns) for one in members):
        policy["output"] = {"position": "row_position"}
    people = count_people_rows(engine, rows, said, tree)
    return replace(found, starter=_starter(engine, policy, [*members, *lists], found.placed), people_rows=people)


def _of_roads(engine: Engine, tables: Sequence[ProfiledTable], tree: Tree) -> Iterator[str]:
    """What other columns lead to people: to the same ones, or to others, who have another role."""
    for link in tree.roads:
        taken = tree.links[link.child[0]]
        if link.parent == taken.parent or (
            link.parent == tree.people and not leads_alike(engine, tables, tree.way(taken), link)
        ):
            what = f"{'.'.join(link.child)} names other {link.parent[0]} than {taken.child[1]}, and is left out"
            yield f"{what}: to take them for the people of a row, swap the two in the policy"
        else:
            yield f"another link fits: {link} ({link.why}); taken: {taken}"
    if tree.is_of_rows:
        yield f"each row of {tree.people[0]} is taken for a person of its own: no column says whose they are"


def _starter(
    engine: Engine, policy: dict[str, Any], tables: Sequence[_Member | _List], placed: Mapping[str, Placed]
) -> StarterPolicy:
    """The policy with its text and the level files of all tables."""
    lines, files = block({"individual": policy["individual"]}), dict[str, str]()
    lines += [*(f"# {line}" for line in _KNOWN), *block({"known": policy["known"]})] if "known" in policy else []
    lines.append("tables:")
    for one in tables:
        *more, last = block({one.name: None})
        own = policy_lines(policy["tables"][one.name], replace(one.table.profile, individual=None))
        lines += [f"  # {said}" for said in (placed[one.name].why, *one.said())]
        lines += [*(f"  {line}" for line in (*more, last.removesuffix(" null"))), *(f"    {line}" for line in own)]
        keys = policy["tables"][one.name].get("quasi_identifiers", ())
        generalised = [column for column in one.table.profile.columns if column.column.name in keys]
        files |= level_files(engine, one.table.relation, generalised)
    lines += [f"# Not published: {name}: {of.why}" for name, of in placed.items() if of.kind in (OF_OTHERS, OF_NOBODY)]
    lines += ["require:", *(f"- {flow(one)}" for one in policy["require"])]
    lines += block({"output": policy["output"]}) if "output" in policy else []
    text = written_text(lines, any(one.table.profile.hipaa for one in tables))
    return StarterPolicy(policy, text, text, files)


class _List:
    """A table of nobody's rows, which is published as it is but for what names somebody."""

    def __init__(self, engine: Engine, table: ProfiledTable) -> None:
        self._engine, self.name, self.table = engine, table.name, table

    def described(self, lasts: bool) -> dict[str, Any]:
        """The table as the policy describes it."""
        kept, hidden = ([one.column.name for one in self.table.profile.of_role(role)] for role in (KEPT, IDENTIFIER))
        found = source_of(self._engine, self.table, lasts) | {"public": True, "keep": kept}
        return found | ({"identifiers": hidden} if hidden else {})

    def said(self) -> Iterator[str]:
        """What is asked of it in the policy's comments."""
        yield "Published as it is: does no column tell of anybody?"


def source_of(engine: Engine, table: ProfiledTable, lasts: bool, query: str = "") -> dict[str, Any]:
    """What a table is read from, and what it is published as: a file where the database does not last."""
    target = target_of(engine, table.source) if lasts else f"release/{_plain(table.name)}.parquet"
    return {"source": {"query": query} if query else table.source, "target": target}


class _Member:
    """A table of the policy: whose its rows are, what is read of them, and the roles of their columns."""

    def __init__(
        self, engine: Engine, table: ProfiledTable, tree: Tree, made: Mapping[str, _Member], known: Known
    ) -> None:
        """`made` has the member that the table's rows belong to; where one row is `known` rows have no places."""
        self._has_places = known == "all"
        self._engine, self.name, self.table = engine, table.name, _with_files_of_its_own(table)
        self.link, self._people = tree.links.get(table.name), tree.people
        self._above = made[self.link.parent[0]] if self.link else None
        self._owner = self.link.child[1] if self.link else tree.people[1]
        self._key = tree.key_of(table.name)
        self._roads = [link for link in tree.roads if link.child[0] == table.name]
        self.roles = {
            role: [c for c in self.table.profile.of_role(role) if c.column.name not in (self._owner, self._key)]
            for role in (QUASI_IDENTIFIER, SENSITIVE)
        }
        self.query = self._query()

    def described(self, lasts: bool) -> dict[str, Any]:
        """The table as the policy describes it."""
        found = source_of(self._engine, self.table, lasts, self.query)
        if self.link is None or self.link.parent == self._people:
            found["person"] = self._owner
        else:
            found["parent"] = {self._owner: self.link.parent[0]}
        if self._key:
            found["key"] = self._key
        if self._has_orphans:
            found["orphans"] = "leave_out"
        if self._has_places and (self._key or self.roles[QUASI_IDENTIFIER]) and (order := self._order()):
            found |= {"rows": "together"} if self._has_many and not self._key else {"order": order}
        return found | described(self.table.profile, self._sensitive(), [self._owner, self._key])

    def said(self) -> Iterator[str]:
        """What else a column leads to people, for the policy's comments."""
        yield from (f"or: {link} ({link.why})" for link in self._roads)

    @property
    def _has_many(self) -> bool:
        """True if people, or rows above, have so many rows that each would have labels of its own."""
        owned = self.table.counted(self._owner)
        return owned.rows - owned.nulls > _MANY * owned.distinct

    def _sensitive(self) -> dict[str, Any] | list[str]:
        found, known = dict[str, Any](), {one.column.name for one in self.roles[SENSITIVE]}
        for one in (one for one in self.table.profile.sensitive if one.name in known):
            suggested = suggest(self._engine, self.table.relation, one) if one.distribution.distinct > 1 else None
            found[one.name] = (suggested.settings if suggested else None) or {}
        return found if any(found.values()) else list(found)

    def _order(self) -> str:
        """The column by which rows of one person come first: a time, or a number, of the most values; never secret.

        Empty if nobody has several.
        """
        owned = self.table.counted(self._owner)
        secret = {one.name for one in self.table.profile.sensitive} | {self._owner}
        able = [c for c in self.table.profile.columns if c.distinct > 1 and c.column.name not in secret]
        kinds = {c.column.name: self.table.columns[c.column.name] for c in able}
        able = [c for c in able if (k := kinds[c.column.name]).is_time or k.is_number or k.type == "VARCHAR"]

        def rank(c: ColumnProfile) -> tuple[bool, bool, int]:
            return kinds[c.column.name].is_time, kinds[c.column.name].is_number, c.distinct

        return max(able, key=rank).column.name if able and owned.distinct < owned.rows - owned.nulls else ""

    def _query(self) -> str:
        """The query that leaves out what cannot be published, and reads some columns another way; empty if none."""
        table, link = self.table, self.link
        casts = {self._owner: link.cast} if link and link.cast else {}
        missing = [one.column.name for one in self.roles[SENSITIVE] if one.nulls]
        texts = {name: _NOT_KNOWN for name in missing if table.columns[name].type == "VARCHAR"}
        known = [self._key] if self._key and table.counted(self._key).nulls else []
        known += [name for name in missing if name not in texts]
        self._leaves_out = bool(known or self._has_orphans)
        return written_query(self.named, casts, texts, known)

    @property
    def _has_orphans(self) -> bool:
        """True if rows of its source are nobody's, or of rows that are not published."""
        if self.link is None or self._above is None:
            return self.table.counted(self._owner).nulls > 0
        return self.link.lost > 0 or self._above._leaves_out

    @property
    def named(self) -> str:
        """The table as a query names it."""
        is_table = isinstance(self.table.relation, Relation)
        return Relation.parse(self.table.source).sql() if is_table else self.table.source

    def notes(self) -> Iterator[str]:
        """What the query leaves out, with its counts and a way out."""
        name, link, owner = self.name, self.link, self._owner
        if link and link.lacking:
            values = count_phrase(link.strangers, f"value of {owner}", f"values of {owner}")
            what = f"{rows_phrase(link.lacking)} of {name} have {values} that {link.parent[0]} has not"
            yield f"{what}: `orphans: leave_out` leaves them out; add these to {link.parent[0]} to publish them"
        if link and link.unknown:
            whose = f"{rows_phrase(link.unknown)} of {name} have no {owner}, and belong to nobody"
            yield f"{whose}: `orphans: leave_out` leaves them out"
        if link and link.cast:
            yield f"{owner} of {name} is read as {link.cast}, as {link.parent[0]} has it"
        for one in (one for one in self.roles[SENSITIVE] if one.nulls):
            is_text = self.table.columns[one.column.name].type == "VARCHAR"
            way = f"are '{_NOT_KNOWN}'" if is_text else "are left out"
            yield f"{rows_phrase(one.nulls)} of {name} have no {one.column.name}, and {way} in the query"


def _plain(name: str) -> str:
    """A name as any file system takes it."""
    return "".join(c if c.isalnum() else "_" for c in name)


def _with_files_of_its_own(table: ProfiledTable) -> ProfiledTable:
    """The table with its level files named after it, as columns of several tables may have one name."""

    def renamed(column: ColumnProfile) -> ColumnProfile:
        if column.way is None or not column.way.file:
            return column
        file = f"{_plain(table.name)}_{column.way.file}"
        way = replace(column.way, file=file, settings=column.way.settings | {"taxonomy": {"file": file}})
        return replace(column, way=way)

    columns = tuple(map(renamed, table.profile.columns))
    return replace(table, profile=replace(table.profile, columns=columns))
