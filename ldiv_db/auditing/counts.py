"""A published table as an audit counts it: its classes, by one aggregation that all requirements share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from ldiv_db.auditing.subject import Subject, count_unmatched, count_values, number_classes
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one, read_exactly
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Relation
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import Classes


@dataclass(frozen=True)
class Counted:
    """A table as it was counted: its classes, and those as rows (the class columns, class_no, class_rows).

    `read` is the subject with its tables as they were read: views that are there as long as the classes are.
    """

    subject: Subject
    read: Subject
    classes: Classes
    listed: Relation
    columns: Sequence[Renamed]
    rows: int
    suppressed_rows: int
    unmatched_groups: int = 0


@contextmanager
def counted(engine: Engine, subject: Subject, sensitive: str, as_it_lies: bool = False) -> Iterator[Counted]:
    """The table's classes: one aggregation that all requirements share; types are not looked at if `as_it_lies`."""
    with nullcontext(subject) if as_it_lies else _exact(engine, subject) as read:
        counts = count_values(engine, read, sensitive)
        sums = engine.record("auditing/sum_counts", counts=counts, sized=read.sized(sensitive))
        if sums["least"] < 0:
            raise AuditError("the sensitive table has a negative count")
        unmatched = _unmatched(engine, read, counts)
        numbered = number_classes(engine, read, counts, sensitive)
        engine.drop(counts)
        beside = {"judge": 0, "ignore": sums["suppressed_rows"], "unknown": sums["unknown_rows"]}[subject.suppressed]
        found, rows = engine.total(numbered.classes.histogram, "rows"), sums["counted"] - beside
        if found != rows:
            raise AuditError(f"the audit counted {found:,} of {rows:,} rows: values that do not equal themselves")
        whole = (sums["rows"], sums["suppressed_rows"], unmatched)
        yield Counted(subject, read, numbered.classes, numbered.listed, subject.renamed, *whole)
        numbered.drop(engine)


def require_same_rows(engine: Engine, subject: Subject, other: Subject, sensitive: Sequence[str]) -> None:
    """Raise AuditError unless two tables have the same classes, with as many rows of each sensitive value."""
    for name in sensitive:
        with _exact(engine, subject) as read, _exact(engine, replace(other, person=None)) as read_other:
            counts, others = count_values(engine, read, name), count_values(engine, read_other, name)
            columns = {"class_columns": subject.renamed}
            differing = engine.scalar("auditing/count_differing", counts=counts, others=others, **columns)
            engine.drop(counts, others)
        if differing:
            what = f"{differing:,} of the counts of values in classes differ"
            raise AuditError(f"what was written is not what people were counted in: {what}")


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


def _unmatched(engine: Engine, subject: Subject, counts: Relation) -> int:
    if subject.pair is None:
        return 0
    template, params = count_unmatched(subject, counts)
    return int(engine.record(template, **params)["found"])
