"""The second reading of a published table: by the tests of the dbt package, which share no template with the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ldiv_db.auditing.counting import Counted
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.data_files import Table
from ldiv_db.database.dbt_macros import NotReadError, count_failures
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import members_of, read_exactly
from ldiv_db.database.errors import rows_phrase
from ldiv_db.recoding.labels import as_labels
from ldiv_db.requirements import HARMLESS, Requirement, Verdict
from ldiv_db.requirements.parameters import plain_decimal

#: A run has its release read again where that takes no more rows than these: those of the table, or, where every class
#: is compared with all values, as many as classes times values.
CHEAP = 1_000_000
UNREAD = "the dbt package cannot read it"
UNWEIGHED = f"numbers of rows have a common multiple by which these would be more than {CHEAP:,}"


def read_again(
    engine: Engine,
    counts: Counted,
    sensitive: str,
    others: Sequence[str],
    verdicts: Mapping[Requirement, Verdict],
    cheaply: bool,
) -> dict[Requirement, Verdict]:
    """The verdicts, each with the classes that violate by the second reading, or with why there is none.

    It shares no template with the first: the tests of the dbt package read the same table, whose text is compared by
    bytes and after `same`, and take the numbers of a requirement as its verdict names them. Where people are counted
    it counts them as well, or reads their rows, if classes must be good by these.
    """
    subject = counts.read.of_rows if counts.subject.by_rows else counts.read
    if subject.of_known_row and subject.again is None:
        return {requirement: replace(verdict, again=UNWEIGHED) for requirement, verdict in verdicts.items()}
    if subject.again:
        subject = replace(subject.again, each=subject.each).of_sequences
    unread = subject.pair is not None

    def again(table: Table, verdict: Verdict) -> Verdict:
        requirement = verdict.requirement
        values = engine.count(counts.classes.totals) if requirement.compares_with_table else 0
        rows = max(engine.count(table) if counts.read.again else counts.rows, verdict.classes * values)
        if cheaply and rows > CHEAP:
            return replace(verdict, again=f"reading it again would take {rows_phrase(rows)}, more than {CHEAP:,}")
        if unread:
            return replace(verdict, again=UNREAD)
        try:
            arguments = _arguments(subject, sensitive, others, requirement.of_units(counts.read.unit))
            return replace(verdict, again=count_failures(engine, table, "meets_policy", **arguments))
        except NotReadError:  # its words may quote values that a policy names
            return replace(verdict, again=UNREAD)

    with ExitStack() as stack:
        table = subject.table if counts.read.again else counts.read.table
        if subject.is_set(sensitive) and subject.pair is None:  # the first reading has taken sets apart there
            as_written = subject.table if counts.read.again else counts.subject.table
            labelled = as_labels(engine, as_written, subject.labels)
            table = stack.enter_context(read_exactly(engine, labelled, subject.class_columns))
        return {requirement: again(table, verdict) for requirement, verdict in verdicts.items()}


def _arguments(subject: Subject, sensitive: str, others: Sequence[str], requirement: Requirement) -> dict[str, Any]:
    parameters = {
        name: plain_decimal(value) if isinstance(value, Decimal) else value
        for name, value in requirement.parameters.items()
    }
    settings: dict[str, Any] = {HARMLESS: list(requirement.harmless)} if parameters.pop(HARMLESS, None) else {}
    if (members := members_of(subject.same.get(sensitive, ()))) is not None:  # which it reads by itself
        same = [step for step in subject.same[sensitive] if step is not members]
        settings |= {"set": members.separator or True, "same": same}
    beside = {name: parameters.pop(name) for name in ("others_known", "each") if name in parameters}
    if subject.position is None:  # a class is of one position already
        beside.pop("each", None)
    judged = {} if requirement.rows_only else {"sensitive": sensitive}
    columns: dict[str, Any] = {name: {} for name in (others if requirement.others_known else ())}
    columns |= {} if requirement.rows_only else {sensitive: settings}
    taken = {} if subject.suppressed == "judge" else {"suppressed": subject.suppressed, "keep": ["class_id"]}
    people = {
        "individual": subject.person,
        "position": subject.position,
        "lacking": "lacks" if subject.lacking else None,
    }
    return {
        **(people if subject.person else {}),
        "policy": taken or None,
        "require": [{requirement.name: parameters, **judged, **beside}],
        "quasi_identifiers": [*subject.labels, *subject.ids],
        "sensitive": columns,
    }
