"""`python -m tests.benchmarks.utility`, `python -m tests.benchmarks.topdown` and `python -m tests.benchmarks.steps`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.topdown import Point, measure_topdown, points, topdown_as_table
from tests.benchmarks.utility import PEERS


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
    words = ("--rows", 1000, "--algorithm", "mondrian", "--require", "k:10")
    (found,) = bench("utility", *words, "--json").json["results"]
    assert found["tool"] is None and 0 < found["runs"]["mondrian"]["lm_mean"] < 1
    assert found["runs"]["mondrian"]["peak_memory_mb"] > 10
    assert "│ -" in bench("utility", *words).out


@pytest.mark.parametrize("option", ["--algorithm", "--require"])
def test_an_unknown_name_is_refused(bench: Any, option: str) -> None:
    called = bench("utility", option, "nothing")
    assert called.code == 2 and "nothing is none of" in called.err


@pytest.mark.slow
def test_the_papers_experiments() -> None:
    asked = [Point("5", "distinct", 400, 2), Point("5", "distinct_alpha", 400, 2), Point("5", "distinct", 400, 10)]
    asked.append(Point("5", "k", 400, 400))
    plain, weighed, infeasible, whole = measure_topdown(asked, threads=1)
    assert infeasible["seconds"] is None and whole["dm"] == 400**2 and whole["open_rows"] == 0
    assert 0 < plain["kl"] <= weighed["kl"] < whole["kl"]  # the less is allowed, the less is told
    assert plain["open_rows"] > 0
    table = topdown_as_table([plain, infeasible])[1]
    assert len(table) == 2 and "-" in table[1]


def test_figures_have_a_point_for_every_model() -> None:
    assert len(points(["4a"])) == 20 and len(points(["4c"])) == 24 and points(["5"])[-1].model == "k"


def test_an_unknown_figure_is_refused(bench: Any) -> None:
    called = bench("topdown", "--figure", "9")
    assert called.code == 2 and "9 is none of" in called.err


@pytest.mark.slow
def test_steps_add_up_to_the_run(bench: Any) -> None:
    words = ("--rows", 1000, "--times", 2, "--algorithm", "mondrian")
    (found,) = bench("steps", *words, "--json").json["results"]
    assert (found["rows"], found["algorithm"]) == (1000, "mondrian") and 0 < found["lm_mean"] < 1
    for kind in ("processor_seconds", "seconds"):
        assert 0 < sum(step[kind] for step in found["steps"]) <= found[kind]
    stages = list(dict.fromkeys(step["stage"] for step in found["steps"]))
    assert (
        stages[0] == "resolving the policy"
        and "forming classes by mondrian" in stages
        and stages[-1].startswith("writing")
    )
    counts = {step["step"]: step["count"] for step in found["steps"]}
    assert counts["dictionary"] > 1 and counts["the rest"] == 0
    shown = bench("steps", *words).out
    assert "100%" in shown and "steps below 2 %" in shown and "of wall clock" in shown
