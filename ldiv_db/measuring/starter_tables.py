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
from ldiv_db.measuring.generalisations import SAFE_HARBOR
from ldiv_db.measuring.links import Link, ProfiledTable, Tree, tree_of
from ldiv_db.measuring.people_of_tables import PeopleRows, count_people_rows, linked_as_read, required_of_people
from ldiv_db.measuring.profile import ColumnProfile
from ldiv_db.measuring.roles import IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE
from ldiv_db.measuring.starter_policy import StarterPolicy, block, flow, level_files, policy_lines, target_of
from ldiv_db.measuring.suggestions import MODEST_L, suggest

#: What a text is in the query that a policy reads where the source has none.
_NOT_KNOWN = "not known"
_HEADING = "# A policy to start from: check every column's role and every link, then `ldiv plan` and `ldiv run`."


@dataclass(frozen=True)
class StarterTables:
    """A policy of several tables, or none with the `reason`, and what is known of their links.

    `people_rows` has for each table how many people have how many rows.
    """

    starter: StarterPolicy | None
    reason: str
    tree: Tree | None
    notes: Sequence[str] = ()
    people_rows: Mapping[str, Sequence[PeopleRows]] = field(default_factory=dict)


def start_tables(
    engine: Engine, tables: Sequence[ProfiledTable], links: Sequence[Link], most_l: int = MODEST_L
) -> StarterTables:
    """A policy of the tables that lead to people; notes say what of the others, and of their rows, is left out.

    No `frequency` asks for more than `most_l`.
    """
    tree = tree_of(tables, links)
    if tree is None:
        names = ", ".join(table.name for table in tables)
        why = f"no link between {names}: no column has the values of another table's key, under a like name"
        return StarterTables(None, f"{why}; make one in a view, or profile each table by itself", None)
    made = _Members(engine, [t for t in tables if t.name in (tree.people[0], *tree.links)], tree)
    members = {table.name: made.member(table) for table in made.tables}
    notes = [*made.notes(), *_of_others(tables, tree)]
    if tree.is_of_rows:
        notes.append(f"each row of {tree.people[0]} is taken for a person of its own: no column says whose they are")
    if not any(member.get("quasi_identifiers") for member in members.values()):
        return StarterTables(None, "no policy to start from: no column can be generalised", tree, notes)
    if files := [t.name for t in made.tables if isinstance(t.relation, FileRelation) and made.is_query(t)]:
        why = f"{files[0]} is a file, which a query must read: load it into a table"
        return StarterTables(None, f"no policy was made: {why}", tree, notes)
    rows = linked_as_read(engine, made.tables, members)
    if empty := [name for name, relation in rows.items() if not engine.count(relation)]:
        why = f"no row of {empty[0]} that can be read leads to somebody"
        return StarterTables(None, f"no policy was made: {why}", tree, notes)
    people = count_people_rows(engine, rows, members, tree)
    require = required_of_people(engine, rows, made.tables, members, most_l)
    policy = {"individual": tree.people[1], "tables": members, "require": require, **made.beside()}
    return StarterTables(made.starter(policy), "", tree, notes, people)


def _of_others(tables: Sequence[ProfiledTable], tree: Tree) -> Iterator[str]:
    for table in tables:
        if table.name not in (tree.people[0], *tree.links):
            way_out = "`public: true` with `keep` publishes columns as they are, if they are of nobody"
            yield f"{table.name} leads to nobody of {tree.people[0]}, and is left out; {way_out}"
    for link in tree.others:
        yield f"another link fits: {link} ({link.why}); taken: {tree.links[link.child[0]]}"


# -- members -------------------------------------------------------------------------------------------


class _Members:
    """The tables of a policy: whose their rows are, what is read of them, and the roles of their columns."""

    def __init__(self, engine: Engine, tables: Sequence[ProfiledTable], tree: Tree) -> None:
        self._engine = engine
        self._tree = tree
        self.tables = [_with_files_of_its_own(table) for table in tables]
        self._by_name = {table.name: table for table in self.tables}

    def member(self, table: ProfiledTable) -> dict[str, Any]:
        """A table as the policy describes it."""
        link, key = self._tree.links.get(table.name), self._tree.key_of(table.name)
        owner = link.child[1] if link else self._tree.people[1]
        found: dict[str, Any] = {"source": self._source(table), "target": target_of(self._engine, table.source)}
        if link is None or link.parent == self._tree.people:
            found["person"] = owner
        else:
            found["parent"] = {owner: link.parent[0]}
        if key:
            found["key"] = key
        roles = self._roles(table)
        if (key or roles[QUASI_IDENTIFIER]) and self._repeats(table, owner) and (order := self._order(table, owner)):
            found["order"] = order
        if roles[IDENTIFIER]:
            found["identifiers"] = [column.column.name for column in roles[IDENTIFIER]]
        if roles[QUASI_IDENTIFIER]:
            found["quasi_identifiers"] = {c.column.name: c.way.settings for c in roles[QUASI_IDENTIFIER] if c.way}
        if roles[SENSITIVE]:
            found["sensitive"] = self._sensitive(table)
        return found

    def _roles(self, table: ProfiledTable) -> dict[str, list[ColumnProfile]]:
        links = {*self._links(table)}
        found = {role: table.profile.of_role(role) for role in (IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE)}
        return {role: [c for c in columns if c.column.name not in links] for role, columns in found.items()}

    def _links(self, table: ProfiledTable) -> Iterator[str]:
        link = self._tree.links.get(table.name)
        yield link.child[1] if link else self._tree.people[1]
        yield self._tree.key_of(table.name)

    def _sensitive(self, table: ProfiledTable) -> dict[str, Any] | list[str]:
        links, found = {*self._links(table)}, dict[str, Any]()
        for one in (one for one in table.profile.sensitive if one.name not in links):
            suggested = suggest(self._engine, table.relation, one) if one.distribution.distinct > 1 else None
            found[one.name] = (suggested.settings if suggested else None) or {}
        return found if any(found.values()) else list(found)

    def _repeats(self, table: ProfiledTable, owner: str) -> bool:
        counted = table.counted(owner)
        return counted.distinct < counted.rows - counted.nulls

    def _order(self, table: ProfiledTable, owner: str) -> str:
        """The column by which rows of one person come first: a time, or a number, of the most values; never secret."""
        secret = {one.name for one in table.profile.sensitive} | {owner}
        able = [c for c in table.profile.columns if c.distinct > 1 and c.column.name not in secret]
        kinds = {c.column.name: table.columns[c.column.name] for c in able}
        able = [c for c in able if (k := kinds[c.column.name]).is_time or k.is_number or k.type == "VARCHAR"]

        def rank(c: ColumnProfile) -> tuple[bool, bool, int]:
            return kinds[c.column.name].is_time, kinds[c.column.name].is_number, c.distinct

        return max(able, key=rank).column.name if able else ""

    # -- what is read ------------------------------------------------------------------------------------

    def _source(self, table: ProfiledTable) -> Any:
        query = self._query(table)
        return {"query": query} if query else table.source

    def is_query(self, table: ProfiledTable) -> bool:
        """True if the policy reads a query in place of the table."""
        return bool(self._query(table))

    def _query(self, table: ProfiledTable) -> str:
        """The query that leaves out what cannot be published, and reads some columns another way; empty if none."""
        link, keys = self._tree.links.get(table.name), [self._tree.key_of(table.name)]
        casts, among = dict[str, str](), None
        if link is None:
            keys.append(self._tree.people[1])
        else:
            casts = {link.child[1]: link.cast} if link.cast else {}
            above = self._by_name[link.parent[0]]
            if link.lacking or self._query(above):
                among = (link.child[1], link.parent[1], self._rows(above))
            elif link.unknown:
                keys.append(link.child[1])
        missing = [one.column.name for one in self._roles(table)[SENSITIVE] if one.nulls]
        texts = {name: _NOT_KNOWN for name in missing if table.columns[name].type == "VARCHAR"}
        known = [name for name in keys if name and ((link and name == link.child[1]) or table.counted(name).nulls)]
        known += [name for name in missing if name not in texts]
        return written_query(self._named(table), casts, texts, known, among)

    def _rows(self, table: ProfiledTable) -> str:
        query = self._query(table)
        return f"({query})" if query else self._named(table)

    def _named(self, table: ProfiledTable) -> str:
        return Relation.parse(table.source).sql() if isinstance(table.relation, Relation) else table.source

    def notes(self) -> Iterator[str]:
        """What the queries leave out, with its counts and a way out."""
        for table in self.tables:
            link = self._tree.links.get(table.name)
            if link and link.lacking:
                values = count_phrase(link.strangers, f"value of {link.child[1]}", f"values of {link.child[1]}")
                what = f"{rows_phrase(link.lacking)} of {table.name} have {values} that {link.parent[0]} has not"
                yield f"{what}: the query leaves them out; add these to {link.parent[0]} to publish them"
            if link and link.unknown:
                whose = f"{rows_phrase(link.unknown)} of {table.name} have no {link.child[1]}, and belong to nobody"
                yield f"{whose}: the query leaves them out"
            if link and link.cast:
                yield f"{link.child[1]} of {table.name} is read as {link.cast}, as {link.parent[0]} has it"
            for one in self._roles(table)[SENSITIVE]:
                if one.nulls:
                    way = f"are '{_NOT_KNOWN}'" if table.columns[one.column.name].type == "VARCHAR" else "are left out"
                    yield f"{rows_phrase(one.nulls)} of {table.name} have no {one.column.name}, and {way} in the query"

    def beside(self) -> dict[str, Any]:
        """What the policy says of all tables."""
        taken = any("position" in map(str.lower, table.columns) for table in self.tables)
        return {"output": {"position": "row_position"}} if taken else {}

    def starter(self, policy: dict[str, Any]) -> StarterPolicy:
        """The policy with its text and the level files of all tables."""
        hipaa = any(table.profile.hipaa for table in self.tables)
        lines = [_HEADING, *(f"# {line}" for line in SAFE_HARBOR if hipaa)]
        lines += [*block({"individual": policy["individual"]}), "tables:"]
        for table in self.tables:
            link = self._tree.links.get(table.name)
            lines += [f"  # {link} ({link.why})"] if link else []
            *more, last = block({table.name: None})
            own = policy_lines(policy["tables"][table.name], replace(table.profile, individual=None))
            lines += [*(f"  {line}" for line in (*more, last.removesuffix(" null"))), *(f"    {line}" for line in own)]
        lines += ["require:", *(f"- {flow(one)}" for one in policy["require"])]
        lines += block({"output": policy["output"]}) if "output" in policy else []
        files: dict[str, str] = {}
        for table in self.tables:
            files |= level_files(self._engine, table.relation, self._roles(table)[QUASI_IDENTIFIER])
        text = "\n".join(lines) + "\n"
        return StarterPolicy(policy, text, text, files)


def _with_files_of_its_own(table: ProfiledTable) -> ProfiledTable:
    """The table with its level files named after it, as columns of several tables may have one name."""

    def renamed(column: ColumnProfile) -> ColumnProfile:
        if column.way is None or not column.way.file:
            return column
        file = f"{''.join(c if c.isalnum() else '_' for c in table.name)}_{column.way.file}"
        way = replace(column.way, file=file, settings=column.way.settings | {"taxonomy": {"file": file}})
        return replace(column, way=way)

    columns = tuple(map(renamed, table.profile.columns))
    return replace(table, profile=replace(table.profile, columns=columns))
