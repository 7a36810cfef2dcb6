"""Releases: what is to be published, its audit, and its row in the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldiv_db.auditing.audit import Audit, Subject, Suppressed, audit_table, require_good
from ldiv_db.auditing.individuals import audit_individuals
from ldiv_db.database import catalog, migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.global_recoding import forget_recoding, record_recoding
from ldiv_db.recoding.recode import Recoding, published_rows
from ldiv_db.requirements import Requirement, plain

#: What the ledger says of a release: it is being made; its file is whole and about to be moved into place; it is there.
STARTED, WRITTEN, PUBLISHED = "started", "written", "published"
#: The ledger's columns, and those of the requirements that a run met.
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
}
_REQUIREMENT_COLUMNS = {
    "run_id": "VARCHAR",
    "requirement": "VARCHAR",
    "parameters": "VARCHAR",
    "holds": "BOOLEAN",
    "worst": "DOUBLE",
}


@dataclass(frozen=True)
class Draft:
    """A release that is planned but not written."""

    engine: Engine
    policy: Policy
    encoded: Encoded
    recoding: Recoding
    requirements: Mapping[str, Sequence[Requirement]]

    @property
    def columns(self) -> list[str]:
        """The columns of the release, in their order."""
        return self.policy.released.all

    def rows(self, last_class: int = 0, texts: bool = False) -> AbstractContextManager[dict[str, Any]]:
        """What fills the template of the release; class ids follow `last_class`, as `texts` all columns are text."""
        ids = self.policy.publishes_class_id
        return published_rows(self.engine, self.encoded, self.recoding, ids, last_class, texts)

    def audit(self, published: Relation | FileRelation, rows_before: int = 0) -> list[Audit]:
        """The audits of what was written; raises AuditError if it fails the policy or has lost or gained rows.

        `rows_before` counts the rows that stood there already.
        """
        labels, ids = self.policy.released.identifying, self.policy.released.class_ids
        suppressed: Suppressed = self.policy.suppressed if self.recoding.blanked is None else "unknown"
        subject = Subject(published, labels, ids, suppressed=suppressed)
        names = list(self.requirements)
        audits = [
            audit_table(self.engine, subject, name, wanted, [other for other in names if other != name])
            for name, wanted in self.requirements.items()
        ]
        beside = audit_individuals(self.engine, self.encoded, self.recoding.assigned)
        require_good([*audits, *beside])
        expected = self.engine.count(self.recoding.assigned)
        for audit in audits:
            found = audit.rows + audit.ignored_rows - rows_before
            if found != expected:
                raise AuditError(f"{found:,} rows were written in place of the {expected:,} to be published")
        return [*audits, *beside]


def record_run(engine: Engine, result: Result, status: str) -> None:
    """Write the run into the ledger, the catalog brought up to date first; call inside a transaction."""
    migrate.migrate(engine)
    engine.append(
        catalog.catalog_table(engine, "run"),
        _RUN_COLUMNS,
        [
            (
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
            )
        ],
    )
    rows = [
        (
            result.run_id,
            verdict.requirement.name,
            json.dumps({k: plain(v) for k, v in verdict.requirement.shown.items()}),
            verdict.holds,
            verdict.worst,
        )
        for audit in result.audits
        for verdict in audit.verdicts
    ]
    engine.append(catalog.catalog_table(engine, "run_requirement"), _REQUIREMENT_COLUMNS, rows)
    if result.recoding is not None:
        record_recoding(engine, result.run_id, result.recoding)


def settle_run(engine: Engine, run_id: str, in_place: bool) -> None:
    """Have the ledger say what became of a release that was written beside: it is in place, or never was."""
    if in_place:
        engine.update(catalog.catalog_table(engine, "run"), {"status": PUBLISHED}, {"run_id": run_id})
        return
    with engine.transaction():
        forget_recoding(engine, run_id)
        for table in ("run_requirement", "run"):
            engine.delete(catalog.catalog_table(engine, table), {"run_id": run_id})
