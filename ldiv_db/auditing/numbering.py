"""Classes of a subject, numbered: by an engine, or by a composer that writes the steps down.

They are counted once for all requirements, by templates that algorithms do not use; the formulas of requirements are
shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ldiv_db.auditing.subject import Subject
from ldiv_db.database.counted import RepeatedRows
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.steps import Steps
from ldiv_db.recoding.bags import ROW_UNITS, person_units
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import Classes, OfPeople


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
    joined = listed if isinstance(steps, Engine) else None
    histogram = flow.step("histogram", "number_values", tallied="rows", listed=joined)
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
    histogram = flow.step("histogram", "number_values", tallied="units", sized="units", listed=None)
    whole = engine.select("whole", everybody, "value", ("units", "rows"))
    made += [histogram, whole]
    return Classes(engine, histogram, whole)


def count_unmatched(subject: Subject, counts: Relation, sensitive: str) -> tuple[str, dict[str, Any]]:
    """The template that counts the groups of a pair of other numbers of rows in its two tables, and what fills it."""
    if subject.pair is None:
        raise AssertionError("groups are those of a pair")
    params: dict[str, Any] = {"published": subject.table, "counts": counts, "class_columns": subject.renamed}
    named = {"group": Identifier(subject.pair.group), "sized": subject.sized(sensitive)}
    return "auditing/count_unmatched", params | named
