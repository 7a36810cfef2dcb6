"""`ldiv demo`, and the benchmark of BSGI."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.command import engine_on

pytestmark = pytest.mark.long

BENCH_KEYS = {
    "rows", "l", "select", "threads", "seconds", "ns_per_n_log_n", "rows_per_second", "peak_memory_mb", "lm_mean",
    "classes", "rows_suppressed", "versions",
}  # fmt: skip


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


@pytest.mark.heavy
def test_bench_measures_every_size(bench: Any) -> None:
    called = bench("bsgi", "--rows", 2000, "--rows", 3000, "--json")
    assert called.code == 0, called.err
    assert set(called.json) == {"results"}
    small, large = called.json["results"]
    assert set(small) == BENCH_KEYS
    assert (small["rows"], large["rows"], small["classes"]) == (2000, 3000, 500)
    assert small["seconds"] > 0 and small["peak_memory_mb"] > 10


def test_bench_says_what_failed(bench: Any) -> None:
    called = bench("bsgi", "--rows", 100, "--l", 20)
    assert called.code == 1 and "benchmark of 100 rows failed" in called.err and "impossible" in called.err


def test_no_rows_are_refused(bench: Any) -> None:
    called = bench("bsgi", "--rows", 0)
    assert (called.code, called.out) == (2, "") and "greater than or equal to 1" in called.err


@pytest.mark.parametrize(
    "name", ["audit", "bsgi", "cuts", "decomposition", "pace", "pace", "scale", "topdown", "tp", "utility"]
)
def test_help_of_every_benchmark(bench: Any, name: str) -> None:
    shown = bench(name, "--help")
    assert shown.code == 0 and "Example" in shown.out and f"python -m tests.benchmarks.{name}" in shown.out


def test_a_benchmark_runs_from_a_checkout() -> None:
    words = ["cuts", "--only", "LM:none", "--rows", "300", "--json"]
    call = [sys.executable, "-m", f"tests.benchmarks.{words[0]}", *words[1:]]
    done = subprocess.run(call, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["results"][0]["rows"] == 300


def test_variants_are_seeded_copies_with_redrawn_quasi_identifiers() -> None:
    policy = parse_policy(adult_policy())

    def variants(seed: int) -> list[Any]:
        with duckdb.connect() as con:
            table = make_rows(engine_on(con), policy, 35_000, seed)
            same = con.execute(f"SELECT count(*) FROM (SELECT DISTINCT * FROM {table} INTERSECT SELECT * FROM adult)")
            return [same.fetchone(), con.execute(f"FROM {table} ORDER BY ALL").fetchall()]

    (same,), rows = variants(1)
    assert len(rows) == 35_000
    assert 2_000 < same < 30_000, "some copies are as they were, most are not"
    assert variants(2)[1] != rows
