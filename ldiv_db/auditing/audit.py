"""The audit: does a published table meet its requirements? It trusts nothing but the table.

Classes are the combinations of quasi-identifiers as they stand in the table, NULL being a value like
any other. No template is shared with the algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step, read_as_one, read_exactly
from ldiv_db.database.errors import AuditError, PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import Attribute, Categories, Classes, Requirement, Verdict, judge
from ldiv_db.requirements.reading import warn_of_classes

#: What becomes of suppressed rows: they are judged like any others, or left out, or a NULL in the place of a sensitive
#: value is no value but counts in the size of its class: a share is that of the rows of whom an attacker must think.
Suppressed = Literal["judge", "ignore", "unknown"]


@dataclass(frozen=True)
class Pair:
    """An anatomised table: the sensitive table, the group that joins both, and its column of counts if it has one."""

    table: Relation | FileRelation
    group: str
    count: str | None = None


@dataclass(frozen=True)
class Subject:
    """A published table to be audited.

    Its classes are the distinct combinations of `labels` (the quasi-identifiers), of `ids` (columns of
    class ids) and of `known` (other sensitive attributes); those of a `pair` are its groups. A row is
    suppressed if all labels are `*` or NULL, or if its sensitive value is NULL.
    """

    table: Relation | FileRelation
    labels: Sequence[str]
    ids: Sequence[str] = ()
    known: Sequence[str] = ()
    suppressed: Suppressed = "judge"
    pair: Pair | None = None
    #: The steps after which texts of a sensitive column are one, by its name.
    same: Mapping[str, Sequence[Step]] = field(default_factory=dict)

    @property
    def class_columns(self) -> list[str]:
        return [*self.open_columns, *self.known]

    @property
    def open_columns(self) -> list[str]:
        """The class columns that may be shown."""
        return [self.pair.group] if self.pair else [*self.labels, *self.ids]


@dataclass(frozen=True)
class Counted:
    """A table as it was counted: its classes, and those as rows (the class columns, class_no, class_rows)."""

    subject: Subject
    classes: Classes
    listed: Relation
    columns: Sequence[Renamed]
    rows: int
    suppressed_rows: int
    unmatched_groups: int = 0


@dataclass(frozen=True)
class Audit:
    """The verdicts on one sensitive attribute of a published table, or, where `sensitive` is empty, on its rows alone.

    `rows` are those that were judged; `suppressed_rows` are among them, or beside them if they were ignored.
    `unmatched_groups` counts groups of an anatomised pair whose two tables differ in their number of rows.
    """

    sensitive: str
    classes: int
    rows: int
    verdicts: tuple[Verdict, ...]
    suppressed_rows: int = 0
    ignored_rows: int = 0
    unmatched_groups: int = 0
    #: What a reader takes for one value where requirements count several.
    warnings: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """What a message adds to a requirement: the attribute that it is on, if it is on one."""
        return f" on {self.sensitive}" if self.sensitive else ""

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts) and not self.unmatched_groups

    def as_dict(self) -> dict[str, Any]:
        return {
            "sensitive": self.sensitive or None,
            "classes": self.classes,
            "rows": self.rows,
            "suppressed_rows": self.suppressed_rows,
            "ignored_rows": self.ignored_rows,
            "unmatched_groups": self.unmatched_groups,
            "holds": self.holds,
            "requirements": [verdict.as_dict() for verdict in self.verdicts],
            "warnings": list(self.warnings),
        }


#: Is shown every requirement's measures (class_no, rows, reached, margin) while the classes are there.
Watch = Callable[[str, Requirement, Counted, Relation], None]


def audit_table(
    engine: Engine,
    subject: Subject,
    sensitive: str,
    requirements: Sequence[Requirement],
    others: Sequence[str] = (),
    watch: Watch | None = None,
) -> Audit:
    """The audit of one sensitive attribute; `others` are the table's other sensitive attributes.

    Requirements share one aggregation of the table; those with `others_known` another, in which the others
    refine the classes. Raises PolicyError if a requirement cannot be judged on this table.
    """
    refuse_unknown(subject.suppressed, requirements)
    known = [requirement for requirement in requirements if requirement.others_known]
    if subject.pair and known:
        what = "others_known: a pair does not tell which other sensitive values a row has"
        raise PolicyError([Problem("require", what)])
    with counted(engine, subject, sensitive) as counts:
        plain = [requirement for requirement in requirements if not requirement.others_known]
        verdicts = _judge_all(engine, sensitive, plain, counts, watch)
        audit = replace(
            _audit_of(engine, sensitive, counts), warnings=_warnings(engine, sensitive, requirements, counts)
        )
    if known:
        with counted(engine, replace(subject, known=others), sensitive) as counts:
            verdicts |= _judge_all(engine, sensitive, known, counts, watch)
    return replace(audit, verdicts=tuple(verdicts[requirement] for requirement in requirements))


def _warnings(engine: Engine, sensitive: str, requirements: Sequence[Requirement], counts: Counted) -> tuple[str, ...]:
    """What a reader takes for one value in the classes, whatever requirements make of it."""
    pair = counts.subject.pair
    table = pair.table if pair else counts.subject.table
    is_text = isinstance(table, FileRelation) and table.columns
    types = [Column(sensitive, "VARCHAR")] if is_text else columns_of(engine, table)
    attributes = [
        Attribute(sensitive, is_number=column.is_number, is_time=column.is_time, type=column.type)
        for column in types
        if column.name.lower() == sensitive.lower()
    ]
    return tuple(line for found in attributes for line in warn_of_classes(engine, counts.classes, found, requirements))


def refuse_unknown(suppressed: Suppressed, requirements: Iterable[Requirement]) -> None:
    """Raise PolicyError for requirements that say nothing where sensitive values are unknown."""
    if suppressed == "unknown":
        problems = [
            Problem("suppressed", f"unknown values leave open whether {requirement.label} holds")
            for requirement in requirements
            if not requirement.of_shares
        ]
        if problems:
            raise PolicyError(problems)


def _audit_of(engine: Engine, sensitive: str, counts: Counted) -> Audit:
    """The audit of a table as it was counted, without verdicts."""
    judged = engine.record("auditing/summarise_classes", classes=counts.listed)
    ignored = counts.suppressed_rows if counts.subject.suppressed == "ignore" else 0
    return Audit(
        sensitive, judged["classes"], judged["rows"], (), counts.suppressed_rows, ignored, counts.unmatched_groups
    )


def _judge_all(
    engine: Engine, sensitive: str, requirements: Sequence[Requirement], counts: Counted, watch: Watch | None
) -> dict[Requirement, Verdict]:
    """The verdicts on requirements that are judged on the same classes."""
    refuse_unlisted(engine, sensitive, requirements, counts.classes.totals)
    bound = _bound(watch, sensitive, counts)
    return {requirement: judge(engine, requirement, counts.classes, bound) for requirement in requirements}


def _bound(watch: Watch | None, sensitive: str, counts: Counted) -> Any:
    """The watch of one table."""
    if watch is None:
        return None
    return lambda requirement, classes, measures: watch(sensitive, requirement, counts, measures)


def refuse_unlisted(engine: Engine, sensitive: str, requirements: Sequence[Requirement], values: Relation) -> None:
    """Raise PolicyError if one of `values` (value, ...), NULL aside, belongs to no category that a requirement uses."""
    for categories in {r.listed for r in requirements if r.listed is not None}:
        require_listed(engine, sensitive, categories, values)


def require_listed(engine: Engine, sensitive: str, categories: Categories, values: Relation) -> None:
    """Raise PolicyError if one of `values` (value, ...), NULL aside, belongs to none of the categories."""
    members = engine.load("members", {"value": "VARCHAR", "category": "INTEGER"}, categories.members())
    unlisted = engine.scalar("requirements/count_unlisted", totals=values, members=members)
    engine.drop(members)
    if unlisted:
        what = f"list {sum(categories.sizes):,} values, and not {unlisted:,} of those in the table"
        raise PolicyError([Problem(f"sensitive.{sensitive}.categories", what)])


@contextmanager
def counted(engine: Engine, subject: Subject, sensitive: str) -> Iterator[Counted]:
    """The table's classes: one aggregation that all requirements share."""
    columns = [Renamed(Identifier(name), Identifier(f"c{i}")) for i, name in enumerate(subject.class_columns, 1)]
    with _exact(engine, subject) as read:
        counts = _counts(engine, read, sensitive, columns)
        sums = engine.record("auditing/sum_counts", counts=counts)
        if sums["least"] < 0:
            raise AuditError("the sensitive table has a negative count")
        unmatched = _unmatched(engine, read, counts, columns)
    holes: dict[str, Any] = {"counts": counts, "class_columns": columns, "ignore": subject.suppressed == "ignore"}
    listed = engine.materialise("classes", "auditing/list_classes", **holes)
    unknown = subject.suppressed == "unknown"
    histogram = engine.materialise("histogram", "auditing/number_values", classes=listed, unknown=unknown, **holes)
    whole = engine.materialise("whole", "auditing/total_values", counts=counts) if holes["ignore"] else None
    engine.drop(counts)
    classes = Classes(engine, histogram, whole)
    beside = sums["suppressed_rows"] if holes["ignore"] else sums["unknown_rows"] if unknown else 0
    _require_all_rows(engine.total(histogram, "rows"), sums["rows"] - beside)
    yield Counted(subject, classes, listed, columns, sums["rows"], sums["suppressed_rows"], unmatched)
    classes.drop()
    engine.drop(histogram, listed, *([whole] if whole else []))


@contextmanager
def _exact(engine: Engine, subject: Subject) -> Iterator[Subject]:
    """The subject with its tables as they are to be read; raises PolicyError if classes cannot be told apart so."""
    pair = subject.pair
    if pair is None:
        with (
            read_as_one(engine, subject.table, subject.same) as read,
            read_exactly(engine, read, subject.class_columns) as table,
        ):
            yield replace(subject, table=table)
        return
    with (
        read_exactly(engine, subject.table, [pair.group]) as table,
        read_as_one(engine, pair.table, subject.same) as read,
        read_exactly(engine, read) as other,
    ):
        yield replace(subject, table=table, pair=replace(pair, table=other))


def _counts(engine: Engine, subject: Subject, sensitive: str, columns: Sequence[Renamed]) -> Relation:
    """The TEMP table (the class columns, value, rows, suppressed)."""
    pair = subject.pair
    if pair is None:
        holes: dict[str, Any] = {"published": subject.table, "labels": columns[: len(subject.labels)]}
        template = "auditing/count_published"
    else:
        holes = {"published": pair.table, "count": Identifier(pair.count) if pair.count else None}
        template = "auditing/count_groups"
    column = Identifier(sensitive) if sensitive else None
    return engine.materialise("counts", template, class_columns=columns, sensitive=column, **holes)


def _unmatched(engine: Engine, subject: Subject, counts: Relation, columns: Sequence[Renamed]) -> int:
    """How many groups of a pair have other numbers of rows in its two tables."""
    if subject.pair is None:
        return 0
    holes = {"published": subject.table, "counts": counts, "class_columns": columns}
    unmatched = engine.record("auditing/count_unmatched", group=Identifier(subject.pair.group), **holes)
    return int(unmatched["groups"])


def _require_all_rows(counted: int, rows: int) -> None:
    """Raise AuditError if a row has got lost between the table and its classes."""
    if counted != rows:
        raise AuditError(f"the audit counted {counted:,} of {rows:,} rows: values that do not equal themselves")


def require_good(audits: Sequence[Audit]) -> None:
    """Raise AuditError, naming what failed, unless every audit holds."""
    failed = [
        f"{verdict.requirement}{audit.about}: {verdict.violating_classes:,} of {verdict.classes:,} classes"
        f" violate it ({verdict.violating_rows:,} rows)"
        for audit in audits
        for verdict in audit.verdicts
        if not verdict.holds
    ]
    if failed:
        raise AuditError("the audit failed, nothing was published:\n" + "\n".join(failed))
