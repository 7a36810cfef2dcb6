"""Subjects of audits: their classes, counted by an engine or written down by a composer, and their second reading.

Classes are the combinations of quasi-identifiers as they stand in the table, NULL being a value like any other. They
are counted by templates that algorithms do not use; the formulas of requirements are shared. The second reading, by
the tests of the dbt package, shares no template with them. Both read one table, whose text is compared by bytes and
after `same`, and take the numbers of a requirement as its verdict names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from ldiv_db.database.counted import RepeatedRows
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.dbt_macros import NotReadError, count_failures
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading, members_of
from ldiv_db.database.errors import PolicyError, Problem, rows_phrase
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.steps import Steps
from ldiv_db.recoding.encoded import Renamed, person_units
from ldiv_db.requirements import HARMLESS, Classes, Requirement, Verdict
from ldiv_db.requirements.parameters import plain_decimal

#: What becomes of suppressed rows: they are judged like any others, or left out, or a NULL in the place of a sensitive
#: value is no value but counts in the size of its class: a share is that of the rows of whom an attacker must think.
Suppressed = Literal["judge", "ignore", "unknown"]


@dataclass(frozen=True)
class Pair:
    """An anatomised table: the sensitive table, the group that joins both, and its column of counts if it has one."""

    table: Relation | FileRelation
    group: str
    count: str | None = None


def pair_of(
    table: Any, group: str | None, count: str | None, open_table: Callable[[Any, str], Relation | FileRelation]
) -> Pair | None:
    """The anatomised pair, if one is named; raises PolicyError for half of one."""
    if table is None and group is None and count is None:
        return None
    if table is None or group is None:
        what = "goes with --group: a pair is two tables joined by a column"
        raise PolicyError([Problem("sensitive-table", what)])
    return Pair(open_table(table, "sensitive-table"), group, count)


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
    #: The steps after which values of a sensitive column are one, by its name.
    same: Mapping[str, Reading] = field(default_factory=dict)
    #: The column that says whose a row is, where people are counted in place of rows; NULL is somebody of its own.
    person: str | None = None
    #: Whether classes must be good by their rows as well, where people are counted.
    by_rows: bool = False

    @property
    def of_rows(self) -> Subject:
        """The same where rows are counted."""
        return replace(self, person=None, by_rows=False)

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

    `beside` is what else was made for them.
    """

    classes: Classes
    listed: Relation
    beside: Sequence[Relation] = ()

    def drop(self, steps: Steps) -> None:
        """Drop all that was made for them."""
        self.classes.drop()
        steps.drop(self.classes.histogram, self.listed, *self.beside)


def count_values(steps: Steps, subject: Subject, sensitive: str) -> Relation:
    """The relation (the class columns, value, rows, suppressed); every row has one value if `sensitive` is empty.

    Where the subject names whose a row is, or rows have sets, `rows` are the people, or rows, that have a value, and
    there are `members` and `units` as well.
    """
    columns, pair = subject.renamed, subject.pair
    column = Identifier(sensitive) if sensitive else None
    if subject.counts_once(sensitive):
        return _count_people(steps, subject, columns, column)
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
    flow.know(person=subject.person, labels=columns[: len(subject.labels)])
    people = flow.step("people", "list_members" if subject.person is None else "list_people")
    units = person_units([size for size, _ in steps.tally(people, "size")]) if isinstance(steps, Engine) else None
    found = flow.step("counts", "count_people_values", scale=units)
    steps.drop(people)
    return found


def number_classes(steps: Steps, subject: Subject, counts: Relation, sensitive: str = "") -> Numbered:
    """The classes of a table as `count_values` counted it, suppressed rows taken as the subject says."""
    ignore, unknown = subject.suppressed == "ignore", subject.suppressed == "unknown"
    people = subject.counts_once(sensitive)
    flow = Flow(steps, "auditing", counts=counts, class_columns=subject.renamed, ignore=ignore, unknown=unknown)
    flow.know(sized=subject.sized(sensitive))
    listed = flow.step("classes", "list_classes")
    histogram = flow.step("histogram", "number_values", tallied="rows")
    whole = flow.step("whole", "total_values") if ignore else None
    shares = _share_classes(steps, subject, sensitive, flow) if people and isinstance(steps, Engine) else None
    made = [whole, *([shares.histogram, shares.totals] if shares else [])]
    by_rows = _count_rows(steps, subject, sensitive) if subject.person is not None and subject.by_rows else None
    made += [by_rows.classes.histogram, by_rows.listed] if by_rows else []
    tallies, rows = None if unknown else listed, by_rows.classes if by_rows else None
    classes = Classes(steps, histogram, whole, tallies, shares, of_people=people, by_rows=rows)
    return Numbered(classes, listed, [relation for relation in made if relation])


def _count_rows(steps: Steps, subject: Subject, sensitive: str) -> Numbered:
    """The classes of a subject by their rows, under the same numbers."""
    counts = count_values(steps, subject.of_rows, sensitive)
    numbered = number_classes(steps, subject.of_rows, counts, sensitive)
    steps.drop(counts)
    return numbered


def _share_classes(engine: Engine, subject: Subject, sensitive: str, flow: Flow) -> Classes | None:
    """The classes with every person spread over their values, and the whole table so; None if units are too many."""
    whole = count_values(engine, replace(subject, labels=(), ids=(), known=()), sensitive)
    if not (engine.most(whole, "units") and engine.most(flow["counts"], "units")):
        return None
    histogram = flow.step("histogram", "number_values", tallied="units", sized="units")
    return Classes(engine, histogram, engine.select("whole", whole, "value", ("units", "rows")))


def count_unmatched(subject: Subject, counts: Relation) -> tuple[str, dict[str, Any]]:
    """The template that counts the groups of a pair of other numbers of rows in its two tables, and what fills it."""
    if subject.pair is None:
        raise AssertionError("groups are those of a pair")
    params = {"published": subject.table, "counts": counts, "class_columns": subject.renamed}
    return "auditing/count_unmatched", {"group": Identifier(subject.pair.group), **params}


#: A run has its release read again where that takes no more rows than these: those of the table, or, where every class
#: is compared with all values, as many as classes times values.
CHEAP = 1_000_000
UNREAD = "the dbt package cannot read it"


def read_again(
    engine: Engine,
    subject: Subject,
    sensitive: str,
    others: Sequence[str],
    verdict: Verdict,
    most: int | None,
    rows: int,
) -> Verdict:
    """The verdict with the classes that violate by the second reading, or with why there is none.

    `most` bounds the rows that it may take, of which there are `rows`. Where people are counted it reads their rows, if
    classes must be good by these.
    """
    if most is not None and rows > most:
        return replace(verdict, once=f"reading it again would take {rows_phrase(rows)}, more than {most:,}")
    if subject.pair is not None or (subject.person is not None and not subject.by_rows):
        return replace(verdict, once=UNREAD)
    subject = subject.of_rows
    try:
        arguments = _arguments(subject, sensitive, others, verdict.requirement)
        return replace(verdict, second=count_failures(engine, subject.table, "meets_policy", **arguments))
    except NotReadError:  # its words may quote values that a policy names
        return replace(verdict, once=UNREAD)


def _arguments(subject: Subject, sensitive: str, others: Sequence[str], requirement: Requirement) -> dict[str, Any]:
    """The arguments of the package's test, as a project writes them."""
    parameters = {name: _written(value) for name, value in requirement.parameters.items()}
    settings: dict[str, Any] = {HARMLESS: list(requirement.harmless)} if parameters.pop(HARMLESS, None) else {}
    if (members := members_of(subject.same.get(sensitive, ()))) is not None:  # which it reads by itself
        same = [step for step in subject.same[sensitive] if step is not members]
        settings |= {"set": members.separator or True, "same": same}
    known = {"others_known": True} if parameters.pop("others_known", False) else {}
    judged = {} if requirement.rows_only else {"sensitive": sensitive}
    columns: dict[str, Any] = {name: {} for name in (others if known else ())}
    columns |= {} if requirement.rows_only else {sensitive: settings}
    taken = {} if subject.suppressed == "judge" else {"suppressed": subject.suppressed, "keep": ["class_id"]}
    return {
        "policy": taken or None,
        "require": [{requirement.name: parameters, **judged, **known}],
        "quasi_identifiers": [*subject.labels, *subject.ids],
        "sensitive": columns,
    }


def _written(value: Any) -> Any:
    return plain_decimal(value) if isinstance(value, Decimal) else value
