"""`python -m tests.benchmarks.cuts`."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.slow
def test_a_search_is_timed(bench: Any) -> None:
    called = bench("cuts", "--only", "CM:none", "--rows", 300, "--memory-limit", "500MB", "--json")
    assert called.code == 0, called.err
    (found,) = called.json["results"]
    assert (found["rows"], found["proved"]) == (300, True) and found["cuts"] > 10**7
    assert found["seconds"] > 0 and found["peak_memory_mb"] > 10
    assert found["best_cost"] == found["cost"] == found["bound"]


@pytest.mark.slow
def test_other_requirements_are_taken_together(bench: Any) -> None:
    asked = ("--require", "recursive:c=3,l=2", "--require", "k:3")
    called = bench("cuts", "--only", "LM:allRec", *asked, "--rows", 300, "--json")
    assert called.code == 0, called.err
    (found,) = called.json["results"]
    assert found["require"] == ["recursive:c=3,l=2", "k:3"] and found["proved"]


@pytest.mark.slow
def test_ages_are_taken_as_numbers(bench: Any) -> None:
    asked = ("--only", "LM:none", "--require", "k:5", "--rows", 300, "--others", 1, "--json")
    costs = []
    for age in ("numbers", "years"):
        called = bench("cuts", *asked, "--age", age)
        assert called.code == 0, called.err
        (found,) = called.json["results"]
        assert found["proved"] and (found["others"], found["age"]) == (1, age)
        assert list(found["cut"]) == ["age", "education"]
        costs.append(found["cost"])
    assert costs[0] != costs[1]


def test_an_unknown_combination_is_refused(bench: Any) -> None:
    for option, text in (("--only", "DM:vioSA"), ("--age", "decades")):
        called = bench("cuts", option, text)
        assert called.code == 2 and text in called.err
