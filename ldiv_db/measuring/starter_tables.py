"""A policy of several tables to start from: made of their profiles and links, as YAML with the reasons for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase, rows_phrase
from ldiv_db.database.given_queries import written_query
from ldiv_db.database.names import Relation
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
from ldiv_db.measuring.roles import QUASI_IDENTIFIER, SENSITIVE
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
from ldiv_db.measuring.suggestions import MODEST_L, suggest

#: What a text is in the query that a policy reads where the source has none.
_NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Started:
    """A policy of one or several tables to start from, or none with the `reason`; of several what links them.

    `people_rows` has for each table how many people have how many rows.
    """

    starter: StarterPolicy | None
    reason: str
    tree: Tree | None = None
    notes: Sequence[str] = ()
    people_rows: Mapping[str, Sequence[PeopleRows]] = field(default_factory=dict)


def start_policy(
    engine: Engine,
    tables: Sequence[ProfiledTable],
    links: Sequence[Link] = (),
    most_l: int = MODEST_L,
    lasts: bool = True,
) -> Started:
    """A policy of a table, or of those that lead to people; notes say what of others, and of rows, is left out.

    No `frequency` of several tables asks for more than `most_l`. If the database does not last, files are published.
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
    made, by_name = dict[str, _Member](), {table.name: table for table in tables}
    for name in (tree.people[0], *tree.links):
        made[name] = _Member(engine, by_name[name], tree, made)
    members = [made[table.name] for table in tables if table.name in made]
    notes = [*(note for one in members for note in one.notes()), *_of_others(tables, tree)]
    if not any(one.roles[QUASI_IDENTIFIER] for one in members):
        return Started(None, "no policy to start from: no column can be generalised", tree, notes)
    if files := [one.name for one in members if isinstance(one.table.relation, FileRelation) and one.query]:
        why = f"{files[0]} is a file, which a query must read: load it into a table"
        return Started(None, f"no policy was made: {why}", tree, notes)
    said = {one.name: one.described(lasts) for one in members}
    rows = linked_as_read(engine, [one.table for one in members], said)
    if empty := [name for name, relation in rows.items() if not engine.count(relation)]:
        why = f"no row of {empty[0]} that can be read leads to somebody"
        return Started(None, f"no policy was made: {why}", tree, notes)
    people = count_people_rows(engine, rows, said, tree)
    policy: dict[str, Any] = {"individual": tree.people[1], "tables": said}
    policy["require"] = required_of_people(engine, rows, said, most_l)
    if any("position" in map(str.lower, one.table.columns) for one in members):
        policy["output"] = {"position": "row_position"}
    return Started(_starter(engine, policy, members), "", tree, notes, people)


def _of_others(tables: Sequence[ProfiledTable], tree: Tree) -> Iterator[str]:
    for table in tables:
        if table.name not in (tree.people[0], *tree.links):
            way_out = "`public: true` with `keep` publishes columns as they are, if they are of nobody"
            yield f"{table.name} leads to nobody of {tree.people[0]}, and is left out; {way_out}"
    for link in (one for one in tree.others if one.parent[0] in (tree.people[0], *tree.links)):
        yield f"another link fits: {link} ({link.why}); taken: {tree.links[link.child[0]]}"
    if tree.is_of_rows:
        yield f"each row of {tree.people[0]} is taken for a person of its own: no column says whose they are"


def _starter(engine: Engine, policy: dict[str, Any], members: Sequence[_Member]) -> StarterPolicy:
    """The policy with its text and the level files of all tables."""
    lines, files = [*block({"individual": policy["individual"]}), "tables:"], dict[str, str]()
    for one in members:
        lines += [f"  # {one.link} ({one.link.why})"] if one.link else []
        *more, last = block({one.name: None})
        own = policy_lines(policy["tables"][one.name], replace(one.table.profile, individual=None))
        lines += [*(f"  {line}" for line in (*more, last.removesuffix(" null"))), *(f"    {line}" for line in own)]
        files |= level_files(engine, one.table.relation, one.roles[QUASI_IDENTIFIER])
    lines += ["require:", *(f"- {flow(one)}" for one in policy["require"])]
    lines += block({"output": policy["output"]}) if "output" in policy else []
    text = written_text(lines, any(one.table.profile.hipaa for one in members))
    return StarterPolicy(policy, text, text, files)


class _Member:
    """A table of the policy: whose its rows are, what is read of them, and the roles of their columns."""

    def __init__(self, engine: Engine, table: ProfiledTable, tree: Tree, made: Mapping[str, _Member]) -> None:
        """`made` has the member that the table's rows belong to."""
        self._engine, self.name, self.table = engine, table.name, _with_files_of_its_own(table)
        self.link, self._people = tree.links.get(table.name), tree.people
        self._above = made[self.link.parent[0]] if self.link else None
        self._owner = self.link.child[1] if self.link else tree.people[1]
        self._key = tree.key_of(table.name)
        self.roles = {
            role: [c for c in self.table.profile.of_role(role) if c.column.name not in (self._owner, self._key)]
            for role in (QUASI_IDENTIFIER, SENSITIVE)
        }
        self.query = self._query()

    def described(self, lasts: bool) -> dict[str, Any]:
        """The table as the policy describes it."""
        target = target_of(self._engine, self.table.source) if lasts else f"release/{_plain(self.name)}.parquet"
        source: Any = {"query": self.query} if self.query else self.table.source
        found: dict[str, Any] = {"source": source, "target": target}
        if self.link is None or self.link.parent == self._people:
            found["person"] = self._owner
        else:
            found["parent"] = {self._owner: self.link.parent[0]}
        if self._key:
            found["key"] = self._key
        if (self._key or self.roles[QUASI_IDENTIFIER]) and (order := self._order()):
            found["order"] = order
        return found | described(self.table.profile, self._sensitive(), [self._owner, self._key])

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
        table, link, above, keys = self.table, self.link, self._above, [self._key]
        casts, among = dict[str, str](), None
        if link is None or above is None:
            keys.append(self._owner)
        else:
            casts = {self._owner: link.cast} if link.cast else {}
            if link.lacking or above.query:
                among = (self._owner, link.parent[1], f"({above.query})" if above.query else above.named)
            elif link.unknown:
                keys.append(self._owner)
        missing = [one.column.name for one in self.roles[SENSITIVE] if one.nulls]
        texts = {name: _NOT_KNOWN for name in missing if table.columns[name].type == "VARCHAR"}
        known = [name for name in keys if name and ((link and name == self._owner) or table.counted(name).nulls)]
        known += [name for name in missing if name not in texts]
        return written_query(self.named, casts, texts, known, among)

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
            yield f"{what}: the query leaves them out; add these to {link.parent[0]} to publish them"
        if link and link.unknown:
            whose = f"{rows_phrase(link.unknown)} of {name} have no {owner}, and belong to nobody"
            yield f"{whose}: the query leaves them out"
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
