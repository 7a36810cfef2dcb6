"""`python -m tests.benchmarks.published`, on a small folder of the same form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.published import CATEGORIES, measure_published


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve people of two ages and two kinds of work; all else is alike."""
    trees = tmp_path / "data" / "adult" / "hierarchies"
    trees.mkdir(parents=True)
    for name in CATEGORIES:
        leaves = ["a", "b"] if name == "workclass" else ["a"]
        (trees / f"adult_hierarchy_{name}.csv").write_text("".join(f"{leaf};*\n" for leaf in leaves))
    heading = ["ID", "age", *CATEGORIES, "salary-class"]
    people = [
        [n, 20 + 10 * (n % 2), *("ab"[n // 6] if c == "workclass" else "a" for c in CATEGORIES), "<=50K"]
        for n in range(12)
    ]
    lines = [";".join(map(str, line)) for line in [heading, *people]]
    (tmp_path / "data" / "adult" / "adult.csv").write_text("\n".join(lines) + "\n")
    theirs = ["adult mondrian 3 0.5 1 1", "adult topdown 3 0.4 1 1", "cmc topdown 3 0.1 1 1", "adult topdown 6 0.9 1 1"]
    (tmp_path / "metric_result").write_text("\n".join(theirs) + "\n")
    return tmp_path


def test_it_takes_the_least_of_theirs_and_loses_what_is_known(folder: Path) -> None:
    # Three people have each age and kind of work; six have an age, so that one of eight columns is lost to all.
    found = {one["k"]: (one["method"], one["ncp"], one["lm_mean"]) for one in measure_published(folder)}
    assert found == {3: ("topdown", 0.4, 0.0), 6: ("topdown", 0.9, pytest.approx(1 / 8))}


def test_it_refuses_a_folder_without_their_figures(bench: Any, tmp_path: Path) -> None:
    called = bench("published", tmp_path)
    assert called.code == 2 and "metric_result" in called.err
