"""The context of a release: read from a file, a policy and options, and refused while it has blanks."""

from __future__ import annotations

from dataclasses import fields

import pytest
import yaml
from hospitals import FEW, HOSTILE, SECRET, fill_hospital, hospital_policy, whole_context
from strategies import some

import ldiv_db
from ldiv_db.policy.context import ReleaseContext, context_template, read_context
from ldiv_db.policy.reading import parse_policy, read_policy
from ldiv_db.reporting.page import page_of
from ldiv_db.reporting.request import ReportRequest
from ldiv_db.reporting.verification import question_again, verify_report

pytestmark = pytest.mark.usefixtures("remembered")
#: Keys that stand in a report for anybody.
PUBLIC = {"recipient", "purpose", "release_model", "why", "review"}


def report(con, policy=None, **asked):
    return ldiv_db.report(con, "published", policy or hospital_policy(), **FEW, **asked)


def problems_of(call):
    with pytest.raises(ldiv_db.PolicyError) as refused:
        call()
    return {problem.key: problem for problem in refused.value.problems}


def test_a_template_names_every_key_and_is_a_blank_context(tmp_path):
    text = context_template()
    assert list(yaml.safe_load(text)) == list(ReleaseContext.model_fields)
    (tmp_path / "context.yml").write_text(text)
    assert read_context(tmp_path / "context.yml") == ReleaseContext()
    for field in ReleaseContext.model_fields.values():
        assert field.title and field.description
        assert " ".join(field.description.split()) in " ".join(text.replace("\n# ", " ").split())


def test_what_is_written_is_text(tmp_path):
    (tmp_path / "context.yml").write_text(
        "review: 2030-01-31\nsampling_fraction: 0.10\nroles: {Owner: 010}\npurpose: '  '\n"
    )
    found = read_context(tmp_path / "context.yml")
    assert (found.review, found.sampling_fraction, found.roles) == ("2030-01-31", "0.10", {"Owner": "010"})
    assert found.purpose is None
    policy = {**hospital_policy(), "context": {"review": "x"}}
    (tmp_path / "policy.yml").write_text(yaml.safe_dump(policy).replace("review: x", "review: 2030-01-31"))
    assert read_policy(tmp_path / "policy.yml").context.review == "2030-01-31"


@pytest.mark.parametrize(
    ("given", "key", "hint"),
    [
        ({"recipent": "us"}, "context.recipent", "did you mean 'recipient'?"),
        ({"release_model": "free"}, "context.release_model", ""),
        ({"not_applicable": {"hippa": "no"}}, "context.not_applicable.hippa.[key]", ""),
        ({"roles": ["us"]}, "context.roles", ""),
    ],
)
def test_what_is_no_context_is_refused(given, key, hint):
    assert problems_of(lambda: read_context(given))[key].hint == hint


def test_an_unknown_key_of_a_policys_context_is_named():
    found = problems_of(lambda: parse_policy(hospital_policy(context={"harm": "none"})))
    assert found["context.harm"].hint == "did you mean 'harms'?"


def test_options_go_before_the_file_and_the_file_before_the_policy(tmp_path):
    policy = parse_policy(hospital_policy(context={"recipient": "a", "purpose": "a", "why": "a"}))
    (tmp_path / "context.yml").write_text("recipient: b\npurpose: b\n")
    found = ReportRequest("t", policy, context=tmp_path / "context.yml", recipient="c").question().context
    assert (found.recipient, found.purpose, found.why) == ("c", "b", "a")


def test_a_final_report_names_every_blank(hospital):
    found = problems_of(lambda: report(hospital, final=True))
    texts = set(ReleaseContext.model_fields) - {"reasons", "not_applicable"}
    assert set(found) == {f"context.{key}" for key in (*texts, "reasons.name", "reasons.age", f"reasons.{HOSTILE}")}
    assert found["context.harms"].hint == ReleaseContext.model_fields["harms"].description
    assert "not_applicable" not in str(found)


def test_a_final_report_needs_each_key(hospital):
    for key in (*sorted(set(ReleaseContext.model_fields) - {"reasons", "not_applicable"}), "reasons.age"):
        context = whole_context()
        within, _, column = key.partition(".")
        context[within] = {k: v for k, v in context[within].items() if k != column} if column else None
        assert set(problems_of(lambda said=context: report(hospital, context=said, final=True))) == {f"context.{key}"}


def test_a_whole_context_is_final(final, document):
    shown = final.html()
    assert final.document["blanks"] == []
    for key, text in whole_context().items():
        for one in text.values() if isinstance(text, dict) else [text]:
            assert one in shown, key
    assert "<strong>Draft.</strong>" not in shown and "<strong>Draft.</strong>" in page_of(document)


def test_a_reason_is_of_a_column_that_there_is(hospital):
    found = problems_of(lambda: report(hospital, context={"reasons": {"agee": "x"}}))
    assert found["context.reasons.agee"].hint == "did you mean 'age'?"
    assert report(hospital, context={"reasons": {"AGE": "by law"}}).html().count("by law") == 1


def test_a_public_report_has_no_more_of_it_than_it_had(hospital):
    policy = hospital_policy(context=whole_context())
    found = report(hospital, policy, public=True)
    assert set(found.document["context"]) == set(ReleaseContext.model_fields)
    assert {key for key, said in found.document["context"].items() if said} == PUBLIC
    shown = {f"{SECRET} {key}" for key in PUBLIC - {"release_model"}}
    for text in (found.html(), found.json()):
        assert all(one in text for one in shown)
        assert text.count(SECRET) == sum(text.count(one) for one in shown)
    assert "guidelines" not in found.document and "verdicts" not in found.document and "blanks" not in found.document


def test_a_context_is_no_part_of_what_is_published(hospital, document):
    with_context = parse_policy(hospital_policy(context=whole_context()))
    other = report(hospital, with_context.model_dump(exclude_unset=True) | {
        "require": hospital_policy()["require"], "source": "patients"})  # fmt: skip
    assert document["annex"]["policy_sha256"] == other.document["annex"]["policy_sha256"]
    assert SECRET not in other.document["annex"]["policy_text"]
    assert yaml.safe_load(with_context.to_yaml())["context"]["harms"] == f"{SECRET} harms"


@pytest.mark.parametrize("public", some([True, False]))
def test_a_report_with_a_context_is_verified(hospital, public):
    found = report(hospital, context=whole_context(), public=public)
    asked = question_again(found.document, "published", parse_policy(hospital_policy()))
    assert verify_report(hospital, found.document, asked).holds


def test_another_context_publishes_the_same_again(con):
    fill_hospital(con)
    first, second = (
        ldiv_db.run(con, hospital_policy(seed=None, context=context)) for context in (None, whole_context())
    )
    assert first.seed == second.seed


def test_a_report_takes_each_key_of_a_context_as_an_argument():
    taken = {one.name for one in fields(ReportRequest)}
    assert set(ReleaseContext.model_fields) <= taken
