"""What a report says of a release of several tables.

Classes are of people, who are told apart by what all their rows show. Attackers know people in one table, or in all;
the statement, the risks of recognition and the charts of classes are of who knows all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.attacking.question import Knowledge
from ldiv_db.attacking.tables import ALL, attack_published
from ldiv_db.auditing.audit import Audit
from ldiv_db.auditing.check_tables import audit_published
from ldiv_db.auditing.kept import warn_of_source
from ldiv_db.auditing.subject import Subject
from ldiv_db.auditing.tables import joined_rows, seen_people, shown_people
from ldiv_db.measuring.measure import MeasureRequest
from ldiv_db.measuring.tables import TablesMeasurement, measure_tables
from ldiv_db.policy.document import Policy
from ldiv_db.policy.tables import named_in, numbers_as
from ldiv_db.reporting.attempts import REPORTED, Attempts
from ldiv_db.reporting.release_facts import Table, TablesSubject, classes_of, content_of
from ldiv_db.reporting.risks import uniqueness_of

_ON_ONE = "is made on one table alone"
_LACKING = "Attacks by people known from elsewhere, and by who runs the program again, are made on one table."
_SQL = "the audit joins the tables: `ldiv check --policy POLICY` repeats it"


@dataclass(frozen=True)
class SeveralTables:
    """The parts of a report that are otherwise of a release of one table."""

    subject: TablesSubject
    policy: Policy

    def audits(self) -> list[Audit]:
        """The audits of all tables together, one a sensitive column and one of people alone."""
        return audit_published(self.subject.engine, self.policy, self.subject.released)

    def attempts(self) -> Attempts:
        """The attacks by who knows one table, and by who knows all; others need one value a row of one table."""
        subject = self.subject
        found = attack_published(subject.engine, self.policy, subject.released, Knowledge(threshold=subject.asked.high))
        made = {attack.name for attack in found.attacks}
        return Attempts(found, {name: _ON_ONE for kind in REPORTED for name in kind.names if name not in made})

    def of_all(self, found: Attacks) -> Attacks:
        """The attacks by who knows all tables."""
        return replace(found, attacks=tuple(attack for attack in found.attacks if attack.knows == ALL))

    def classes(self) -> dict[str, Any]:
        """The histograms of classes of people: their sizes are of all people, shares of those who have a value."""
        engine, released = self.subject.engine, self.subject.released
        with engine.scope():
            joined = joined_rows(engine, released.tables)
            people = shown_people(engine, joined.values())

            @contextmanager
            def read(name: str) -> Iterator[Subject]:
                with engine.scope():
                    yield seen_people(engine, released.tables, joined, people, name)

            return classes_of(engine, ["", *released.attributes], read)

    def content(self) -> dict[str, Any]:
        """The rows and the hash of each published table, and of all together."""
        return _content(self.subject, self.subject.targets)

    def audit_sql(self) -> dict[str, Any]:
        """Why there is no one statement."""
        return {"sql": None, "why_not": _SQL}

    def not_tried(self) -> Iterator[str]:
        """The attacks that were not tried."""
        yield _LACKING

    def links(self) -> list[str]:
        """The columns in whose place numbers of the release are published."""
        return [named_in(*column) for column in numbers_as(self.policy.tables)]

    def source(self) -> dict[str, Any] | None:
        """What the tables were before, and what each, and counts over two that are joined, lost; None without them."""
        subject, policy, engine = self.subject, self.policy, self.subject.engine
        if subject.sources is None:
            return None
        tell = subject.listener.on_stage
        tell("counting and hashing the source")
        before = [self._before(name, rows) for name, rows in subject.sources.items()]
        kept = [
            f"{name}: {line}"
            for name, table in policy.tables.items()
            for line in warn_of_source(engine, subject.sources[name], table.keep, list(table.quasi_identifiers))
        ]
        content = _content(subject, subject.sources)
        tell("measuring what was lost")
        asked = subject.asked
        wanted = MeasureRequest(folder=asked.folder, queries=asked.queries, seed=asked.seed, kl=False)
        utility = measure_tables(engine, policy, wanted, spreads=True)
        unknown = dict.fromkeys(("uniqueness", "risk_before", "risk_before_of_population"))
        return {**unknown, "tables": before, "kept": kept, "content": content, "utility": _utility(utility)}

    def _before(self, name: str, rows: Table) -> dict[str, Any]:
        keys = list(self.policy.tables[name].quasi_identifiers)
        found = uniqueness_of(self.subject.engine, rows, keys) if keys else None
        return {"table": name, "uniqueness": found}


def _utility(found: TablesMeasurement) -> dict[str, Any]:
    document = found.as_dict()
    measured = {
        name: {key: value for key, value in one.items() if key not in ("published", "source")}
        for name, one in document["measured"].items()
    }
    joins = [{**one.as_dict(), "text": str(one.counts) if one.counts else None} for one in found.joins]
    return {**document, "measured": measured, "joins": joins}


def _content(subject: TablesSubject, tables: Mapping[str, Table]) -> dict[str, Any]:
    each = [{"table": name, **content_of(subject.engine, rows)} for name, rows in tables.items()]
    whole = json.dumps([(one["table"], one["sha256"]) for one in each], ensure_ascii=False)
    return {
        "rows": sum(one["rows"] for one in each),
        "columns": [named_in(one["table"], column) for one in each for column in one["columns"]],
        "sha256": hashlib.sha256(whole.encode()).hexdigest(),
        "tables": each,
    }


def rows_plainly(subject: TablesSubject) -> Iterator[tuple[str, Any]]:
    """The rows of each table as they are counted without template or code of audits, attacks and measures."""
    counts = {name: subject.engine.count(rows) for name, rows in subject.targets.items()}
    people = sum(counts[table.name] for table in subject.released.tables)
    yield from {"statement.rows": people, "attacks.rows": people, "annex.release.rows": sum(counts.values())}.items()
    for number, rows in enumerate(counts.values()):
        yield f"annex.release.tables[{number}].rows", rows
    if subject.sources is None:
        return
    before = {name: subject.engine.count(rows) for name, rows in subject.sources.items()}
    members = [name for name in before if name in {table.name for table in subject.released.tables}]
    yield "source.content.rows", sum(before.values())
    for number, name in enumerate(members):
        place = f"source.utility.tables[{number}]"
        yield f"{place}.rows_in", before[name]
        yield f"{place}.rows_published", counts[name]
        yield f"{place}.rows_suppressed", max(0, before[name] - counts[name])
