"""Tables as they were counted: read exactly, once, for all that asks for their classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count

from ldiv_db.auditing.numbering import count_unmatched, count_values, number_classes
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one, read_exactly
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.labels import as_labels
from ldiv_db.requirements import Classes


@dataclass(frozen=True)
class Counted:
    """A table as it was counted: its classes, and those as rows (the class columns, class_no, class_rows).

    `read` is the subject with its tables as they were read: views that are there as long as the classes are. Where the
    rows of people are in their order the `subject` has their sequences in place of labels.
    """

    subject: Subject
    read: Subject
    classes: Classes
    listed: Relation
    rows: int
    suppressed_rows: int
    unmatched_groups: int = 0
    #: Where labels are sequences, the rows with these and with their own labels.
    signed: Relation | None = None

    @property
    def renamed(self) -> list[Renamed]:
        """The class columns and their names among the classes, or of sequences among the rows that have them."""
        return _signed_as(self.read, self.subject.labels[0]) if self.signed else self.subject.renamed


@contextmanager
def counted(engine: Engine, subject: Subject, sensitive: str, as_it_lies: bool = False) -> Iterator[Counted]:
    """The table's classes: one aggregation that all requirements share; types are not looked at if `as_it_lies`."""
    with nullcontext(subject) if as_it_lies else _exact(engine, subject) as exact:
        read = _signed(engine, exact, sensitive) if exact.position else exact
        counts = count_values(engine, read, sensitive)
        sums = engine.record("auditing/sum_counts", counts=counts, sized=read.sized(sensitive))
        if sums["least"] < 0:
            raise AuditError("the sensitive table has a negative count")
        unmatched = 0
        if read.pair is not None:
            template, params = count_unmatched(read, counts, sensitive)
            unmatched = int(engine.record(template, **params)["found"])
        numbered = number_classes(engine, read, counts, sensitive)
        beside = {"judge": 0, "ignore": sums["suppressed_rows"], "unknown": sums["unknown_rows"]}[subject.suppressed]
        found, rows = engine.total(numbered.classes.histogram, "rows"), sums["counted"] - beside
        if found != rows:
            raise AuditError(f"the audit counted {found:,} of {rows:,} rows: values that do not equal themselves")
        whole = (sums["rows"], sums["suppressed_rows"], unmatched)
        shown = replace(subject, labels=read.labels, ids=read.ids)
        signed = read.table if isinstance(read.table, Relation) and exact.position else None
        yield Counted(shown, exact, numbered.classes, numbered.listed, *whole, signed)
        numbered.drop(engine)
        if isinstance(read.table, Relation) and read.table is not exact.table:
            engine.drop(read.table)


def require_same_rows(
    engine: Engine, subject: Subject, other: Subject, sensitive: Sequence[str], counted: str = "people"
) -> None:
    """Raise AuditError unless two tables have the same classes, with as many rows of each value of these columns.

    `counted` is what rows are counted by in the other table.
    """
    for name in sensitive:
        with _exact(engine, subject) as read, _exact(engine, replace(other, person=None)) as read_other:
            counts, others = count_values(engine, read, name), count_values(engine, read_other, name)
            columns = {"class_columns": subject.renamed}
            differing = engine.scalar("auditing/count_differing", counts=counts, others=others, **columns)
            engine.drop(counts, others)
        if differing:
            what = f"{differing:,} of the counts of values in classes differ"
            raise AuditError(f"what was written is not what {counted} were counted in: {what}")


@contextmanager
def _exact(engine: Engine, subject: Subject) -> Iterator[Subject]:
    """The subject with its tables as they are to be read; raises PolicyError if classes cannot be told apart so."""
    pair = subject.pair
    if pair is None:
        with (
            read_as_one(engine, as_labels(engine, subject.table, subject.labels), subject.same) as read,
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


def _signed(engine: Engine, subject: Subject, sensitive: str) -> Subject:
    """The subject with sequences in place of labels: a class is the people whose rows have the same in their order.

    Where each position is a class by itself it has their rows there. Of several tables all rows show this already.
    """
    if subject.again:
        return subject.of_sequences
    ids = [subject.position] if subject.each and subject.position else []
    assert subject.person and subject.position  # noqa: S101 - the caller has looked
    taken = (sensitive.lower(), subject.person.lower())
    names = (f"labels{number or ''}" for number in count())
    name = next(name for name in names if not any(other.startswith(name) for other in taken))
    people = {"person": Identifier(subject.person), "position": Identifier(subject.position)}
    columns = {"class_columns": _signed_as(subject, name), "sensitive": Identifier(sensitive) if sensitive else None}
    params = {"published": subject.table, "signature": Identifier(name), **columns, **people}
    table = engine.materialise("signed", "auditing/sign_rows", by_position=subject.each, **params)
    return replace(subject, table=table, labels=[name], ids=ids, position=None)


def _signed_as(subject: Subject, signature: str) -> list[Renamed]:
    """The labels of rows, each under a name of its own beside the signature."""
    return [replace(one, alias=Identifier(f"{signature}_{n}")) for n, one in enumerate(subject.renamed, 1)]
