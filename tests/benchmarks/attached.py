"""A run on a table in PostgreSQL against the same run on a DuckDB file, in pairs: seconds and memory.

    python -m tests.benchmarks.attached 'host=… user=… dbname=…' --rows 1000000 --pairs 3

Each run is a process of its own: the table is read, anonymized, written, audited and committed in its database. The
database of the address gets a table `people` and what the runs make; take an empty one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import ldiv_db
from ldiv_db.database.addresses import address_of
from ldiv_db.database.attach import attach_address
from ldiv_db.database.engine import Engine

POLICY = {
    "source": "people",
    "target": {"table": "released", "if_exists": "replace"},
    "identifiers": ["id"],
    "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [3, 2, 1]}}, "sex": {}},
    "sensitive": ["disease"],
    "keep": ["visited", "cost"],
    "require": [{"frequency": 3}],
    "seed": 0,
}
PEOPLE = """
    SELECT
        i AS id,
        CAST(18 + hash(i) % 70 AS INTEGER) AS age,
        lpad(CAST(hash(i, 1) % 3000 AS VARCHAR), 4, '0') AS zip,
        CASE WHEN hash(i, 2) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
        'disease ' || CAST(hash(i, 3) % 20 AS VARCHAR) AS disease,
        DATE '2020-01-01' + CAST(hash(i, 4) % 1000 AS INTEGER) AS visited,
        CAST(hash(i, 5) % 100000 / 100 AS DECIMAL(9, 2)) AS cost
    FROM range({rows}) AS r(i)
"""


def one(address: str, algorithm: str) -> dict[str, Any]:
    """A run in this process: its seconds, those of its processors, and the peak of its memory."""
    start = time.perf_counter()
    result = ldiv_db.run(address, {**POLICY, "algorithm": algorithm})
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    found = {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": used.ru_maxrss / 1024}
    return {**found, "rows": result.loss.rows_published, "lm": result.loss.lm_mean}


def make_tables(words: str, file: Path, rows: int) -> None:
    """The same people in both databases."""
    with duckdb.connect(str(file)) as con:
        con.execute(f"CREATE TABLE people AS {PEOPLE.format(rows=rows)}")
        attach_address(Engine(con), address_of(f"postgres:{words}"), "there")
        con.execute("DROP TABLE IF EXISTS there.public.people")
        con.execute("CREATE TABLE there.public.people AS FROM people")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", help="how libpq is told of the database")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--algorithm", default="bsgi")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one(asked.one, asked.algorithm)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.duckdb"
        make_tables(asked.words, file, asked.rows)
        ratios = []
        for _ in range(asked.pairs):
            found = {}
            for name, address in (("file", str(file)), ("postgres", f"postgres:{asked.words}")):
                words = [sys.executable, "-m", "tests.benchmarks.attached", asked.words, "--one", address]
                words += ["--algorithm", asked.algorithm]
                done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ)
                found[name] = json.loads(done.stdout)
            ratios.append(found["postgres"]["seconds"] / found["file"]["seconds"])
            print(json.dumps(found))
        print(json.dumps({"ratios": ratios, "median": statistics.median(ratios)}))


if __name__ == "__main__":
    main()
