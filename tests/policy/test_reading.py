"""Policies: every problem at once, each with the nearest right name."""

from decimal import Decimal

import pytest

from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import PolicyError
from ldiv_db.policy.quasi_identifiers import column_problems
from ldiv_db.policy.reading import parse_policy, read_policy

GOOD = {
    "source": "t",
    "target": "released",
    "identifiers": ["name"],
    "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": "town"}},
    "sensitive": ["disease"],
    "keep": ["ward"],
    "require": [{"distinct": 3}],
}


def problems(document, check=parse_policy, *rest):
    with pytest.raises(PolicyError) as caught:
        check(document, *rest)
    return by_key(caught.value.problems)


def by_key(listed):
    return {problem.key: str(problem) for problem in listed}


def test_defaults():
    policy = parse_policy(GOOD)
    assert (policy.algorithm.name, policy.nulls, policy.nulls_sensitive) == ("auto", "value", "reject")
    assert policy.target.if_exists == "fail" and not policy.publishes_class_id
    assert parse_policy(policy) is policy


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (-0.1, "a number from 0"), (1, "a number below 1"), (1.5, "a number below 1"), ("0.1", "takes a number"),
        (True, "takes a number"), (float("nan"), "finite"), (float("inf"), "finite"), ([0.1], "takes a number"),
    ],
)  # fmt: skip
def test_a_budget_of_rows_left_out_is_a_share(share, said):
    found = problems(GOOD | {"suppression": share})
    assert set(found) == {"suppression"} and said in found["suppression"]


def test_a_budget_is_the_decimal_that_is_written():
    assert parse_policy(GOOD).left_out_at_most is None is parse_policy(GOOD | {"suppression": None}).left_out_at_most
    for written, share in ((0, "0.0"), (0.07, "0.07"), (0.29, "0.29"), (1e-5, "0.00001")):
        assert parse_policy(GOOD | {"suppression": written}).left_out_at_most == Decimal(share)
    assert "suppression: 0.07" in parse_policy(GOOD | {"suppression": 0.07}).to_yaml()


@pytest.mark.parametrize(
    "more",
    [
        {"transparent": True, "algorithm": "bsgi"},
        {"key": "id", "target": {"prefix": "series"}},
        {"key": "id", "target": {"prefix": "series"}, "algorithm": "decomposition", "require": []},
        {"key": "id", "target": {"prefix": "series"}, "algorithm": "anatomy", "require": []},
    ],
)
def test_what_leaves_nobody_out_for_good_refuses_a_budget(more):
    found = problems(GOOD | {"suppression": 0.1} | more)
    assert "does not go with" in found["suppression"] and "leave it out" in found["suppression"]


def test_class_ids_are_published_where_they_are_needed():
    assert parse_policy(GOOD | {"require": [{"unique_distinct": 2}]}).publishes_class_id
    wrong = problems(GOOD | {"require": [{"unique_distinct": 2}], "output": {"class_id": False}})
    assert set(wrong) == {"output.class_id"}


def test_structural_problems_at_once():
    found = problems(
        {
            "sorce": "t",
            "target": {"table": "x", "if_exist": "replace"},
            "quasi_identifiers": {"age": {"numric": True}, "town": {"weight": -1}},
            "sensitive": [],
            "require": ["distinct"],
            "nulls": "drop",
            "seed": "x",
        }
    )
    assert "did you mean 'source'" in found["sorce"] and "is required" in found["source"]
    assert "did you mean 'if_exists'" in found["target.if_exist"]
    assert "did you mean 'numeric'" in found["quasi_identifiers.age.numric"]
    assert {"quasi_identifiers.town.weight", "require.0", "nulls", "seed"} <= set(found)


def test_problems_of_meaning_at_once():
    found = problems(
        GOOD
        | {
            "quasi_identifiers": {
                "age": {"taxonomy": {}},
                "town": {"numeric": True, "taxonomy": "town"},
                "zip": {"taxonomy": {"name": "zip", "file": "zip.csv"}},
                "sex": {"taxonomy": {"name": "sex", "tree": "x"}},
            },
            "require": [{"distict": 3}, {"k": 0}, {"frequency": "x"}, {"threshold": {"HIV": 2}}],
            "keep": ["ward", "NAME"],
        }
    )
    assert "did you mean 'distinct'" in found["require.0"]
    assert {
        "quasi_identifiers.age.taxonomy", "quasi_identifiers.town", "quasi_identifiers.zip.taxonomy",
        "quasi_identifiers.sex.taxonomy.tree", "require.1.k", "require.2.frequency", "require.3.threshold", "keep.NAME",
    } <= set(found)  # fmt: skip
    assert "already under identifiers" in found["keep.NAME"]


@pytest.mark.parametrize("document", [None, "x", 3, ["a"]])
def test_no_mapping(document):
    assert set(problems(document)) == {"policy"}


def columns(**types):
    return [Column(name, kind) for name, kind in types.items()]


FITTING = {"NAME": "VARCHAR", "age": "INTEGER", "town": "VARCHAR", "disease": "VARCHAR", "ward": "VARCHAR"}


def test_columns_that_fit():
    assert column_problems(parse_policy(GOOD), columns(**FITTING)) == []


def test_column_problems_at_once():
    types = {
        "name": "VARCHAR",
        "age": "VARCHAR",
        "twon": "VARCHAR",
        "disease": "VARCHAR",
        "ward": "VARCHAR",
        "ssn": "VARCHAR",
    }
    problems = column_problems(parse_policy(GOOD), columns(**types))
    found = by_key(problems)
    assert "did you mean 'twon'" in found["quasi_identifiers.town"]
    assert "has columns twon, ssn that the policy does not classify" in found["source"]
    assert "ranges need numbers, dates or timestamps, the column is VARCHAR" in found["quasi_identifiers.age"]
    assert len(found) == len(problems) == 3


def test_a_column_class_id_in_the_way():
    policy = parse_policy(GOOD | {"keep": ["CLASS_ID"], "output": {"class_id": True}})
    types = FITTING | {"class_id": "INTEGER"}
    del types["ward"]
    assert "output.class_id" in by_key(column_problems(policy, columns(**types)))


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "DECIMAL(8,2)", "UBIGINT"])
def test_numbers_have_ranges(kind):
    assert column_problems(parse_policy(GOOD), columns(**FITTING | {"age": kind})) == []


def test_files(tmp_path):
    path = tmp_path / "policy.yml"
    assert "cannot read" in problems(path, read_policy)["policy"]
    path.write_text("a: [b")
    assert "not YAML" in problems(path, read_policy)["policy"]
    path.write_text("")
    assert "empty" in problems(path, read_policy)["policy"]
    path.write_text(
        "{source: t, target: r, quasi_identifiers: {a: {numeric: true}}, sensitive: {s: }, require: [{distinct: auto}]}"
    )
    assert read_policy(path).sensitive.keys() == {"s"}
