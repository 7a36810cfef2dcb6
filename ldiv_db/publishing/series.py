"""Series: all releases under one target, with the keys and groups that the ledger knows of them.

Keys stand in it as hashes after a secret of their series; of sensitive values there is a hash, to notice changes. Keys
are hashed as text. Under another column, or another type that is written otherwise (1 and 1.0), everybody would count
as new and be published once more, in other groups, and comparing releases would tell what the check cannot see.

A series is named `file.duckdb:schema.prefix`, or without a file, in any spelling.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ldiv_db.database import migrate
from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import nearest, refused
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.sources import DECOMPOSITIONS
from ldiv_db.policy.targets import FLAT, TARGET_FILES
from ldiv_db.publishing.ledger import ORDERED, STARTED, WITHDRAW, Entry, enter, releases, table

#: The schema of a file's tables where none is named.
MAIN = "main"


def known_as(text: str, path: Path | None, known: Mapping[str, str | None], schema: str) -> str:
    """The name among the `known` of the series that `text` names, or `text` itself if there is none.

    The known names come with the whole path of their file; `path` is that of the text's file, `schema` where tables
    lie that name none. Names of tables are compared as the database does, without regard to case.
    """
    if text in known:
        return text
    (file, tables), where = _spelling(text, schema), str(path)
    for name in known:
        if (file, tables) == _spelling(name, schema):
            return name
    for name, known_file in known.items():
        if path is not None and known_file == where and tables == _spelling(name, schema)[1]:
            return name
    return text


def series_file_of(text: str) -> Path | None:
    """The file in the name of a series, by its whole path; None if it names none."""
    file, _ = _file_and_prefix(text)
    return Path(file).resolve() if file else None


def _file_and_prefix(text: str) -> tuple[str, str]:
    """The two parts of a series' name, of which one may be empty: Parquet and CSV files hold one table."""
    file, _, prefix = text.rpartition(":")
    return (text, "") if TARGET_FILES.get(Path(text).suffix.lower()) in FLAT else (file, prefix)


def _spelling(text: str, schema: str) -> tuple[str, tuple[str, ...]]:
    """The file, as short as it can be, and the schema and prefix, of a series in lower case."""
    file, prefix = _file_and_prefix(text)
    if file and not prefix:
        return os.path.normpath(file), ()
    try:
        parts = Relation.parse(prefix).parts
    except Exception:  # the ledger has names without their quotes, which need not be read as names again
        parts = tuple(prefix.split("."))
    tables = (MAIN if file else schema, *parts)[-2:]
    return os.path.normpath(file) if file else "", tuple(part.lower() for part in tables)


#: Of a secret: no more, so that SHA-256 takes it and a key in one block. Every night hashes all keys.
_SECRET_BYTES = 16
INTEGER, TEXT = "integer", "text"
_INTEGERS = re.compile(r"UHUGEINT|DECIMAL\(\d+,0\)")
_TEXTS = re.compile(r"VARCHAR|UUID|ENUM\(.*", re.DOTALL)
#: The way out for releases that are not of the series.
ANOTHER_TARGET = "give another target to other releases"


@dataclass(frozen=True)
class Key:
    """The column that says which row is which, and how its values are written: `integer`, `text`, or its type."""

    name: str
    kind: str

    @property
    def noted(self) -> dict[str, str]:
        """The key as the ledger has it."""
        return {"key_name": self.name, "key_kind": self.kind}

    def is_written_as(self, other: Key | None) -> bool:
        """True if keys are surely the same text as the other's: it is known, and of the same kind."""
        return other is not None and self.kind == other.kind


def key_of(column: Column | None) -> Key:
    """The key that is such a column of the source; one without a name if there is none."""
    if column is None:
        return Key("", INTEGER)
    if column.is_integer or _INTEGERS.fullmatch(column.type):
        return Key(column.name, INTEGER)
    return Key(column.name, TEXT if _TEXTS.fullmatch(column.type) else column.type)


def check_key(key: Key, before: Key | None) -> None:
    """Raise PolicyError unless the key is that of the releases before; integers and text are looked into later."""
    if before is None:
        return
    if key.name.lower() != before.name.lower():
        what = f"the releases were made with the key {before.name}, with {key.name} everybody would count as new"
        raise refused("key", what, ANOTHER_TARGET)
    if key.kind != before.kind and {key.kind, before.kind} != {INTEGER, TEXT}:
        what = f"{key.name} was {before.kind} in the releases before and is {key.kind}"
        why = "keys would be written otherwise, and everybody count as new"
        raise refused("key", f"{what}: {why}", f"make it {before.kind} again, in a view")


@dataclass(frozen=True)
class Series:
    """All releases under one target: how many there are, and the last number of a group.

    `key_before` is the key of earlier releases, None if there are none, or if it was not noted.
    """

    name: str
    secret: str
    key: Key
    is_new: bool = True
    releases: int = 0
    last_group: int = 0
    groups: int = 0
    key_before: Key | None = None
    #: The report of the last release; empty if there is none.
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def next(self) -> int:
        """The number of the next release."""
        return self.releases + 1


def open_series(engine: Engine, name: str, algorithm: str, key: Key) -> Series:
    """The series of that name; nothing is written.

    Raises PolicyError if another key made it, or another decomposition; classes are formed by any algorithm.
    """
    noted = _find_series(engine, name)
    if noted is None:
        return Series(name, secrets.token_urlsafe(_SECRET_BYTES), key)
    if noted["algorithm"] != algorithm and {noted["algorithm"], algorithm} & set(DECOMPOSITIONS):
        raise refused("algorithm.name", f"the releases of {name} were made by {noted['algorithm']}", ANOTHER_TARGET)
    if not key.name or noted.get("key_name") == "":
        raise refused("key", f"{name} is published, and without a key nothing can go on from it", ANOTHER_TARGET)
    before = Key(noted["key_name"], noted["key_kind"]) if noted.get("key_name") else None
    check_key(key, before)
    entries = releases(engine, name)
    if any(entry.is_ordered for entry in entries):  # groups that may tell everybody's value
        raise refused("target.prefix", f"the releases of {name} would be repeated: {ORDERED}", WITHDRAW)
    groups, own = table(engine, "release_group"), Where("series", name)
    last, count = engine.most(groups, "group_id", own) or 0, engine.count(groups, own)
    report = entries[-1].report if entries else {}
    return Series(name, noted["secret"], key, False, len(entries), last, count, before, report)


def _find_series(engine: Engine, name: str) -> dict[str, Any] | None:
    """The ledger's row of the series, None if there is none; a catalog of an older version notes no key."""
    held = migrate.held(engine)
    if "series" not in held:
        return None
    noted, own = ("algorithm", "key_name", "key_kind"), [Where("series", name)]
    columns = [column for column in held.columns("series") if column in noted]
    # In a ledger of an older version the secret stands beside the rest.
    holder = "series_secret" if "series_secret" in held else "series"
    secret = engine.find(table(engine, holder), "secret", where=own)
    rows = engine.find(table(engine, "series"), *columns, where=own)
    return {**dict(zip(columns, rows[0], strict=True)), "secret": secret[0][0]} if rows and secret else None


def secret_of(engine: Engine, series: str) -> str:
    """The secret of a series of the ledger, empty if it has none."""
    noted = _find_series(engine, series)
    return noted["secret"] if noted else ""


def name_of(engine: Engine, text: str, path: Path | None = None) -> str:
    """The ledger's name of the series that `text` names, with its file at `path`; `text` if it has no such series."""
    known = {entry.series: entry.report.get("file") for entry in releases(engine)}
    return known_as(text, path or series_file_of(text), known, engine.snapshot.schema)


def require_release(engine: Engine, series: str, number: int | None = None) -> Entry:
    """The release of that number, by default the last; raises PolicyError if there is none."""
    entries = [entry for entry in releases(engine, name_of(engine, series)) if entry.status != STARTED]
    if not entries:
        known = {entry.series for entry in releases(engine)}
        raise refused("series", f"no releases of {series}", nearest(series, sorted(known)))
    if number is None:
        return entries[-1]
    for entry in entries:
        if entry.release == number:
            return entry
    raise refused("release", f"{series} has no release {number}", f"the last is {entries[-1].release}")


_MEMBERS = {"series": "VARCHAR", "release": "INTEGER", "key_hash": "VARCHAR", "group_id": "BIGINT"}


def members_of(engine: Engine, series: Series) -> Relation:
    """The ledger's table of the keys that series have seen; an empty one for a new series: there may be no ledger."""
    if series.is_new:
        return engine.load("members", _MEMBERS | {"values_hash": "VARCHAR"}, [])
    return table(engine, "release_member")


def groups_of(engine: Engine, series: Series) -> Relation:
    """The TEMP table (group_id, rows) of the groups that the series has."""
    if series.is_new:
        return engine.load("groups", dict.fromkeys(("group_id", "rows"), "BIGINT"), [])
    own = [Where("series", series.name)]
    return engine.select("groups", table(engine, "release_group"), "group_id", "rows", where=own)


def record_series(engine: Engine, series: Series, algorithm: str, source: str) -> None:
    """Write the series, if it is new, the catalog brought up to date first; call inside a transaction."""
    migrate.migrate(engine)
    if series.is_new:
        own = {"algorithm": algorithm, "source": source, **series.key.noted, "created_at": datetime.now(UTC)}
        enter(engine, "series", series=series.name, **own)
        enter(engine, "series_secret", series=series.name, secret=series.secret)


def record_members(engine: Engine, series: Series, rows: Relation, shown: Relation) -> None:
    """Write what becomes of keys in the next release, the groups that it forms, and the key where it was not noted."""
    if not series.is_new and series.key_before is None:
        engine.update(table(engine, "series"), series.key.noted, {"series": series.name})
    members, own = table(engine, "release_member"), {"series": series.name, "release": series.next}
    engine.insert(members, "publishing/list_events", rows=rows, shown=shown, last=series.last_group, **own)
    where = [*(Where(name, value) for name, value in own.items()), Where("group_id", None, "<>")]
    formed = engine.count_groups("formed", members, *own, "group_id", where=where)
    engine.extend(table(engine, "release_group"), formed)
    engine.drop(formed)
