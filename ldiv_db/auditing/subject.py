"""Subjects of audits: their classes, counted by an engine or written down by a composer.

Classes are the combinations of quasi-identifiers as they stand in the table, NULL being a value like any other. They
are counted once for all requirements, by templates that algorithms do not use; the formulas of requirements are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Literal

from ldiv_db.database.counted import RepeatedRows
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading, members_of, read_as_one, read_exactly
from ldiv_db.database.errors import AuditError, refused
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.steps import Steps
from ldiv_db.recoding.bags import ROW_UNITS, person_units
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import Classes, OfPeople

#: What becomes of suppressed rows: they are judged like any others, or left out, or a NULL in the place of a sensitive
#: value is no value but counts in the size of its class: a share is that of the rows of whom an attacker must think.
Suppressed = Literal["judge", "ignore", "unknown"]


@dataclass(frozen=True)
class Pair:
    """An anatomised table: the sensitive table, the group that joins both, and its column of counts if it has one."""

    table: Table
    group: str
    count: str | None = None


def pair_of(table: Any, group: str | None, count: str | None, open_table: Callable[[Any, str], Table]) -> Pair | None:
    """The anatomised pair, if one is named; raises PolicyError for half of one."""
    if table is None and group is None and count is None:
        return None
    if table is None or group is None:
        raise refused("sensitive-table", "goes with --group: a pair is two tables joined by a column")
    return Pair(open_table(table, "sensitive-table"), group, count)


@dataclass(frozen=True)
class Subject:
    """A published table to be audited.

    Its classes are the distinct combinations of `labels` (the quasi-identifiers), of `ids` (columns of
    class ids) and of `known` (other sensitive attributes); those of a `pair` are its groups. A row is
    suppressed if all labels are `*` or NULL, or if its sensitive value is NULL.
    """

    table: Table
    labels: Sequence[str]
    ids: Sequence[str] = ()
    known: Sequence[str] = ()
    suppressed: Suppressed = "judge"
    pair: Pair | None = None
    #: The steps after which values of a sensitive column are one, by its name.
    same: Mapping[str, Reading] = field(default_factory=dict)
    #: The column that says whose a row is, where people are counted in place of rows; NULL is somebody of its own.
    person: str | None = None
    #: Whether classes must be good by their rows as well, where people are counted.
    by_rows: bool = False
    #: The column by which a person's rows are in their order, where the labels of all of them are one class.
    position: str | None = None
    #: Whether the rows at each position of the people of a class are a class, by themselves.
    each: bool = False
    #: What the second reading reads in its place, where rows of several tables were put together in another way.
    again: Subject | None = None
    #: Whether a row stands for somebody of the class who has no row of values, where its column `lacks` says so.
    lacking: bool = False
    #: The texts (number, text) for the numbers of a class column, by its name, where these stand in place of texts.
    written: Mapping[str, Relation] = field(default_factory=dict)
    #: Whether a value weighs for a person its share of their rows in the class, one of which is known.
    of_known_row: bool = False

    @property
    def of_rows(self) -> Subject:
        """The same where rows are counted."""
        return replace(self, person=None, by_rows=False, position=None)

    @property
    def of_sequences(self) -> Subject:
        """The same where labels are of all rows of a person: a position is a class where each is, and nothing else."""
        return replace(self, ids=[self.position] if self.each and self.position else [], position=None)

    @property
    def unit(self) -> int:
        """How many of those whom a requirement counts are one person, or row."""
        return ROW_UNITS if self.of_known_row else 1

    def is_set(self, sensitive: str) -> bool:
        """True if a row has a set of values of that column, so that its members are counted."""
        return members_of(self.same.get(sensitive, ())) is not None

    def counts_once(self, sensitive: str) -> bool:
        """True if whoever has several values of that column is counted once: people, and rows with sets."""
        return self.person is not None or self.is_set(sensitive)

    def sized(self, sensitive: str) -> Identifier:
        """The column of counts whose sum is the size of a class."""
        return Identifier("members" if self.counts_once(sensitive) else "rows")

    @property
    def class_columns(self) -> list[str]:
        return [*self.open_columns, *self.known]

    @property
    def open_columns(self) -> list[str]:
        """The class columns that may be shown."""
        return [self.pair.group] if self.pair else [*self.labels, *self.ids]

    @property
    def renamed(self) -> list[Renamed]:
        """The class columns, each under a name of its own: `c1`, `c2`."""
        return [Renamed(Identifier(name), Identifier(f"c{i}")) for i, name in enumerate(self.class_columns, 1)]


@dataclass(frozen=True)
class Numbered:
    """The classes of a subject, and those as rows (the class columns, class_no, class_rows, rows, values, largest).

    `beside` is what else was made for them, or will be.
    """

    classes: Classes
    listed: Relation
    beside: list[Relation]
    by_rows: Numbered | None = None

    @property
    def tables(self) -> list[Relation]:
        """All that was made for them, but what the classes made of it."""
        of_rows = self.by_rows.tables if self.by_rows else []
        return [self.classes.histogram, self.listed, *self.beside, *of_rows]

    def drop(self, steps: Steps) -> None:
        """Drop all that was made for them."""
        self.classes.drop()
        steps.drop(*self.tables)


def count_values(steps: Steps, subject: Subject, sensitive: str) -> Relation:
    """The relation (the class columns, value, rows, suppressed); every row has one value if `sensitive` is empty.

    Where the subject names whose a row is, or rows have sets, `rows` are the people, or rows, that have a value, and
    there are `members` and `units` as well.
    """
    columns, pair = subject.renamed, subject.pair
    column = Identifier(sensitive) if sensitive else None
    if subject.of_known_row:
        return _count_known_rows(steps, subject, columns, column)
    if subject.counts_once(sensitive):
        return _count_people(steps, replace(subject, table=pair.table) if pair else subject, columns, column)
    if pair is None:
        told = (subject.table.counts, subject.table.weight) if isinstance(subject.table, RepeatedRows) else None
        table, weight = told or (subject.table, None)
        params: dict[str, Any] = {"published": table, "weight": weight, "labels": columns[: len(subject.labels)]}
        template = "auditing/count_published"
    else:
        params = {"published": pair.table, "count": Identifier(pair.count) if pair.count else None}
        template = "auditing/count_groups"
    return steps.materialise("counts", template, class_columns=columns, sensitive=column, **params)


def _count_people(steps: Steps, subject: Subject, columns: Sequence[Renamed], sensitive: Identifier | None) -> Relation:
    flow = Flow(steps, "auditing", published=subject.table, class_columns=columns, sensitive=sensitive)
    is_set = sensitive is not None and subject.is_set(sensitive.name)
    flow.know(person=subject.person, labels=columns[: len(subject.labels)], members=is_set, lacking=subject.lacking)
    people = flow.step("people", "list_people")
    units = person_units([size for size, _ in steps.tally(people, "size")]) if isinstance(steps, Engine) else None
    found = flow.step("counts", "count_people_values", scale=units)
    steps.drop(people)
    return found


def _count_known_rows(
    steps: Steps, subject: Subject, columns: Sequence[Renamed], sensitive: Identifier | None
) -> Relation:
    flow = Flow(steps, "auditing", published=subject.table, class_columns=columns, sensitive=sensitive)
    flow.know(person=subject.person)
    shares = flow.step("shares", "list_row_shares")
    found = flow.step("counts", "count_row_shares", scale=ROW_UNITS)
    steps.drop(shares)
    return found


def number_classes(steps: Steps, subject: Subject, counts: Relation, sensitive: str = "") -> Numbered:
    """The classes of a table as `count_values` counted it, suppressed rows taken as the subject says.

    They drop the counts, where these are not read later on.
    """
    ignore, unknown = subject.suppressed == "ignore", subject.suppressed == "unknown"
    people = subject.counts_once(sensitive)
    flow = Flow(steps, "auditing", counts=counts, class_columns=subject.renamed, ignore=ignore, unknown=unknown)
    flow.know(sized=subject.sized(sensitive), lacking=subject.lacking)
    listed = flow.step("classes", "list_classes")
    histogram = flow.step("histogram", "number_values", tallied="rows")
    whole = flow.step("whole", "total_values") if ignore else None
    if subject.lacking and isinstance(steps, Engine):  # classes have people in common
        everybody = _count_whole(steps, subject, sensitive)
        whole = steps.select("whole", everybody, "value", "rows", where=[Where("rows", 0, ">")])
        steps.drop(everybody)
    made = [whole] if whole else []
    shared = None
    if people and not subject.of_known_row and isinstance(steps, Engine):
        made.append(counts)
        shared = partial(_share_classes, steps, subject, sensitive, flow, made)
    else:
        steps.drop(counts)
    of_rows = None
    if subject.person is not None and subject.by_rows:  # the classes by their rows, under the same numbers
        of_rows = number_classes(steps, subject.of_rows, count_values(steps, subject.of_rows, sensitive), sensitive)
    tallies = None if unknown else listed
    of_people = OfPeople(shared, of_rows.classes if of_rows else None) if people else None
    return Numbered(Classes(steps, histogram, whole, tallies, of_people), listed, made, of_rows)


def _count_whole(engine: Engine, subject: Subject, sensitive: str) -> Relation:
    """The values of the whole table, each person counted once."""
    return count_values(engine, replace(subject, labels=(), ids=(), known=()), sensitive)


def _share_classes(
    engine: Engine, subject: Subject, sensitive: str, flow: Flow, made: list[Relation]
) -> Classes | None:
    """The classes with every person spread over their values, and the whole table so; None if units are too many.

    What is `made` for them is dropped with the others.
    """
    everybody = _count_whole(engine, subject, sensitive)
    made.append(everybody)
    if not (engine.most(everybody, "units") and engine.most(flow["counts"], "units")):
        return None
    histogram = flow.step("histogram", "number_values", tallied="units", sized="units")
    whole = engine.select("whole", everybody, "value", ("units", "rows"))
    made += [histogram, whole]
    return Classes(engine, histogram, whole)


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


def count_unmatched(subject: Subject, counts: Relation, sensitive: str) -> tuple[str, dict[str, Any]]:
    """The template that counts the groups of a pair of other numbers of rows in its two tables, and what fills it."""
    if subject.pair is None:
        raise AssertionError("groups are those of a pair")
    params: dict[str, Any] = {"published": subject.table, "counts": counts, "class_columns": subject.renamed}
    named = {"group": Identifier(subject.pair.group), "sized": subject.sized(sensitive)}
    return "auditing/count_unmatched", params | named


# -- counted -------------------------------------------------------------------------------------------


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
