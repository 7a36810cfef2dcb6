"""The ledger of what was published: runs and releases, and how far each has come.

A publication is `started` (it is being written), `written` (its file is whole, and about to be moved into place) or
`published`. What is left of one that a process died over is settled: the ledger says that it is there, or nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldiv_db.database import catalog, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.policy.series import DECOMPOSITIONS
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.global_recoding import forget_recoding, record_recoding
from ldiv_db.requirements import plain

STARTED, WRITTEN, PUBLISHED = "started", "written", "published"
#: How groups of decompositions are formed; nothing is noted of those that were formed in the order of content.
COINS = "coins"
ORDERED = "groups were formed in the order of the quasi-identifiers, which may reveal nearly everybody's value"
WITHDRAW = "withdraw what was published, and publish the table anew under another target"
#: The columns of runs, of the requirements that a run met, and of releases.
_RUN_COLUMNS = {
    "run_id": "VARCHAR",
    "finished_at": "TIMESTAMPTZ",
    "algorithm": "VARCHAR",
    "source": "VARCHAR",
    "target": "VARCHAR",
    "rows_in": "BIGINT",
    "rows_published": "BIGINT",
    "rows_suppressed": "BIGINT",
    "classes": "BIGINT",
    "lm_mean": "DOUBLE",
    "versions": "VARCHAR",
    "status": "VARCHAR",
    "seed": "VARCHAR",
    "inferred": "VARCHAR",
}
_REQUIREMENT_COLUMNS = {
    "run_id": "VARCHAR",
    "requirement": "VARCHAR",
    "parameters": "VARCHAR",
    "holds": "BOOLEAN",
    "worst": "DOUBLE",
}
_RELEASE_COLUMNS = {
    "series": "VARCHAR",
    "release": "INTEGER",
    "status": "VARCHAR",
    "released_at": "TIMESTAMPTZ",
    "report": "VARCHAR",
    "seed": "VARCHAR",
    "grouped_by": "VARCHAR",
}


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


# -- runs ----------------------------------------------------------------------------------------------


def enter_run(engine: Engine, result: Result, status: str) -> None:
    """Write the run into the ledger, the catalog brought up to date first; call inside a transaction."""
    migrate.migrate(engine)
    run = (
        result.run_id,
        datetime.now(UTC),
        result.algorithm,
        result.source,
        result.target,
        result.loss.rows_published + result.loss.rows_suppressed,
        result.loss.rows_published,
        result.loss.rows_suppressed,
        result.loss.classes,
        result.loss.lm_mean,
        json.dumps(result.versions),
        status,
        str(result.seed),
        json.dumps([inferred.as_dict() for inferred in result.inferred]),
    )
    engine.append(table(engine, "run"), _RUN_COLUMNS, [run])
    requirements = [
        (
            result.run_id,
            verdict.requirement.name,
            json.dumps({name: plain(value) for name, value in verdict.requirement.shown.items()}),
            verdict.holds,
            verdict.worst,
        )
        for audit in result.audits
        for verdict in audit.verdicts
    ]
    engine.append(table(engine, "run_requirement"), _REQUIREMENT_COLUMNS, requirements)
    if result.recoding is not None:
        record_recoding(engine, result.run_id, result.recoding)


def settle_run(engine: Engine, run_id: str, in_place: bool) -> None:
    """Have the ledger say what became of a run's file that was written beside: it is in place, or never was."""
    if in_place:
        engine.update(table(engine, "run"), {"status": PUBLISHED}, {"run_id": run_id})
        return
    with engine.transaction():
        forget_recoding(engine, run_id)
        for name in ("run_requirement", "run"):
            engine.delete(table(engine, name), {"run_id": run_id})


def runs(engine: Engine) -> list[dict[str, Any]]:
    """The runs as the ledger has them, without their seeds, the latest last; none if there is no ledger.

    Raises DatabaseError for tables under its name that are not ours.
    """
    migrate.refuse_foreign(engine)
    listed = table(engine, "run")
    if not catalog.table_exists(engine, listed):
        return []
    noted = any(column.name == "status" for column in catalog.columns_of(engine, listed))
    return engine.records("publishing/list_runs", runs=listed, noted=noted)


def seed_of(engine: Engine, target: str) -> int | None:
    """The seed of the last run that published the target, None if the ledger knows of none."""
    migrate.refuse_foreign(engine)
    runs = table(engine, "run")
    if not catalog.table_exists(engine, runs):
        return None
    if not {"seed", "status"} <= {column.name for column in catalog.columns_of(engine, runs)}:
        return None
    found = engine.rows("publishing/find_seed", runs=runs, target=Value(target), status=Value(PUBLISHED))
    return next((int(seed) for (seed,) in found if seed is not None), None)


# -- releases of a series ------------------------------------------------------------------------------


def has_releases(engine: Engine) -> bool:
    """Whether the catalog has the tables of releases yet; raises DatabaseError for tables there that are not ours."""
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
    row = (series, release, STARTED, datetime.now(UTC), _text(report), str(seed), grouped_by)
    engine.append(table(engine, "release"), _RELEASE_COLUMNS, [row])


def advance_release(engine: Engine, series: str, release: int, report: dict[str, Any], status: str) -> None:
    """Have the ledger say how far a release has come, and what it is."""
    values = {"status": status, "report": _text(report)}
    engine.update(table(engine, "release"), values, {"series": series, "release": release})


def settle_release(engine: Engine, series: str, release: int, in_place: bool) -> None:
    """Have the ledger say what became of a release to a file: it is published, or never was."""
    key = {"series": series, "release": release}
    if in_place:
        engine.update(table(engine, "release"), {"status": PUBLISHED}, key)
        return
    with engine.transaction():
        for name in ("release", "release_member", "release_group"):
            engine.delete(table(engine, name), key)
        if not releases(engine, series):
            engine.delete(table(engine, "series"), {"series": series})


def _text(report: dict[str, Any]) -> str:
    return json.dumps(report, default=float)
