"""A policy to start from as YAML, with the reason of every column's role, and comments over what takes a thought."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from ldiv_db.profiling.profile import ColumnProfile, Profile
from ldiv_db.profiling.suggestions import RANGE, Harmless, Suggestion, keeps_apart

_HEADING = "# A policy to start from: check every column's role, then `ldiv plan` and `ldiv run`."


def policy_text(policy: dict[str, Any], profile: Profile, suggestions: Sequence[Suggestion]) -> str:
    """The policy as YAML; `profile` and `suggestions` are what it was made of."""
    lines = [_HEADING]
    for key, value in policy.items():
        lines += [f"# {line}" for line in _comments(key, profile, suggestions)]
        if key == "identifiers":
            lines += _listed(key, value, profile)
        elif key == "quasi_identifiers":
            lines += _mapped(key, value, profile)
        elif key == "sensitive" and isinstance(value, dict):
            lines += _sensitive(suggestions, profile.rows)
        elif key == "sensitive":
            lines.append(f"{key}: {_flow(value)}")
        elif key == "require":
            lines += [f"{key}:", *(f"- {_flow(one)}" for one in value)]
        else:
            lines += _block({key: value})
    return "\n".join(lines) + "\n"


def _block(value: Any) -> list[str]:
    """The lines of a value, an entry a line."""
    return _yaml(value, flow=False).split("\n")


def _flow(value: Any) -> str:
    """A value in one line."""
    return _yaml(value, flow=True)


def _yaml(value: Any, flow: bool) -> str:
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=flow, width=1_000_000)
    return str(text).rstrip("\n")


def _noted(lines: Sequence[str], note: str) -> list[str]:
    """The lines with a note at their end, or over them where they are several."""
    return [f"{lines[0]}  # {note}"] if len(lines) == 1 else [f"# {note}", *lines]


def _listed(key: str, names: Sequence[str], profile: Profile) -> Iterator[str]:
    reasons = {column.column.name: column.reason for column in profile.columns}
    yield f"{key}:"
    for name in names:
        yield from _noted(_block([name]), _plain(reasons[name]))


def _mapped(key: str, columns: dict[str, Any], profile: Profile) -> Iterator[str]:
    found = {column.column.name: column for column in profile.columns}
    yield f"{key}:"
    for name, settings in columns.items():
        note = f"{found[name].distinct:,} {found[name].reason}"
        yield from (f"  {line}" for line in _noted(_entry(name, settings), note))


def _entry(name: str, settings: Any) -> list[str]:
    """A column with its settings in one line, unless its name takes more."""
    key, *more = _block({name: None})
    return _block({name: settings}) if more else [f"{key.removesuffix(' null')} {_flow(settings)}"]


def _sensitive(suggestions: Sequence[Suggestion], rows: int) -> Iterator[str]:
    yield "sensitive:"
    for suggestion in suggestions:
        *more, last = _block({suggestion.column: None})
        yield from (f"  {line}" for line in (*more, last.removesuffix(" null")))
        for setting, value in (suggestion.settings or {}).items():
            yield f"    {setting}: {_flow(value)}"
        if suggestion.harmless:
            yield from (f"    # {line}" for line in _harmless(suggestion.harmless, rows))


def _harmless(found: Harmless, rows: int) -> Iterator[str]:
    yield f"{found.rows:,} rows ({found.rows / rows:.1%}). Is what they have harmless, as `none` or `healthy` may be?"
    yield "That is for you to say. If so, take the `# ` away from the line below: nothing is promised of it, and less"
    yield "is lost" + (
        f"; all rows allow the other values `frequency` up to {found.largest_l}." if found.largest_l else "."
    )
    yield f"harmless: {_flow(list(found.values))}"


def _comments(key: str, profile: Profile, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    """The lines that stand over a key."""
    if key == "identifiers":
        yield "Not published. Columns that need no protection may go under `keep`; others under `quasi_identifiers`,"
        yield "with `numeric: true` or a taxonomy, if they are to be generalised."
        if profile.individual and not keeps_apart(suggestions):
            yield from _of_rows(profile.individual, profile.rows)
    if key == "individual" and profile.individual:
        yield f"{_several(profile.individual, profile.rows)}. This key keeps two rows of one person out of every"
        yield "class, which loses more than counting rows. If every row is of another person, move the column to"
        yield f"`identifiers`. Why it is here: {_plain(profile.individual.reason)}."
    if key == "quasi_identifiers" and any(column.way and column.way.file for column in profile.columns):
        yield "A taxonomy's file has a line a value, `value;group;...;*`, here without groups: `value;*`."
        yield "Groups between value and root keep more information. `ldiv profile --policy FILE` writes flat files."
    if key == "require":
        yield from _of_requirements(profile, suggestions)
    if key == "nulls_sensitive":
        yield "NULL as a sensitive value of its own; or `suppress` the rows."


def _of_rows(who: ColumnProfile, rows: int) -> Iterator[str]:
    """That what is required counts rows, where somebody may have several."""
    yield f"{_several(who, rows)}, AND REQUIREMENTS COUNT ROWS:"
    yield f"a class may hold the rows of one person alone. `individual: {_name(who)}` keeps them apart; it needs"
    yield "`frequency` on a sensitive column, and that no value and no person has more than half of the rows."


def _several(who: ColumnProfile, rows: int) -> str:
    """How many values the column that may say whose a row is has, and in how many rows."""
    return f"PEOPLE MAY HAVE SEVERAL ROWS: {_name(who)} has {who.distinct:,} values in {rows - who.nulls:,} rows"


def _name(column: ColumnProfile) -> str:
    return _plain(json.dumps(column.column.name, ensure_ascii=False))


def _of_requirements(profile: Profile, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    """Why this is required, and what else could be."""
    if not suggestions:
        yield f"Every row is published alike with others; up to {profile.rows:,} can be met."
        yield "Name a column under `sensitive` to protect its values too: `ldiv profile --sensitive COLUMN`."
        return
    for column, suggestion in zip(profile.sensitive, suggestions, strict=True):
        name = _plain(json.dumps(column.name, ensure_ascii=False))
        largest = suggestion.largest_l
        if any(RANGE in required for required in suggestion.require):
            yield f"{name}: values near one another are one to a reader; `{RANGE}` asks how wide a class is."
        if largest >= 2:
            yield f"{name}: `frequency` up to {largest} can be met by all rows."
            continue
        share = suggestion.judged.counts[0] / profile.rows
        yield f"{name}: a value has {share:.1%} of the rows, so that all rows can meet no `frequency` from 2 on. Here"
        yield "no value may be much more certain than that, and a class has several."


def _plain(text: str) -> str:
    """The text in one line, as comments are."""
    return " ".join(text.split())
