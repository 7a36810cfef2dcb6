"""The audit: does a published table meet its requirements? It trusts nothing but the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.auditing.counts import Counted, counted
from ldiv_db.auditing.refusals import refuse_people, refuse_unknown, refuse_unlisted
from ldiv_db.auditing.subject import CHEAP, Subject, Suppressed, read_again
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import AuditError, PolicyError, Problem
from ldiv_db.database.names import Relation
from ldiv_db.display import Shown, fields_of
from ldiv_db.requirements import Attribute, Requirement, Verdict, judge
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
        rows = " by rows" if self.of_people else ""
        lines = (
            [f"second reading{rows}, by the dbt package's tests: the same verdict on {'; '.join(same)}"] if same else []
        )
        lines += [
            f"{v.requirement.label}: {v.violating_classes:,} classes{v.otherwise}"
            for v in self.verdicts
            if not v.agrees
        ]
        return lines + [f"no second reading of {v.requirement.label}: {v.once}" for v in self.verdicts if v.once]

    def as_dict(self) -> dict[str, Any]:
        counts = ("classes", "rows", "suppressed_rows", "ignored_rows", "unmatched_groups")
        return {
            "sensitive": self.sensitive or None,
            **fields_of(self, *counts, "of_people", "least_people", "holds"),
            "requirements": [verdict.as_dict() for verdict in self.verdicts],
            "warnings": list(self.warnings),
        }


def hold_together(audits: Sequence[Audit]) -> bool | None:
    """True if all audits hold; None if none fails and one of them is left open."""
    return _all_of([audit.holds for audit in audits])


def _all_of(found: Sequence[bool | None]) -> bool | None:
    """True if all hold; None if none fails and one of them is left open."""
    return None if None in found and False not in found else all(found)


class Audits(Shown, list[Audit]):
    """The audits of a table, one a sensitive attribute."""

    @property
    def holds(self) -> bool | None:
        """True if all of them hold; None if none fails and rows were counted where people are protected."""
        return hold_together(self)


#: Is shown every requirement's measures (class_no, rows, reached, margin) while the classes are there.
Watch = Callable[[str, Requirement, Counted, Relation], None]


#: Counts how many people of a population each class of a table covers, (class_no, rows), by the population's name and
#: for the requirements on it; raises PolicyError if these cannot be judged, as classes share people.
CountPeople = Callable[[Engine, Counted, str, Sequence[Requirement]], Relation]


def audit_table(
    engine: Engine,
    subject: Subject,
    sensitive: str,
    requirements: Sequence[Requirement],
    others: Sequence[str] = (),
    watch: Watch | None = None,
    people: CountPeople | None = None,
    twice: bool | None = False,
) -> Audit:
    """The audit of one sensitive attribute; `others` are the table's other sensitive attributes.

    `people` counts the people of populations, which requirements may name; without it these are refused. With `twice`
    the verdicts are held against a second reading; None asks for it where it costs little.

    Requirements share one aggregation of the table; those with `others_known` another, in which the others
    refine the classes. Raises PolicyError if a requirement cannot be judged on this table.
    """
    refuse_unknown(subject.suppressed, requirements)
    known = [requirement for requirement in requirements if requirement.others_known]
    if subject.counts_once(sensitive):
        refuse_people(requirements, subject.suppressed, subject.pair is not None)
    if subject.pair and known:
        what = "others_known: a pair does not show which other sensitive values a row has"
        raise PolicyError([Problem("require", what)])
    with counted(engine, subject, sensitive) as counts:
        plain = [requirement for requirement in requirements if not requirement.others_known]
        verdicts = _judge_all(engine, sensitive, plain, counts, watch, people)
        verdicts = _again(engine, sensitive, others, counts, verdicts, twice)
        warnings = _warnings(engine, sensitive, requirements, counts)
        audit = replace(_audit_of(engine, sensitive, counts), warnings=warnings)
    if known:
        with counted(engine, replace(subject, known=others), sensitive) as counts:
            refined = _judge_all(engine, sensitive, known, counts, watch, people)
            verdicts |= _again(engine, sensitive, others, counts, refined, twice)
    return replace(audit, verdicts=tuple(verdicts[requirement] for requirement in requirements))


def _warnings(engine: Engine, sensitive: str, requirements: Sequence[Requirement], counts: Counted) -> tuple[str, ...]:
    """Warnings of values in the classes that a reader takes for one, whatever requirements make of them."""
    pair = counts.subject.pair
    table = pair.table if pair else counts.subject.table
    of_sets = counts.subject.is_set(sensitive)
    attributes = [
        Attribute(sensitive, is_number=one.is_number, is_time=one.is_time, type=one.type, of_sets=of_sets)
        for column in columns_of(engine, table)
        if column.name.lower() == sensitive.lower()
        for one in [column.member if of_sets else column]
    ]
    return tuple(line for found in attributes for line in warn_of_values(engine, counts.classes, found, requirements))


def _audit_of(engine: Engine, sensitive: str, counts: Counted) -> Audit:
    classes, of_people = engine.count(counts.listed), counts.subject.person is not None
    rows = engine.count(counts.read.table) if of_people else engine.total(counts.listed, "class_rows")
    left_out, taken = counts.suppressed_rows, counts.subject.suppressed
    ignored = left_out if taken == "ignore" else 0
    found = Audit(sensitive, classes, rows, (), left_out, ignored, counts.unmatched_groups, of_people)
    return replace(
        found, suppressed=taken, least_people=engine.least(counts.listed, "class_rows") if of_people else None
    )


def _judge_all(
    engine: Engine,
    sensitive: str,
    requirements: Sequence[Requirement],
    counts: Counted,
    watch: Watch | None,
    people: CountPeople | None,
) -> dict[Requirement, Verdict]:
    refuse_unlisted(engine, sensitive, requirements, counts.classes.totals)
    bound = _bound(watch, sensitive, counts)
    names = sorted({requirement.named_population for requirement in requirements} - {""})
    asked = {name: [r for r in requirements if r.named_population == name] for name in names}
    covered = {name: people(engine, counts, name, on_it) for name, on_it in asked.items()} if people else {}
    counts.classes.place_people(covered)
    found = {requirement: judge(engine, requirement, counts.classes, bound) for requirement in requirements}
    engine.drop(*covered.values())
    return found


def _again(
    engine: Engine,
    sensitive: str,
    others: Sequence[str],
    counts: Counted,
    verdicts: Mapping[Requirement, Verdict],
    twice: bool | None,
) -> dict[Requirement, Verdict]:
    """The verdicts, held against a second reading as `audit_table` says."""
    if twice is False:
        return dict(verdicts)
    found, subject = {}, counts.subject
    with ExitStack() as stack:
        read = counts.read
        if subject.is_set(sensitive) and subject.pair is None:  # the first reading has taken sets apart there
            exact = stack.enter_context(read_exactly(engine, subject.table, subject.class_columns))
            read = replace(subject, table=exact)
        for requirement, verdict in verdicts.items():
            compared = verdict.classes * engine.count(counts.classes.totals) if requirement.compares_with_table else 0
            most = None if twice else CHEAP
            rows = max(counts.rows, compared)
            found[requirement] = read_again(engine, read, sensitive, others, verdict, most, rows)
    return found


def _bound(watch: Watch | None, sensitive: str, counts: Counted) -> Any:
    if watch is None:
        return None
    return lambda requirement, classes, measures: watch(sensitive, requirement, counts, measures)


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
