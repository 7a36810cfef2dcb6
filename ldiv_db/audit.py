"""The audit: does a published table meet its requirements? It trusts nothing but the table.

Classes are the combinations of quasi-identifiers as they stand in the table, NULL being a value like
any other. No template is shared with the algorithms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ldiv_db.catalog import columns_of
from ldiv_db.encoded import Encoded, Renamed
from ldiv_db.engine import Engine
from ldiv_db.errors import AuditError, PolicyError, Problem, nearest
from ldiv_db.requirements import Requirement, RequirementSpec, Verdict, judge
from ldiv_db.templates import FileRelation, Identifier, Relation, Value


@dataclass(frozen=True)
class Audit:
    """The verdicts on one sensitive attribute of a published table."""

    sensitive: str
    classes: int
    rows: int
    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        return {
            "sensitive": self.sensitive,
            "classes": self.classes,
            "rows": self.rows,
            "holds": self.holds,
            "requirements": [verdict.as_dict() for verdict in self.verdicts],
        }


def audit_table(
    engine: Engine,
    table: Relation | FileRelation,
    class_columns: Sequence[str],
    sensitive: str,
    requirements: Sequence[Requirement],
) -> Audit:
    """The audit of `table`, whose classes are the distinct combinations of `class_columns`."""
    with _histogram(engine, table, class_columns, sensitive) as histogram:
        summary = engine.record("audit/summarise_classes", histogram=histogram)
        verdicts = tuple(judge(engine, requirement, histogram) for requirement in requirements)
    return Audit(sensitive, summary["classes"], int(summary["rows"]), verdicts)


@contextmanager
def _histogram(
    engine: Engine, table: Relation | FileRelation, class_columns: Sequence[str], sensitive: str
) -> Iterator[Relation]:
    """The TEMP table (class_no, value, rows): one aggregation that all requirements share."""
    columns = [Renamed(Identifier(name), Identifier(f"c{i}")) for i, name in enumerate(class_columns, 1)]
    counts = engine.materialise(
        "counts",
        "audit/count_published",
        published=table,
        class_columns=columns,
        sensitive=Identifier(sensitive),
    )
    histogram = engine.materialise("histogram", "audit/number_classes", counts=counts, class_columns=columns)
    engine.drop(counts)
    yield histogram
    engine.drop(histogram)


class Individuals(Requirement):
    """No individual has two rows in a class (BSGI, Section 5.2.2): whose a row is differs like a unique value."""

    name = "individuals"

    def __str__(self) -> str:
        return "one row of an individual"

    @property
    def template(self) -> str:
        return "requirements/unique_distinct"

    def holes(self, engine: Engine) -> dict[str, Any]:
        return {"l": Value(1)}


def audit_individuals(engine: Engine, encoded: Encoded, assigned: Relation) -> list[Audit]:
    """The audit of the classes as they are about to be published, since the individual is not; empty if there is none.

    `assigned` is (row_id, class_id), whose rows are those of the encoded table.
    """
    if encoded.individual is None:
        return []
    histogram = engine.materialise(
        "histogram",
        "audit/count_individuals",
        rows=encoded.rows,
        assigned=assigned,
        individual=encoded.individual.code,
    )
    summary = engine.record("audit/summarise_classes", histogram=histogram)
    verdict = judge(engine, Individuals(), histogram)
    engine.drop(histogram)
    return [Audit(encoded.individual.column.name, summary["classes"], int(summary["rows"]), (verdict,))]


def require_good(audits: Sequence[Audit]) -> None:
    """Raise AuditError, naming what failed, unless every audit holds."""
    failed = [
        f"{verdict.requirement} on {audit.sensitive}: {verdict.violating_classes:,} of {verdict.classes:,} classes"
        f" violate it ({verdict.violating_rows:,} rows)"
        for audit in audits
        for verdict in audit.verdicts
        if not verdict.holds
    ]
    if failed:
        raise AuditError("the audit failed, nothing was published:\n" + "\n".join(failed))


def check(
    engine: Engine,
    table: Relation | FileRelation,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    require: Sequence[RequirementSpec],
    class_column: str | None = None,
) -> list[Audit]:
    """The audits of any published table, one a sensitive attribute.

    `class_column` names a column of class ids; classes are then told apart by it as well. Raises
    PolicyError for columns that the table lacks and for requirements that do not exist.
    """
    names = [column.name for column in columns_of(engine, table)]
    known = {name.lower() for name in names}
    asked = [("qi", name) for name in quasi_identifiers] + [("sensitive", name) for name in sensitive]
    asked += [("class", class_column)] if class_column else []
    problems = [
        Problem(key, f"the table has no column {name!r}", nearest(name, names))
        for key, name in asked
        if name.lower() not in known
    ]
    for spec in require:
        problems += spec.problems("require")
        if spec.argument == "auto":
            problems.append(Problem("require", f"{spec.name}: auto needs a source, say the number"))
    if problems:
        raise PolicyError(problems)
    requirements = [spec.resolve(None) for spec in require]
    class_columns = [*quasi_identifiers, *([class_column] if class_column else [])]
    return [audit_table(engine, table, class_columns, name, requirements) for name in sensitive]
