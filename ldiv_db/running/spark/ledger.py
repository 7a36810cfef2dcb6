"""The ledger of runs on Spark: tables of its catalog with the columns of ours, or a DuckDB file.

Tables of most formats take no updates, so that a run has a row for every status that it came to; the last one holds.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ldiv_db.database import spark as tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.spark import plainly
from ldiv_db.database.templates import Relation
from ldiv_db.publishing import ledger
from ldiv_db.publishing.ledger import PUBLISHED, WRITTEN
from ldiv_db.publishing.result import Earlier, Result
from ldiv_db.requirements import plain

#: What became of a run whose release was never put into place.
DROPPED = "dropped"
_RUN = (
    "run_id STRING, finished_at TIMESTAMP, algorithm STRING, source STRING, target STRING, rows_in BIGINT,"
    " rows_published BIGINT, rows_suppressed BIGINT, classes BIGINT, lm_mean DOUBLE, versions STRING, status STRING,"
    " seed STRING, inferred STRING"
)
_SEEDS = "run_id STRING, seed STRING"
_REQUIREMENT = "run_id STRING, requirement STRING, parameters STRING, holds BOOLEAN, worst DOUBLE"


class Ledger(ABC):
    """Base of the ledgers: the record of every run and its release."""

    @abstractmethod
    def earlier(self, source: str) -> Earlier:
        """The earlier releases of the source."""

    @abstractmethod
    def enter(self, result: Result) -> None:
        """Write a run that is about to be put into place."""

    @abstractmethod
    def settle(self, result: Result, in_place: bool) -> None:
        """Write what became of it."""

    @abstractmethod
    def settle_left(self, target: str, left: Iterable[str]) -> None:
        """Write what became of runs to the target whose driver died: those that are `left` were not put into place."""


class FileLedger(Ledger):
    """A DuckDB file, the catalog of an engine."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def earlier(self, source: str) -> Earlier:
        return Earlier(ledger.latest_run(ledger.runs(self._engine), source))

    def enter(self, result: Result) -> None:
        with self._engine.transaction():
            ledger.enter_run(self._engine, result, WRITTEN)

    def settle(self, result: Result, in_place: bool) -> None:
        ledger.settle_run(self._engine, result.run_id, in_place)

    def settle_left(self, target: str, left: Iterable[str]) -> None:
        gone = set(left)
        for run in ledger.runs(self._engine):
            if (run["status"], run["target"]) == (WRITTEN, target):
                ledger.settle_run(self._engine, run["run_id"], run["run_id"] not in gone)


class TableLedger(Ledger):
    """Tables `run`, `run_secret` and `run_requirement` of a schema of Spark's catalog.

    The column `seed` of runs is of older versions, and empty: seeds stand in a table that has grants of its own.
    """

    def __init__(self, session: Any, schema: Relation):
        self._session = session
        self._run = Relation((*schema.parts, "run"))
        self._secret = Relation((*schema.parts, "run_secret"))
        self._requirement = Relation((*schema.parts, "run_requirement"))

    def earlier(self, source: str) -> Earlier:
        known = [row for row in self._rows() if (row["source"], row["status"]) == (source, PUBLISHED)]
        return Earlier(max(known, key=lambda row: row["finished_at"])["run_id"] if known else None)

    def enter(self, result: Result) -> None:
        requirements = [
            (result.run_id, verdict.requirement.name, _parameters(verdict.requirement), verdict.holds, verdict.worst)
            for audit in result.audits
            for verdict in audit.verdicts
        ]
        self._append(self._requirement, _REQUIREMENT, requirements)
        self._append(self._secret, _SEEDS, [(result.run_id, str(result.seed))])
        self._append(self._run, _RUN, [_row(result, WRITTEN)])

    def settle(self, result: Result, in_place: bool) -> None:
        self._append(self._run, _RUN, [_row(result, PUBLISHED if in_place else DROPPED)])

    def settle_left(self, target: str, left: Iterable[str]) -> None:
        gone = set(left)
        if not gone and not tables.exists(self._session, self._run):
            return
        tables.make_lasting(self._session, self._run, _RUN)
        rows = self._rows()
        self._move_seeds(rows)
        known = [row for row in rows if row["target"] == target]
        done = {row["run_id"] for row in known if row["status"] != WRITTEN}
        status = {True: DROPPED, False: PUBLISHED}
        open_rows = [{**row.asDict(), "seed": None} for row in known if row["run_id"] not in done]
        settled = [tuple({**row, "status": status[row["run_id"] in gone]}.values()) for row in open_rows]
        self._append(self._run, _RUN, settled)

    def _rows(self) -> list[Any]:
        """The rows of runs, one a status that each came to."""
        if not tables.exists(self._session, self._run):
            return []
        with plainly("read the ledger"):
            return list(tables.read(self._session, self._run).collect())

    def _move_seeds(self, rows: list[Any]) -> None:
        """Have the seeds that older versions wrote beside runs in a table of their own."""
        seeds = {row["run_id"]: row["seed"] for row in rows if row["seed"] is not None}
        if seeds:
            self._append(self._secret, _SEEDS, list(seeds.items()))
            bare = [tuple({**row.asDict(), "seed": None}.values()) for row in rows]
            self._append(self._run, _RUN, bare, overwrite=True)

    def _append(self, table: Relation, columns: str, rows: list[Any], overwrite: bool = False) -> None:
        if rows:
            tables.make_lasting(self._session, table, columns)
            with plainly("write the ledger"):
                frame = self._session.createDataFrame(rows, columns)
                frame.coalesce(1).write.insertInto(tables.quoted(table), overwrite=overwrite)


def _parameters(requirement: Any) -> str:
    return json.dumps({name: plain(value) for name, value in requirement.shown.items()})


def _row(result: Result, status: str) -> tuple[Any, ...]:
    loss = result.loss
    return (
        result.run_id,
        datetime.now(UTC),
        result.algorithm,
        result.source,
        result.target,
        loss.rows_published + loss.rows_suppressed,
        loss.rows_published,
        loss.rows_suppressed,
        loss.classes,
        loss.lm_mean,
        json.dumps(result.versions),
        status,
        None,
        json.dumps([inferred.as_dict() for inferred in result.inferred]),
    )
