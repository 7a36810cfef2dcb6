"""The audit by Spark, of the release as it lies staged: the steps of every audit, carried over to its SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ldiv_db.auditing.audit import Audit, audit_table, require_good
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.spark_engine import SparkEngine
from ldiv_db.database.templates import Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.publishing.draft import require_rows
from ldiv_db.requirements import Requirement


def audit_staged(
    engine: SparkEngine,
    resolved: Resolved,
    staged: Relation,
    wanted: Mapping[str, Sequence[Requirement]],
    expected: int,
    earlier_rows: int = 0,
    found: Sequence[Audit] = (),
    blanks: bool = False,
) -> list[Audit]:
    """The audits of the staged rows, of which `expected` are new and `earlier_rows` were there.

    `found` are audits of the same rows by those who made them, of which the warnings are taken; with `blanks` sensitive
    values may have been published as NULL. Raises AuditError if the release fails the policy or has lost rows.
    """
    released = resolved.released
    suppressed = "unknown" if blanks else resolved.suppressed
    subject = Subject(staged, released.identifying, released.class_ids, suppressed=suppressed)
    names, warnings = list(wanted), {audit.sensitive: audit.warnings for audit in found}
    audits = [
        replace(
            audit_table(engine, subject, name, own, [other for other in names if other != name], as_it_lies=True),
            warnings=tuple(warnings.get(name, ())),
        )
        for name, own in wanted.items()
    ]
    require_good(audits)
    for audit in audits:
        require_rows(audit.rows + audit.ignored_rows - earlier_rows, expected)
    return audits
