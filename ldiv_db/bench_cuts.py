"""The benchmark of cuts: Adult's rows without NULL under every metric and scheme, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ldiv_db.children import peak_memory
from ldiv_db.engine import Engine, Settings, open_database
from ldiv_db.errors import LdivError
from ldiv_db.run import run
from ldiv_db.templates import FileRelation, Identifier, Relation, Value, resource_folder

#: Every metric with the schemes that it has costs for.
COMBINATIONS = (
    *(("LM", scheme) for scheme in ("none", "vioSA", "allSA", "vioRec", "allRec")),
    *((metric, scheme) for metric in ("DM", "CM") for scheme in ("none", "vioRec", "allRec")),
)
_ADULT = ("age", "education", "native_country", "workclass", "marital_status", "sex", "race")


@dataclass(frozen=True)
class CutCase:
    """One search: thresholds of 1/l, by this metric and scheme."""

    metric: str
    scheme: str
    l: float = 4  # noqa: E741 - the field's name for it
    threads: int = 2
    time_limit: float = 300


def measure_cuts(case: CutCase) -> dict[str, Any]:
    """What the search of one case took and found; raises LdivError if the child process fails."""
    done = subprocess.run(  # noqa: S603 - this module, by the interpreter that runs it
        [sys.executable, "-m", "ldiv_db.bench_cuts", json.dumps(asdict(case))],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LdivError(f"the benchmark of {case.metric} {case.scheme} failed: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def cuts_as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people."""
    headings = ["metric", "scheme", "l", "cost", "proved", "gap", "visited", "evaluated", "seconds", "CPU s", "peak MB"]
    rows = [
        [
            found["metric"],
            found["scheme"],
            f"{found['l']:g}",
            f"{found['cost']:,.2f}",
            "yes" if found["proved"] else "no",
            f"{found['gap']:.1%}",
            f"{found['visited']:,}",
            f"{found['evaluated']:,}",
            f"{found['seconds']:.1f}",
            f"{found['processor_seconds']:.1f}",
            f"{found['peak_memory_mb']:,.0f}",
        ]
        for found in results
    ]
    return headings, rows


def cuts_policy(case: CutCase) -> dict[str, Any]:
    """The policy of a case, on the trees with 356,440,500 cuts; age has the same tree made of ranges."""
    trees: dict[str, Any] = {name: {"file": "cuts/default.json", "tree": name} for name in _ADULT}
    trees["age"] = {"ranges": [5, 10, 20, 40], "origin": 17}
    return {
        "source": "main.adult",
        "target": "published.adult",
        "quasi_identifiers": {name: {"taxonomy": tree} for name, tree in trees.items()},
        "sensitive": ["occupation"],
        "keep": ["income"],
        "require": [{"frequency": case.l}],
        "algorithm": {
            "name": "cuts",
            "metric": case.metric,
            "scheme": case.scheme,
            "class": "income",
            "time_limit": case.time_limit,
            "unproved": "publish",
        },
    }


def _run(case: CutCase) -> dict[str, Any]:
    folder = resource_folder("fixtures") / "adult"
    with open_database(":memory:", settings=Settings(threads=case.threads)) as connection:
        Engine(connection).create(
            Relation.parse("main.adult"),
            "demo/select_training",
            source=FileRelation("read_parquet", str(folder / "adult.parquet")),
            columns=[Identifier(name) for name in (*_ADULT, "occupation", "income")],
            rows=Value(2**31),  # both halves
        )
        start, used = time.perf_counter(), time.process_time()
        result = run(connection, cuts_policy(case), folder)
        seconds, processor = time.perf_counter() - start, time.process_time() - used
    return {
        **asdict(case),
        **result.search,
        "rows": result.loss.rows_published + result.loss.rows_suppressed,
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_memory_mb": peak_memory(),
        "versions": result.versions,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_run(CutCase(**json.loads(sys.argv[1])))))
