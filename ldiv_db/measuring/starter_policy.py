"""A policy to start from: made of a profile, as YAML with the reason of every column's role, and its level files."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database import catalog
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError, Problem, count_phrase, refuse, rows_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.generalisations import SAFE_HARBOR
from ldiv_db.measuring.profile import ColumnProfile, Profile
from ldiv_db.measuring.roles import IDENTIFIER, QUASI_IDENTIFIER
from ldiv_db.measuring.suggestions import (
    ALPHA_K,
    MODEST_K,
    MODEST_L,
    RANGE,
    Harmless,
    Suggestion,
    keeps_apart,
    suggest,
    veiled,
)
from ldiv_db.requirements.reading import LikelySets
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL

_HEADING = """# yaml-language-server: $schema=policy.schema.json (`ldiv policy schema > policy.schema.json`)
# A policy to start from: check every column's role, then `ldiv plan` and `ldiv run`."""


def written_text(lines: Sequence[str], hipaa: bool) -> str:
    """The lines of a policy under what is said of every one to start from, and perhaps of Safe Harbor."""
    return "\n".join([_HEADING, *(f"# {line}" for line in SAFE_HARBOR if hipaa), *lines]) + "\n"


def policy_lines(policy: Mapping[str, Any], profile: Profile, suggestions: Sequence[Suggestion] = ()) -> list[str]:
    """The lines of a policy, or of one of its tables, with comments."""
    found, lines = {column.column.name: column for column in profile.columns}, list[str]()
    for key, value in policy.items():
        lines += [f"# {line}" for line in _comments(key, profile, suggestions)]
        if key == "identifiers":
            lines += [f"{key}:", *_listed(value, found)]
        elif key == "quasi_identifiers":
            lines += [f"{key}:", *_mapped(value, found)]
        elif key == "sensitive":
            told = suggestions and isinstance(value, dict)
            lines += _sensitive(suggestions, profile.rows) if told else [f"{key}: {flow(value)}"]
        elif key == "require":
            lines += [f"{key}:", *(f"- {flow(one)}" for one in value)]
        elif key == "keep":
            lines += [f"{key}: {flow(value)}"]
        else:
            lines += block({key: value})
    return lines


def flow(value: Any, in_line: bool = True) -> str:
    """A value as YAML, in one line or in several."""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=in_line, width=1_000_000)
    return str(text).rstrip("\n")


def block(value: Any) -> list[str]:
    """The lines of a value as YAML."""
    return flow(value, in_line=False).split("\n")


def _noted(lines: Sequence[str], note: str) -> list[str]:
    """The lines with a note at their end, or over them where they are several."""
    return [f"{lines[0]}  # {note}"] if len(lines) == 1 else [f"# {note}", *lines]


def _listed(names: Sequence[str], found: Mapping[str, ColumnProfile]) -> Iterator[str]:
    for name in names:
        yield from _noted(block([name]), _plain(found[name].reason))


def _mapped(columns: dict[str, Any], found: Mapping[str, ColumnProfile]) -> Iterator[str]:
    """Each column with its settings in one line, unless its name takes more."""
    for name, settings in columns.items():
        key, *more = block({name: None})
        entry = block({name: settings}) if more else [f"{key.removesuffix(' null')} {flow(settings)}"]
        note = f"{found[name].distinct:,} {found[name].reason}"
        yield from (f"  {line}" for line in _noted(entry, note))


def _sensitive(suggestions: Sequence[Suggestion], rows: int) -> Iterator[str]:
    yield "sensitive:"
    for suggestion in suggestions:
        *more, last = block({suggestion.column: None})
        yield from (f"  {line}" for line in (*more, last.removesuffix(" null")))
        for setting, value in (suggestion.settings or {}).items():
            yield f"    {setting}: {flow(value)}"
        if suggestion.sets:
            yield from (f"    # {line}" for line in _sets(suggestion.sets))
        if suggestion.harmless:
            yield from (f"    # {line}" for line in _harmless(suggestion.harmless, rows))


def _sets(found: LikelySets) -> Iterator[str]:
    yield f"{found.rows:,} of {found.whole:,} rows have what looks like a set. The most frequent member is in"
    yield f"{rows_phrase(found.most)}, the most frequent value in {found.largest:,}. If members need protection,"
    yield "uncomment the line below: requirements count them then, and `ldiv plan` says what all rows can meet."
    yield found.setting


def _harmless(found: Harmless, rows: int) -> Iterator[str]:
    count = count_phrase(found.rows, "row", "rows")
    yield f"{count} ({found.rows / rows:.1%}). Is what they have harmless, as `none` or `healthy` may be?"
    yield "That is for you to say. If so, uncomment the line below: nothing is promised about it, and less"
    yield "is lost" + (
        f"; all rows allow the other values `frequency` up to {found.largest_l}." if found.largest_l else "."
    )
    yield f"harmless: {flow(list(found.values))}"


def _comments(key: str, profile: Profile, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    if key == "identifiers":
        yield "Not published. Columns that need no protection may go under `keep`; others under `quasi_identifiers`,"
        yield "with `numeric: true` or a taxonomy, if they are to be generalised."
        if profile.individual and not keeps_apart(suggestions):
            yield from _of_rows(profile.individual, profile.rows)
    if key == "individual" and profile.individual:
        yield f"{_several(profile.individual, profile.rows)}. With this key requirements count people, not"
        yield "rows; `{column: …, rows: together}` keeps all rows of a person in one class, `{column: …, rows: aligned,"
        yield "order: DATE}` publishes them in their order and loses less. If every row is of another"
        yield f"person, move the column to `identifiers`. Why it is here: {_plain(profile.individual.reason)}."
    if key == "quasi_identifiers" and any(column.way and column.way.file for column in profile.columns):
        yield "A level file has one line per value, `value;group;...;*`, here without groups: `value;*`."
        yield "Groups between value and root keep more information. `ldiv profile --policy FILE` writes flat files."
    if key == "require":
        yield from _of_requirements(profile, suggestions)
    if key == "nulls_sensitive":
        yield "NULL as a sensitive value of its own; or `suppress` the rows."


def _of_rows(who: ColumnProfile, rows: int) -> Iterator[str]:
    yield f"{_several(who, rows)}, AND REQUIREMENTS COUNT ROWS:"
    yield f"a class may hold the rows of one person alone. `individual: {_name(who)}` counts people; it is left"
    yield "out, as no column is sensitive, or a value or a person has more than half of the rows."


def _several(who: ColumnProfile, rows: int) -> str:
    return f"PEOPLE MAY HAVE SEVERAL ROWS: {_name(who)} has {who.distinct:,} values in {rows_phrase(rows - who.nulls)}"


def _name(column: ColumnProfile) -> str:
    return _plain(json.dumps(column.column.name, ensure_ascii=False))


def _of_requirements(profile: Profile, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    k = _class_size(profile, suggestions)
    high = "" if k >= MODEST_K else ", which `ldiv report` calls high"
    where = f"`{ALPHA_K}` has `k: {k}`" if _sizes_said(suggestions) else f"`k: {k}`"
    yield f"{where}: nobody's row is found with a probability above 1/{k}{high}. `risk: 0.09` asks for a probability."
    if not suggestions:
        yield f"All rows can meet `k` up to {profile.rows:,}."
        yield "Name a column under `sensitive` to protect its values too: `ldiv profile --sensitive COLUMN`."
        return
    for column, suggestion in zip(profile.sensitive, suggestions, strict=True):
        name = _plain(json.dumps(column.name, ensure_ascii=False))
        largest = suggestion.largest_l
        if any(RANGE in required for required in suggestion.require):
            yield f"{name}: values near one another are one to a reader; `{RANGE}` asks how wide a class is."
        if largest >= 2:
            yield f"{name}: all rows can meet `frequency` up to {largest}."
            continue
        share = suggestion.judged.counts[0] / profile.rows
        yield f"{name}: a value has {share:.1%} of the rows, so that all rows can meet no `frequency` from 2 on. Here"
        yield "no value may be much more certain than that, and a class has several."


def _plain(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True)
class StarterPolicy:
    """A policy as a mapping, its YAML text with comments, and the level files (name to text) that it names.

    In `shown_text` an ellipsis stands for values of the data, which comments alone have.
    """

    policy: dict[str, Any]
    text: str
    shown_text: str
    files: dict[str, str]


def make_starter_policy(
    engine: Engine, profile: Profile, table: Table, source: str, lasts: bool = True
) -> tuple[StarterPolicy | None, str]:
    """The skeleton, or None and the reason why there is none; `source` is what the policy calls the table.

    A database that does not last, as it is in memory, takes no release: that goes to a file.
    """
    if any(column.distribution.distinct < 2 for column in profile.sensitive):
        return None, "no policy can be met: a sensitive column has a single value"
    if profile.rows < 2:
        return None, "no policy can be met: the table has a single row"
    keys = profile.of_role(QUASI_IDENTIFIER)
    if not keys:
        return None, "no policy to start from: no column can be generalised, see the reasons"
    suggestions = _of_people(profile, [suggest(engine, table, column) for column in profile.sensitive])
    target = target_of(engine, source) if lasts else "release.parquet"
    policy = _policy(profile, source, target, suggestions)
    both = (suggestions, [veiled(one) for one in suggestions])
    text, shown = (written_text(policy_lines(policy, profile, told), profile.hipaa) for told in both)
    return StarterPolicy(policy, text, shown, level_files(engine, table, keys)), ""


def _policy(profile: Profile, source: str, target: str, suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """The policy as a mapping; what nobody named and what cannot be generalised is not published."""
    person = profile.individual.column.name if profile.individual and keeps_apart(suggestions) else None
    settings = {one.column: one.settings for one in suggestions}
    told = any(one.harmless or one.settings or one.sets for one in suggestions)
    policy: dict[str, Any] = {"source": source, "target": target, **({"individual": person} if person else {})}
    policy |= described(profile, settings if told else list(settings), [person])
    policy["require"] = by_column({one.column: one.require for one in suggestions})
    if not _sizes_said(suggestions):
        policy["require"] = [*policy["require"], {"k": _class_size(profile, suggestions)}]
    # Rows of a person kept apart can be judged wherever rows are, also in the release, which says nobody's.
    policy["algorithm"] = "bsgi" if person else "auto"
    if any(column.nulls for column in profile.sensitive):
        policy["nulls_sensitive"] = "value"
    return policy


def _sizes_said(suggestions: Sequence[Suggestion]) -> bool:
    return any(ALPHA_K in required for suggestion in suggestions for required in suggestion.require)


def _class_size(profile: Profile, suggestions: Sequence[Suggestion]) -> int:
    """The rows of a class: as many as keep risk low, or as can be met where a class has one row of a person."""
    return min(MODEST_K, profile.rows, *(suggestion.largest_l for suggestion in suggestions if suggestion.is_apart))


def _of_people(profile: Profile, suggestions: list[Suggestion]) -> list[Suggestion]:
    """The suggestions, of classes without two rows of one person where somebody may have several and counts allow it.

    What keeps them apart promises shares of all values, and nothing else.
    """
    who = profile.individual
    if who is None or not suggestions:
        return suggestions
    l = min(MODEST_L, who.distinct, profile.rows // who.most, *(one.judged.largest_l for one in suggestions))
    return [one.apart(l, profile.rows // who.most) for one in suggestions] if l >= 2 else suggestions


def described(profile: Profile, sensitive: Any, gone: Sequence[str | None] = ()) -> dict[str, Any]:
    """The columns of a table as a policy has them by their roles, but for those that are `gone` elsewhere."""
    hidden, keys = (
        [c for c in profile.of_role(r) if c.column.name not in gone] for r in (IDENTIFIER, QUASI_IDENTIFIER)
    )
    ways = {c.column.name: c.way.settings for c in keys if c.way}
    found = {"identifiers": [c.column.name for c in hidden], "quasi_identifiers": ways, "sensitive": sensitive}
    return {key: value for key, value in found.items() if value}


def by_column(required: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What is required of sensitive columns, said once where it is the same of all."""
    first = next(iter(required.values()), [])
    if all(each == first for each in required.values()):
        return first
    return [{**one, "sensitive": name} for name, each in required.items() for one in each]


def target_of(engine: Engine, source: str) -> str:
    """A table that is not there yet, named after the source, in a schema of its own where there are any."""
    file = FileRelation.of(source)
    stem = Path(source).stem if file else Relation.parse(source).name
    schema = ["published"] if engine.snapshot.traits(engine.snapshot.current).has_schemas else []
    first = stem if schema else f"published_{stem}"
    named = (Relation((*schema, first if number == 1 else f"{first}_{number}")) for number in count(1))
    found = next(relation for relation in named if not catalog.table_exists(engine, relation))
    return str(found) if re.fullmatch(r"[a-z_][a-z0-9_]*", found.name, re.IGNORECASE) else found.sql()


# -- level files -------------------------------------------------------------------------------------


def level_files(engine: Engine, table: Table, keys: Sequence[ColumnProfile]) -> dict[str, str]:
    """The level files of quasi-identifiers that have one, by name."""
    files = {}
    with read_exactly(engine, table) as read:
        for key in keys:
            if key.way and key.way.file:
                column = Identifier(key.column.name)
                values = engine.rows("measuring/profile/list_values", source=read, column=column)
                files[key.way.file] = levels_text([(value, ROOT_LABEL) for (value,) in values])
    return files


def levels_text(lines: Sequence[Sequence[str]]) -> str:
    """The text of a level file of these lines."""
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\n").writerows(lines)
    return out.getvalue()


def write_levels(path: Path, lines: Sequence[Sequence[str]]) -> None:
    """Write a level file; raises PolicyError if there is one, or its folder is none."""
    refuse_folder(path)
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(levels_text(lines))
    except FileExistsError:
        raise PolicyError([Problem("file", f"{path} exists", "name another by --file")]) from None


def refuse_folder(policy: Path) -> None:
    """Raise PolicyError if no file can be written there, because its folder is none."""
    if not policy.parent.is_dir():
        raise PolicyError([Problem("policy", f"there is no folder {policy.parent}", "make it, or name another")])


def refuse_files(*paths: Path) -> None:
    """Raise PolicyError for files that are there: nothing is overwritten."""
    refuse(
        Problem("policy", f"{path} exists", "name another folder or file") for path in paths if os.path.lexists(path)
    )


def write_starter_policy(skeleton: StarterPolicy, policy: Path) -> list[Path]:
    """Write the policy and its level files beside it; returns their paths.

    Raises PolicyError, before anything is written, if one of them exists.
    """
    texts = {policy: skeleton.text, **{policy.parent / name: text for name, text in skeleton.files.items()}}
    if len(texts) <= len(skeleton.files):
        raise PolicyError([Problem("policy", f"{policy} is the name of a taxonomy's file", "name another")])
    refuse_files(*texts)
    for path, text in texts.items():
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    return list(texts)
