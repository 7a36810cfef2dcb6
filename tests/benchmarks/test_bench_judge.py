"""`python -m tests.benchmarks.judge`, on a small case whose releases are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import cases
from tests.benchmarks.cases import Case, write_cases
from tests.benchmarks.judge import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight people of 21 to 24, two of each age, the younger ones ill; their tree calls ages below 23 by a value."""
    small = {"small": Case("people", ("age",), ("age",), "ill", {"k": 4})}
    for module in ("cases", "judge"):
        monkeypatch.setattr(f"tests.benchmarks.{module}.CASES", small)
    monkeypatch.setattr(cases, "OURS", {"ours": {"algorithm": "cuts"}})
    trees = tmp_path / "theirs" / "data" / "people" / "hierarchies"
    trees.mkdir(parents=True)
    (trees / "people_hierarchy_age.csv").write_text("24;23.5;*\n21;22;*\n22;22;*\n23;23.5;*\n40;40;*\n")
    rows = [f"{n};{21 + n // 2};x;{'yes' if n < 4 else 'no'}" for n in range(8)]
    (trees.parent / "people.csv").write_text("\n".join(["ID;age;note;ill", *rows]) + "\n")
    write_cases(tmp_path / "theirs", tmp_path / "judged")
    return tmp_path / "judged"


def test_nodes_of_numbers_are_named_by_their_values_and_absent_ones_left_out(folder: Path) -> None:
    tree = folder / "data" / "small" / "hierarchies" / "small_hierarchy_age.csv"
    assert tree.read_text() == "21;[21 .. 22];*\n22;[21 .. 22];*\n23;[23 .. 24];*\n24;[23 .. 24];*\n"


def test_releases_are_judged_by_their_labels_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    releases = folder / "releases" / "small"
    releases.mkdir(parents=True)
    # One row is left out, which leaves a class of three; no label is a node of the tree.
    kept = [f"{n};{'20-22' if n < 4 else '23+'};{'yes' if n < 4 else 'no'}" for n in range(7)]
    (releases / "theirs.csv").write_text("\n".join(["ID;age;ill", *kept]) + "\n")
    main(folder, publish=True, json=True, budget=10_000)
    found: dict[str, Any] = {one["release"]: one for one in json.loads(capsys.readouterr().out)["results"]}
    ours, theirs = found["ours"], found["theirs"]
    # Halves of four ages lose a third; a row left out loses all.
    assert (ours["rows"], ours["lm_mean"], ours["breaks"]) == (8, pytest.approx(1 / 3), "")
    assert (theirs["rows"], theirs["lm_mean"], theirs["breaks"]) == (7, pytest.approx((7 / 3 + 1) / 8), "k")
    assert (theirs["violating_rows"], theirs["certain"], theirs["refined"]) == (3, 1, None)
    # No age is published, so that nothing follows from their being finer.
    assert (ours["not_least"], ours["refined"]["tried"], ours["refined"]["coarse"]) == (0, 8, 0)


@pytest.mark.slow
def test_ranges_of_columns_without_trees_are_judged_through_these(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a case says that a column has numbers, or a release has ranges of it that are no nodes."""
    monkeypatch.setattr(cases, "OURS", {"ranges": {"quasi_identifiers": {"numeric": True}, "algorithm": "topdown"}})
    monkeypatch.setitem(cases.CASES, "small", replace(cases.CASES["small"], numbers=()))
    releases = folder / "releases" / "small"
    releases.mkdir(parents=True)
    labels = [f"{n};{'[21 .. 23]' if n < 6 else '24'};{'yes' if n < 4 else 'no'}" for n in range(8)]
    (releases / "theirs.csv").write_text("\n".join(["ID;age;ill", *labels]) + "\n")
    main(folder, publish=True, json=True, budget=10_000)
    found: dict[str, Any] = {one["release"]: one for one in json.loads(capsys.readouterr().out)["results"]}
    assert (found["ranges"]["lm_mean"], found["ranges"]["breaks"]) == (pytest.approx(1 / 3), "")
    assert (found["theirs"]["lm_mean"], found["theirs"]["breaks"]) == (pytest.approx(6 * 2 / 3 / 8), "k")
