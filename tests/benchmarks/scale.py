"""`python -m tests.benchmarks.scale`: large runs, embedded or on Spark: seconds, loss, memory, and what Spark moves.

The variants of `tests.benchmarks.bsgi`, made once as a Parquet file, from which every run reads and beside which it
writes a release of Parquet. A run is a child process; its memory and that of all below it is looked at five times a
second, and Spark's own log says what each stage read, shuffled, spilled and sent to the driver.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import ldiv_db
from ldiv_db.commands.options import Memory
from ldiv_db.database.connections import open_database
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks.bsgi import write_rows
from tests.benchmarks.child_processes import measure_in_children, settings_of
from tests.benchmarks.command import AsJson, Threads, command_of, engine_on, show
from tests.benchmarks.event_log import SETTINGS, stages_of, totals_of
from tests.benchmarks.processes import watched

_CHECKOUT = Path(__file__).resolve().parents[2]
_MB = 2**20
_ROWS_IN = Path(tempfile.gettempdir(), "ldiv_scale")


@dataclass(frozen=True)
class Case:
    """One benchmark: so many rows, made with this seed and kept in `rows_in`, run in this way."""

    rows: int
    rows_in: str
    algorithm: str = "bsgi"
    select: str = "bisect"
    l: int = 4
    on: str = "embedded"
    workers: int | None = None
    part_rows: int | None = None
    threads: int = 2
    memory_limit: str | None = None
    master: str = "local[2]"
    driver_memory: str = "1g"
    executor_memory: str = "1g"
    shuffle_partitions: int | None = None
    #: Of 1000 values so many are redrawn; by default a number that each row has of its own.
    redrawn: int | None = None
    seed: int = 1

    @property
    def source(self) -> Path:
        return (
            Path(self.rows_in) / f"variants-{self.rows}-{self.seed}{f'-{self.redrawn}' if self.redrawn else ''}.parquet"
        )

    @property
    def document(self) -> dict[str, Any]:
        """The policy without its target: of `bsgi` that of its paper, of others `distinct: l`."""
        policy = adult_policy(self.l, self.select)
        if self.algorithm != "bsgi":
            policy |= {"algorithm": {"name": self.algorithm}, "require": [{"distinct": self.l}]}
        if self.part_rows:
            policy |= {"part_rows": self.part_rows}
        return policy | {"source": str(self.source)}


def measure(case: Case) -> dict[str, Any]:
    """What a run took: seconds, processor_seconds, lm_mean, parts, memory_mb by role, ...; on Spark totals and stages.

    The rows are made if they are not there. Raises LdivError if a child fails, with what it said and its exit code.
    """
    tasks = ("run",) if case.source.exists() else ("make", "run")
    return measure_in_children("tests.benchmarks.scale", case, tasks)


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people."""
    headings = ["rows", "algorithm", "on", "parts", "seconds", "processor s", "rows/s", "mean LM", "classes",
                "peak MB", "driver MB", "executor MB", "shuffled MB", "spilled MB"]  # fmt: skip
    return headings, [_line(found) for found in results]


def _line(found: dict[str, Any]) -> list[str]:
    memory, moved = found["memory_mb"], found["spark"]
    driver = sum(held["largest"] for role, held in memory.items() if role.startswith("driver"))
    executor = sum(held["largest"] for role, held in memory.items() if role.startswith("executor"))
    return [
        f"{found['rows']:,}",
        found["algorithm"] + (f" {found['select']}" if found["select"] else ""),
        found["master"] or f"{found['workers'] or 1} processes",
        str(found["parts"] or 1),
        f"{found['seconds']:.1f}",
        f"{found['processor_seconds']:.1f}",
        f"{found['rows_per_second']:,.0f}",
        f"{found['lm_mean']:.4f}",
        f"{found['classes']:,}",
        f"{found['peak_memory_mb']:,.0f}",
        f"{driver:,.0f}",
        f"{executor:,.0f}",
        f"{moved['shuffle_write_bytes'] / _MB:,.0f}" if moved else "-",
        f"{moved['spilled_disk_bytes'] / _MB:,.0f}" if moved else "-",
    ]


# -- the children ------------------------------------------------------------------------------------


def _make(case: Case, folder: Path) -> None:
    case.source.parent.mkdir(parents=True, exist_ok=True)
    with open_database(folder / "make.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        write_rows(engine_on(connection), parse_policy(adult_policy()), case.rows, case.seed, case.source, case.redrawn)


def _run(case: Case, folder: Path) -> dict[str, Any]:
    document = case.document | {"target": {"file": str(folder / "release.parquet")}}
    with watched() as memory:
        found = _run_on_spark(case, document, folder) if case.on == "spark" else _run_embedded(case, document, folder)
    stages = [stage for log in (folder / "events").glob("*") for stage in stages_of(log)]
    return found | {
        "rows_per_second": case.rows / found["seconds"],
        "processor_seconds": memory.processor_seconds,
        "peak_memory_mb": memory.together,
        "memory_mb": memory.as_dict(),
        "spark": totals_of(stages) if stages else None,
        "stages": stages,
    }


def _run_embedded(case: Case, document: dict[str, Any], folder: Path) -> dict[str, Any]:
    more: dict[str, Any] = {} if case.workers is None else {"workers": case.workers}
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        start = time.perf_counter()
        result = ldiv_db.run(connection, document, _fixtures(), **more)
        seconds = time.perf_counter() - start
    return _found(case, result, seconds)


def _run_on_spark(case: Case, document: dict[str, Any], folder: Path) -> dict[str, Any]:
    begin = time.perf_counter()
    with _session(case, folder) as session:
        start = time.perf_counter()
        result = ldiv_db.run(session, document | {"target": {"table": "release"}}, _fixtures())
        seconds = time.perf_counter() - start
        version = session.version
    found = _found(case, result, seconds)
    return found | {"start_seconds": start - begin, "versions": found["versions"] | {"spark": version}}


def _found(case: Case, result: Any, seconds: float) -> dict[str, Any]:
    return {
        "rows": case.rows,
        "l": result.l,
        "algorithm": result.algorithm,
        "select": case.select if case.algorithm == "bsgi" else None,
        "on": case.on,
        "master": case.master if case.on == "spark" else None,
        "workers": case.workers,
        "threads": case.threads,
        "part_rows": case.part_rows,
        "shuffle_partitions": case.shuffle_partitions,
        "parts": result.search.get("parts"),
        "levels": result.search.get("levels"),
        "seconds": seconds,
        "lm_mean": result.loss.lm_mean,
        "classes": result.loss.classes,
        "rows_suppressed": result.loss.rows_suppressed,
        "versions": result.versions,
    }


def _fixtures() -> Path:
    return resource_folder("fixtures") / "adult"


@contextmanager
def _session(case: Case, folder: Path) -> Iterator[Any]:
    """A Spark session of the case's master, all of whose files are in the folder; ended with the block."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run in this environment
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    (folder / "events").mkdir()
    builder = import_module("pyspark.sql").SparkSession.builder.master(case.master).appName("ldiv_db scale")
    for name, value in {**SETTINGS, **_settings(case, folder)}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    application = session.sparkContext.applicationId
    try:
        yield session
    finally:
        session.stop()
        # a local cluster keeps what its executors wrote beside Spark itself
        shutil.rmtree(_spark_home() / "work" / application, ignore_errors=True)


def _spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(str(import_module("pyspark").__file__)).parent)


def _settings(case: Case, folder: Path) -> dict[str, str]:
    partitions = case.shuffle_partitions
    return {
        **({} if partitions is None else {"spark.sql.shuffle.partitions": str(partitions)}),
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": case.driver_memory,
        "spark.executor.memory": case.executor_memory,
        "spark.executorEnv.PYTHONPATH": str(_CHECKOUT),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }


#: What child processes do.
TASKS = {"make": _make, "run": _run}


# -- the command line ---------------------------------------------------------------------------------


def _master(text: str) -> str:
    if not re.fullmatch(r"local\[\d+\]|local-cluster\[\d+,\d+,\d+\]|spark://\S+", text):
        raise typer.BadParameter("is local[CORES], local-cluster[EXECUTORS,CORES,MB] or spark://HOST:PORT")
    return text


def scale(
    rows: Annotated[list[int] | None, typer.Option(min=1, help="How many rows; may be repeated. A million.")] = None,
    algorithm: Annotated[str, typer.Option(help="An algorithm of a policy.")] = "bsgi",
    select: Annotated[Literal["refine", "bisect"], typer.Option(help="How `bsgi` selects classes.")] = "bisect",
    l: Annotated[int, typer.Option("--l", min=2, help="The l of the policy.")] = 4,
    on: Annotated[Literal["embedded", "spark"], typer.Option(help="Where it runs.")] = "embedded",
    workers: Annotated[int | None, typer.Option(min=1, help="Embedded: processes that solve parts.")] = None,
    part_rows: Annotated[int | None, typer.Option(min=1, help="The policy's part_rows, if not its default.")] = None,
    threads: Threads = 2,
    memory_limit: Memory = None,
    master: Annotated[str, typer.Option(callback=_master, help="On Spark: its master.")] = "local[2]",
    driver_memory: Annotated[str, typer.Option(help="On Spark: the heap of the driver.")] = "1g",
    executor_memory: Annotated[str, typer.Option(help="On Spark: the heap of an executor.")] = "1g",
    shuffle_partitions: Annotated[int | None, typer.Option(min=1, help="On Spark: partitions of a shuffle.")] = None,
    redrawn: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Of 1000 values so many are redrawn, the same in all rows.")
    ] = None,
    rows_in: Annotated[Path, typer.Option(help="The folder where rows are kept for the next time.")] = _ROWS_IN,
    json: AsJson = False,
) -> None:
    """Time a large run on rows made from Adult, embedded or on Spark, with the memory of each kind of process.

    \b
    Examples:
      python -m tests.benchmarks.scale --rows 10000000 --algorithm mondrian --workers 2
      python -m tests.benchmarks.scale --rows 10000000 --algorithm topdown --redrawn 100
      python -m tests.benchmarks.scale --on spark --master 'local-cluster[2,1,3072]' --json
    """
    sizes = rows or [1_000_000]
    cases = [
        Case(count, str(rows_in), algorithm, select, l, on, workers, part_rows, threads, memory_limit, master,
             driver_memory, executor_memory, shuffle_partitions, redrawn)
        for count in sizes
    ]  # fmt: skip
    found: list[dict[str, Any]] = []
    for case in cases:
        typer.echo(f"{case.rows:,} rows …", err=True)
        found.append(measure(case))
    show("scale", json, found, as_table)


app = command_of(scale)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.scale")
