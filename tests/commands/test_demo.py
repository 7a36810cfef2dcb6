"""`ldiv demo`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ldiv_db.running.demo import adult_policy

pytestmark = pytest.mark.long


def test_demo_shows_before_after_and_the_verdict(call: Any) -> None:
    called = call("demo")
    assert called.code == 0, called.err
    for text in ("30,162", "before", "after", "1,521", "the policy holds", "What to try next"):
        assert text in called.out


def test_demo_json(call: Any) -> None:
    found = call("demo", "--json", "--l", 6).json
    assert (found["rows_in"], found["algorithm"], found["classes"]) == (30162, "bsgi", 3726)
    assert [requirement["holds"] for requirement in found["requirements"]] == [True, True]


def test_the_demo_selects_by_bsgi_as_it_is_told(call: Any) -> None:
    found = call("demo", "--json", "--l", 6, "--select", "bisect").json
    assert (found["classes"], found["avg_class_size"]) == (5027, 6)


def test_demo_keeps_a_folder_to_go_on_with(bed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    called = bed.call("demo", "--directory", folder)
    assert called.code == 0 and f"ldiv plan {folder}" in called.out
    plan = bed.call("plan", folder / "adult.duckdb", folder / "policy.yml", "--json").json
    assert (plan["algorithm"], plan["tries"]) == ("auto", ["topdown"])
    keys = ",".join(adult_policy()["quasi_identifiers"])
    words = ("--qi", keys, "--sensitive", "occupation", "--require", "k:5", "--require", "frequency:3")
    assert bed.call("check", folder / "adult.duckdb", "published.adult", *words).code == 0
    assert "exists" in bed.fails(2, "demo", "--directory", folder)


@pytest.mark.heavy
def test_the_report_on_the_demo_has_no_red_mark(bed: Any, tmp_path: Path) -> None:
    """Nor has that for outsiders: what the demonstration does is what a user should do."""
    folder = tmp_path / "kept"
    bed.call("demo", "--directory", folder)
    words = ("report", folder / "adult.duckdb", "published.adult", "--policy", folder / "policy.yml")
    for more in ((), ("--public",)):
        assert "within the threshold of 0.2" in bed.call(*words, *more, "--out", tmp_path / "r.html").out
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert re.findall(r'class="[^"]*\bgood\b', page) and not re.findall(r'class="[^"]*\b(?:bad|warn)\b', page)


def test_a_demo_that_cannot_be_met_keeps_nothing(bed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    assert "too frequent in occupation for frequency l=15" in bed.fails(1, "demo", "--l", 15, "--directory", folder)
    assert not folder.exists()
    assert bed.fails(2, "demo", "--l", 1)
