"""The ledger of what was published: runs and releases, and how far each has come.

A publication is `started` (it is being written), `written` (its file is whole, and about to be moved into place),
`published`, and perhaps `withdrawn`: it was never handed out. What is left of one that a process died over is settled:
the ledger says that it is there, or nothing.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import nearest, refused
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.sources import DECOMPOSITIONS
from ldiv_db.publishing.result import Earlier, Fingerprint, Result, hash_rows, take_fingerprint
from ldiv_db.recoding.rules import forget_recoding, record_recoding
from ldiv_db.requirements import plain

STARTED, WRITTEN, PUBLISHED = "started", "written", "published"
#: What was published, and never handed out.
WITHDRAWN = "withdrawn"
#: How groups of decompositions are formed; nothing is noted of those that were formed in the order of content.
COINS = "coins"
ORDERED = "groups were formed in the order of the quasi-identifiers, which may reveal nearly everybody's value"
WITHDRAW = "withdraw what was published, and publish the table anew under another target"
#: The tables that have a row for a run, a release and a series, or several.
RUN_TABLES = ("run", "run_secret", "run_requirement", "run_recoding", "run_column", "run_rule")
RELEASE_TABLES = ("release", "release_secret", "release_member", "release_group")
SERIES_TABLES = ("series_secret", "series")
#: The types of values that are entered; all others are text.
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", datetime: "TIMESTAMPTZ"}


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
        """True if its groups were formed in the order of the quasi-identifiers, as all were before it was noted how."""
        return self.report.get("algorithm") in DECOMPOSITIONS and self.grouped_by is None

    @property
    def warning(self) -> str | None:
        """A warning on how its groups were formed, None if there is none."""
        return f"release {self.release} of {self.series}: {ORDERED}; {WITHDRAW}" if self.is_ordered else None

    def as_dict(self) -> dict[str, Any]:
        return {**self.report, "status": self.status, "released_at": self.released_at, "warning": self.warning}


def table(engine: Engine, name: str) -> Relation:
    """A table of the ledger."""
    return catalog.catalog_table(engine, name)


def enter(engine: Engine, name: str, **values: Any) -> None:
    """Append a row to a table of the ledger."""
    types = {column: _TYPES.get(type(value), "VARCHAR") for column, value in values.items()}
    engine.append(table(engine, name), types, [tuple(values.values())])


# -- runs ----------------------------------------------------------------------------------------------


def enter_run(engine: Engine, result: Result, status: str) -> None:
    """Write the run into the ledger, the catalog brought up to date first; call inside a transaction."""
    migrate.migrate(engine)
    loss, earlier = result.loss, result.earlier.hashes
    enter(
        engine,
        "run",
        run_id=result.run_id,
        finished_at=datetime.now(UTC),
        algorithm=result.algorithm,
        source=result.source,
        target=result.target,
        rows_in=loss.rows_published + loss.rows_suppressed,
        rows_published=loss.rows_published,
        rows_suppressed=loss.rows_suppressed,
        classes=loss.classes,
        lm_mean=loss.lm_mean,
        versions=json.dumps(result.versions),
        status=status,
        inferred=json.dumps([inferred.as_dict() for inferred in result.inferred]),
    )
    enter(engine, "run_secret", run_id=result.run_id, seed=str(result.seed), **earlier)
    for verdict in (verdict for audit in result.audits for verdict in audit.verdicts):
        enter(
            engine,
            "run_requirement",
            run_id=result.run_id,
            requirement=verdict.requirement.name,
            parameters=json.dumps({name: plain(value) for name, value in verdict.requirement.shown.items()}),
            holds=verdict.holds,
            worst=verdict.worst,
        )
    if result.recoding is not None:
        record_recoding(engine, result.run_id, result.recoding)


def settle_run(engine: Engine, run_id: str, in_place: bool) -> None:
    """Settle in the ledger a run's file that was written beside: it is in place, or never was."""
    if in_place:
        engine.update(table(engine, "run"), {"status": PUBLISHED}, {"run_id": run_id})
        return
    with engine.transaction():
        forget_recoding(engine, run_id)
        for name in ("run_requirement", "run_secret", "run"):
            engine.delete(table(engine, name), {"run_id": run_id})


def runs(engine: Engine, show_seeds: bool = False) -> list[dict[str, Any]]:
    """The runs as the ledger has them, without their seeds unless these are asked for; the latest last.

    None if there is no ledger. Raises DatabaseError for tables under its name that are not ours.
    """
    migrate.refuse_foreign(engine)
    listed = table(engine, "run")
    if not catalog.table_exists(engine, listed):
        return []
    seeds = _seeds(engine, "run") if show_seeds else None
    noted = "status" in _columns(engine, listed)
    return engine.records("publishing/list_runs", runs=listed, noted=noted, seeds=seeds)


def seed_of(engine: Engine, target: str) -> int | None:
    """The seed of the last run that published the target, None if the ledger knows of none."""
    published = [run for run in runs(engine, True) if (run["target"], run["status"]) == (target, PUBLISHED)]
    seed = published[-1].get("seed") if published else None
    return None if seed is None else int(seed)


def _seeds(engine: Engine, name: str) -> Relation | None:
    """The table that has the seeds of runs or releases: of an older ledger their own; None if none has."""
    public, secret = table(engine, name), table(engine, f"{name}_secret")
    found = secret if catalog.table_exists(engine, secret) else public
    return found if "seed" in _columns(engine, found) else None


def _columns(engine: Engine, listed: Relation) -> list[str]:
    return [column.name for column in catalog.columns_of(engine, listed)]


# -- earlier releases of a source ------------------------------------------------------------------------


def known_as(engine: Engine, source: str, folder: Path) -> Callable[[str], bool]:
    """Whether a name in the ledger is of that source: of a table in any spelling, of a file by any path to it.

    Relative paths are in `folder`.
    """

    @cache
    def whole(name: str) -> str:
        if FileRelation.of(name) or "/" in name:
            return os.path.realpath(folder / name)
        try:
            return repr([part.lower() for part in catalog.located(engine, Relation.parse(name))])
        except Exception:  # what is no name, as that of a query
            return name

    return lambda name: name == source or whole(name) == whole(source)


def earlier_runs(
    engine: Engine, resolved: Resolved, folder: Path, rows: Relation, weight: Identifier | None = None
) -> Earlier:
    """The earlier release of a source, if it was published; `rows` is the source as it was read, `weight` its counts.

    It is the latest of those with the same fingerprint, else the latest of the source, whose path is from `folder`.
    """
    fingerprint = take_fingerprint(engine, resolved, rows, weight, _hash_key(engine))
    listed = {run["run_id"]: run for run in runs(engine) if run["status"] in (PUBLISHED, WRITTEN)}
    hashes = _hashes(engine) if listed else {}
    for run_id in reversed(listed):
        seed, *same = hashes.get(run_id, (None,))
        if fingerprint.policy and same[:3] == [fingerprint.key, fingerprint.rows, fingerprint.policy]:
            return Earlier(run_id, int(seed), fingerprint, True)
    independent = resolved.policy.over_time == "independent"
    is_source = known_as(engine, resolved.source.name, folder)
    before = latest_run(listed.values(), is_source)
    if before is None:
        return Earlier(None, None, fingerprint, None, independent, latest_release(engine, is_source))
    known = hashes.get(before, (None,) * 5)[1:]
    same_rows = _has_same_rows(engine, resolved, fingerprint, known)
    target, count = _place_of(listed, before)
    return Earlier(before, None, fingerprint, same_rows, independent, target=target, rows=count)


def _place_of(listed: Mapping[str, Mapping[str, Any]], run_id: str) -> tuple[str, int]:
    """Where the release of a run is, and how many rows it has; an empty name if a later run wrote there."""
    target = listed[run_id]["target"]
    last = [known for known, run in listed.items() if run["target"] == target][-1]
    return target if last == run_id else "", listed[run_id]["rows_published"]


def latest_release(engine: Engine, is_source: Callable[[str], bool]) -> str:
    """The latest release of a series of a source, in words; empty if there is none."""
    published = [entry for entry in releases(engine) if entry.status == PUBLISHED]
    found = [entry for entry in published if is_source(entry.report.get("source", ""))]
    return f"release {found[-1].release} of {found[-1].series}" if found else ""


def latest_run(listed: Iterable[Mapping[str, Any]], is_source: Callable[[str], bool]) -> str | None:
    """The latest published run of a source, None if there is none."""
    published = [run["run_id"] for run in listed if run["status"] == PUBLISHED and is_source(run["source"])]
    return published[-1] if published else None


def _hashes(engine: Engine) -> dict[str, tuple[Any, ...]]:
    """The seed, the key of hashes, those of rows and policy, and the columns read, of each run; None is not known."""
    held = table(engine, "run_secret")
    if not catalog.table_exists(engine, held):
        return {}
    names = ["run_id", "seed", "hash_key", "rows_hash", "policy_hash"]
    found = engine.find(held, *names, *({"columns_read"} & set(_columns(engine, held))))
    return {run_id: tuple(rest) for run_id, *rest in found}


def _has_same_rows(engine: Engine, resolved: Resolved, fingerprint: Fingerprint, known: Sequence[Any]) -> bool | None:
    """True if the source has the rows that an earlier run read, perhaps in other columns; None if nobody knows."""
    key, rows, _, *columns = known
    if key != fingerprint.key or not columns or columns[0] is None:
        return None
    read, source = tuple(map(tuple, json.loads(columns[0]))), resolved.source
    if read == fingerprint.columns:
        return bool(rows == fingerprint.rows)
    there = {column.name.lower(): Identifier(column.name) for column in resolved.columns}
    weight = Identifier(source.weight.name) if source.weight else None
    if not {name for name, _ in read} <= set(there):
        return False
    required = [there[name] for name, is_required in read if is_required]
    return bool(hash_rows(engine, source.relation, [there[name] for name, _ in read], weight, key, required) == rows)


def withdraw_run(engine: Engine, run_id: str) -> dict[str, Any]:
    """Enter that the release of a run was never handed out; returns the run. `run_id` may be its beginning.

    Later runs of the source are no longer held against it. Its table or file stays. Raises PolicyError unless exactly
    one published run has such an id.
    """
    listed = runs(engine)
    found = [run for run in listed if run["run_id"].startswith(run_id.lower())]
    if len(found) != 1:
        known = [run["run_id"] for run in listed]
        what = f"{len(found)} runs have ids that begin with {run_id}" if found else f"no run {run_id}"
        raise refused("run", what, nearest(run_id, known))
    (run,) = found
    if run["status"] not in (PUBLISHED, WITHDRAWN):
        raise refused("run", f"run {run['run_id']} is {run['status']}, and was not published")
    with engine.transaction():
        migrate.migrate(engine)
        engine.update(table(engine, "run"), {"status": WITHDRAWN}, {"run_id": run["run_id"]})
    return {**run, "status": WITHDRAWN}


def _hash_key(engine: Engine) -> str:
    """The key of the fingerprints that the ledger has, so that a new one can be compared; drawn if it has none."""
    secrets_of_runs = table(engine, "run_secret")
    found = []
    if catalog.table_exists(engine, secrets_of_runs):
        found = engine.tally(secrets_of_runs, "hash_key", where=[Where("hash_key", None, "<>")])
    return min(found, key=lambda row: (-row[1], row[0]))[0] if found else secrets.token_hex(32)


# -- releases of a series ------------------------------------------------------------------------------


def has_releases(engine: Engine) -> bool:
    """True if the catalog has the tables of releases; raises DatabaseError for tables there that are not ours."""
    migrate.refuse_foreign(engine)
    return catalog.table_exists(engine, table(engine, "release_member"))


def releases(engine: Engine, series: str | None = None) -> list[Entry]:
    """The releases of a series, or of all of them."""
    if not has_releases(engine):
        return []
    listed = table(engine, "release")
    noted = any(column.name == "grouped_by" for column in catalog.columns_of(engine, listed))
    rows = engine.records("publishing/list_releases", releases=listed, series=Value(series), noted=noted)
    return [Entry(**{**row, "report": json.loads(row["report"])}) for row in rows]


def unsettled(engine: Engine, series: str | None = None) -> list[Entry]:
    """The releases that have not been published: their process is at it, or has died."""
    return [entry for entry in releases(engine, series) if entry.status != PUBLISHED]


def start_release(engine: Engine, series: str, release: int, seed: int, report: dict[str, Any]) -> None:
    """Write that a release is being made, with the seed that it is drawn by."""
    grouped_by = COINS if report["algorithm"] in DECOMPOSITIONS else None
    key = {"series": series, "release": release}
    enter(
        engine,
        "release",
        **key,
        status=STARTED,
        released_at=datetime.now(UTC),
        report=_text(report),
        grouped_by=grouped_by,
    )
    enter(engine, "release_secret", **key, seed=str(seed))


def release_seed(engine: Engine, series: str, release: int) -> int | None:
    """The seed that a release was drawn by, None if the ledger does not have it."""
    seeds = _seeds(engine, "release") if has_releases(engine) else None
    if seeds is None:
        return None
    found = engine.find(seeds, "seed", where=[Where("series", series), Where("release", release)])
    return next((int(seed) for (seed,) in found if seed is not None), None)


def advance_release(engine: Engine, series: str, release: int, report: dict[str, Any], status: str) -> None:
    """Enter in the ledger how far a release has come, and what it is."""
    values = {"status": status, "report": _text(report)}
    engine.update(table(engine, "release"), values, {"series": series, "release": release})


def settle_release(engine: Engine, series: str, release: int, in_place: bool) -> None:
    """Settle in the ledger a release to a file: it is published, or never was."""
    key = {"series": series, "release": release}
    if in_place:
        engine.update(table(engine, "release"), {"status": PUBLISHED}, key)
        return
    with engine.transaction():
        for name in RELEASE_TABLES:
            engine.delete(table(engine, name), key)
        if not releases(engine, series):
            for name in SERIES_TABLES:
                engine.delete(table(engine, name), {"series": series})


def _text(report: dict[str, Any]) -> str:
    return json.dumps(report, default=float)
