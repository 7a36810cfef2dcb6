"""The audit: does a published table meet its requirements? It trusts nothing but the table.

Whether a class has two rows of an individual stands in no release: that is judged on the classes before they are
published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ldiv_db.auditing.counting import Counted, counted
from ldiv_db.auditing.refusals import refuse_people, refuse_unknown, refuse_unlisted
from ldiv_db.auditing.second_reading import read_again
from ldiv_db.auditing.subject import Subject, Suppressed
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, count_phrase, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.display import Shown, fields_of
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.requirements import Attribute, Classes, Requirement, Verdict, judge
from ldiv_db.requirements.reading import warn_of_values


@dataclass(frozen=True, repr=False)
class Audit(Shown):
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
    #: Whether requirements were judged on people, of whom a class may have several rows.
    of_people: bool = False
    #: What a reader takes for one value where requirements count several.
    warnings: tuple[str, ...] = ()
    #: How suppressed rows were taken.
    suppressed: Suppressed = "judge"
    #: The fewest people of a class, where people were counted.
    least_people: int | None = None

    @property
    def about(self) -> str:
        """The attribute that a message adds to a requirement, if it is on one."""
        return f" on {self.sensitive}" if self.sensitive else ""

    @property
    def unit(self) -> str:
        """The word for those whom requirements count in classes: people, or rows."""
        return "people" if self.of_people else "rows"

    @property
    def holds(self) -> bool | None:
        """True if all requirements hold, by all readings; None if none is violated and one is left open."""
        agree = all(verdict.agrees for verdict in self.verdicts) and not self.unmatched_groups
        return _all_of([agree, *(verdict.holds for verdict in self.verdicts)])

    @property
    def readings(self) -> list[str]:
        """Lines on the second reading; none if it was not asked for."""
        same = [verdict.requirement.label for verdict in self.verdicts if verdict.second is not None and verdict.agrees]
        rows = " by rows" if any(verdict.violating_by_rows is not None for verdict in self.verdicts) else ""
        lines = (
            [f"judged again{rows}, by other SQL (the dbt package's tests): the same verdict on {'; '.join(same)}"]
            if same
            else []
        )
        lines += [
            f"{v.requirement.label}: {v.violating_classes:,} classes{v.otherwise}"
            for v in self.verdicts
            if not v.agrees
        ]
        return lines + [f"not judged again: {v.requirement.label}: {v.once}" for v in self.verdicts if v.once]

    def as_dict(self) -> dict[str, Any]:
        counts = ("classes", "rows", "suppressed_rows", "ignored_rows", "unmatched_groups")
        return {
            "sensitive": self.sensitive or None,
            **fields_of(self, *counts, "of_people", "least_people", "holds"),
            "requirements": [verdict.as_dict() for verdict in self.verdicts],
            "warnings": list(self.warnings),
        }


def _all_of(found: Sequence[bool | None]) -> bool | None:
    """True if all hold; None if none fails and one of them is left open."""
    return None if None in found and False not in found else all(found)


def hold_together(audits: Sequence[Audit]) -> bool | None:
    """True if all audits hold; None if none fails and one of them is left open."""
    return _all_of([audit.holds for audit in audits])


class Audits(Shown, list[Audit]):
    """The audits of a table, one a sensitive attribute."""

    @property
    def holds(self) -> bool | None:
        """True if all of them hold; None if none fails and rows were counted where people are protected."""
        return hold_together(self)


#: Is shown every requirement's measures (class_no, rows, reached, margin) while the classes are there.
Observer = Callable[[str, Requirement, Counted, Relation], None]
#: Counts how many people of a population each class of a table covers, (class_no, rows), by the population's name and
#: for the requirements on it; raises PolicyError if these cannot be judged, as classes share people.
CountPeople = Callable[[Engine, Counted, str, Sequence[Requirement]], Relation]


@dataclass(frozen=True)
class Judging:
    """How classes are judged: `watch` is shown the measures, `people` counts those of populations.

    Requirements that name populations are refused without `people`. With `twice` the verdicts are held against a second
    reading; None asks for it where it costs little.
    """

    watch: Observer | None = None
    people: CountPeople | None = None
    twice: bool | None = False


def audit_table(
    engine: Engine,
    subject: Subject,
    sensitive: str,
    requirements: Sequence[Requirement],
    others: Sequence[str] = (),
    judging: Judging = Judging(),
) -> Audit:
    """The audit of one sensitive attribute; `others` are the table's other sensitive attributes.

    Requirements share one aggregation of the table; those with `others_known` another, in which the others
    refine the classes, and those at each position one in which positions do. Raises PolicyError if a requirement cannot
    be judged on this table.
    """
    refuse_unknown(subject.suppressed, requirements)
    known = [requirement for requirement in requirements if requirement.others_known]
    each = [requirement for requirement in requirements if requirement.each == "position"]
    if subject.counts_once(sensitive):
        refuse_people(requirements, subject.suppressed, bool(subject.pair and subject.person))
    if subject.pair and known:
        raise refused("require", "others_known: a pair does not show which other sensitive values a row has")

    def judged(counts: Counted, wanted: Sequence[Requirement]) -> dict[Requirement, Verdict]:
        refuse_unlisted(engine, sensitive, wanted, counts.classes.totals)
        watch, people = judging.watch, judging.people
        bound = (lambda requirement, _, measures: watch(sensitive, requirement, counts, measures)) if watch else None
        names = sorted({requirement.named_population for requirement in wanted} - {""})
        asked = {name: [r for r in wanted if r.named_population == name] for name in names}
        covered = {name: people(engine, counts, name, on_it) for name, on_it in asked.items()} if people else {}
        counts.classes.place_people(covered)
        unit = counts.subject.unit
        found = {one: judge(engine, one.of_units(unit), counts.classes, bound).by_units(one, unit) for one in wanted}
        engine.drop(*covered.values())
        if judging.twice is False:
            return found
        return read_again(engine, counts, sensitive, others, found, cheaply=not judging.twice)

    with counted(engine, subject, sensitive) as counts:
        verdicts = judged(counts, [one for one in requirements if one not in known and one not in each])
        audit = replace(
            _counts_of(engine, sensitive, counts), warnings=_warnings(engine, sensitive, requirements, counts)
        )
    for refined, wanted in ((replace(subject, known=others), known), (replace(subject, each=True), each)):
        if wanted:
            with counted(engine, refined, sensitive) as counts:
                verdicts |= judged(counts, wanted)
    return replace(audit, verdicts=tuple(verdicts[requirement] for requirement in requirements))


def audit_each(
    engine: Engine, subject: Subject, requirements: Mapping[str, Sequence[Requirement]], judging: Judging
) -> list[Audit]:
    """The audits of all sensitive attributes."""
    return [
        audit_table(engine, subject, name, wanted, [other for other in requirements if other != name], judging)
        for name, wanted in requirements.items()
    ]


def _counts_of(engine: Engine, sensitive: str, counts: Counted) -> Audit:
    """The audit as far as classes and rows were counted, without a verdict."""
    of_people, taken, left_out = counts.subject.person is not None, counts.subject.suppressed, counts.suppressed_rows
    return Audit(
        sensitive,
        classes=engine.count(counts.listed),
        rows=engine.count(counts.read.table) if of_people else engine.total(counts.listed, "class_rows"),
        verdicts=(),
        suppressed_rows=left_out,
        ignored_rows=left_out if taken == "ignore" else 0,
        unmatched_groups=counts.unmatched_groups,
        of_people=of_people,
        suppressed=taken,
        least_people=engine.least(counts.listed, "class_rows") // counts.subject.unit if of_people else None,
    )


def _warnings(engine: Engine, sensitive: str, requirements: Sequence[Requirement], counts: Counted) -> tuple[str, ...]:
    """Warnings of values in the classes that a reader takes for one, whatever requirements make of them."""
    if counts.subject.of_known_row:
        asked = "; ".join(one.label for one in requirements)
        return (f"{sensitive}: {asked} bounds what somebody has in the row that is known, nothing what in any row",)
    pair = counts.subject.pair
    table = pair.table if pair else counts.subject.table
    of_sets = counts.subject.is_set(sensitive)
    attributes = [
        Attribute(sensitive, is_number=one.is_number, is_time=one.is_time, type=one.type, of_sets=of_sets)
        for column in columns_of(engine, table)
        if column.name.lower() == sensitive.lower()
        for one in [column.member if of_sets else column]
    ]
    given, shared = (engine, counts.classes), counts.subject.of_known_row
    return tuple(w for one in attributes for w in warn_of_values(*given, one, requirements, is_shared=shared))


# -- individuals: whose a row is stands in no release ----------------------------------------------------


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
    params = {"rows": encoded.rows, "assigned": assigned, "individual": encoded.individual.code}
    histogram = engine.materialise("histogram", "auditing/count_individuals", **params)
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


def require_numbered(engine: Engine, judged: Subject, whose: str) -> None:
    """Raise AuditError unless numbers stand for one person each, of the column `whose`, and theirs for the rows."""
    named = {"person": Identifier(whose), "number": Identifier(judged.person or "")}
    place = Identifier(judged.position or "")
    wrong = engine.scalar("auditing/count_misnumbered", published=judged.table, position=place, **named)
    if wrong:
        found = count_phrase(wrong, "number", "numbers")
        raise AuditError(f"{found} of people, or of their rows, are not theirs alone")


def require_good(audits: Sequence[Audit]) -> None:
    """Raise AuditError, naming what failed, unless every audit holds by all readings."""
    failed = [
        f"{verdict.requirement}{audit.about}: {verdict.violating_classes:,} of {verdict.classes:,} classes"
        f" violate it ({verdict.violating_rows:,} {audit.unit}){verdict.otherwise}"
        for audit in audits
        for verdict in audit.verdicts
        if not (verdict.holds and verdict.agrees)
    ]
    if failed:
        raise AuditError("the audit failed, nothing was published:\n" + "\n".join(failed))
