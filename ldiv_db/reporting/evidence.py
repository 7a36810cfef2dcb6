"""The evidence on a release: one document of numbers and words, the same again for the same table and question.

Parts that tell more than the release itself are for internal eyes: everything worked out from the source, from tables
of people or from the ledger. Who has everybody's quasi-identifiers learns from how many rows were unique, suppressed or
answered wrongly what no class of the release says. A public report is without them. The seed of a run, and what its
search found, are in neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ldiv_db.attacking.attacks import Attacks, of_most_known
from ldiv_db.attacking.base import ABOVE, WITHIN, held_against
from ldiv_db.auditing.cells import cells_of, crossed_names
from ldiv_db.database.context import Stage
from ldiv_db.database.data_files import Table
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.stages import timed, work_of
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.reporting.attempts import attempts_on, verdicts
from ldiv_db.reporting.release_facts import audit_document
from ldiv_db.reporting.request import identifiers_of, policy_hash, policy_text, written_policy
from ldiv_db.reporting.risks import (
    MEASURING_LOSS,
    READING_SOURCE,
    attack_documents,
    identifiability,
    not_tried,
    people_counted,
    protection_of,
    residual_risks,
    source_document,
    three_risks,
)
from ldiv_db.reporting.subject import Reported
from ldiv_db.reporting.table_text import words_in

#: The form of documents; a document of another form is not verified.
FORM = "ldiv report 2"
#: What is shown of a report besides what is shown of its source.
_AUDITING, _TRYING, _HASHING = "auditing the release", "trying attacks", "counting and hashing the release"
Document = dict[str, Any]


def document_of(subject: Reported) -> Document:
    """The evidence as JSON has it, where exact decimals are numbers."""
    plain: Document = json.loads(json.dumps(_evidence(subject), default=float))
    return plain


def _evidence(subject: Reported) -> Document:
    """All sections; numbers that only the release is needed for, then those for internal eyes."""
    question, asked = subject.question, subject.asked
    tell = subject.listener.on_stage
    subject.listener.on_expected(_stages(subject))
    tell(_AUDITING)
    audits = audit_document(subject.audits())
    tell(_TRYING)
    tried = attempts_on(subject)
    found = tried.found
    of_all = of_most_known(found)  # whom the statement and the risks of recognition are about
    tell(_HASHING)
    threshold = float(asked.high)
    document: Document = {
        "form": FORM,
        "asked": asked.as_dict(),
        "policy": None if asked.policy is None else written_policy(asked.policy, asked.public),
        "context": (asked.context.public() if asked.public else asked.context).model_dump(),
        "statement": _statement(subject, audits["holds"], found, of_all, threshold),
        "data": _data(subject),
        "algorithm": _algorithm(subject, audits["holds"]),
        "audit": audits,
        "classes": subject.classes(),
        "identifiability": {"threshold": threshold, "risks": identifiability(of_all, threshold)},
        "risks": three_risks(found, threshold),
        "attacks": {"holds": found.holds, "rows": found.rows, "attacks": attack_documents(found)},
        "residual": residual_risks(question, asked.described),
        "not_tried": [*found.lost, *not_tried(subject)],
        "source": None,
        "earlier": None,
        "annex": _annex(subject),
    }
    if asked.public:
        return document
    document |= {
        "source": source_document(subject),
        "why_no_source": subject.why_not,
        "earlier": subject.earlier_releases(),
        "verdicts": verdicts(tried, threshold),
        "blanks": asked.context.blanks(asked.reasoned),
    }
    return document | {"guidelines": answers(document)}


def _stages(subject: Reported) -> list[Stage]:
    """What is before it; attacks and what was lost say more when they begin."""
    work = work_of(subject.engine, *subject.targets.values())
    names = [_AUDITING, _TRYING, _HASHING, *([READING_SOURCE, MEASURING_LOSS] if subject.sources else [])]
    return [timed(name, *work) for name in names]


def _statement(subject: Reported, holds: bool | None, found: Attacks, of_all: Attacks, threshold: float) -> Document:
    (prosecutor,) = [attack for attack in of_all.attacks if attack.name == "prosecutor"]
    risk = prosecutor.gains[0]
    return {
        "table": subject.noted.table,
        "run": subject.noted.about,
        "rows": found.rows,
        "classes": found.classes,
        "holds": holds,
        "promises_hold": found.holds,
        "counts": "people" if prosecutor.of_people else "rows",
        "largest_risk": risk.gain,
        "at_least": prosecutor.at_least,
        "within_threshold": {WITHIN: True, ABOVE: False}.get(held_against(prosecutor, risk, threshold).verdict),
    }


def _data(subject: Reported) -> Document:
    """The columns by their roles; of direct identifiers a public report says nothing."""
    question, policy = subject.question, subject.asked.described
    columns = policy.quasi_identifiers if policy else {}
    ways = {name: _recoding_kind(qi.numeric, qi.is_open) for name, qi in columns.items()}
    names = list(ways) or list(question.quasi_identifiers)
    return {
        "identifiers": identifiers_of(policy) if policy and not subject.asked.public else [],
        "quasi_identifiers": [{"column": name, "generalised": ways.get(name)} for name in names],
        "sensitive": list(question.sensitive),
        "keep": list(policy.keep) if policy else [],
        "class_column": question.class_column,
        "pseudonym": policy.output.person if policy else None,
        **people_counted(policy),
        **({"links": subject.links} if subject.links else {}),
        **({"expand": policy.expand.view} if policy and policy.expand else {}),
        **_cells(subject),
    }


def _cells(subject: Reported) -> Document:
    """How many cells of the cross-tables that the policy asks for stand under their values, and with how many rows.

    For internal eyes also how many have as many rows in the source. Nothing is said of columns whose labels do not tell
    single values.
    """
    policy = subject.asked.described
    if policy is None or not policy.tables_of:
        return {}

    names = crossed_names(policy)

    def cells(table: Table) -> dict[tuple[Any, ...], int]:
        found, _ = cells_of(subject.engine, table, policy, subject.asked.folder, names)
        return {values: rows.low for values, rows in found.items() if rows.low}

    with suppress(PolicyError):
        own = cells(subject.targets[""])
        told = {"columns": names, "exact": len(own), "rows": sum(own.values())}
        if subject.sources and not (subject.asked.public or policy.weight):
            told["as_in_source"] = len(own.items() & cells(subject.sources[""]).items())
        return {"tables_of": told}
    return {}


def _recoding_kind(numeric: bool, is_open: bool) -> str:
    return "to ranges of numbers" if numeric else "by its type" if is_open else "along a taxonomy"


def _algorithm(subject: Reported, holds: bool | None) -> Document:
    policy = subject.asked.policy
    options = {} if policy is None else policy.algorithm.options
    transparent = policy is not None and policy.transparent
    protection = protection_of(subject.algorithm, policy, holds)
    return {"name": subject.algorithm, "options": options, "transparent": transparent, "protection": protection}


def _annex(subject: Reported) -> Document:
    policy = subject.asked.policy
    document = None if policy is None else written_policy(policy, subject.asked.public)
    return {
        "release": subject.content(subject.targets),
        "policy_sha256": None if document is None else policy_hash(document),
        "policy_text": None if document is None else policy_text(document),
        "versions": versions(),
        "audit": subject.audit_sql(),
    }


# -- guidelines ----------------------------------------------------------------------------------------

ANSWERED, OPEN, NOT_APPLICABLE = "answered", "to be answered", "not applicable"
#: What guidelines ask, clause by clause, and the words for what clauses need.
_GUIDELINES = "guidelines.yml"
#: Who answers a clause that names nobody.
_CONTROLLER = "the controller"


def answers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every guideline with its clauses: each has a `state` and what goes with it.

    A clause is answered where something is there to be read, which does not say that it is enough.
    `sections` and `context` (keys) are where it is answered; `by` is to answer what is `lacking`; `because` says why
    it does not apply.
    """
    excused = document["context"]["not_applicable"]
    return [
        {
            "id": key,
            "name": one["name"],
            "clauses": [_answer(clause, document, excused.get(key)) for clause in one["clauses"]],
        }
        for key, one in words_in(_GUIDELINES)["guidelines"].items()
    ]


def _answer(clause: Mapping[str, Any], document: Mapping[str, Any], excuse: str | None) -> dict[str, Any]:
    said = {"clause": clause["clause"], "asks": clause["asks"]}
    because = excuse or clause.get("never") or (None if _applies(clause, document) else clause["otherwise"])
    if because:
        return {**said, "state": NOT_APPLICABLE, "because": because}
    sections, keys = clause.get("sections", []), clause.get("context", [])
    lacking = list(_lacking(keys, clause.get("needs", []), document))
    if lacking or not sections:
        return {**said, "state": OPEN, "by": clause.get("by", _CONTROLLER), "lacking": lacking}
    return {**said, "state": ANSWERED, "sections": sections, "context": keys}


def _applies(clause: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """True if each place that the clause is about holds what it wants, or anything where it does not say what."""
    wanted = clause.get("only_if", {}).items()
    return all(_at(document, place) == value if value else _at(document, place) for place, value in wanted)


def _at(document: Mapping[str, Any], place: str) -> Any:
    found: Any = document
    for key in place.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _lacking(keys: Sequence[str], needs: Sequence[str], document: Mapping[str, Any]) -> Iterator[str]:
    blanks = document["blanks"]
    for key in keys:
        yield from (blank for blank in blanks if blank == key or blank.startswith(f"{key}."))
    yield from (words_in(_GUIDELINES)["needs"][need] for need in needs if not document.get(need))
