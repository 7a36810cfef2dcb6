"""A report held against tables: its own, and others that differ by a cell; reports that were changed, or are none."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hospitals import hospital_policy
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.context import Listener
from ldiv_db.measuring import measure
from ldiv_db.policy.reading import parse_policy
from ldiv_db.reporting.verification import question_again, verify_report

#: Of these tests the attacks are tried once.
remembered = pytest.mark.usefixtures("remembered")


def verified(con, document, table="published", policy=None, **given):
    return verify_report(con, document, question_again(document, table, policy), **given)


def test_a_report_is_of_its_table(hospital, document):
    """Worked out again, stage by stage; attacks are tried as well."""
    stages = []
    found = verified(hospital, document, listener=Listener(on_stage=stages.append))
    assert found.holds and found.same_release and not found.differences and not found.versions
    assert found.figures > 300
    # Numbers without a second source are named.
    assert found.plain > 50 and found.plain + sum(found.same_code.values()) < found.figures
    assert {"attacks", "risks", "source.utility.queries", "source.utility.spreads.lost"} <= set(found.same_code)
    assert "statement" not in found.same_code and "source.risk_before" not in found.same_code
    tried = [stage for stage in stages if stage.startswith("trying ") and stage != "trying attacks"]
    assert len(set(tried)) > 3
    assert [stage for stage in stages if stage not in tried] == [
        "auditing the release", "trying attacks", "counting and hashing the release",
        "counting and hashing the source", "measuring what was lost", "comparing columns",
        "looking for what covers what", "answering random queries", "counting plainly",
    ]  # fmt: skip


@pytest.mark.usefixtures("untried")
def test_a_mistake_of_the_code_that_made_the_report_is_found(con, monkeypatch):
    spelt = "(['Flu', ' flu', 'COLD ', 'cold'])[1 + i % 4]"
    con.execute(f"CREATE TABLE stays AS SELECT i % 40 AS age, {spelt} AS said FROM range(120) AS t(i)")
    changes = {"source": "stays", "identifiers": None, "quasi_identifiers": {"age": {"numeric": True}}}
    policy = hospital_policy(**changes, sensitive={"said": {"same": ["trim", "casefold"]}})
    ldiv_db.run(con, policy)
    monkeypatch.setattr(measure, "read_as_one", lambda engine, table, same: contextlib.nullcontext(table))
    wrong = ldiv_db.report(con, "published", policy, queries=0, tries=1).document
    (said,) = [i for i, one in enumerate(wrong["source"]["utility"]["spreads"]) if one["column"] == "said"]
    found = verified(con, wrong)
    assert not found.holds
    assert {one.where for one in found.differences} == {
        f"source.utility.spreads[{said}].after[{bin_}]" for bin_ in (0, 1)
    }


@remembered
@pytest.mark.parametrize("reported", some(["public", "report"]))
def test_a_copy_in_another_order_is_the_same_release(hospital, request, reported):
    document = request.getfixturevalue(reported).document
    found = verified(hospital, document, "copied", policy=parse_policy(hospital_policy()))
    assert found.holds and found.same_release


@remembered
def test_one_changed_cell_is_noticed(hospital, public):
    found = verified(hospital, public.document, "changed", policy=parse_policy(hospital_policy()))
    assert not found.holds and not found.same_release
    assert "annex.release.sha256" in [one.where for one in found.differences]


#: Numbers of all sections by their places.
CHANGED = {
    "statement.largest_risk": ("statement", "largest_risk"),
    "audit.attributes[0].requirements[0].worst": ("audit", "attributes", 0, "requirements", 0, "worst"),
    "classes.sizes.bins[0].classes": ("classes", "sizes", "bins", 0, "classes"),
    "attacks.attacks[0].gains[0].gain": ("attacks", "attacks", 0, "gains", 0, "gain"),
    "source.utility.loss.lm_by_column.age": ("source", "utility", "loss", "lm_by_column", "age"),
    "source.uniqueness.unique_rows": ("source", "uniqueness", "unique_rows"),
    "source.content.rows": ("source", "content", "rows"),
    "identifiability.risks[1].mean": ("identifiability", "risks", 1, "mean"),
}


@remembered
def test_changed_numbers_are_found_by_their_places(hospital, document):
    forged = copy.deepcopy(document)
    for *way, last in CHANGED.values():
        part = forged
        for key in way:
            part = part[key]
        part[last] = 0.123456
    del forged["residual"]
    found = verified(hospital, forged)
    assert found.same_release and not found.holds
    assert {one.where for one in found.differences if one.reported == 0.123456} == set(CHANGED)
    assert {one.where for one in found.differences} == {*CHANGED, "residual"}


@remembered
def test_a_public_report_is_verified_with_the_policy_and_other_versions_are_noted_and_no_difference(hospital, public):
    """Of the policy its seed does not count."""
    older = copy.deepcopy(public.document)
    older["annex"]["versions"]["duckdb"] = "1.0"
    with refuses("policy"):
        verified(hospital, older)
    found = verified(hospital, older, policy=parse_policy(hospital_policy(seed=1)))
    assert found.holds and found.plain > 10 and found.versions["duckdb"][0] == "1.0"


@remembered
def test_a_report_without_a_policy(hospital):
    asked = {"qi": ["age"], "sensitive": ["disease"], "require": ["k:1", {"distinct": 1}]}
    document = ldiv_db.report(hospital, "published", **asked).document
    assert verified(hospital, document).holds
    with refuses("policy"):
        verified(hospital, document, policy=parse_policy(hospital_policy()))


def test_another_policy_is_refused(hospital, document):
    with refuses("policy"):
        verified(hospital, document, policy=parse_policy(hospital_policy(require=[{"k": 2}])))


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"form": "ldiv report 1"},
        {"form": "another", "asked": {}, "annex": {}, "statement": {}},
        {"form": "ldiv report 2", "asked": {}, "annex": {}, "statement": {}},
        {"form": "ldiv report 2", "asked": {"unknown": 1}, "annex": {}, "statement": {}},
        {"form": "ldiv report 2", "asked": [], "annex": {}, "statement": {}},
        {"asked": {"threshold": []}},
        {"asked": {"queries": "many"}},
        {"asked": {"audience": "nobody"}},
        {"context": {"release_model": "free"}},
    ],
)
def test_what_is_no_report_is_refused(hospital, document, damaged):
    if damaged and "form" not in damaged:
        damaged = document | {key: document[key] | value for key, value in damaged.items()}
    with refuses("verify"):
        verified(hospital, damaged)


def test_a_policy_that_was_damaged_is_refused(hospital, document):
    with refuses("quasi_identifier"):
        verified(hospital, document | {"policy": document["policy"] | {"quasi_identifier": []}})


@remembered
def test_numbers_that_are_none_are_differences(hospital, public):
    damaged = public.document | {"annex": {}, "audit": None, "attacks": {"attacks": None}}
    found = verified(hospital, damaged, policy=parse_policy(hospital_policy()))
    assert not found.same_release and {"audit", "annex.release"} <= {one.where for one in found.differences}


def test_a_source_that_is_gone_is_asked_for(hospital, document):
    gone = document | {"policy": document["policy"] | {"source": "elsewhere"}}
    with refuses("source"):
        verified(hospital, gone)
