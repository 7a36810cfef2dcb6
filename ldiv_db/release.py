"""Releases: what is to be published, its audit, and its row in the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ldiv_db import catalog, migrate
from ldiv_db.audit import Audit, audit_table, require_good
from ldiv_db.encoded import Encoded
from ldiv_db.engine import Engine
from ldiv_db.policy import Policy
from ldiv_db.published import class_columns, release_columns
from ldiv_db.recode import Recoding, published_rows
from ldiv_db.report import Result
from ldiv_db.requirements import Requirement
from ldiv_db.templates import FileRelation, Identifier, Relation

#: What the ledger says of a release: its file is whole and about to be moved into place; it is in place.
WRITTEN, PUBLISHED = "written", "published"
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
    requirements: Sequence[Requirement]

    @property
    def columns(self) -> list[str]:
        """The columns of the release, in their order."""
        return release_columns(self.policy)

    def rows(self, last_class: int = 0) -> AbstractContextManager[dict[str, Any]]:
        """What fills the template of the release; class ids follow `last_class`."""
        policy = self.policy
        return published_rows(
            self.engine, self.encoded, self.recoding, policy.seed, policy.publishes_class_id, last_class
        )

    def audit(self, published: Relation | FileRelation) -> list[Audit]:
        """The audits of what was written; raises AuditError if it fails the policy."""
        columns = class_columns(self.policy)
        names = [attribute.column.name for attribute in self.encoded.sensitive]
        audits = [audit_table(self.engine, published, columns, name, self.requirements) for name in names]
        require_good(audits)
        return audits


def record_run(engine: Engine, result: Result, status: str) -> None:
    """Write the run into the ledger, the catalog brought up to date first; call inside a transaction."""
    migrate.migrate(engine)
    engine.append(
        catalog.catalog_table("run"),
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
            )
        ],
    )
    rows = [
        (
            result.run_id,
            verdict["name"],
            # Thresholds are keyed by sensitive values, which the ledger never holds.
            json.dumps({k: v for k, v in verdict["parameters"].items() if k in ("k", "l", "default")}),
            verdict["holds"],
            verdict["worst"],
        )
        for verdict in result.requirements
    ]
    engine.append(catalog.catalog_table("run_requirement"), _REQUIREMENT_COLUMNS, rows)


def settle_run(engine: Engine, run_id: str, in_place: bool) -> None:
    """Have the ledger say what became of a release that was written beside: it is in place, or never was."""
    key = Identifier("run_id")
    if in_place:
        engine.update(catalog.catalog_table("run"), Identifier("status"), PUBLISHED, key, run_id)
        return
    with engine.transaction():
        engine.delete(catalog.catalog_table("run_requirement"), key, run_id)
        engine.delete(catalog.catalog_table("run"), key, run_id)
