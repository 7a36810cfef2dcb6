"""What the ledger knows of a source: its releases so far, by which a new one is judged, and who else publishes it now.

A run looks before it plans, and asks again in the transaction that enters it in the ledger, while it keeps all others
of the source off: of two runs at once the second starts again, as if the first had been there from the beginning.
"""

from __future__ import annotations

import hashlib
import os
import random
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, lineage, migrate
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import ConflictError, DatabaseError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.document import BETWEEN
from ldiv_db.policy.quasi_identifiers import read_columns
from ldiv_db.policy.resolve import Resolved
from ldiv_db.publishing import ledger
from ldiv_db.publishing.fingerprints import (
    Fingerprint,
    ReadColumn,
    hash_rows,
    read_by,
    take_fingerprint,
    versions,
)
from ldiv_db.publishing.ledger import LOCKS, PUBLISHED, STARTED, WRITTEN, Entry
from ldiv_db.publishing.result import Earlier, Forgotten

#: How often a run starts again before it gives up.
_MOST_AGAIN = 5


def new_run() -> str:
    """The id of a run that begins."""
    return uuid.uuid4().hex


def known_as(engine: Engine, source: str, folder: Path) -> Callable[[str], bool]:
    """Whether a name in the ledger is of that source: of a table in any spelling, of a file by any path to it.

    Of several sources it is one of them. Relative paths are in `folder`.
    """
    whole = cache(lambda name: _whole(engine, name, folder))
    return lambda name: name == source or not set(map(whole, parts_of(name))).isdisjoint(map(whole, parts_of(source)))


def parts_of(source: str) -> list[str]:
    """The sources that a release was made of, by what the ledger calls them together; what is one is itself as well."""
    return list(dict.fromkeys([source, *source.split(BETWEEN)]))


def _whole(engine: Engine, name: str, folder: Path) -> str:
    if FileRelation.of(name) or "/" in name:
        return os.path.realpath(folder / name)
    try:
        return repr([part.lower() for part in catalog.located(engine, Relation.parse(name))])
    except Exception:  # what is no name, as that of a query
        return name


@dataclass(frozen=True)
class Published:
    """The releases in a ledger that were not withdrawn: runs with their hashes and releases of series, in their order.

    One whose file is about to be moved into its place counts as published.
    """

    runs: Sequence[Mapping[str, Any]]
    releases: Sequence[Entry]

    @classmethod
    def in_ledger(cls, engine: Engine) -> Published:
        held = migrate.held(engine)
        runs = [run for run in ledger.runs(engine, hashes=True, held=held) if run["status"] in (PUBLISHED, WRITTEN)]
        return cls(runs, [entry for entry in ledger.releases(engine, held=held) if entry.status != STARTED])

    @property
    def key(self) -> str | None:
        """The key of the fingerprints in the ledger, so that a new one can be compared; None if it has none."""
        keys = Counter(run["hash_key"] for run in self.runs if run["hash_key"])
        return min(keys, key=lambda key: (-keys[key], key)) if keys else None

    def of(self, is_source: Callable[[str], bool], fingerprint: Fingerprint | None = None) -> Published:
        """Those of a source, by its name, and the runs of rows with such a fingerprint, whatever they were called."""
        runs = [
            run for run in self.runs if is_source(run["source"]) or (fingerprint is not None and fingerprint.is_of(run))
        ]
        return Published(runs, [entry for entry in self.releases if is_source(entry.report.get("source", ""))])

    @property
    def names(self) -> frozenset[str]:
        """What each is called, in the ledger of any engine."""
        releases = [f"{entry.release} of {entry.series}" for entry in self.releases]
        return frozenset([*(run["run_id"] for run in self.runs), *releases])

    @property
    def latest_release(self) -> str:
        """The latest release of a series, in words; empty if there is none."""
        return f"release {self.releases[-1].release} of {self.releases[-1].series}" if self.releases else ""


@dataclass(frozen=True)
class Watch:
    """The releases of a source that a run found in the ledger, which it asks for again before it is entered.

    `source` is its name, `folder` that of relative files, `fingerprint` that of its rows, if they are compared, and
    `key` that of the fingerprints in the ledger, None if there were none. `run_id` is that of the run itself.
    """

    engine: Engine
    source: str
    folder: Path
    found: frozenset[str] = frozenset()
    fingerprint: Fingerprint | None = None
    key: str | None = None
    run_id: str = field(default_factory=new_run)

    @property
    def locks(self) -> list[str]:
        """The rows of the ledger's locks that all runs have in common of a source of this name, or with these rows."""
        shared = [_whole(self.engine, part, self.folder) for part in parts_of(self.source)]
        shared += self.fingerprint.hashes if self.fingerprint else []
        numbers = {int(hashlib.sha256(name.encode()).hexdigest(), 16) % LOCKS for name in shared}
        if self.fingerprint and self.key is None:
            numbers.add(0)  # two that draw a key each cannot compare their rows
        return [str(number) for number in sorted(numbers)]

    def hold(self) -> None:
        """Keep other runs of the source off until the transaction ends; raises OvertakenError if one was faster."""
        held = ledger.table(self.engine, migrate.LOCK)
        try:
            self.engine.update(held, {"run_id": self.run_id}, {"name": self.locks})
        except ConflictError:
            raise OvertakenError(self.source) from None
        self.require_first(self.engine)

    def require_first(self, engine: Engine) -> None:
        """Raise OvertakenError if the ledger of an engine has other releases of the source that are not known."""
        listed = Published.in_ledger(engine)
        others = replace(listed, runs=[run for run in listed.runs if run["run_id"] != self.run_id])
        is_source = known_as(self.engine, self.source, self.folder)
        is_incomparable = self.fingerprint is not None and self.key is None and others.key is not None
        if is_incomparable or others.of(is_source, self.fingerprint).names - self.found:
            raise OvertakenError(self.source)


class OvertakenError(ConflictError):
    """Another run published the source since this one looked; outside of a caller's transaction it starts again."""

    what = (
        "another run published {} at the same time, and nothing of this one was published: end the transaction, and run"
        " again"
    )

    def __init__(self, source: str):
        super().__init__(self.what.format(source))


class ChangedError(OvertakenError):
    """The rows of a source in a warehouse changed between count and release: the run starts again once."""

    what = "{} changed twice while this run planned, and nothing was published: run it while nobody writes there"


@dataclass(frozen=True)
class Reading:
    """A source, or one of several, as it is `resolved`, whose `rows` a run reads that have this fingerprint."""

    resolved: Resolved
    rows: Table
    fingerprint: Fingerprint

    @property
    def name(self) -> str:
        return self.resolved.source.name

    def hashed(self, engine: Engine, columns: tuple[ReadColumn, ...]) -> str | None:
        """The hash of its rows in the columns that a run read; '' if it has not all, None if nobody can tell."""
        place = self.resolved.source.place
        if place is None and any(kept for _, _, *kept in columns):  # hashed by the warehouse itself
            return None
        if columns == self.fingerprint.columns:
            return self.fingerprint.rows
        there = {column.name.lower(): Identifier(column.name) for column in self.resolved.columns}
        if not {name for name, *_ in columns} <= set(there):
            return ""
        counts = self.resolved.source.weight
        try:
            rows = read_columns(engine, self.resolved.policy, place.recounted(columns)) if place else self.rows
        except DatabaseError:  # a driver may not read what an earlier run read by another
            return None
        read, required = [there[name] for name, *_ in columns], [there[name] for name, needed, *_ in columns if needed]
        weight = Identifier(counts.name) if counts else None
        return hash_rows(engine, rows, read, weight, self.fingerprint.key, required)


def look_back(
    engine: Engine,
    resolved: Resolved,
    rows: Relation,
    run_id: str,
    weight: Identifier | None = None,
) -> tuple[Earlier, Watch]:
    """As `held_against`, of one source: `rows` is it as it was read, `weight` its counts."""
    listed = Published.in_ledger(engine)
    fingerprint = take_fingerprint(engine, resolved, rows, weight, listed.key or new_key())
    reading = Reading(resolved, resolved.source.relation, fingerprint)
    return held_against(engine, listed, fingerprint, [reading], run_id)


def new_key() -> str:
    """The key of the first fingerprint in a ledger."""
    return secrets.token_hex(32)


def held_against(
    engine: Engine, listed: Published, fingerprint: Fingerprint, read: Sequence[Reading], run_id: str
) -> tuple[Earlier, Watch]:
    """The release among those `listed` that a run is held against, and the watch over its sources until it is entered.

    It is the latest run with the same fingerprint, else the latest release whose rows are not known to be those of the
    sources now, else the latest of all. `run_id` is that of the new run.
    """
    resolved, name = read[0].resolved, BETWEEN.join(one.name for one in read)
    own = listed.of(known_as(engine, name, resolved.folder), fingerprint)
    watch = Watch(engine, name, resolved.folder, own.names, fingerprint, listed.key, run_id)
    is_there = any(one.resolved.source.place for one in read)
    earlier = Earlier(
        fingerprint=fingerprint,
        independent=resolved.policy.over_time == "independent",
        compared="releases of several tables are not held together" if fingerprint.tables else "",
        forgotten=None if is_there else forgotten(engine, resolved, [one.rows for one in read]),
    )
    hashed = (fingerprint.key, fingerprint.policy)
    alike = [run for run in reversed(listed.runs) if (run["hash_key"], run["policy_hash"]) == hashed]
    alike = sorted(alike, key=lambda run: bool(_made_by(run))) if fingerprint.policy else []  # first of this version
    same = [run for run in alike if run["rows_hash"] == fingerprint.rows and not _made_by(run)]
    run, same_rows = (same[0], True) if same else _least_alike(engine, read, own.runs, fingerprint)
    if run is None or (own.releases and same_rows and not same):
        return replace(earlier, series=own.latest_release), watch  # of series it is not known what rows they read
    known = same or [run for run in alike if same_rows and run in own.runs]
    run, seed = (known[0], int(known[0]["seed"])) if known else (run, None)
    is_settled = not known or run["status"] == PUBLISHED
    place = _place_of(listed.runs, run) if is_settled else ""
    told = {"target": place, "rows": run["rows_published"], "made_by": _made_by(run)}
    return replace(earlier, run_id=run["run_id"], seed=seed, same_rows=same_rows, **told), watch


def _made_by(run: Mapping[str, Any]) -> str:
    """The versions by which a run was made, as far as they are others now; '' if they are these."""
    found, now = run["versions"], versions()
    return " and ".join(
        f"{name} {found.get(name, 'of no known version')}" for name in now if found.get(name) != now[name]
    )


def _least_alike(
    engine: Engine, read: Sequence[Reading], runs: Sequence[Mapping[str, Any]], fingerprint: Fingerprint
) -> tuple[Mapping[str, Any] | None, bool | None]:
    """Of earlier runs the latest whose rows the sources have no longer, else of which nobody knows, else the latest.

    With whether they have them. Each is compared in the columns that it read itself, of several tables those that both
    read; None where there is no run.
    """
    hashed = cache(lambda place, columns: read[place].hashed(engine, columns))
    is_read = [known_as(engine, one.name, one.resolved.folder) for one in read]

    def has_same_rows(run: Mapping[str, Any]) -> bool | None:
        if run["hash_key"] != fingerprint.key:
            return None
        known = [
            True if rows in found else None if None in found else False
            for source, rows, columns in read_by(run)
            if (found := [hashed(place, columns) for place, is_it in enumerate(is_read) if is_it(source)])
        ]
        if not known:  # under another name it was found by its hash
            return fingerprint.is_of(run) or None
        return False if False in known else None if None in known else True

    found = [(run, has_same_rows(run)) for run in reversed(runs)]
    alike = [next((one for one in found if one[1] is wanted), None) for wanted in (False, None, True)]
    return next(filter(None, alike), (None, None))


def _place_of(runs: Sequence[Mapping[str, Any]], found: Mapping[str, Any]) -> str:
    """Where the release of a run is; an empty name if a later run wrote there."""
    last = [run["run_id"] for run in runs if run["target"] == found["target"]][-1]
    return found["target"] if last == found["run_id"] else ""


def forgotten(engine: Engine, resolved: Resolved, sources: Iterable[Table]) -> Forgotten | None:
    """That the ledger is in memory, so that no later run can know of this one.

    None where it is kept, or where the sources end with it.
    """
    home, policy = engine.catalog or engine.snapshot.current, resolved.policy
    if not engine.snapshot.is_in_memory(home) or all(_dies_with(engine, source, home) for source in sources):
        return None
    promised = [key for key in ("transparent", "key") if getattr(policy, key) and policy.over_time is None]
    return Forgotten(promised[0] if promised else "")


def _dies_with(engine: Engine, source: Table, home: str) -> bool:
    """True if all that the source reads are tables in memory themselves, in the database of the ledger."""
    if not isinstance(source, Relation) or not lineage.reads_tables_alone(engine, source):
        return False
    read = lineage.tables_read(engine, source)
    if any(table.name.startswith("ldiv_") for table in read):  # the copy of a frame, which the caller still has
        return False
    return bool(read) and {catalog.located(engine, table)[0].lower() for table in read} <= {home.lower(), "temp"}


def waits_again(error: ConflictError, failed: int) -> bool:
    """Whether a run that failed so often by such an error starts again; true after a pause."""
    if failed > (1 if isinstance(error, ChangedError) else _MOST_AGAIN):
        return False
    time.sleep(random.uniform(0.1, 0.5) * 2 ** (failed - 1))  # noqa: S311 - lest two start again together
    return True
