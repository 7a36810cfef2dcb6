"""The ledger of releases over time: series, releases, groups and members, in the catalog.

Keys stand in it as hashes after a secret of their series; of sensitive values there is a hash, to notice changes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.policy.series import DECOMPOSITIONS
from ldiv_db.publishing.draft import PUBLISHED, STARTED
from ldiv_db.publishing.series_key import ANOTHER_TARGET, Key, check_key
from ldiv_db.publishing.series_names import file_of, known_as

#: How groups of decompositions are formed; nothing is noted of those that were formed in the order of content.
COINS = "coins"
ORDERED = "groups were formed in the order of the quasi-identifiers, which may tell nearly everybody's value"
WITHDRAW = "withdraw what was published, and publish the table anew under another target"


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

    @property
    def next(self) -> int:
        """The number of the next release."""
        return self.releases + 1


@dataclass(frozen=True)
class Entry:
    """A release as the ledger has it."""

    series: str
    release: int
    status: str
    released_at: str
    report: dict[str, Any]
    grouped_by: str | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether its groups were formed in the order of the quasi-identifiers, as all were before it was noted how."""
        return self.report.get("algorithm") in DECOMPOSITIONS and self.grouped_by is None

    @property
    def warning(self) -> str | None:
        """What must be said of it."""
        return f"release {self.release} of {self.series}: {ORDERED}; {WITHDRAW}" if self.is_ordered else None

    def as_dict(self) -> dict[str, Any]:
        return {**self.report, "status": self.status, "released_at": self.released_at, "warning": self.warning}


def table(engine: Engine, name: str) -> Relation:
    """A table of the ledger."""
    return catalog.catalog_table(engine, name)


def has_ledger(engine: Engine) -> bool:
    """Whether the catalog has these tables yet; raises DatabaseError for tables there that are not ours."""
    migrate.refuse_foreign(engine)
    return catalog.table_exists(engine, table(engine, "release_member"))


def open_series(engine: Engine, name: str, algorithm: str, key: Key) -> Series:
    """The series of that name; nothing is written. Raises PolicyError if another algorithm or key made it."""
    if not has_ledger(engine):
        return Series(name, secrets.token_hex(32), key)
    found = _find_series(engine, name)
    if not found:
        return Series(name, secrets.token_hex(32), key)
    if found[0]["algorithm"] != algorithm:
        what = f"the releases of {name} were made by {found[0]['algorithm']}"
        raise PolicyError([Problem("algorithm.name", what, ANOTHER_TARGET)])
    before = Key(found[0]["key_name"], found[0]["key_kind"]) if found[0].get("key_name") else None
    check_key(key, before)
    entries = releases(engine, name)
    _require_coins(name, entries)
    last = engine.record("publishing/find_last_group", groups=table(engine, "release_group"), series=Value(name))
    return Series(name, found[0]["secret"], key, False, len(entries), last["last"], last["groups"], before)


def _require_coins(name: str, entries: Sequence[Entry]) -> None:
    """Raise PolicyError if groups are to be published again that may tell everybody's value."""
    if any(entry.is_ordered for entry in entries):
        what = f"the releases of {name} would be repeated: {ORDERED}"
        raise PolicyError([Problem("target.prefix", what, WITHDRAW)])


def _find_series(engine: Engine, name: str) -> list[dict[str, Any]]:
    """What is noted of the series, if there is one; a catalog of an older version notes no key."""
    noted = ("secret", "algorithm", "key_name", "key_kind")
    all_series = table(engine, "series")
    columns = [Identifier(c.name) for c in catalog.columns_of(engine, all_series) if c.name in noted]
    return engine.records("publishing/find_series", all_series=all_series, columns=columns, series=Value(name))


def releases(engine: Engine, series: str | None = None) -> list[Entry]:
    """The releases of a series, or of all of them."""
    if not has_ledger(engine):
        return []
    listed = table(engine, "release")
    noted = any(column.name == "grouped_by" for column in catalog.columns_of(engine, listed))
    rows = engine.records("publishing/list_releases", releases=listed, series=Value(series), noted=noted)
    return [Entry(**{**row, "report": json.loads(row["report"])}) for row in rows]


def name_of(engine: Engine, text: str, path: Path | None = None) -> str:
    """What the ledger calls the series that `text` names, with its file at `path`; `text` if it has no such series."""
    known = {entry.series: entry.report.get("file") for entry in releases(engine)}
    return known_as(text, path or file_of(text), known, catalog.current_schema(engine))


def require_release(engine: Engine, series: str, number: int | None = None) -> Entry:
    """The release of that number, by default the last; raises PolicyError if there is none."""
    found = [entry for entry in releases(engine, name_of(engine, series)) if entry.status != STARTED]
    if not found:
        known = {entry.series for entry in releases(engine)}
        raise PolicyError([Problem("series", f"no releases of {series}", nearest(series, sorted(known)))])
    if number is None:
        return found[-1]
    for entry in found:
        if entry.release == number:
            return entry
    raise PolicyError([Problem("release", f"{series} has no release {number}", f"the last is {found[-1].release}")])


def known_keys(engine: Engine, series: Series) -> Relation:
    """The TEMP table (key_hash, group_id, first_release, values_hash) of all keys that the series has seen."""
    columns = {
        "key_hash": "VARCHAR",
        "group_id": "BIGINT",
        "first_release": "INTEGER",
        "values_hash": "VARCHAR",
    }
    if series.is_new:
        return engine.load("known", columns, [])
    members = table(engine, "release_member")
    return engine.materialise("known", "publishing/list_known", members=members, series=Value(series.name))


def record_series(engine: Engine, series: Series, algorithm: str, source: str) -> None:
    """Write the series, if it is new, the catalog brought up to date first; call inside a transaction."""
    migrate.migrate(engine)
    if series.is_new:
        columns = dict.fromkeys(["series", "secret", "algorithm", "source", "key_name", "key_kind"], "VARCHAR")
        row = (series.name, series.secret, algorithm, source, series.key.name, series.key.kind, datetime.now(UTC))
        engine.append(table(engine, "series"), columns | {"created_at": "TIMESTAMPTZ"}, [row])


def record_members(engine: Engine, series: Series, rows: Relation, shown: Relation) -> None:
    """Write what becomes of keys in the next release, the groups that it forms, and the key where it was not noted."""
    if not series.is_new and series.key_before is None:
        key = {"key_name": series.key.name, "key_kind": series.key.kind}
        engine.update(table(engine, "series"), key, {"series": series.name})
    holes = {
        "shown": shown,
        "series": Value(series.name),
        "release": Value(series.next),
        "last": Value(series.last_group),
    }
    engine.insert(table(engine, "release_member"), "publishing/list_events", rows=rows, **holes)
    engine.insert(table(engine, "release_group"), "publishing/list_new_groups", **holes)


def record_release(engine: Engine, series: Series, seed: int, report: dict[str, Any], status: str = PUBLISHED) -> None:
    """Write the next release itself, with the seed that it is drawn by."""
    columns = {
        "series": "VARCHAR",
        "release": "INTEGER",
        "status": "VARCHAR",
        "released_at": "TIMESTAMPTZ",
        "report": "VARCHAR",
        "seed": "VARCHAR",
        "grouped_by": "VARCHAR",
    }
    grouped_by = COINS if report["algorithm"] in DECOMPOSITIONS else None
    shown = json.dumps(report, default=float)
    row = (series.name, series.next, status, datetime.now(UTC), shown, str(seed), grouped_by)
    engine.append(table(engine, "release"), columns, [row])


def advance_release(engine: Engine, series: Series, report: dict[str, Any], status: str) -> None:
    """Have the ledger say how far the next release has come, and what it is."""
    found = {"series": series.name, "release": series.next}
    values = {"status": status, "report": json.dumps(report, default=float)}
    engine.update(table(engine, "release"), values, found)


def unsettled(engine: Engine, series: str | None = None) -> list[Entry]:
    """The releases that have not been published: their process is at it, or has died."""
    return [entry for entry in releases(engine, series) if entry.status != PUBLISHED]


def settle(engine: Engine, series: str, release: int, in_place: bool) -> None:
    """Have the ledger say what became of a release to a file: it is published, or never was."""
    found = {"series": series, "release": release}
    if in_place:
        engine.update(table(engine, "release"), {"status": PUBLISHED}, found)
        return
    with engine.transaction():
        for name in ("release", "release_member", "release_group"):
            engine.delete(table(engine, name), found)
        if not releases(engine, series):
            engine.delete(table(engine, "series"), {"series": series})


def events(engine: Engine, series: str) -> list[dict[str, Any]]:
    """For each release of a series how many keys it published and kept back for the first time, and its new groups."""
    members = table(engine, "release_member")
    return engine.records("publishing/summarise_events", members=members, series=Value(series))
