"""Five guidelines, clause by clause: every clause has one of three states, by what the report holds."""

from __future__ import annotations

import re

import pytest
from hospitals import FEW, hospital_policy, whole_context

import ldiv_db
from ldiv_db.policy.context import Guideline, ReleaseContext
from ldiv_db.reporting.drawing import TEMPLATES
from ldiv_db.reporting.evidence import ANSWERED, NOT_APPLICABLE, OPEN, answers
from ldiv_db.reporting.table_text import words_in

pytestmark = pytest.mark.usefixtures("remembered")
KEYS = {"clause", "asks", "sections", "context", "needs", "by", "only_if", "otherwise", "never"}


def states(document):
    return {(one["id"], clause["clause"]): clause for one in document["guidelines"] for clause in one["clauses"]}


def clauses():
    return [(key, clause) for key, one in words_in("guidelines.yml")["guidelines"].items() for clause in one["clauses"]]


def test_the_five_are_those_of_the_context():
    assert tuple(words_in("guidelines.yml")["guidelines"]) == Guideline.__args__


def test_clauses_name_what_there_is():
    sections = set(re.findall(r'\("(\w+)", "', (TEMPLATES / "report.html.j2").read_text(encoding="utf-8")))
    seen = set()
    for key, clause in clauses():
        assert set(clause) <= KEYS and clause["asks"]
        assert set(clause.get("sections", [])) <= sections
        assert set(clause.get("context", [])) <= set(ReleaseContext.model_fields) - {"not_applicable"}
        assert set(clause.get("needs", [])) <= set(words_in("guidelines.yml")["needs"])
        assert ("only_if" in clause) == ("otherwise" in clause)
        assert (key, clause["clause"]) not in seen
        seen.add((key, clause["clause"]))
    asked_for = {one for _, clause in clauses() for one in clause.get("context", [])}
    assert asked_for == set(ReleaseContext.model_fields) - {"not_applicable"}


def test_without_a_context_what_people_know_is_open(document):
    found = states(document)
    assert found["iso_27559", "6.3.3"] == {
        "clause": "6.3.3", "asks": "what harm people could come to", "state": OPEN, "by": "the controller",
        "lacking": ["harms"],
    }  # fmt: skip
    assert found["iso_27559", "8.3.3"]["lacking"] == [
        f"reasons.{name}" for name in ["name", *hospital_policy()["quasi_identifiers"]]
    ]
    assert found["hipaa", "164.514(b)(1)"]["by"] == "the expert"
    assert found["iso_27559", "7.3.4"]["state"] == found["iso_27559", "8.2.3"]["state"] == ANSWERED
    assert found["ico", "Pseudonymisation"]["because"] == "the release has no pseudonym"
    assert found["tehdas2", "Synthetic data"]["state"] == NOT_APPLICABLE


def test_with_a_whole_context_only_what_no_report_answers_is_open(final):
    found = states(final.document)
    for (key, name), clause in found.items():
        written = next(one for other, one in clauses() if (other, one["clause"]) == (key, name))
        if clause["state"] == OPEN:
            assert not written.get("sections") and clause["lacking"] == []
        elif clause["state"] == ANSWERED:
            assert clause["sections"] == written["sections"] and clause["context"] == written.get("context", [])
        else:
            assert clause["because"] in (written.get("never"), written.get("otherwise"))


def test_guidelines_that_do_not_apply_and_conditions_hold_by_what_stands_in_the_report(hospital):
    context = {"release_model": "internal", "not_applicable": {"hipaa": "nobody here is covered"}}
    found = ldiv_db.report(hospital, "published", hospital_policy(), **FEW, context=context)
    clauses, document = states(found.document), found.document
    assert {one["because"] for (key, _), one in clauses.items() if key == "hipaa"} == {"nobody here is covered"}
    assert clauses["iso_27559", "7.3.4"]["state"] == ANSWERED
    assert clauses["ico", "Effectiveness: within the organisation"]["state"] == OPEN
    assert "nobody here is covered" in found.html()
    document |= {
        "data": document["data"] | {"pseudonym": "patient_no"},
        "context": document["context"] | {"not_applicable": {}},
    }
    clauses = states({"guidelines": answers(document)})
    assert clauses["hipaa", "164.514(c)"]["state"] == clauses["ico", "Pseudonymisation"]["state"] == OPEN


def test_what_the_report_lacks_opens_clauses(hospital):
    document = ldiv_db.report(
        hospital, "copied", qi=list(hospital_policy()["quasi_identifiers"]), sensitive="disease", require="k:3",
        context=whole_context(reasons={}),
    ).document  # fmt: skip
    found = states(document)
    assert found["iso_27559", "7.2.4"]["lacking"] == ["a policy, which says what the columns are"]
    assert found["ema_health_canada", "Risk: initial"]["lacking"] == ["the source, for figures before"]
    assert found["iso_27559", "8.2.3"]["lacking"] == ["people of the source, and a sensitive attribute"]
