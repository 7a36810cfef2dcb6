"""Guidelines, clause by clause: what of a report answers a clause, who is to answer it, or why it does not apply.

What they ask stands in `guidelines.yml`; here it is held against the document of a report. A clause is answered where
something is there to be read, which does not say that it is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text

ANSWERED, OPEN, NOT_APPLICABLE = "answered", "to be answered", "not applicable"
#: Who answers a clause that names nobody.
_CONTROLLER = "the controller"
Document = Mapping[str, Any]


@cache
def guidelines() -> dict[str, Any]:
    """The guidelines with their clauses, and the words for what clauses need."""
    found: dict[str, Any] = parse_document(read_text(Path(__file__).with_suffix(".yml"), POLICY_BYTES))
    return found


def answers(document: Document) -> list[dict[str, Any]]:
    """Every guideline with its clauses: each has a `state` and what goes with it.

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
        for key, one in guidelines()["guidelines"].items()
    ]


def _answer(clause: Document, document: Document, excuse: str | None) -> dict[str, Any]:
    said = {"clause": clause["clause"], "asks": clause["asks"]}
    because = excuse or clause.get("never") or (None if _applies(clause, document) else clause["otherwise"])
    if because:
        return {**said, "state": NOT_APPLICABLE, "because": because}
    sections, keys = clause.get("sections", []), clause.get("context", [])
    lacking = list(_lacking(keys, clause.get("needs", []), document))
    if lacking or not sections:
        return {**said, "state": OPEN, "by": clause.get("by", _CONTROLLER), "lacking": lacking}
    return {**said, "state": ANSWERED, "sections": sections, "context": keys}


def _applies(clause: Document, document: Document) -> bool:
    """True if each place that the clause is about holds what it wants, or anything where it does not say what."""
    wanted = clause.get("only_if", {}).items()
    return all(_at(document, place) == value if value else _at(document, place) for place, value in wanted)


def _at(document: Document, place: str) -> Any:
    found: Any = document
    for key in place.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _lacking(keys: Sequence[str], needs: Sequence[str], document: Document) -> Iterator[str]:
    blanks = document["blanks"]
    for key in keys:
        yield from (blank for blank in blanks if blank == key or blank.startswith(f"{key}."))
    yield from (guidelines()["needs"][need] for need in needs if not document.get(need))
