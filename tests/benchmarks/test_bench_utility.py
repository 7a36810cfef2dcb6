"""`python -m tests.benchmarks.utility`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.utility import PEERS


@pytest.mark.slow
def test_utility_beside_that_of_others(bench: Any) -> None:
    called = bench("utility", "--algorithm", "mondrian", "--require", "k:10", "--json")
    assert called.code == 0, called.err
    (found,) = called.json["results"]
    assert found["require"] == "k:10" and found["tool_lm"] == 0.0453
    shown = dict(utility_table())["k: 10"]
    assert f"{found['runs']['mondrian']['lm_mean']:.4f}".lstrip("0") == shown[2]


def test_the_page_has_the_other_tools_figures_and_the_ratios() -> None:
    shown = dict(utility_table())
    assert list(shown) == [f"{peer.name}: {peer.argument}" for peer in PEERS]
    for peer in PEERS:
        other, *ours, ratio = shown[f"{peer.name}: {peer.argument}"]
        assert other == f"{peer.lm:.4f}".lstrip("0")
        assert abs(min(float(loss) for loss in ours if loss) / peer.lm - float(ratio)) < 0.005 + 1e-9


def utility_table() -> Iterator[tuple[str, list[str]]]:
    """The rows of the table beside other tools on the page of benchmarks, by requirement."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    section = page.split("\n## Beside other tools\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| `"):
            requirement, *cells = (cell.strip(" *`") for cell in line.strip("|").split("|"))
            yield requirement, cells


def test_it_is_shown_as_a_table_with_what_cannot_be(bench: Any) -> None:
    called = bench("utility", "--algorithm", "bsgi", "--require", "k:10")
    assert called.code == 0 and "ARX 0.0453" in called.out and "0.11" not in called.out


def test_variants_have_no_figure_of_others(bench: Any) -> None:
    words = ("--rows", 300, "--algorithm", "mondrian", "--require", "k:10")
    (found,) = bench("utility", *words, "--json").json["results"]
    assert found["tool"] is None and 0 < found["runs"]["mondrian"]["lm_mean"] < 1
    assert found["runs"]["mondrian"]["peak_memory_mb"] > 10


@pytest.mark.parametrize("option", ["--algorithm", "--require"])
def test_an_unknown_name_is_refused(bench: Any, option: str) -> None:
    called = bench("utility", option, "nothing")
    assert called.code == 2 and "nothing is none of" in called.err
