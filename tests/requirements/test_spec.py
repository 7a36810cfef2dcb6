"""Requirements as they are written."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

import ldiv_db
from ldiv_db.requirements import (
    REQUIREMENTS,
    DistinctL,
    Distribution,
    FrequencyL,
    KAnonymity,
    RequirementSpec,
    Threshold,
    UniqueDistinctL,
    parse_requirement,
)


@pytest.mark.parametrize(
    ("text", "expected", "size"),
    [
        ("k:5", KAnonymity(5), 5),
        ("distinct:3", DistinctL(3), 3),
        ("unique_distinct:4", UniqueDistinctL(4), 4),
        ("frequency:2.5", FrequencyL(Decimal("2.5")), 3),
        ("threshold:0.5", Threshold(Decimal("0.5")), 2),
        ("threshold:0.5,HIV=0.1", Threshold(Decimal("0.5"), (("HIV", Decimal("0.1")),), named=("HIV",)), 10),
        ("threshold:a=b=0.3", Threshold(Decimal(1), (("a=b", Decimal("0.3")),), named=("a=b",)), 4),
    ],
)
def test_parse(text, expected, size):
    spec = parse_requirement(text)
    assert spec.problems("x") == []
    assert spec.resolve(None) == expected
    assert expected.unique_class_size() == size


@pytest.mark.parametrize("text", ["distinct", "distinct:", "", ":"])
def test_no_form(text):
    with pytest.raises(ValueError, match="name:value"):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("k", 0), ("k", -1), ("k", 2.5), ("k", "x"), ("k", True), ("k", None), ("distinct", 0), ("unique_distinct", "2.5"),  # noqa: E501
        ("frequency", 0.5), ("frequency", "nan"), ("frequency", "inf"), ("frequency", "1.0000000001"), ("frequency", True),  # noqa: E501
        ("threshold", 0), ("threshold", 1.5), ("threshold", {"HIV": -0.1}), ("threshold", "auto"), ("threshold", {"HIV": "x"}),  # noqa: E501
    ],
)  # fmt: skip
def test_wrong_arguments(name, argument):
    (problem,) = RequirementSpec(name, argument).problems("require")
    assert problem.key == f"require.{name}"


def test_unknown_names_get_a_hint():
    (problem,) = RequirementSpec("unique-distinct", 2).problems("require")
    assert "did you mean 'unique_distinct'" in str(problem)


@pytest.mark.parametrize(
    ("counts", "largest", "auto"), [([5, 5, 5], 3, 3), ([9, 1], 1, 2), ([4, 3, 2], 2, 2), ([1] * 7, 7, 7)]
)
def test_auto_is_the_largest_feasible(counts, largest, auto):
    distribution = Distribution(counts)
    assert (distribution.largest_l, distribution.auto_l) == (largest, auto)
    assert RequirementSpec("distinct", "auto").resolve(distribution) == DistinctL(auto)


def test_auto_needs_a_source():
    with pytest.raises(ValueError, match="auto needs"):
        RequirementSpec("k", "auto").resolve(None)


def test_nothing_else_asks_which_requirement_it_has():
    """What is known of a requirement is in its class; its room alone names it."""
    package = Path(ldiv_db.__file__).parent
    names = re.compile(rf"\b({'|'.join(kind.__name__ for kind in REQUIREMENTS.values())})\b")
    naming = {path for path in package.rglob("*.py") if names.search(path.read_text(encoding="utf-8"))}
    assert {path.parent for path in naming} == {package / "requirements"}
