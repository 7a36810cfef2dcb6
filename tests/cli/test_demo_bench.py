"""`ldiv demo` and `ldiv bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ldiv_db.benchmarks.bsgi import make_rows
from ldiv_db.demo import adult_policy
from ldiv_db.engine import Engine
from ldiv_db.policy import parse_policy

BENCH_KEYS = {
    "rows", "l", "select", "threads", "seconds", "ns_per_n_log_n", "rows_per_second", "peak_memory_mb", "lm_mean",
    "classes", "rows_suppressed", "versions",
}  # fmt: skip


def test_demo_shows_before_after_and_the_verdict(call: Any) -> None:
    called = call("demo")
    assert called.code == 0, called.err
    for text in ("30,162", "before", "after", "7,540", "the policy holds", "What to try next"):
        assert text in called.out


def test_demo_json(call: Any) -> None:
    found = call("demo", "--json", "--l", 6).json
    assert (found["rows_in"], found["classes"], found["avg_class_size"]) == (30162, 5027, 6)
    assert [requirement["holds"] for requirement in found["requirements"]] == [True, True]


def test_demo_keeps_a_folder_to_go_on_with(bed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    called = bed.call("demo", "--directory", folder)
    assert called.code == 0 and f"ldiv plan {folder}" in called.out
    assert bed.call("plan", folder / "adult.duckdb", folder / "policy.yml", "--json").json["classes"] == 7540
    keys = ",".join(adult_policy()["quasi_identifiers"])
    words = ("--qi", keys, "--class", "class_id", "--sensitive", "occupation", "--require", "distinct:4")
    assert bed.call("check", folder / "adult.duckdb", "published.adult", *words).code == 0
    assert "exists" in bed.fails(2, "demo", "--directory", folder)


def test_a_demo_that_cannot_be_met_keeps_nothing(bed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    assert "largest feasible l is 7" in bed.fails(1, "demo", "--l", 15, "--directory", folder)
    assert not folder.exists()
    assert bed.fails(2, "demo", "--l", 1)


def test_bench_measures_every_size(call: Any) -> None:
    called = call("bench", "bsgi", "--rows", 2000, "--rows", 3000, "--json")
    assert called.code == 0, called.err
    assert set(called.json) == {"results"}
    small, large = called.json["results"]
    assert set(small) == BENCH_KEYS
    assert (small["rows"], large["rows"], small["classes"]) == (2000, 3000, 500)
    assert small["seconds"] > 0 and small["peak_memory_mb"] > 10


def test_bench_says_what_failed(call: Any) -> None:
    called = call("bench", "bsgi", "--rows", 100, "--l", 20)
    assert called.code == 1 and "benchmark of 100 rows failed" in called.err and "impossible" in called.err


def test_variants_are_seeded_copies_with_redrawn_quasi_identifiers() -> None:
    policy = parse_policy(adult_policy())

    def variants(seed: int) -> list[Any]:
        with duckdb.connect() as con:
            table = make_rows(Engine(con), policy, 35_000, seed)
            same = con.execute(f"SELECT count(*) FROM (SELECT DISTINCT * FROM {table} INTERSECT SELECT * FROM adult)")
            return [same.fetchone(), con.execute(f"FROM {table} ORDER BY ALL").fetchall()]

    (same,), rows = variants(1)
    assert len(rows) == 35_000
    assert 2_000 < same < 30_000, "some copies are as they were, most are not"
    assert variants(2)[1] != rows
