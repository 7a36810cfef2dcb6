"""Facts that anybody with the release can work out: hashes, audit and classes; and its entries in the ledger.

The hash of a table does not depend on the order of its rows: by it a release is known again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldiv_db.auditing.audit import Audit, hold_together
from ldiv_db.auditing.counting import counted
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.publishing import ledger
from ldiv_db.publishing.ledger_there import bring_ledger
from ldiv_db.reporting.table_text import words_on


def content_of(engine: Engine, table: Table) -> dict[str, Any]:
    """The rows of a table, its columns, and SHA-256 of both names and rows; values count as the texts that they are.

    An attacker who holds all of a table but one row can check a guess at that row by the table's hash: they may not
    see the hash of a source, which is for those who may read the source.
    """
    names = [column.name for column in columns_of(engine, table)]
    found = engine.record("reporting/hash_rows", source=table, columns=[Identifier(name) for name in names])
    whole = json.dumps([names, found["digest"]], ensure_ascii=False)
    return {"rows": int(found["rows"]), "columns": names, "sha256": hashlib.sha256(whole.encode()).hexdigest()}


_SHOWN = ("run_id", "algorithm", "target", "rows_published", "rows_suppressed", "classes")


@dataclass(frozen=True)
class ReportedTable:
    """The table that a report is of, and its row in the ledger if it has one."""

    table: str
    run: dict[str, Any] | None

    @property
    def about(self) -> dict[str, Any] | None:
        """The run as a report has it."""
        return None if self.run is None else shown_run(self.run)


def find_run(engine: Engine, name: str) -> ReportedTable:
    """The table that is named, or that the run of that id published; raises PolicyError for a run to a file."""
    bring_ledger(engine)
    runs = [*published_runs(engine), *_latest_of_series(engine)]
    for run in runs:
        if run["run_id"] == name.lower():
            if ":" in run["target"] or "/" in run["target"]:
                what = f"run {name} was published to {run['target']}"
                raise PolicyError([Problem("table", what, "name the file or the table, and its database")])
            return ReportedTable(run["target"], run)
    same = [run for run in runs if name.lower() in (run["target"].lower(), *map(str.lower, run.get("tables", ())))]
    return ReportedTable(name, same[-1] if same else None)


def _latest_of_series(engine: Engine) -> Iterator[dict[str, Any]]:
    """The releases of series that are published, as runs are entered; the target is the table of each."""
    for one in ledger.releases(engine):
        if one.status == ledger.PUBLISHED and (tables := one.report.get("tables")):
            told = {"target": tables[0], "rows_published": one.rows, "rows_suppressed": one.count("rows_left_out")}
            told |= {"classes": one.count("groups"), "finished_at": one.released_at}
            yield {**told, **{key: one.report.get(key) for key in ("run_id", "algorithm", "source", "tables")}}


def published_runs(engine: Engine) -> list[dict[str, Any]]:
    """The runs of the ledger whose release is published, in their order."""
    return [run for run in ledger.runs(engine) if run["status"] == ledger.PUBLISHED]


def shown_run(run: dict[str, Any]) -> dict[str, Any]:
    """The run as a report has it."""
    return {"finished_at": in_utc(run["finished_at"])} | {key: run[key] for key in _SHOWN}


def in_utc(written: str) -> str:
    """A moment of the ledger in UTC, to the second, whatever the zone of the connection."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


#: Bins of class sizes at most, and bins of shares: a bound of 1/2, 1/4, 1/5 or 1/10 stands between two of these.
SIZE_BINS, SHARE_BINS = 24, 20


def audit_document(audits: Sequence[Audit]) -> dict[str, Any]:
    """The audits as a report has them: each requirement with its bound, worst class and margin."""
    return {"holds": hold_together(audits), "attributes": [_attribute(found) for found in audits]}


def _attribute(found: Audit) -> dict[str, Any]:
    asked = [verdict.requirement for verdict in found.verdicts]
    words = [{"requirement": str(one), **words_on(one, found.unit)} for one in asked]
    whole = found.as_dict()
    requirements = [{**said, **one} for said, one in zip(words, whole.pop("requirements"), strict=True)]
    return {**whole, "requirements": requirements}


def classes_of(
    engine: Engine, names: Iterable[str], read: Callable[[str], AbstractContextManager[Subject]]
) -> dict[str, Any]:
    """Histograms of class sizes and of the largest share in each class, by sensitive attribute: counts alone.

    `read` gives the classes of an attribute. They are of people where it is said whose a row is.
    """
    sizes: dict[str, Any] = {}
    shares = {}
    for name in names:
        with read(name) as subject, counted(engine, subject, name) as counts:
            sizes = sizes or _sizes(engine, counts.listed)
            if name:
                summary = counts.classes.summary
                rows = dict(engine.rows("reporting/count_largest_shares", summary=summary, bins=SHARE_BINS))
                shares[name] = [rows.get(place, 0) for place in range(SHARE_BINS)]
    return {"sizes": sizes, "largest_shares": shares}


def _sizes(engine: Engine, classes: Relation) -> dict[str, Any]:
    least, most = (int(found(classes, "class_rows") or 0) for found in (engine.least, engine.most))
    width = max(1, -(-(most - least + 1) // SIZE_BINS))
    rows = engine.rows("reporting/count_sizes", classes=classes, least=least, width=width)
    bins = [{"from": least + bin_ * width, "classes": int(n), "rows": int(r)} for bin_, n, r in rows]
    return {"least": least, "most": most, "width": width, "bins": bins}
