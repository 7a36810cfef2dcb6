"""The audit of individuals: no class has two rows of one; and where nobody is named, what that hides.

Whose a row is stands in no release, so this is judged on the classes that the release is written from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.people_columns import CATEGORY_ROWS, FEW_VALUES, NEARLY_UNIQUE, tells_one, tells_somebody
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.requirements import Classes, Requirement, judge


@dataclass(frozen=True)
class Individuals(Requirement, in_policy=False):
    """No individual has two rows in a class (BSGI, Section 5.2.2): whose a row is differs like a unique value."""

    name = "individuals"
    reaches = "rows"

    @property
    def template(self) -> str:
        return "requirements/unique_distinct"

    def params(self, steps: Steps) -> dict[str, Any]:
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


# -- where no individual is named ----------------------------------------------------------------------


@dataclass(frozen=True)
class LikelyPeople:
    """A column that may say whose a row is, its different values, and the rows that have one."""

    column: Column
    people: int
    rows: int

    def __str__(self) -> str:
        counts = f"{self.rows:,} rows are of {self.people:,} people if {self.column.name} says whose they are"
        return f"{counts}, and requirements count rows"


def likely_people(
    engine: Engine, table: Relation | FileRelation, columns: Sequence[Column], dropped: Sequence[str] = ()
) -> LikelyPeople | None:
    """Of the columns that may say whose a row is, if somebody has several, the one to go by; one statement.

    It is known by its name, or is one of those that are `dropped` and has more than a few values of few rows each.
    """
    aside = {name.lower() for name in dropped}
    asked = [c for c in columns if not (c.is_time or c.is_fractional or c.type == "BOOLEAN" or is_nested(c))]
    asked = [c for c in asked if tells_one(c.name) or (c.name.lower() in aside and not tells_somebody(c.name))]
    if not asked:
        return None
    kinds = ("rows", "different")
    counted = [{kind: Identifier(f"{kind}_{i}") for kind in kinds} for i in range(len(asked))]
    columns_counted = [{"column": Identifier(c.name), **names} for c, names in zip(asked, counted, strict=True)]
    found = engine.record("auditing/count_repeated", source=table, columns=columns_counted)
    every = [
        LikelyPeople(c, found[names["different"].name], found[names["rows"].name])
        for c, names in zip(asked, counted, strict=True)
    ]
    several = [one for one in every if _has_several(one)]
    return min(several, key=lambda one: (not tells_one(one.column.name), one.people), default=None)


def _has_several(found: LikelyPeople) -> bool:
    """True if people have several rows, and are more than a few kinds of things."""
    many, few_rows = found.people > FEW_VALUES, found.rows < CATEGORY_ROWS * found.people
    is_one = many or few_rows if tells_one(found.column.name) else many and few_rows
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
    repeated = f"{found['repeated']:,} of {found['classes']:,} classes have two rows of one person"
    way_out = f"`individual: {people.column.name}` in the policy keeps one person's rows apart"
    return f"{people}: {repeated}, {found['alone']:,} have one person alone; {way_out}"


def people_warning(engine: Engine, subject: Subject, sensitive: Sequence[str]) -> str:
    """The warning of what counting rows hides in a table; empty if no column says by its name whose they are."""
    if subject.pair or (isinstance(subject.table, FileRelation) and subject.table.columns):
        return ""
    aside = {name.lower() for name in sensitive}
    columns = [column for column in columns_of(engine, subject.table) if column.name.lower() not in aside]
    people = likely_people(engine, subject.table, columns)
    if people is None:
        return ""
    person = Identifier(people.column.name)
    return warn_of_people(engine, people, subject.table, person, class_columns=subject.renamed)
