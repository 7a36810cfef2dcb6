"""The attacks of a report: those of `ldiv attack`, each with a verdict or the reason why it has none."""

from __future__ import annotations

import collections
from fractions import Fraction

import pytest
from hospitals import HOSTILE, fill_hospital, hospital_policy, quoted, undone
from strategies import some

import ldiv_db
from ldiv_db.attacking.gains import Attack, Untried, gain_of
from ldiv_db.policy.reading import parse_policy
from ldiv_db.reporting import attempts
from ldiv_db.reporting.drawing import number
from ldiv_db.reporting.verification import question_again, verify_report

FEW = {"queries": 0, "tries": 5}


@pytest.fixture(scope="module")
def replayed(hospital):
    return ldiv_db.report(hospital, "published", hospital_policy(), **FEW, worlds=3).document


def verdict_of(document, name):
    (found,) = [one for one in document["verdicts"] if one["attack"] == name]
    return found


@pytest.mark.slow
def test_every_known_attack_has_a_verdict_or_a_reason(document):
    names = [one["attack"] for one in document["verdicts"]]
    assert names == [
        "singling out by one column", "singling out by several columns", "linkability", "inference", "linking",
        "counting", "definetti", "replay", "composition", "downcoding", "refinement",
    ]  # fmt: skip
    for one in document["verdicts"]:
        if one["verdict"] in ("not tried", "no threshold"):
            assert one["why"]
        elif one["verdict"] != "nothing to try":
            assert one["number"] is not None and one["threshold"] is not None


@pytest.mark.slow
def test_numbers_are_those_of_the_attacks_by_themselves(hospital, replayed):
    asked = {"policy": hospital_policy(), "known": "patients", "population": "patients", "counting": True}
    replay = ldiv_db.Replay(limit=3)
    found = ldiv_db.attack(hospital, "published", **asked, definetti="patients", downcoding=True, replay=replay)
    gains = {attack.name: attack.gains for attack in found.attacks}
    for name in ("linking", "counting", "definetti", "replay"):
        assert verdict_of(replayed, name)["number"] == pytest.approx(gains[name][0].gain)
        assert verdict_of(replayed, name)["threshold"] == 0.5  # frequency: 2
    singled = verdict_of(replayed, "downcoding")
    assert singled["number"] == pytest.approx(gains["downcoding"][-1].gain) and singled["threshold"] == 0.2


@pytest.mark.parametrize(
    ("reached", "untried", "verdict"),
    [
        (Fraction(1, 3), None, "within the threshold"),
        (Fraction(1, 2), None, "within the threshold"),
        (Fraction(2, 3), None, "above the threshold"),
        (Fraction(2, 3), Untried("people", 1, 9), "above the threshold"),
        (Fraction(1, 3), Untried("people", 1, 9), "undecided"),
        (None, Untried("people", 0, 9), "undecided"),
        (None, None, "nothing to try"),
    ],
)
def test_a_bad_verdict_needs_one_find_and_a_good_one_all(reached, untried, verdict):
    attack = Attack("linking", "disease", (gain_of("posterior", reached, None),), untried=untried)
    posterior = Attack("posterior", "disease", (gain_of("posterior", None, Fraction(1, 2)),))
    tried = attempts.Attempts(attempts.Attacks(9, 3, (posterior, attack)))
    found = verdict_of({"verdicts": attempts.verdicts(tried, 0.2)}, "linking")
    assert (found["verdict"], found["threshold"]) == (verdict, 0.5)


def test_a_rate_of_guesses_above_the_share_is_left_open():
    """As with inference: of people who are not in the release some guesses are right as well."""
    posterior = Attack("posterior", "disease", (gain_of("posterior", None, Fraction(1, 2)),))
    gains = (gain_of("share of people guessed right", Fraction(3, 5), None),)
    attack = Attack("definetti", "disease", gains, {"by_shares": 0.45})
    tried = attempts.Attempts(attempts.Attacks(9, 3, (posterior, attack)))
    found = verdict_of({"verdicts": attempts.verdicts(tried, 0.2)}, "definetti")
    assert found["verdict"] == "undecided" and found["why"].startswith("0.45 by the shares of classes alone")


def test_nothing_is_held_against_a_promise_that_there_is_not(document):
    linking = Attack("linking", "disease", (gain_of("posterior", Fraction(1, 2), None),))
    posterior = Attack("posterior", "disease", (gain_of("posterior", None, None),))
    tried = attempts.Attempts(attempts.Attacks(9, 3, (posterior, linking)))
    found = verdict_of({"verdicts": attempts.verdicts(tried, 0.2)}, "linking")
    assert (found["verdict"], found["why"]) == ("no threshold", "no requirement bounds the share of a value")
    assert verdict_of(document, "replay")["why"].startswith("runs the program for each world")


def test_without_a_policy_labels_stand_for_nothing(hospital):
    found = ldiv_db.report(hospital, "published", qi=["age", HOSTILE], sensitive="disease", require="k:3").document
    whys = {one["why"] for one in found["verdicts"] if one["attack"] != "refinement"}
    assert len(found["verdicts"]) == 11 and whys == {"needs a policy, which says what labels stand for"}


def test_without_its_source_a_report_says_what_it_lacks(hospital):
    with undone(hospital):
        hospital.execute("DROP TABLE patients")
        report = ldiv_db.report(hospital, "published", hospital_policy(), **FEW)
    found = report.document
    assert verdict_of(found, "definetti")["why"] == verdict_of(found, "linking")["why"] == "needs people of the source"
    assert verdict_of(found, "replay")["why"] == "needs the source"
    assert verdict_of(found, "downcoding")["why"].startswith("needs a population (--population)")
    assert found["source"] is None and "no table or view patients" in found["why_no_source"]
    assert "no table or view patients" in report.html()


@pytest.mark.usefixtures("untried")
def test_without_a_population_there_is_one_initial_risk(hospital):
    found = ldiv_db.report(hospital, "published", hospital_policy(), **FEW)
    assert found.document["source"]["risk_before_of_population"] is None
    assert "The source is taken for the population" in found.html()


@pytest.mark.slow
def test_a_release_that_is_not_its_policys_is_not_replayed(hospital):
    found = ldiv_db.report(hospital, "changed", hospital_policy(), **FEW, worlds=3).document
    assert "gives this release" in verdict_of(found, "replay")["why"]


@pytest.fixture
def twice(con):
    fill_hospital(con)
    ldiv_db.run(con, hospital_policy(target={"table": "earlier"}))
    ldiv_db.run(con, hospital_policy(seed=7, algorithm="topdown", over_time="independent"))
    return con


@pytest.mark.slow
def test_earlier_releases_are_put_together(twice, document):
    policy = hospital_policy(seed=7, algorithm="topdown", over_time="independent")
    found = ldiv_db.report(twice, "published", policy, **FEW)
    by_itself = ldiv_db.attack(twice, "published", policy=policy, known="patients", also=["earlier"])
    (attack,) = [one for one in by_itself.attacks if one.name == "composition"]
    together = verdict_of(found.document, "composition")
    assert together["number"] == pytest.approx(attack.gains[0].gain) and together["threshold"] == 0.5
    assert together["verdict"] == ("above the threshold" if attack.gains[0].gain > 0.5 else "within the threshold")
    assert "no earlier release" in verdict_of(document, "composition")["why"]


@pytest.mark.slow
def test_an_earlier_release_of_other_columns_is_named(twice):
    policy = hospital_policy(seed=7, algorithm="topdown", over_time="independent")
    document = ldiv_db.report(twice, "published", policy, **FEW).document
    assert verify_report(twice, document, question_again(document, "published", parse_policy(policy))).holds
    twice.execute("ALTER TABLE earlier RENAME COLUMN age TO years")
    found = ldiv_db.report(twice, "published", policy, **FEW).document
    assert verdict_of(found, "composition")["why"].startswith("this policy cannot read an earlier release: ")
    twice.execute("DROP TABLE earlier")
    found = ldiv_db.report(twice, "published", policy, **FEW).document
    assert verdict_of(found, "composition")["verdict"] == "not tried"


# -- initial risks by a population ---------------------------------------------------------------------


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize(
    ("everybody", "columns"),
    some([pytest.param("everybody", ["age", HOSTILE]), pytest.param("everybodys_ages", ["age"])]),
)
def test_the_initial_risk_in_a_population_by_hand(hospital, everybody, columns):
    names = ", ".join(map(quoted, columns))
    asked = {"population": everybody, "queries": 0, "tries": 1}
    report = ldiv_db.report(hospital, "published", hospital_policy(), **asked)
    sample = collections.Counter(hospital.execute(f"SELECT {names} FROM patients").fetchall())
    people = collections.Counter(hospital.execute(f"FROM {everybody}").fetchall())
    alike = {values: max(rows, people[values]) for values, rows in sample.items()}
    found = report.document["source"]["risk_before_of_population"]
    assert found["largest"] == 1 / min(alike.values())
    mean = sum(Fraction(rows, alike[values]) for values, rows in sample.items()) / sample.total()
    assert found["mean"] == pytest.approx(float(mean))
    assert found["mean"] < report.document["source"]["risk_before"]["mean"] or columns == ["age"]
    shown = report.html()
    assert "The source is taken for the population" not in shown
    sample, risks = report.document["source"]["risk_before"], report.document["identifiability"]["risks"]
    prosecutor, journalist, marketer = risks
    for label, initial, residual in (
        ("Prosecutor (sample), maximum", sample["largest"], prosecutor["largest"]),
        ("Prosecutor (sample), average", sample["mean"], prosecutor["mean"]),
        ("Journalist (population), maximum", found["largest"], journalist["largest"]),
        ("Journalist (population), average", found["mean"], journalist["mean"]),
        ("Marketer (population), average", found["mean"], marketer["mean"]),
    ):
        assert f"{label}: initial (source) {number(initial)}, residual (release) {number(residual)}" in shown
