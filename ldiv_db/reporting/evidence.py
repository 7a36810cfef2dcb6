"""The evidence on a release: one document of numbers and words, the same again for the same table and question.

Parts that tell more than the release itself are for internal eyes: everything worked out from the source, from tables
of people or from the ledger. Who has everybody's quasi-identifiers learns from how many rows were unique, suppressed or
answered wrongly what no class of the release says. A public report is without them. The seed of a run, and what its
search found, are in neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.database.attach import named_databases
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.quasi_identifiers import open_columns, read_columns
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.reporting.attempts import attempts_on, verdicts
from ldiv_db.reporting.guidelines import answers
from ldiv_db.reporting.release_facts import (
    ReportedTable,
    Table,
    audit_document,
    audit_sql,
    classes_of,
    content_of,
    earlier_releases,
    find_run,
    question_about,
)
from ldiv_db.reporting.request import ReportRequest, identifiers_of, policy_hash, policy_text, written_policy
from ldiv_db.reporting.risks import (
    attack_documents,
    identifiability,
    not_tried,
    people_counted,
    protection_of,
    residual_risks,
    source_document,
    three_risks,
)
from ldiv_db.requirements.risk import HIGH, bounded_risk

#: The form of documents; a document of another form is not verified.
FORM = "ldiv report 2"
Document = dict[str, Any]
#: Is told in a few words what begins.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class ReportSubject:
    """The subject of a report: the table, the question about it, and its source or why there is none."""

    engine: Engine
    listener: Listener
    table: Table
    question: CheckRequest
    asked: ReportRequest
    noted: ReportedTable
    source: Table | None
    why_not: str | None

    @property
    def people(self) -> Table | None:
        """The source, if its rows are people: the rows of one that holds counts are not."""
        counts = self.asked.policy is not None and self.asked.policy.weight is not None
        return None if counts else self.source

    @property
    def algorithm(self) -> str | None:
        """The policy's algorithm, possibly a choice among several; else the ledger's; None if unknown."""
        if self.asked.policy is not None and (self.noted.run or self.asked.policy.names_algorithm):
            return self.asked.policy.algorithm.name
        return self.noted.run["algorithm"] if self.noted.run else None


@contextmanager
def opened(engine: Engine, listener: Listener, name: str, asked: ReportRequest) -> Iterator[ReportSubject]:
    """Yield the subject of a report, a table or the output of the run of that id, with the policy's databases attached.

    Raises PolicyError for what does not exist or does not fit, and for a source that is named and is not there.
    """
    asked.refuse()
    noted = find_run(engine, name)
    if asked.is_public:  # who has the release and the policy has no ledger
        noted = replace(noted, run=None)
    with ExitStack() as stack:
        if asked.policy is not None and not asked.is_public:
            stack.enter_context(named_databases(engine, asked.policy.databases, asked.folder))
        table = resolve_source(engine, noted.table, Path(), "table")
        source, why_not = _source(engine, asked)
        question = question_about(engine, table, asked)
        asked = replace(asked, threshold=asked.threshold or str(bounded_risk(question.require) or HIGH))
        yield ReportSubject(engine, listener, table, question, asked, noted, source, why_not)


def _source(engine: Engine, asked: ReportRequest) -> tuple[Table | None, str | None]:
    if asked.is_public:
        return None, "this report is for those who may not read the source"
    if asked.policy is None:
        return None, "no policy was given, which says what the columns of the source are"
    if asked.source is not None:
        return read_columns(engine, asked.policy, resolve_source(engine, asked.source, Path(), "source")), None
    try:
        return open_columns(engine, asked.policy, asked.folder), None
    except PolicyError as error:
        return None, "; ".join(problem.what for problem in error.problems)


def document_of(subject: ReportSubject) -> Document:
    """The evidence, all sections; numbers that only the release is needed for, then those for internal eyes."""
    engine, question, asked = subject.engine, subject.question, subject.asked
    tell = subject.listener.on_stage
    tell("auditing the release")
    audits = audit_document(check(engine, subject.table, question))
    tell("trying attacks")
    tried = attempts_on(engine, subject.listener, subject.table, subject.noted, question, asked, subject.people)
    found = tried.found
    tell("counting and hashing the release")
    threshold = float(asked.high)
    document: Document = {
        "form": FORM,
        "asked": asked.as_dict(),
        "policy": None if asked.policy is None else written_policy(asked.policy, asked.is_public),
        "context": (asked.context.public() if asked.is_public else asked.context).model_dump(),
        "statement": _statement(subject, audits["holds"], found, threshold),
        "data": _data(subject),
        "algorithm": _algorithm(subject, audits["holds"]),
        "audit": audits,
        "classes": classes_of(engine, subject.table, question),
        "identifiability": {"threshold": threshold, "risks": identifiability(found, threshold)},
        "risks": three_risks(found, threshold),
        "attacks": {"holds": found.holds, "rows": found.rows, "attacks": attack_documents(found)},
        "residual": residual_risks(question, asked.policy),
        "not_tried": [*found.lost, *not_tried(question, asked, subject.people is not None)],
        "source": None,
        "earlier": None,
        "annex": _annex(subject),
    }
    if asked.is_public:
        return document
    document |= _internal(subject, tell) | {"verdicts": verdicts(tried, threshold)}
    document["blanks"] = asked.context.blanks(asked.reasoned)
    return document | {"guidelines": answers(document)}


def _internal(subject: ReportSubject, tell: Tell) -> Document:
    asked, policy, source = subject.asked, subject.asked.policy, subject.source
    found: Document = {"source": None, "why_no_source": subject.why_not}
    if source is not None and policy is not None:
        found["source"] = source_document(subject.engine, subject.table, source, policy, asked, tell)
    name = None if policy is None else str(policy.source)
    return found | {"earlier": earlier_releases(subject.engine, subject.noted.run, name, asked.folder)}


def _statement(subject: ReportSubject, holds: bool | None, found: Attacks, threshold: float) -> Document:
    """The opening statement: the table, its recipient, whether it meets the requirements, and the largest risk."""
    (prosecutor,) = [attack for attack in found.attacks if attack.name == "prosecutor"]
    largest = prosecutor.gains[0].gain
    return {
        "table": subject.noted.table,
        "run": subject.noted.about,
        "rows": found.rows,
        "classes": found.classes,
        "holds": holds,
        "promises_hold": found.holds,
        "largest_risk": largest,
        "within_threshold": None if largest is None else largest <= threshold,
    }


def _data(subject: ReportSubject) -> Document:
    """The columns by their roles; of direct identifiers a public report says nothing."""
    question, policy = subject.question, subject.asked.policy
    columns = policy.quasi_identifiers if policy else {}
    ways = {name: _recoding_kind(qi.numeric, qi.is_open) for name, qi in columns.items()}
    names = list(ways) or list(question.quasi_identifiers)
    return {
        "identifiers": identifiers_of(policy) if policy and not subject.asked.is_public else [],
        "quasi_identifiers": [{"column": name, "generalised": ways.get(name)} for name in names],
        "sensitive": list(question.sensitive),
        "keep": list(policy.keep) if policy else [],
        "class_column": question.class_column,
        "pseudonym": policy.output.person if policy else None,
        **people_counted(policy),
    }


def _recoding_kind(numeric: bool, is_open: bool) -> str:
    return "to ranges of numbers" if numeric else "by its type" if is_open else "along a taxonomy"


def _algorithm(subject: ReportSubject, holds: bool | None) -> Document:
    policy = subject.asked.policy
    options = {} if policy is None else policy.algorithm.options
    transparent = policy is not None and policy.transparent
    protection = protection_of(subject.algorithm, policy, holds)
    return {"name": subject.algorithm, "options": options, "transparent": transparent, "protection": protection}


def _annex(subject: ReportSubject) -> Document:
    policy = subject.asked.policy
    document = None if policy is None else written_policy(policy, subject.asked.is_public)
    return {
        "release": content_of(subject.engine, subject.table),
        "policy_sha256": None if document is None else policy_hash(document),
        "policy_text": None if document is None else policy_text(document),
        "versions": versions(),
        "audit": audit_sql(subject.engine, subject.table, subject.question, subject.noted.table),
    }
