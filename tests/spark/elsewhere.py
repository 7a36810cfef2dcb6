"""Runs on a session of another kind, in a process of its own: `python elsewhere.py connect|local-cluster SEED …`.

A process has one kind of session. Each run is held against the embedded one; on a cluster the last loses its executors.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("recoding", "spark", ".")]

import duckdb  # noqa: E402
from alike import names, run_random, small, to_spark  # noqa: E402
from conftest import SETTINGS  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import ldiv_db  # noqa: E402
from ldiv_db.database.spark import SparkWarehouse  # noqa: E402


def opened(kind: str, folder: Path) -> Any:
    """The session: of a server of Spark Connect that it starts, or of two executors in processes of their own."""
    settings = SETTINGS | {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.executor.memory": "512m"}
    builder = SparkSession.builder.config(map=settings)
    return (builder.remote("local[2]") if kind == "connect" else builder.master("local-cluster[2,1,512]")).getOrCreate()


def executors(session: Any) -> list[int]:
    """The processes of a session's executors."""
    java = session.sparkContext._gateway.proc.pid
    shown = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(java)], capture_output=True, text=True, check=True
    )
    return [int(line.split()[0]) for line in shown.stdout.splitlines() if "CoarseGrainedExecutorBackend" in line]


def lose_executors(session: Any) -> None:
    """Have all executors die before the release is written: Spark starts others, and does again what they had done."""
    write = SparkWarehouse._write

    def losing(self: Any, table: Any, sql: str, *like: Any) -> None:
        SparkWarehouse._write = write  # type: ignore[method-assign]
        found = executors(session)
        assert len(found) == 2, found
        for number in found:
            os.kill(number, signal.SIGKILL)
        write(self, table, sql, *like)

    SparkWarehouse._write = losing  # type: ignore[method-assign]


def refused(session: Any, folder: Path) -> None:
    """What fails is told in one line, without values, and leaves nothing."""
    con = duckdb.connect()
    policy = {**small(con), "source": "nowhere", "target": "never"}
    for change, says in (
        ({"source": "nowhere"}, "nowhere"),
        ({"source": to_spark(session, con, "source"), "target": "no schema`.never"}, "schema"),
    ):
        try:
            ldiv_db.run(session, policy | change, folder)
        except ldiv_db.LdivError as error:
            assert says in str(error) and "\tat " not in str(error), error
        else:
            raise AssertionError(change)


def main(kind: str, *seeds: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        session = opened(kind, Path(place))
        try:
            refused(session, Path(place))
            for number, seed in enumerate(seeds):
                if kind == "local-cluster" and number == len(seeds) - 1:
                    lose_executors(session)
                run_random(session, int(seed), Path(place))
            assert not [name for name in names(session) if name.startswith("ldiv_")]
        finally:
            session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
