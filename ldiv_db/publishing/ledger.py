"""The ledger of what was published: runs and releases, and how far each has come.

A publication is `started` (it is being written), `written` (its file is whole, and about to be moved into place),
`published`, and perhaps `withdrawn`: it was never handed out. What is left of one that a process died over is settled:
the ledger says that it is there, or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldiv_db.database import catalog, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import nearest, refused
from ldiv_db.database.migrate import Held
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.sources import DECOMPOSITIONS
from ldiv_db.publishing.report import RunReport
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.loss import TableLoss
from ldiv_db.recoding.rules import forget_recoding, record_recoding

STARTED, WRITTEN, PUBLISHED = "started", "written", "published"
#: What was published, and never handed out.
WITHDRAWN = "withdrawn"
#: How groups of decompositions are formed; nothing is noted of those that were formed in the order of content.
COINS = "coins"
ORDERED = "groups were formed in the order of the quasi-identifiers, which may reveal nearly everybody's value"
WITHDRAW = "withdraw what was published, and publish the table anew under another target"
#: The tables that have a row for a run, a release and a series, or several.
RUN_TABLES = ("run", "run_secret", "run_report_secret", "run_requirement", "run_recoding", "run_column", "run_rule")
RELEASE_TABLES = ("release", "release_secret", "release_member", "release_group")
SERIES_TABLES = ("series_secret", "series")
#: How many rows there are of which those who publish one source hold the same, by a hash of what it is called.
LOCKS = 1024
#: What of a release's report the ledger alone has: what nobody may come to more than, with digests of values.
LIMITS = "limits"
#: The same of nights of people: the hash of what was audited, the last number of a pseudonym, and what was asked.
CONTENT, LAST_PERSON, ASKED = "content", "last_person", "asked"
#: By what a run's rows and policy are known again.
_HASHES = ("hash_key", "rows_hash", "policy_hash", "columns_read")
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
    def rows(self) -> int:
        """The rows of its table."""
        return rows_of_table(self.report)

    def count(self, name: str) -> int:
        """One of its counts; none before it is published."""
        return int(self.report.get(name, 0))

    @property
    def warning(self) -> str | None:
        """A warning on how its groups were formed, None if there is none."""
        return f"release {self.release} of {self.series}: {ORDERED}; {WITHDRAW}" if self.is_ordered else None

    def as_dict(self) -> dict[str, Any]:
        told = {"status": self.status, "released_at": self.released_at, "warning": self.warning}
        report = {
            name: value for name, value in self.report.items() if name not in (LIMITS, CONTENT, LAST_PERSON, ASKED)
        }
        return {**report, "rows_of_table": self.rows, **told}


def rows_of_table(report: Mapping[str, Any]) -> int:
    """The rows of the table of a release: those of its source and, in classes, those that the source had before."""
    gone = 0 if report.get("algorithm") in DECOMPOSITIONS else report.get("counterfeits", 0)
    return int(report.get("rows_published", 0) + gone)


def table(engine: Engine, name: str) -> Relation:
    """A table of the ledger."""
    return catalog.catalog_table(engine, name)


def enter(engine: Engine, name: str, **values: Any) -> None:
    """Append a row to a table of the ledger."""
    types = {column: _TYPES.get(type(value), "VARCHAR") for column, value in values.items()}
    engine.append(table(engine, name), types, [tuple(values.values())])


# -- runs ----------------------------------------------------------------------------------------------


def entries_of(run_id: str) -> dict[str, dict[str, Any]]:
    """The tables of the ledger that have a run, each with the values that tell its rows."""
    return {name: {"run_id": run_id} for name in RUN_TABLES}


def enter_run(engine: Engine, result: Result, status: str, report: RunReport | None) -> None:
    """Enter a run, what its audits say of each requirement, how it recodes, and its report if it has one."""
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
        tables_of_people=_of_people(result.tables),
    )
    enter(engine, "run_secret", run_id=result.run_id, seed=str(result.seed), **earlier)
    for verdict in (verdict for audit in result.audits for verdict in audit.verdicts):
        enter(
            engine,
            "run_requirement",
            run_id=result.run_id,
            requirement=verdict.requirement.name,
            parameters=json.dumps(verdict.entry["parameters"]),
            holds=verdict.holds,
            worst=verdict.worst,
        )
    if report is not None:
        enter(engine, "run_report_secret", run_id=result.run_id, report=str(report))
    if result.recoding is not None:
        record_recoding(engine, result.run_id, result.recoding)


def _of_people(tables: Sequence[TableLoss]) -> str | None:
    """The names of the tables of people, as a list in JSON; None where that is not known."""
    known = [one for one in tables if one.is_of_people is not None]
    return json.dumps([one.name for one in known if one.is_of_people]) if known else None


def report_of(engine: Engine, run_id: str) -> RunReport | None:
    """What a run left for a later one that has the same to publish, None if the ledger has nothing of it."""
    text = _report_of(engine, run_id)
    return RunReport.read(text) if text else None


def release_of(engine: Engine, run_id: str) -> str | None:
    """The hash of what a run published, perhaps one of another version; None if the ledger has none."""
    text = _report_of(engine, run_id)
    return json.loads(text).get("release") if text else None


def _report_of(engine: Engine, run_id: str) -> str | None:
    if "run_report_secret" not in migrate.held(engine):
        return None
    found = engine.find(table(engine, "run_report_secret"), "report", where=[Where("run_id", run_id)])
    return found[0][0] if found else None


def settle_run(engine: Engine, run_id: str, in_place: bool) -> None:
    """Settle in the ledger a run's file that was written beside: it is in place, or never was."""
    if in_place:
        engine.update(table(engine, "run"), {"status": PUBLISHED}, {"run_id": run_id})
        return
    with engine.transaction():
        forget_recoding(engine, run_id)
        for name in ("run_requirement", "run_report_secret", "run_secret", "run"):
            engine.delete(table(engine, name), {"run_id": run_id})


def runs(
    engine: Engine, show_seeds: bool = False, hashes: bool = False, held: Held | None = None
) -> list[dict[str, Any]]:
    """The runs as the ledger has them, without their seeds unless these are asked for; the latest last.

    With `hashes` also by what each is known again, None where it is not noted, and by which `versions` it was made;
    `held` is what the catalog holds, if it has been read. Raises DatabaseError for tables under the ledger's name that
    are not ours.
    """
    held = held or migrate.held(engine)
    if "run" not in held:
        return []
    secret = _secrets(held, "run") if show_seeds or hashes else ""
    seeds, noted = table(engine, secret) if secret else None, "status" in held.columns("run")
    params = {"runs": table(engine, "run"), "noted": noted, "seeds": seeds, "versions": hashes}
    found = engine.records("publishing/list_runs", **params)
    if not hashes:
        return found
    known = [name for name in _HASHES if name in held.columns(secret)]
    noted_of = {run_id: rest for run_id, *rest in engine.find(seeds, "run_id", *known)} if seeds and known else {}
    empty = dict.fromkeys(_HASHES)
    known_by = {run_id: dict(zip(known, rest, strict=False)) for run_id, rest in noted_of.items()}
    return [
        {**run, **empty, **known_by.get(run["run_id"], {}), "versions": json.loads(run["versions"])} for run in found
    ]


def seed_of(engine: Engine, target: str) -> int | None:
    """The seed of the last run that published the target, None if the ledger knows of none."""
    published = [run for run in runs(engine, True) if (run["target"], run["status"]) == (target, PUBLISHED)]
    seed = published[-1].get("seed") if published else None
    return None if seed is None else int(seed)


def _secrets(held: Held, name: str) -> str:
    """The table that has the seeds of runs or releases: of an older ledger their own; empty if none has."""
    found = f"{name}_secret" if f"{name}_secret" in held else name
    return found if "seed" in held.columns(found) else ""


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
    if run["status"] not in (PUBLISHED, WRITTEN, WITHDRAWN):
        raise refused("run", f"run {run['run_id']} is {run['status']}, and was not published")
    with engine.transaction():
        migrate.migrate(engine)
        engine.update(table(engine, "run"), {"status": WITHDRAWN}, {"run_id": run["run_id"]})
    return {**run, "status": WITHDRAWN}


# -- releases of a series ------------------------------------------------------------------------------


def releases(engine: Engine, series: str | None = None, held: Held | None = None) -> list[Entry]:
    """The releases of a series, or of all of them; `held` as of `runs`."""
    held = held or migrate.held(engine)
    if "release" not in held:
        return []
    listed, noted = table(engine, "release"), "grouped_by" in held.columns("release")
    rows = engine.records("publishing/list_releases", releases=listed, series=series, noted=noted)
    return [Entry(**{**row, "report": json.loads(row["report"])}) for row in rows]


def unsettled(engine: Engine, series: str | None = None) -> list[Entry]:
    """The releases that have not been published: their process is at it, or has died."""
    return [entry for entry in releases(engine, series) if entry.status != PUBLISHED]


def start_release(engine: Engine, series: str, release: int, seed: int, report: dict[str, Any]) -> None:
    """Write that a release is being made, with the seed that it is drawn by."""
    grouped_by = COINS if report["algorithm"] in DECOMPOSITIONS else None
    key, begun = {"series": series, "release": release}, {"status": STARTED, "released_at": datetime.now(UTC)}
    enter(engine, "release", **key, **begun, report=_text(report), grouped_by=grouped_by)
    enter(engine, "release_secret", **key, seed=str(seed))


def release_seed(engine: Engine, series: str, release: int) -> int | None:
    """The seed that a release was drawn by, None if the ledger does not have it."""
    secret = _secrets(migrate.held(engine), "release")
    if not secret:
        return None
    found = engine.find(table(engine, secret), "seed", where=[Where("series", series), Where("release", release)])
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
