"""The audit of individuals: no class has two rows of one.

Whose a row is stands in no release, so this is judged on the classes that the release is written from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import Relation, Value
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.requirements import Classes, Requirement, judge


@dataclass(frozen=True)
class Individuals(Requirement, in_policy=False):
    """No individual has two rows in a class (BSGI, Section 5.2.2): whose a row is differs like a unique value."""

    name = "individuals"
    reaches = "rows"

    @property
    def template(self) -> str:
        return "requirements/unique_distinct"

    def holes(self, steps: Steps) -> dict[str, Any]:
        return {"l": Value(1)}

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return "one row of an individual"


def audit_individuals(engine: Engine, encoded: Encoded, assigned: Relation) -> list[Audit]:
    """The audit of the classes as they are about to be published; empty if the policy names no individual.

    `assigned` is (row_id, class_id), whose rows are those of the encoded table.
    """
    if encoded.individual is None:
        return []
    histogram = engine.materialise(
        "histogram",
        "auditing/count_individuals",
        rows=encoded.rows,
        assigned=assigned,
        individual=encoded.individual.code,
    )
    classes = Classes(engine, histogram)
    verdict = judge(engine, Individuals(), classes)
    rows = engine.total(classes.totals, "rows")
    classes.drop()
    engine.drop(histogram)
    return [Audit(encoded.individual.column.name, verdict.classes, rows, (verdict,))]
