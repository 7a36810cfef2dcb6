"""A threshold of risk: what it becomes, and what runs, checks, statements and reports make of it."""

import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.require import Risk
from ldiv_db.requirements import RequirementSpec, parse_requirement
from ldiv_db.requirements.risk import bounded_risk


def resolved(argument):
    return RequirementSpec("risk", argument).resolve(None)


def test_a_number_becomes_the_size_of_classes():
    draw = random.Random(3)
    drawn = [f"{draw.randint(1, 10**9)}/{10**9}" for _ in range(200)]
    for text in ["0.09", "0.0909", "1/11", "0.2", "1", "0.333333333", "1e-9", *drawn]:
        k = resolved(text).k
        assert Fraction(1, k) <= Fraction(text) and (k == 1 or Fraction(1, k - 1) > Fraction(text)), text
    assert [resolved(text).label for text in (0.09, "1/11", {"average": 0.05})] == [
        "risk max=0.09, k=12", "risk max=1/11, k=11", "risk average=0.05, k=20"
    ]  # fmt: skip
    of_people = resolved({"max": 0.3, "population": "people"})
    assert (of_people.label, of_people.named_population) == ("risk max=0.3, people=4, population=people", "people")


def test_it_is_written_in_three_ways():
    assert Risk(0.09) == Risk(max=0.09) == RequirementSpec("risk", {"max": 0.09})
    assert parse_requirement("risk:1/11") == RequirementSpec("risk", "1/11")
    assert parse_requirement("risk:average=0.05").resolve(None) == resolved({"average": "0.05"})


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ({}, "takes max or average"),
        ({"max": 0.1, "average": 0.1}, "takes max or average"),
        ({"average": 0.1, "population": "people"}, "no population beside average"),
        ({"max": 0.1, "of": "population"}, "has no parameter 'of'"),
        ("2/1", "such as 1/11"), ("1/0", "such as 1/11"), ("-1/2", "such as 1/11"), (0, "a number from"),
        (1.5, "a number from"), ("many", "takes a number"), (True, "takes a number"),
    ],
)  # fmt: skip
def test_what_is_no_threshold_is_refused(argument, said):
    (problem,) = RequirementSpec("risk", argument).problems("require.0")
    assert said in problem.what


def test_the_least_bound_of_several_is_no_less_than_it_is():
    specs = [Risk("1/11"), Risk(0.2), Risk(average=0.01), Risk(max=0.01, population="people"), RequirementSpec("k", 99)]
    assert Fraction(1, 11) < Fraction(bounded_risk(specs)) < Fraction(1, 11) + Fraction(1, 10**9)
    assert bounded_risk(specs[2:]) is None


@pytest.fixture
def people(table):
    draw = random.Random(8)
    rows = [(draw.randint(18, 80), f"{draw.randint(1000, 1099)}", draw.choice("abcdef")) for _ in range(300)]
    table("people", {"age": "INTEGER", "zip": "VARCHAR", "disease": "VARCHAR"}, rows)


def policy(*require, **changes):
    keys = {"age": {"taxonomy": {"ranges": [5, 10, 20]}}, "zip": {"taxonomy": {"prefix": [4, 3, 2]}}}
    found = {"source": "people", "target": {"table": "out", "if_exists": "replace"}, "quasi_identifiers": keys}
    return found | {"sensitive": ["disease"], "require": list(require), "seed": 1, "algorithm": "topdown"} | changes


def sizes(con):
    return Counter(con.execute("SELECT age, zip FROM out").fetchall()).values()


@pytest.mark.parametrize("average", some(["1/7", 0.02, 0.5]))
def test_a_mean_is_aimed_at_with_care_and_judged_as_it_is(con, people, average):
    result = ldiv_db.run(con, policy({"risk": {"average": average}}))
    (verdict,) = result.audits[0].verdicts
    mean = len(sizes(con)) / 300
    assert min(sizes(con)) >= math.ceil(1 / Fraction(str(average)))
    assert verdict.holds and verdict.worst == pytest.approx(mean) and verdict.once
    asked = [{"risk": {"average": f"{bound:.9f}"}} for bound in (mean + 1e-6, mean - 1e-6)]
    (audit,) = ldiv_db.check(con, "out", ["age", "zip"], "disease", asked)
    assert [verdict.holds for verdict in audit.verdicts] == [True, False]
    for wanted, holds in zip(asked, (True, False), strict=True):
        statement = ldiv_db.check_sql("out", ["age", "zip"], "disease", [wanted])
        assert bool(con.execute(statement).fetchall()) is not holds


def test_what_cannot_be_kept_is_refused_with_the_nearest(con, people):
    with pytest.raises(InfeasibleError, match=r"the nearest it meets is max: 0\.003333334") as refused:
        ldiv_db.plan(con, policy({"risk": 0.003}))
    changes = [remedy.change for remedy in refused.value.remedies]
    assert {"require": [{"risk": {"max": 0.003333334}}]} in changes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("require", "asked", "threshold"),
    [({"risk": "1/11"}, {}, 0.090909091), ({"risk": 0.1}, {"threshold": 0.5}, 0.5), ({"k": 5}, {}, 0.2)],
)
def test_a_report_takes_its_threshold(con, people, require, asked, threshold):
    """What a policy asks for is within it; in public no utility is told, nor what was to be preserved."""
    written = policy(require, preserve=["SELECT zip, avg(age) AS of_interest FROM source GROUP BY zip"])
    ldiv_db.run(con, written)
    document = ldiv_db.report(con, "out", written, tries=20, queries=5, **asked).document
    assert document["identifiability"]["threshold"] == threshold
    assert document["identifiability"]["risks"][0]["verdict"] == "within the threshold"
    utility = document["source"]["utility"]
    assert [one["column"] for one in utility["loss"]["precision"]] == ["age", "zip"]
    assert [answer["figure"] for answer in utility["answers"]] == ["of_interest"]
    public = str(ldiv_db.report(con, "out", written, public=True, **asked).document)
    assert not [word for word in ("preserve", "of_interest", "precision", "answers") if word in public]
