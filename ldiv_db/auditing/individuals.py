"""The audit of individuals: no class has two rows of one; and where nobody is named, what that hides.

Whose a row is stands in no release, so this is judged on the classes that the release is written from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ldiv_db.auditing.audit import Audit
from ldiv_db.auditing.people_names import may_say_whose, tells_one
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.errors import AuditError, classes_phrase, count_phrase, people_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.requirements import Classes, Requirement, judge

#: A column of up to this many values is taken for a list of kinds,
FEW_VALUES = 50
#: whatever its name is if they are as few as these, or if each of not many more has more rows than there are values;
FEW_KINDS, SOME_KINDS = 4, 20
#: one whose values have this many rows on average for one of categories, which name nobody in particular,
CATEGORY_ROWS = 100
#: and one with more different values than this share of the rows for one of a single row each.
NEARLY_UNIQUE = 0.95


@dataclass(frozen=True)
class Individuals(Requirement, in_policy=False):
    """No individual has two rows in a class (BSGI, Section 5.2.2): whose a row is differs like a unique value."""

    name = "individuals"
    reaches = "rows"
    l: ClassVar[int] = 1

    @property
    def template(self) -> str:
        return "requirements/unique_distinct"

    def unique_class_size(self) -> int:
        return 1

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


def require_together(engine: Engine, judged: Subject) -> None:
    """Raise AuditError unless all rows of a person have the labels of one class."""
    params = {"published": judged.table, "class_columns": judged.renamed, "person": Identifier(judged.person or "")}
    parted = engine.scalar("auditing/count_parted", **params)
    if parted:
        raise AuditError(f"rows of {count_phrase(parted, 'person', 'people')} stand in several classes, not together")


# -- where no individual is named ----------------------------------------------------------------------


@dataclass(frozen=True)
class LikelyPeople:
    """A column that may say whose a row is, its different values, and the rows that have one."""

    column: Column
    people: int
    rows: int

    def __str__(self) -> str:
        rows = count_phrase(self.rows, "row belongs", "rows belong")
        counts = f"{rows} to {people_phrase(self.people)} if {self.column.name} identifies people"
        return f"{counts}, and requirements count rows"


def likely_people(
    engine: Engine, table: Relation | FileRelation, columns: Sequence[Column], dropped: Sequence[str] = ()
) -> LikelyPeople | None:
    """Of the columns that may say whose a row is, if somebody has several, the one to go by; one statement.

    It is known by its name, or is one of those that are `dropped` and has more than a few values of few rows each. What
    has few kinds of values, or labels for values, is none.
    """
    aside = {name.lower() for name in dropped}
    asked = [c for c in columns if not (c.is_time or c.is_fractional or c.type == "BOOLEAN" or is_nested(c))]
    asked = [c for c in asked if tells_one(c.name) or (c.name.lower() in aside and may_say_whose(c.name))]
    if not asked:
        return None
    kinds = ("rows", "different", "labels")
    counted = [{kind: Identifier(f"{kind}_{i}") for kind in kinds} for i in range(len(asked))]
    columns_counted = [
        {"column": Identifier(c.name), "is_text": c.type == "VARCHAR", **names}
        for c, names in zip(asked, counted, strict=True)
    ]
    found = engine.record("auditing/count_repeated", source=table, columns=columns_counted)
    every = [
        LikelyPeople(c, found[names["different"].name], found[names["rows"].name])
        for c, names in zip(asked, counted, strict=True)
        if 2 * found[names["labels"].name] <= found[names["different"].name]
    ]
    several = [one for one in every if _has_several(one)]
    return min(several, key=lambda one: (not tells_one(one.column.name), one.people), default=None)


def are_few_kinds(values: int, rows: int) -> bool:
    """True if so many values of so many rows are a few kinds of things, whatever their column is called."""
    return values <= FEW_KINDS or (values <= SOME_KINDS and rows > values**2)


def _has_several(found: LikelyPeople) -> bool:
    """True if people have several rows, and are more than a few kinds of things."""
    many, few_rows = found.people > FEW_VALUES, found.rows < CATEGORY_ROWS * found.people
    kinds = are_few_kinds(found.people, found.rows)
    is_one = many or (few_rows and not kinds) if tells_one(found.column.name) else many and few_rows
    return 1 < found.people <= NEARLY_UNIQUE * found.rows and is_one


def warn_of_people(
    engine: Engine,
    people: LikelyPeople,
    rows: Relation | FileRelation,
    person: Identifier,
    members: Relation | None = None,
    class_columns: Sequence[Renamed] = (),
) -> str:
    """The warning of what counting rows hides in classes, empty if nothing.

    They are the rows that agree on some columns, or `members` (row_id, class_no).
    """
    params = {"rows": rows, "members": members, "class_columns": class_columns, "person": person}
    found = engine.record("auditing/count_people", **params)
    if not found["repeated"]:
        return ""
    repeated = f"{found['repeated']:,} of {classes_phrase(found['classes'])} have two rows of one person"
    way_out = f"`individual: {people.column.name}` in the policy keeps one person's rows apart"
    return f"{people}: {repeated}, {found['alone']:,} have one person alone; {way_out}"


def people_warning(engine: Engine, subject: Subject, sensitive: Sequence[str]) -> str:
    """The warning of what counting rows hides in a table; empty if no column says by its name whose they are.

    What classes are told apart by, and what is sensitive, says whose no row is.
    """
    if subject.pair or (isinstance(subject.table, FileRelation) and (form := subject.table.form) and form.is_exported):
        return ""
    aside = {name.lower() for name in [*sensitive, *subject.class_columns]}
    columns = [column for column in columns_of(engine, subject.table) if column.name.lower() not in aside]
    people = likely_people(engine, subject.table, columns)
    if people is None:
        return ""
    person = Identifier(people.column.name)
    return warn_of_people(engine, people, subject.table, person, class_columns=subject.renamed)
