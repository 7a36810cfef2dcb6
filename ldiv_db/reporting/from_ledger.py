"""What the ledger has of a release, and of others that were made from the same source before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.publishing import ledger

_SHOWN = ("run_id", "algorithm", "target", "rows_published", "rows_suppressed", "classes")


@dataclass(frozen=True)
class Noted:
    """The table that a report is of, and its row in the ledger if it has one."""

    table: str
    run: dict[str, Any] | None

    @property
    def about(self) -> dict[str, Any] | None:
        """The run as a report has it."""
        return None if self.run is None else _shown(self.run)


def find_run(engine: Engine, name: str) -> Noted:
    """The table that is named, or that the run of that id published; raises PolicyError for a run to a file."""
    runs = [run for run in ledger.runs(engine) if run["status"] == ledger.PUBLISHED]
    for run in runs:
        if run["run_id"] == name.lower():
            if ":" in run["target"] or "/" in run["target"]:
                what = f"run {name} was published to {run['target']}"
                raise PolicyError([Problem("table", what, "name the file or the table, and its database")])
            return Noted(run["target"], run)
    same = [run for run in runs if run["target"].lower() == name.lower()]
    return Noted(name, same[-1] if same else None)


def earlier_releases(engine: Engine, run: dict[str, Any] | None, source: str | None) -> dict[str, Any]:
    """The runs and the releases of series of the same source, up to this one; all of them for a table without a run.

    Who has several releases can compare them, so that each of them is named.
    """
    source = run["source"] if run else source
    listed = [one for one in ledger.runs(engine) if one["source"] == source and one["status"] == ledger.PUBLISHED]
    ids = [one["run_id"] for one in listed]
    before = listed[: ids.index(run["run_id"])] if run and run["run_id"] in ids else listed
    series = [one for one in ledger.releases(engine) if one.report.get("source") == source]
    return {"runs": [_shown(one) for one in before], "releases": _releases(series)}


def _releases(entries: Sequence[ledger.Entry]) -> list[dict[str, Any]]:
    return [
        {"series": one.series, "release": one.release, "released_at": _utc(one.released_at), "warning": one.warning}
        for one in entries
        if one.status == ledger.PUBLISHED
    ]


def _shown(run: dict[str, Any]) -> dict[str, Any]:
    return {"finished_at": _utc(run["finished_at"])} | {key: run[key] for key in _SHOWN}


def _utc(written: str) -> str:
    """A moment of the ledger in UTC, to the second, whatever the zone of the connection."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
