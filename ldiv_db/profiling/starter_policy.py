"""A policy to start from: made of a profile, ready to run, with the level files that it needs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.profiling.policy_text import policy_text
from ldiv_db.profiling.profile import ColumnProfile, Profile
from ldiv_db.profiling.roles import IDENTIFIER, QUASI_IDENTIFIER
from ldiv_db.profiling.suggestions import MODEST_K, MODEST_L, Suggestion, keeps_apart, suggest, veiled
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL


@dataclass(frozen=True)
class Skeleton:
    """A policy as a mapping, its YAML text with comments, and the level files (name to text) that it names.

    In `shown_text` an ellipsis stands for values of the data, which comments alone have.
    """

    policy: dict[str, Any]
    text: str
    shown_text: str
    files: dict[str, str]


def make_starter_policy(
    engine: Engine, profile: Profile, table: Relation | FileRelation, source: str
) -> tuple[Skeleton | None, str]:
    """The skeleton, or None and the reason why there is none; `source` is what the policy calls the table."""
    if any(column.distribution.distinct < 2 for column in profile.sensitive):
        return None, "no policy can be met: a sensitive column has a single value"
    if profile.rows < 2:
        return None, "no policy can be met: the table has a single row"
    keys = profile.of_role(QUASI_IDENTIFIER)
    if not keys:
        return None, "no policy to start from: no column can be generalised, see the reasons"
    suggestions = _of_people(profile, [suggest(engine, table, column) for column in profile.sensitive])
    policy = _policy(profile, source, _target(engine, source), suggestions)
    text, shown = (policy_text(policy, profile, told) for told in (suggestions, [veiled(one) for one in suggestions]))
    return Skeleton(policy, text, shown, _files(engine, table, keys)), ""


def _policy(profile: Profile, source: str, target: str, suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """The policy as a mapping; what nobody named and what cannot be generalised is not published."""
    policy: dict[str, Any] = {"source": source, "target": target}
    person = profile.individual.column.name if profile.individual and keeps_apart(suggestions) else None
    if hidden := [c.column.name for c in profile.of_role(IDENTIFIER) if c.column.name != person]:
        policy["identifiers"] = hidden
    if person:
        policy["individual"] = person
    policy["quasi_identifiers"] = {c.column.name: c.way.settings for c in profile.of_role(QUASI_IDENTIFIER) if c.way}
    if suggestions:
        policy["sensitive"] = _sensitive(suggestions)
        policy["require"] = _required(suggestions)
    else:
        policy["require"] = [{"k": min(MODEST_K, profile.rows)}]
    policy["algorithm"] = "auto"
    if any(column.nulls for column in profile.sensitive):
        policy["nulls_sensitive"] = "value"
    return policy


def _of_people(profile: Profile, suggestions: list[Suggestion]) -> list[Suggestion]:
    """The suggestions, of classes without two rows of one person where somebody may have several and counts allow it.

    What keeps them apart promises shares of all values, and nothing else.
    """
    who = profile.individual
    if who is None or not suggestions:
        return suggestions
    l = min(MODEST_L, who.distinct, profile.rows // who.most, *(one.judged.largest_l for one in suggestions))  # noqa: E741
    return [one.apart(l, profile.rows // who.most) for one in suggestions] if l >= 2 else suggestions


def _sensitive(suggestions: Sequence[Suggestion]) -> list[str] | dict[str, Any]:
    """The sensitive columns, with what is said of each where there is something, or some values may be harmless."""
    if any(suggestion.harmless or suggestion.settings for suggestion in suggestions):
        return {suggestion.column: suggestion.settings for suggestion in suggestions}
    return [suggestion.column for suggestion in suggestions]


def _required(suggestions: Sequence[Suggestion]) -> list[dict[str, Any]]:
    """What is required of all sensitive columns alike, or else of each by its name."""
    first = suggestions[0].require
    if all(suggestion.require == first for suggestion in suggestions):
        return first
    return [{**required, "sensitive": one.column} for one in suggestions for required in one.require]


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


# -- level files -------------------------------------------------------------------------------------


def _files(engine: Engine, table: Relation | FileRelation, keys: Sequence[ColumnProfile]) -> dict[str, str]:
    """The level files of the quasi-identifiers that take one, by their names."""
    with read_exactly(engine, table) as read:
        return {key.way.file: _levels(engine, read, key.column.name) for key in keys if key.way and key.way.file}


def _levels(engine: Engine, table: Relation | FileRelation, name: str) -> str:
    """The flat level file of a column's values."""
    values = [value for (value,) in engine.rows("profiling/list_values", source=table, column=Identifier(name))]
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\n").writerows((value, ROOT_LABEL) for value in values)
    return out.getvalue()
