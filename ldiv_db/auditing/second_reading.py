"""The second opinion of an audit: the tests of the dbt package, which share no template with it.

Both read one table, whose text is compared by bytes and after `same`, and take the numbers of a requirement as its
verdict names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ldiv_db.auditing.subject import Subject
from ldiv_db.database.dbt_macros import NotReadError, count_failures
from ldiv_db.database.engine import Engine
from ldiv_db.requirements import HARMLESS, Requirement, Verdict
from ldiv_db.requirements.parameters import plain_decimal

#: A run has its release read again where that takes no more rows than these: those of the table, or, where every class
#: is compared with all values, as many as classes times values.
CHEAP = 1_000_000
UNREAD = "the dbt package does not read it"


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

    `most` bounds the rows that it may take, of which there are `rows`.
    """
    if most is not None and rows > most:
        return replace(verdict, once=f"to read it again would take {rows:,} rows, more than {most:,}")
    if subject.pair is not None:
        return replace(verdict, once=UNREAD)
    try:
        arguments = _arguments(subject, sensitive, others, verdict.requirement)
        return replace(verdict, second=count_failures(engine, subject.table, "meets_policy", **arguments))
    except NotReadError:  # its words may quote values that a policy names
        return replace(verdict, once=UNREAD)


def _arguments(subject: Subject, sensitive: str, others: Sequence[str], requirement: Requirement) -> dict[str, Any]:
    """What the package's test is asked, as a project writes it."""
    parameters = {name: _written(value) for name, value in requirement.parameters.items()}
    settings = {HARMLESS: list(requirement.harmless)} if parameters.pop(HARMLESS, None) else {}
    known = {"others_known": True} if parameters.pop("others_known", False) else {}
    judged = {} if requirement.of_rows else {"sensitive": sensitive}
    columns: dict[str, Any] = {name: {} for name in (others if known else ())}
    columns |= {} if requirement.of_rows else {sensitive: settings}
    taken = {} if subject.suppressed == "judge" else {"suppressed": subject.suppressed, "keep": ["class_id"]}
    return {
        "policy": taken or None,
        "require": [{requirement.name: parameters, **judged, **known}],
        "quasi_identifiers": [*subject.labels, *subject.ids],
        "sensitive": columns,
    }


def _written(value: Any) -> Any:
    return plain_decimal(value) if isinstance(value, Decimal) else value
