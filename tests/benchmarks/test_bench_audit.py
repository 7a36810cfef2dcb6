"""`python -m tests.benchmarks.audit`."""

from __future__ import annotations

from typing import Any

import pytest

from ldiv_db.requirements import REQUIREMENTS
from tests.benchmarks.audit import ARGUMENTS


@pytest.mark.slow
def test_every_requirement_is_timed(bench: Any) -> None:
    called = bench("audit", "--rows", 2000, "--json")
    assert called.code == 0, called.err
    (found,) = called.json["results"]
    assert found["rows"] == 2000 and found["seconds"] > 0 and found["peak_memory_mb"] > 10
    assert {requirement["name"] for requirement in found["requirements"]} == set(REQUIREMENTS) - {
        "range",
        "proximity",  # these are of numbers
        "k_map",
        "delta_presence",  # these of a population
    }
    assert len(found["requirements"]) == len(ARGUMENTS)
    assert {requirement["name"]: requirement["holds"] for requirement in found["requirements"]}["frequency"]


@pytest.mark.slow
def test_it_is_shown_as_a_table(bench: Any) -> None:
    called = bench("audit", "--rows", 1000)
    assert called.code == 0 and "1,000" in called.out


def test_it_says_what_failed(bench: Any) -> None:
    called = bench("audit", "--rows", 1000, "--l", 30)
    assert called.code == 1 and "benchmark of 1,000 rows failed" in called.err
