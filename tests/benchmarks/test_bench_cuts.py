"""`python -m tests.benchmarks.cuts`."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_search_is_timed(bench: Any) -> None:
    called = bench("cuts", "--only", "CM:none", "--rows", 300, "--memory-limit", "500MB", "--json")
    assert called.code == 0, called.err
    (found,) = called.json["results"]
    assert (found["rows"], found["proved"]) == (300, True) and found["cuts"] > 10**7
    assert found["seconds"] > 0 and found["peak_memory_mb"] > 10
    assert found["best_cost"] == found["cost"] == found["bound"]


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_other_requirements_are_taken_together_and_ages_as_numbers(bench: Any) -> None:
    asked = ("--require", "recursive:c=3,l=2", "--require", "k:3", "--others", 1, "--age", "numbers")
    called = bench("cuts", "--only", "LM:none", *asked, "--rows", 300, "--json")
    assert called.code == 0, called.err
    (found,) = called.json["results"]
    assert found["require"] == ["recursive:c=3,l=2", "k:3"] and found["proved"]
    assert (found["others"], found["age"], list(found["cut"])) == (1, "numbers", ["age", "education"])


def test_an_unknown_combination_is_refused(bench: Any) -> None:
    for option, text in (("--only", "DM:vioSA"), ("--age", "decades")):
        called = bench("cuts", option, text)
        assert called.code == 2 and text in called.err
