"""The ledger of runs on Spark: tables of its catalog with the columns of ours, or a DuckDB file.

Tables of most formats take no updates, so that a run has a row for every status that it came to; the last one holds.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ldiv_db.database import spark_tables as tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.templates import Relation
from ldiv_db.publishing import ledger
from ldiv_db.publishing.ledger import PUBLISHED, WRITTEN
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import plain

#: What became of a run whose release was never put into place.
DROPPED = "dropped"
_RUN = (
    "run_id STRING, finished_at TIMESTAMP, algorithm STRING, source STRING, target STRING, rows_in BIGINT,"
    " rows_published BIGINT, rows_suppressed BIGINT, classes BIGINT, lm_mean DOUBLE, versions STRING, status STRING,"
    " seed STRING, inferred STRING"
)
_REQUIREMENT = "run_id STRING, requirement STRING, parameters STRING, holds BOOLEAN, worst DOUBLE"


class Ledger(ABC):
    """Where it is written what was published."""

    @abstractmethod
    def enter(self, result: Result) -> None:
        """Write a run that is about to be put into place."""

    @abstractmethod
    def settle(self, result: Result, in_place: bool) -> None:
        """Write what became of it."""

    @abstractmethod
    def settle_left(self, target: str, left: Iterable[str]) -> None:
        """Write what became of runs to the target whose driver died: those that are `left` were not put into place."""


class InFile(Ledger):
    """A DuckDB file, the catalog of an engine."""

    def __init__(self, engine: Engine):
        self._engine = engine

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


class InTables(Ledger):
    """Tables `run` and `run_requirement` of a schema of Spark's catalog."""

    def __init__(self, session: Any, schema: Relation):
        self._session = session
        self._run = Relation((*schema.parts, "run"))
        self._requirement = Relation((*schema.parts, "run_requirement"))

    def enter(self, result: Result) -> None:
        requirements = [
            (result.run_id, verdict.requirement.name, _parameters(verdict.requirement), verdict.holds, verdict.worst)
            for audit in result.audits
            for verdict in audit.verdicts
        ]
        self._append(self._requirement, _REQUIREMENT, requirements)
        self._append(self._run, _RUN, [_row(result, WRITTEN)])

    def settle(self, result: Result, in_place: bool) -> None:
        self._append(self._run, _RUN, [_row(result, PUBLISHED if in_place else DROPPED)])

    def settle_left(self, target: str, left: Iterable[str]) -> None:
        gone = set(left)
        if not gone and not tables.exists(self._session, self._run):
            return
        tables.make_lasting(self._session, self._run, _RUN)
        with plainly("read the ledger"):
            rows = tables.read(self._session, self._run).collect()
        known = [row for row in rows if row["target"] == target]
        done = {row["run_id"] for row in known if row["status"] != WRITTEN}
        status = {True: DROPPED, False: PUBLISHED}
        open_rows = [row.asDict() for row in known if row["run_id"] not in done]
        settled = [tuple({**row, "status": status[row["run_id"] in gone]}.values()) for row in open_rows]
        self._append(self._run, _RUN, settled)

    def _append(self, table: Relation, columns: str, rows: list[Any]) -> None:
        if rows:
            tables.make_lasting(self._session, table, columns)
            with plainly("write the ledger"):
                frame = self._session.createDataFrame(rows, columns)
                frame.coalesce(1).write.insertInto(tables.quoted(table))


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
        str(result.seed),
        json.dumps([inferred.as_dict() for inferred in result.inferred]),
    )
