"""A policy to start from: made of a profile, ready to run, with the level files that it needs."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database import catalog
from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.profiling.profile import QUASI_IDENTIFIER, SENSITIVE, ColumnProfile, Profile
from ldiv_db.recoding.bounds import bounds_of, refuse_odd_years
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL

#: Columns of up to this many values get a flat taxonomy.
FEW_VALUES = 50
#: The stretches of time by which dates and timestamps are generalised.
DATES = ("day", "month", "quarter", "year")
#: The l that is asked for where the data allow it.
MODEST_L = 3


@dataclass(frozen=True)
class Skeleton:
    """A policy as a mapping, its YAML text with comments, and the level files (name to text) that it names."""

    policy: dict[str, Any]
    text: str
    files: dict[str, str]


def make_starter_policy(
    engine: Engine, profile: Profile, table: Relation | FileRelation, source: str
) -> tuple[Skeleton | None, str]:
    """The skeleton, or None and the reason why there is none; `source` is what the policy calls the table."""
    if not profile.sensitive:
        return None, "name the sensitive column for a policy to start from"
    most = min(column.distribution.distinct for column in profile.sensitive)
    if most < 2:
        return None, "no policy can be met: a sensitive column has a single value"
    places = dict(_places(engine, table, profile.of_role(QUASI_IDENTIFIER)))
    if not any(places.values()):
        return None, "no policy to start from: no quasi-identifier is a number or a time or has few values"
    policy = _policy(engine, profile, source, places)
    return Skeleton(policy, _text(policy, profile, places), _files(places)), ""


@dataclass(frozen=True)
class _Place:
    """How a quasi-identifier is generalised: by ranges, stretches of time, the level file `name` of that text, or
    the `taxonomy` of the catalog."""

    name: str = ""
    text: str = ""
    dates: bool = False
    taxonomy: str = ""

    def as_policy(self) -> dict[str, Any]:
        if self.taxonomy:
            return {"taxonomy": self.taxonomy}
        if self.dates:
            return {"taxonomy": {"dates": list(DATES)}}
        return {"taxonomy": {"file": self.name}} if self.name else {"numeric": True}


def _places(
    engine: Engine, table: Relation | FileRelation, columns: Sequence[ColumnProfile]
) -> Iterator[tuple[str, _Place | None]]:
    """The place of every quasi-identifier by its name, None where it takes a taxonomy that only the user can make."""
    taken: set[str] = set()
    for profile in columns:
        name = profile.column.name
        if _covered(engine, table, profile.column):
            yield name, _Place(taxonomy=name)
            continue
        if profile.column.is_number or profile.column.is_time:
            yield name, _place_on_a_line(engine, table, profile.column)
            continue
        listed = 0 < profile.distinct <= FEW_VALUES and "INTERVAL" not in profile.column.type  # which policies refuse
        text = _levels(engine, table, name) if listed else None
        yield name, _Place(_file_name(name, taken), text) if text else None


def _covered(engine: Engine, table: Relation | FileRelation, column: Column) -> bool:
    """Whether the catalog has a taxonomy of the column's name with a leaf for each of its values."""
    taxonomy = taxonomies.fetch(engine, column.name)
    if taxonomy is None or (taxonomy.by_range and not column.is_number):
        return False
    nodes = taxonomies.load(engine, taxonomy, "known")
    dictionary = engine.materialise(
        "dictionary",
        "recoding/input/map_leaves",
        rows=table,
        nodes=nodes,
        column=Identifier(column.name),
        by_range=taxonomy.by_range,
        levels=[],
        null_code=Value(-1),  # NULL needs no leaf
    )
    missing = engine.rows("recoding/input/list_missing_values", dictionary=dictionary, show_values=False)
    engine.drop(dictionary, nodes)
    return not missing


def _place_on_a_line(engine: Engine, table: Relation | FileRelation, column: Column) -> _Place | None:
    """The place of numbers or times; None if some of them have none, as infinities have."""
    check = refuse_odd_years if column.is_time else bounds_of
    try:
        check(engine, table, Identifier(column.name), column)
    except PolicyError:
        return None
    return _Place(dates=column.is_time)


def _levels(engine: Engine, table: Relation | FileRelation, name: str) -> str | None:
    """The flat level file of a column's values; None if a value cannot stand in one."""
    with read_exactly(engine, table) as read:
        values = [value for (value,) in engine.rows("profiling/list_values", source=read, column=Identifier(name))]
    if not all(value and value == value.strip() for value in values) or ROOT_LABEL in values:
        return None
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\n").writerows((value, ROOT_LABEL) for value in values)
    return out.getvalue()


def _file_name(column: str, taken: set[str]) -> str:
    """A file's name for a column's taxonomy that any file system takes, and that no other column has."""
    stem = re.sub(r"[^\w-]+", "_", column)[:60]
    name, number = f"{stem}.csv", 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}_{number}.csv"
    taken.add(name.lower())
    return name


def _files(places: dict[str, _Place | None]) -> dict[str, str]:
    return {place.name: place.text for place in places.values() if place and place.name}


# -- the policy --------------------------------------------------------------------------------------


def _policy(engine: Engine, profile: Profile, source: str, places: dict[str, _Place | None]) -> dict[str, Any]:
    """The policy as a mapping; what has no place and what nobody named is not published."""
    largest = min(column.distribution.largest_l for column in profile.sensitive)
    hidden = [c.column.name for c in profile.columns if c.role not in (SENSITIVE, QUASI_IDENTIFIER)]
    hidden += [name for name, place in places.items() if place is None]
    policy: dict[str, Any] = {"source": source, "target": _target(engine, source)}
    if hidden:
        policy["identifiers"] = hidden
    policy["quasi_identifiers"] = {name: place.as_policy() for name, place in places.items() if place}
    policy["sensitive"] = [column.name for column in profile.sensitive]
    policy["require"] = [{"frequency": max(2, min(MODEST_L, largest))}]
    if largest < 2:
        policy["algorithm"] = {"name": "auto", "residue": "suppress"}
    if any(column.nulls for column in profile.sensitive):
        policy["nulls_sensitive"] = "value"
    return policy


def _target(engine: Engine, source: str) -> str:
    """A table in the schema `published` that does not exist."""
    file = FileRelation.of(source)
    stem = Path(source).stem if file else Relation.parse(source).name
    name, number = stem, 1
    while catalog.table_exists(engine, Relation(("published", name))):
        number += 1
        name = f"{stem}_{number}"
    relation = Relation(("published", name))
    return str(relation) if re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.IGNORECASE) else relation.sql()


def _text(policy: dict[str, Any], profile: Profile, places: dict[str, _Place | None]) -> str:
    """The policy as YAML, a comment over what should be thought over."""
    comments = dict(_comments(policy, profile, places))
    lines = ["# A policy to start from: check every column's role, then `ldiv plan` and `ldiv run`."]
    for key, value in policy.items():
        lines += [f"# {line}" for line in comments.get(key, ())]
        style = False if isinstance(value, str) else None
        lines.append(
            yaml.safe_dump(
                {key: value}, sort_keys=False, allow_unicode=True, default_flow_style=style, width=120
            ).rstrip("\n")
        )
    return "\n".join(lines) + "\n"


def _comments(
    policy: dict[str, Any], profile: Profile, places: dict[str, _Place | None]
) -> Iterator[tuple[str, list[str]]]:
    """The comments by the key that they stand over; names are written as JSON, so that none ends a line."""
    unplaced = [name for name, place in places.items() if place is None]
    hidden = ["Not published. Columns that need no protection may go under `keep`."]
    if unplaced:
        names = ", ".join(json.dumps(name, ensure_ascii=False) for name in unplaced)
        hidden.append(f"To publish {names}: make a taxonomy and list it under quasi_identifiers.")
    yield "identifiers", hidden
    if _files(places):
        yield (
            "quasi_identifiers",
            [
                "A taxonomy's file has a line a value, `value;group;...;*`, here without groups: `value;*`.",
                "Groups between value and root keep more information. `ldiv profile --policy FILE` writes flat files.",
            ],
        )
    largest = min(column.distribution.largest_l for column in profile.sensitive)
    most = min(column.distribution.distinct for column in profile.sensitive)
    yield "require", [f"Up to {largest} is feasible without suppression, up to {most} with it."]
    if "nulls_sensitive" in policy:
        yield "nulls_sensitive", ["NULL as a sensitive value of its own; or `suppress` the rows."]


# -- on disk -----------------------------------------------------------------------------------------


def policy_source(table: str, relation: Relation | FileRelation, folder: Path) -> str:
    """What a policy that lies in `folder` calls the table: a file's path is relative to the policy."""
    if isinstance(relation, Relation) or os.path.isabs(table):
        return table
    return Path(os.path.relpath(table, folder)).as_posix()


def refuse_folder(policy: Path) -> None:
    """Raise PolicyError if no file can be written there, because its folder is none."""
    if not policy.parent.is_dir():
        raise PolicyError([Problem("policy", f"there is no folder {policy.parent}", "make it, or name another")])


def write_skeleton(skeleton: Skeleton, policy: Path) -> list[Path]:
    """Write the policy and its level files beside it; returns their paths.

    Raises PolicyError, before anything is written, if one of them exists.
    """
    texts = {policy: skeleton.text, **{policy.parent / name: text for name, text in skeleton.files.items()}}
    if len(texts) <= len(skeleton.files):
        raise PolicyError([Problem("policy", f"{policy} is the name of a taxonomy's file", "name another")])
    there = [path for path in texts if os.path.lexists(path)]
    if there:
        raise PolicyError(Problem("policy", f"{path} exists", "name another folder or file") for path in there)
    for path, text in texts.items():
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    return list(texts)
