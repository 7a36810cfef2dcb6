"""`ldiv profile` of several tables: the profile of each, how they are linked, and a policy that `ldiv plan` accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ldiv_db.commands.console import split_names
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Listener
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, LdivError, PolicyError, Problem, refused, rows_phrase
from ldiv_db.display import Part, fields_of, table_of
from ldiv_db.measuring.links import ProfiledTable, find_links
from ldiv_db.measuring.profile import profile_table
from ldiv_db.measuring.starter_policy import policy_source
from ldiv_db.measuring.starter_tables import StarterTables, start_tables
from ldiv_db.policy.sources import open_source
from ldiv_db.policy.tables import named_in
from ldiv_db.reporting.table_text import profile_text
from ldiv_db.running.preview import describe_plan
from ldiv_db.running.run import plan


def profile_several(
    engine: Engine, names: Sequence[str], asked: Mapping[str, Any], folder: Path, listener: Listener
) -> tuple[dict[str, Any], Iterator[Part], StarterTables]:
    """What is printed of several tables, as JSON and as text, and their policy, which lies in `folder`."""
    if asked["population_size"] is not None:
        raise refused("population_size", "is of people who have one row each", "profile that table by itself")
    tables = _profiled(engine, names, asked, folder, listener)
    links = find_links(engine, tables)
    started = start_tables(engine, tables, links)
    tried, said = _tried(engine, started, folder)
    if not tried:  # rows and values go together in ways that counts of each do not tell
        started = start_tables(engine, tables, links, most_l=2)
        _, said = _tried(engine, started, folder)
    started = replace(started, notes=[*started.notes, *said])
    document = {
        "individual": ".".join(started.tree.people) if started.tree else None,
        "tables": [_table(table, started) for table in tables],
        "notes": list(started.notes),
        "policy": started.starter.policy if started.starter else None,
        "note": started.reason,
    }
    return document, _text(tables, started), started


def _profiled(
    engine: Engine, names: Sequence[str], asked: Mapping[str, Any], folder: Path, listener: Listener
) -> list[ProfiledTable]:
    opened = {}
    for text in names:
        relation = open_source(engine, text, Path(), "table")
        stem = Path(text).stem if isinstance(relation, FileRelation) else relation.name
        name, number = stem.replace(".", "_"), 1
        while name in opened:
            number += 1
            name = f"{stem}_{number}"
        opened[name] = text, relation
    columns = {name: [column.name for column in columns_of(engine, rows)] for name, (_, rows) in opened.items()}
    qi, secrets = (_by_table(asked[key] or (), columns, key) for key in ("qi", "sensitive"))
    found = []
    for name, (text, relation) in opened.items():
        keys = None if asked["qi"] is None else qi[name]
        profile = profile_table(engine, relation, keys, secrets[name], listener.on_progress, hipaa=asked["hipaa"])
        found.append(ProfiledTable.of(engine, name, policy_source(text, relation, folder), relation, profile))
    return found


def _by_table(texts: Sequence[str], columns: Mapping[str, Sequence[str]], key: str) -> dict[str, list[str]]:
    """The columns that are named, by table; raises PolicyError for those of no table, or of several."""
    every = [(table, column) for table, own in columns.items() for column in own]
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
    if problems:
        raise PolicyError(problems)
    return found


def _tried(engine: Engine, started: StarterTables, folder: Path) -> tuple[bool, list[str]]:
    """Whether people can meet the policy, and what `ldiv plan` says of it; level files are not yet there."""
    if started.starter is None:
        return True, []
    policy = started.starter.policy
    tables = {name: {**table, "quasi_identifiers": _flat(table)} for name, table in policy["tables"].items()}
    try:
        ready = plan(engine.connection, {**policy, "tables": tables}, folder, catalog=engine.catalog)
    except InfeasibleError as error:
        return False, [f"people cannot meet the policy as it is: {error.message.splitlines()[0]}"]
    except LdivError as error:
        return True, [f"`ldiv plan` refuses the policy as it is: {error.message.splitlines()[0]}"]
    short = {t["table"]: t["rows_in"] - t["rows_published"] for t in describe_plan(ready)["tables"]}
    left = [f"{rows_phrase(rows)} of {name}" for name, rows in short.items() if rows]
    lost = f"; it leaves out {', '.join(left)}, of people who have more than others" if left else ""
    return True, [f"`ldiv plan` accepts the policy{lost}"]


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    keys = table.get("quasi_identifiers", {}).items()
    return {name: {"taxonomy": {"flat": True}} if "file" in one.get("taxonomy", ()) else one for name, one in keys}


def _table(table: ProfiledTable, started: StarterTables) -> dict[str, Any]:
    link = started.tree.links.get(table.name) if started.tree else None
    said = link and {
        **{"column": link.child[1], "parent": link.parent[0], "key": link.parent[1], "found_by": link.why},
        **{"rows_lost": link.lost, "values_lost": link.strangers},
    }
    rows = [fields_of(one, "rows", "people", "or_more") for one in started.people_rows.get(table.name, ())]
    return {**table.profile.as_dict(), "name": table.name, "link": said, "people_rows": rows}


def _text(tables: Sequence[ProfiledTable], started: StarterTables) -> Iterator[Part]:
    for table in tables:
        yield from profile_text(replace(table.profile, individual=None))
    if started.tree is None:
        return
    rows = [(str(link), link.why, f"{link.lost:,}") for link in started.tree.links.values()]
    yield table_of(f"links to {'.'.join(started.tree.people)}", ("link", "found by", "rows without"), rows)
    counts = [(name, ", ".join(map(str, own))) for name, own in started.people_rows.items()]
    yield table_of("rows of a person", ("table", "people by rows"), counts)
