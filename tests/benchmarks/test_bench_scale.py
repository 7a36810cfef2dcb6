"""`python -m tests.benchmarks.scale`, and what it reads of processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks.bsgi import make_rows, write_rows
from tests.benchmarks.command import engine_on
from tests.benchmarks.processes import Held, Memory, held_below, role_of, watched


def test_a_file_of_variants_holds_the_rows_of_the_table(tmp_path: Path) -> None:
    policy = parse_policy(adult_policy())
    with duckdb.connect() as con:
        table = make_rows(engine_on(con), policy, 5_000, 1)
        rows = con.execute(f"FROM {table} ORDER BY ALL").fetchall()
    with duckdb.connect() as con:
        write_rows(engine_on(con), policy, 5_000, 1, tmp_path / "rows.parquet")
        assert con.execute(f"FROM '{tmp_path}/rows.parquet' ORDER BY ALL").fetchall() == rows
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"], "no part of it is left"


@pytest.mark.usefixtures("here")
def test_a_run_is_measured_and_its_rows_are_kept(bench: Any, tmp_path: Path) -> None:
    words = ("scale", "--rows", 200, "--rows-in", tmp_path, "--algorithm", "mondrian", "--json")
    (found,) = bench(*words).json["results"]
    assert (found["rows"], found["algorithm"]) == (200, "mondrian")
    assert found["seconds"] > 0 and 0 < found["lm_mean"] < 1 and found["peak_memory_mb"] > 10
    (rows,) = tmp_path.iterdir()
    before = rows.stat().st_mtime_ns
    (again,) = bench(*words).json["results"]
    assert rows.stat().st_mtime_ns == before and again["lm_mean"] == found["lm_mean"]


# -- memory ------------------------------------------------------------------------------------------


def _hold(megabytes: int, ready: Any, ended: Any) -> None:
    held = bytearray(os.urandom(1)) * (megabytes << 20)
    ready.set()
    ended.wait()
    assert held


@pytest.mark.slow
def test_memory_of_processes_below_is_seen_by_their_roles() -> None:
    spawn = multiprocessing.get_context("spawn")
    ready, ended = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(150, ready, ended))
    with watched() as memory:
        process.start()
        assert ready.wait(60)
        assert {"driver_python", "worker"} <= {held.role for held in held_below(os.getpid())}
        time.sleep(0.5)  # for the watch to look
        ended.set()
        process.join()
    assert memory.together > 150 + 10 and memory.processor_seconds > 0


def test_peaks_are_of_one_moment_or_of_the_largest_process() -> None:
    memory = Memory(before={1: 4})
    memory.look([Held(1, "driver_python", 10, 12, 5), Held(2, "worker", 20, 30, 7), Held(3, "worker", 5, 5, 1)])
    memory.look([Held(1, "driver_python", 1, 12, 6), Held(3, "worker", 24, 24, 3)])
    assert (memory.together, memory.processor_seconds) == (35, 2 + 7 + 3)
    memory.look([Held(3, "worker", 24, 50, 3)])
    assert memory.together == 50


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("/usr/bin/java -cp x -Xmx1g org.apache.spark.deploy.SparkSubmit pyspark-shell", "driver_jvm"),
        ("python3 -m pyspark.daemon pyspark.worker", "executor_python"),
        ("python3 -c import sys; from ldiv_db.solving.workers import main; main()", "worker"),
        ("python3 -c from multiprocessing.spawn import spawn_main", "worker"),
        ("sleep 1", "other"),
    ],
)
def test_roles_are_told_by_command_lines(command: str, role: str) -> None:
    assert role_of(command) == role
