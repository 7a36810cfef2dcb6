"""The profile of a table, or of several as one release: how they are linked, and a policy that `ldiv plan` accepts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.commands.console import split_names
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Context, Listener, hearing_of
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, LdivError, Problem, refuse, refused, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.stages import timed, work_of
from ldiv_db.display import Part, fields_of, table_of
from ldiv_db.measuring.kinds_of_tables import OF_PEOPLE, PEOPLE
from ldiv_db.measuring.links import Link, ProfiledTable, find_links
from ldiv_db.measuring.profile import COMBINING, COUNTING, ProfileRequest, profile_table
from ldiv_db.measuring.roles import QUASI_IDENTIFIER
from ldiv_db.measuring.starter_policy import StarterPolicy
from ldiv_db.measuring.starter_tables import Started, start_policy
from ldiv_db.measuring.suggestions import MOST, Known, Most
from ldiv_db.policy.reading import load_policy
from ldiv_db.policy.tables import named_in
from ldiv_db.reporting.table_text import notes_text, profile_text
from ldiv_db.running.estimate import Estimate, about, size
from ldiv_db.running.preview import describe_plan
from ldiv_db.running.run import estimate, plan
from ldiv_db.running.tables import check_targets, open_tables, resolve_tables

#: What is shown after all tables are counted.
LINKING, PLANNING = "looking for links", "planning a policy"
#: Of more values of quasi-identifiers links and columns alone are checked.
_MOST_CELLS = 1_000_000
#: What is asked of people, and less of it each time that they cannot meet it.
_LESS = (MOST, Most(l=2, k=3), Most(l=2, k=2))
#: Whose rows a plan leaves out.
_OF_MORE = "of people who have more than they would publish"
#: Of a larger share of rows left out it is tried what may be published against who knows one row.
_MUCH = 0.5


@dataclass(frozen=True)
class ReleaseProfile:
    """The tables of a release, and the policy to start from with what a plan says of it."""

    tables: Sequence[ProfiledTable]
    started: Started
    estimate: Estimate | None
    told: Sequence[str]

    def as_dict(self) -> dict[str, Any]:
        """The profile as JSON has it, of one table or of several."""
        started = self.started
        policy = {"policy": started.starter.policy if started.starter else None, "note": started.reason}
        if len(self.tables) == 1:
            return {**self.tables[0].profile.as_dict(), **policy, "run": self.estimate and self.estimate.as_dict()}
        people = ".".join(started.tree.people) if started.tree else None
        each = [_table(table, started) for table in self.tables]
        return {"individual": people, "tables": each, "notes": [*started.notes, *self.told], **policy}

    def text(self) -> Iterator[Part]:
        """The profile of each table, their links, and how many rows people have."""
        if len(self.tables) == 1:
            yield from profile_text(self.tables[0].profile)
            yield from self.told
            return
        for table in self.tables:
            of = self.started.placed.get(table.name)
            told = of is None or of.kind in (PEOPLE, OF_PEOPLE)  # how far columns tell people apart
            shown = table.profile if told else replace(table.profile, uniqueness=None)
            yield from profile_text(replace(shown, individual=None))
        if tree := self.started.tree:
            kinds = [(name, of.kind, of.why) for name, of in self.started.placed.items()]
            yield table_of("whose rows tables have", ("table", "rows are", "because"), kinds)
            rows = [(str(link), link.why, f"{link.lost:,}") for link in tree.links.values()]
            yield table_of(f"links to {'.'.join(tree.people)}", ("link", "found by", "rows without"), rows)
            counts = [(name, ", ".join(map(str, own))) for name, own in self.started.people_rows.items()]
            yield table_of("rows of a person", ("table", "people by rows"), counts)
        yield from notes_text([*self.started.notes, *self.told])


def profile_release(
    engine: Engine, names: Sequence[str], asked: Mapping[str, Any], folder: Path, listener: Listener, lasts: bool
) -> ReleaseProfile:
    """The profile of the tables, and a policy of them that lies in `folder`.

    If the database does not last, what is published are files.
    """
    if asked["population_size"] is not None and len(names) > 1:
        raise refused("population_size", "is of people who have one row each", "profile that table by itself")
    tables, empty = _profiled(engine, names, asked, folder, listener)
    are = "is empty, and is" if len(empty) == 1 else "are empty, and are"
    left_out = [f"{', '.join(empty)} {are} left out"] if empty else []
    if len(tables) == 1:
        listener.on_stage(PLANNING)
        started = start_policy(engine, tables, lasts=lasts)
        expected, said = _estimated(engine, started.starter, folder)
        return ReleaseProfile(tables, started, expected, [*said, *(f"note: {one}" for one in left_out)])
    listener.on_stage(LINKING)
    links = find_links(engine, tables)
    started, said = _accepted(partial(_less, engine, tables, links, folder, lasts, listener))
    return ReleaseProfile(started.tables or tables, started, None, [*left_out, *said])


@dataclass(frozen=True)
class _Tried:
    """A policy with what a plan says of it, and which share of all rows it leaves out: all if it is refused."""

    started: Started
    said: list[str]
    share: float = 1.0
    is_refused: bool = True


def _accepted(less: Callable[[Known], _Tried]) -> tuple[Started, list[str]]:
    """A policy that `ldiv plan` accepts, with what it says: of `known: 1` where `all` loses most rows, and more."""
    whole = less("all")
    if whole.share <= _MUCH or whole.started.starter is None:
        return whole.started, whole.said
    one = less(1)
    if one.share >= whole.share:
        return whole.started, whole.said
    how = "people cannot meet the policy" if whole.is_refused else f"{whole.share:.0%} of the rows would be left out"
    return one.started, [f"the policy says `known: 1`: with `known: all` {how}", *one.said]


def _less(
    engine: Engine,
    tables: Sequence[ProfiledTable],
    links: Sequence[Link],
    folder: Path,
    lasts: bool,
    listener: Listener,
    known: Known,
) -> _Tried:
    """The first policy that a plan accepts: of less where people cannot meet more.

    Columns that a plan refuses to publish are left out; of what else it refuses the reason is said.
    """
    asked = [replace(most, known=known) for most in _LESS]
    tries = [timed(PLANNING, sum(one.profile.rows * len(one.columns) for one in tables))] * 2
    while True:
        listener.on_expected(tries)  # one more each time, as nobody knows how many it takes
        listener.on_stage(PLANNING)
        started = start_policy(engine, tables, links, asked[0], lasts)
        try:
            return _tried(engine, started, folder)
        except InfeasibleError as error:  # rows and values go together in ways that counts of each do not tell
            asked = asked[1:]
            if not asked:
                return _Tried(started, [f"people cannot meet the policy as it is: {error.message.splitlines()[0]}"])
        except LdivError as error:
            hidden = [_without_refused(table, error) for table in tables]
            if hidden == tables:
                return _Tried(started, [f"`ldiv plan` refuses the policy as it is: {error.message.splitlines()[0]}"])
            tables = hidden


def _without_refused(table: ProfiledTable, error: LdivError) -> ProfiledTable:
    """The table with the columns hidden that a plan refuses to publish, each for its reason."""
    told = {problem.key: problem.what for problem in getattr(error, "problems", ())}
    found = {
        name: told[key]
        for name in table.columns
        for key in (f"tables.{table.name}.{role}.{name}" for role in ("quasi_identifiers", "keep"))
        if key in told
    }
    return replace(table, hidden={**table.hidden, **found})


def _profiled(
    engine: Engine, names: Sequence[str], asked: Mapping[str, Any], folder: Path, listener: Listener
) -> tuple[list[ProfiledTable], list[str]]:
    """The profiles of the tables that have rows, and the names of those that have none, where others have some."""
    opened = {}
    for text in names:
        relation = resolve_source(engine, text, Path(), "table")
        stem = Path(text).stem if isinstance(relation, FileRelation) else relation.name
        name, number = stem.replace(".", "_"), 1
        while name in opened:
            number += 1
            name = f"{stem}_{number}"
        opened[name] = text, relation
    columns = {name: [column.name for column in columns_of(engine, rows)] for name, (_, rows) in opened.items()}
    qi, secrets = (_by_table(asked[key] or (), columns, key) for key in ("qi", "sensitive"))
    empty = [name for name, (_, rows) in opened.items() if len(opened) > 1 and not engine.count(rows)]
    empty = empty if len(empty) < len(opened) else []
    found, profiled = [], {name: one for name, one in opened.items() if name not in empty}
    work = {name: work_of(engine, rows) for name, (_, rows) in profiled.items()}
    counting = [timed(stage, *own).of(name) for name, own in work.items() for stage in (COUNTING, COMBINING)]
    cells = sum(own for own, _ in work.values())
    listener.on_expected([*counting, timed(LINKING, cells), timed(PLANNING, cells)])
    for name, (text, relation) in profiled.items():
        keys = None if asked["qi"] is None else qi[name]
        request = ProfileRequest(**dict(asked) | {"qi": keys, "sensitive": secrets[name]})
        heard = hearing_of(name, listener)
        heard.on_stage(COUNTING)
        profile = profile_table(engine, relation, request, heard)
        found.append(ProfiledTable.of(engine, name, _source(text, relation, folder), relation, profile))
    return found, empty


def _source(table: str, relation: Table, folder: Path) -> str:
    """The name of the table in a policy that lies in `folder`: a file's path is relative to the policy."""
    if isinstance(relation, Relation) or os.path.isabs(table):
        return table
    return Path(os.path.relpath(table, folder)).as_posix()


def _by_table(texts: Sequence[str], columns: Mapping[str, Sequence[str]], key: str) -> dict[str, list[str]]:
    """The columns that are named, by table; raises PolicyError for those of no table, or of several."""
    every = [(table, column) for table, own in columns.items() for column in own]
    if len(columns) == 1:  # whose profile knows which columns there are
        return {table: split_names(texts, {name.lower() for name in own}) for table, own in columns.items()}
    full = {named_in(*one).lower(): one for one in every}
    bare = {name.lower(): [table for table, column in every if column.lower() == name.lower()] for _, name in every}
    found: dict[str, list[str]] = {table: [] for table in columns}
    problems = []
    for name in split_names(texts, {*full, *bare}):
        tables = bare.get(name.lower(), [])
        if name.lower() in full:
            table, column = full[name.lower()]
            found[table].append(column)
        elif len(tables) == 1:
            found[tables[0]].append(name)
        elif tables:
            problems.append(Problem(key, f"{', '.join(tables)} have a column {name}", f"{named_in(tables[0], name)}"))
        else:
            problems.append(Problem(key, f"no table has a column {name!r}", ", ".join(full)))
    refuse(problems)
    return found


def _estimated(engine: Engine, starter: StarterPolicy | None, folder: Path) -> tuple[Estimate | None, list[str]]:
    """What a run of the policy would take, and that in words or why it is not known."""
    if starter is None:
        return None, []
    try:
        found = estimate(engine.connection, _flat(starter.policy), folder, engine.catalog)
    except LdivError as error:
        return None, [f"note: time and memory of a run of this policy are not known: {error.message.splitlines()[0]}"]
    return found, [f"a run of this policy takes {about(found.seconds)} and about {size(found.memory)} of memory"]


def _tried(engine: Engine, started: Started, folder: Path) -> _Tried:
    """What `ldiv plan` says of the policy, or of its columns alone where rows are many; raises what it raises."""
    if started.starter is None:
        return _Tried(started, [])
    tables = {name: _flat(table) for name, table in started.starter.policy["tables"].items()}
    policy = {**started.starter.policy, "tables": tables}
    if (cells := _cells(started)) > _MOST_CELLS:
        with engine.scope():
            opened = open_tables(engine, Context(folder=folder), load_policy(policy))
            check_targets(opened, resolve_tables(opened))
        said = f"its tables have {cells:,} cells: `ldiv plan` says how many rows people can publish"
        return _Tried(started, [said], 0, is_refused=False)
    ready = plan(engine.connection, policy, folder, catalog=engine.catalog)
    counted = describe_plan(ready)["tables"]
    short = {t["table"]: t["rows_in"] - t["rows_published"] for t in counted}
    left = [f"{rows_phrase(rows)} of {name}" for name, rows in short.items() if rows]
    why = "of which too few people have any, or too many a value" if "known" in policy else _OF_MORE
    lost = f"; it leaves out {', '.join(left)}, {why}" if left else ""
    share = sum(short.values()) / sum(t["rows_in"] for t in counted)
    return _Tried(started, [f"`ldiv plan` accepts the policy{lost}"], share, is_refused=False)


def _cells(started: Started) -> int:
    """The values of quasi-identifiers in all tables that belong to people."""
    own = [table for table in started.tables if table.name in started.people_rows]
    return sum(table.profile.rows * len(table.profile.of_role(QUASI_IDENTIFIER)) for table in own)


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    """A policy, or a table of one, without level files, which are not yet there."""
    keys = described.get("quasi_identifiers", {}).items()
    flat = {name: {} if "file" in one.get("taxonomy", ()) else one for name, one in keys}
    return {**described, "quasi_identifiers": flat}


def _table(table: ProfiledTable, started: Started) -> dict[str, Any]:
    link = started.tree.links.get(table.name) if started.tree else None
    said = link and {
        **{"column": link.child[1], "parent": link.parent[0], "key": link.parent[1], "found_by": link.why},
        **{"rows_lost": link.lost, "values_lost": link.strangers},
    }
    rows = [fields_of(one, "rows", "people", "or_more") for one in started.people_rows.get(table.name, ())]
    of = started.placed.get(table.name)
    kind = {"kind": of and of.kind, "why": of and of.why}
    return {**table.profile.as_dict(), "name": table.name, **kind, "link": said, "people_rows": rows}
