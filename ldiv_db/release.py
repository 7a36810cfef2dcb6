"""Releases: writing the published table and its ledger row, all or nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from ldiv_db import catalog, migrate
from ldiv_db.audit import Audit, audit_table, require_good
from ldiv_db.encoded import Encoded
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem
from ldiv_db.policy import Policy
from ldiv_db.recode import Recoding, write_release
from ldiv_db.report import Result
from ldiv_db.requirements import Requirement
from ldiv_db.templates import FileRelation, Relation

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
}
_REQUIREMENT_COLUMNS = {
    "run_id": "VARCHAR",
    "requirement": "VARCHAR",
    "parameters": "VARCHAR",
    "holds": "BOOLEAN",
    "worst": "DOUBLE",
}


def check_target(engine: Engine, policy: Policy, target: Relation, source: Relation | FileRelation) -> None:
    """Raise PolicyError if the target is the source, or exists and is not to be replaced."""
    if isinstance(source, Relation) and catalog.same_table(engine, target, source):
        raise PolicyError([Problem("target", "is the source itself", "name another table")])
    if [part.lower() for part in target.parts[-2:-1]] == [catalog.SCHEMA]:
        raise PolicyError([Problem("target", f"schema {catalog.SCHEMA!r} is the catalog's own", "name another schema")])
    if policy.target.if_exists == "fail" and catalog.table_exists(engine, target):
        raise PolicyError([Problem("target", f"{target} exists", "set if_exists: replace, or name another table")])


def publish(
    engine: Engine,
    policy: Policy,
    target: Relation,
    encoded: Encoded,
    recoding: Recoding,
    requirements: Sequence[Requirement],
) -> list[Audit]:
    """Write the release and audit the very table that was written; call inside a transaction.

    Raises AuditError if it fails its policy, which undoes the transaction.
    """
    class_id = policy.publishes_class_id
    write_release(
        engine,
        encoded,
        recoding,
        target,
        policy.seed,
        class_id=class_id,
        replace=policy.target.if_exists == "replace",
    )
    class_columns = [axis.name for axis in encoded.axes] + (["class_id"] if class_id else [])
    audits = [audit_table(engine, target, class_columns, s.column.name, requirements) for s in encoded.sensitive]
    require_good(audits)
    return audits


def record_run(engine: Engine, result: Result) -> None:
    """Write the run into the ledger, the catalog brought up to date first; call inside the publishing transaction."""
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
