"""`python -m tests.benchmarks.bsgi`, and what all benchmarks have in common."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.database.errors import LdivError
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks.bsgi import Case, make_rows
from tests.benchmarks.child_processes import measure_in_children
from tests.benchmarks.command import engine_on

BENCH_KEYS = {
    "rows", "l", "select", "threads", "seconds", "ns_per_n_log_n", "rows_per_second", "peak_memory_mb", "lm_mean",
    "classes", "rows_suppressed", "versions",
}  # fmt: skip


@pytest.mark.usefixtures("here")
def test_bench_measures_every_size(bench: Any) -> None:
    called = bench("bsgi", "--rows", 200, "--rows", 300, "--select", "bisect", "--json")
    assert called.code == 0, called.err
    assert set(called.json) == {"results"}
    small, large = called.json["results"]
    assert set(small) == BENCH_KEYS
    assert (small["rows"], large["rows"], small["classes"]) == (200, 300, 50)
    assert small["seconds"] > 0 and small["peak_memory_mb"] > 10


def test_a_child_that_fails_is_an_error_with_its_exit_code() -> None:
    with pytest.raises(LdivError, match=r"benchmark of 100 rows failed: .*bench\.duckdb") as failed:
        measure_in_children("tests.benchmarks.bsgi", Case(100), ["run"])  # there is no database to run on
    assert failed.value.exit_code == 3


def test_no_rows_are_refused(bench: Any) -> None:
    called = bench("bsgi", "--rows", 0)
    assert (called.code, called.out) == (2, "") and "greater than or equal to 1" in called.err


def test_help_of_every_benchmark(bench: Any) -> None:
    for name in ("bsgi", "clinic", "cuts", "nights", "pace", "replay", "scale", "there", "utility", "wide"):
        shown = bench(name, "--help")
        assert shown.code == 0 and "Example" in shown.out and f"python -m tests.benchmarks.{name}" in shown.out


@pytest.mark.slow
def test_a_benchmark_runs_from_a_checkout() -> None:
    call = [sys.executable, "-m", "tests.benchmarks.bsgi", "--rows", "300", "--json"]
    done = subprocess.run(call, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["results"][0]["rows"] == 300


def test_variants_are_seeded_copies_with_redrawn_quasi_identifiers() -> None:
    policy = parse_policy(adult_policy())

    def variants(seed: int) -> list[Any]:
        with duckdb.connect() as con:
            table = make_rows(engine_on(con), policy, 31_000, seed)
            same = con.execute(f"SELECT count(*) FROM (SELECT DISTINCT * FROM {table} INTERSECT SELECT * FROM adult)")
            return [same.fetchone(), con.execute(f"FROM {table} ORDER BY ALL").fetchall()]

    (same,), rows = variants(1)
    assert len(rows) == 31_000
    assert 2_000 < same < 30_000, "some copies are as they were, most are not"
    assert variants(2)[1] != rows
