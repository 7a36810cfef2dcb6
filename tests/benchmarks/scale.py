"""`python -m tests.benchmarks.scale`: large runs: seconds, loss and memory.

The variants of `tests.benchmarks.bsgi`, made once as a Parquet file, from which every run reads and beside which it
writes a release of Parquet. A run is a child process; its memory and that of all below it is looked at five times a
second.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
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
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, engine_on, show
from tests.benchmarks.processes import watched

ROWS_IN = Path(tempfile.gettempdir(), "ldiv_scale")
FIXTURES = resource_folder("fixtures") / "adult"


@dataclass(frozen=True)
class Case:
    """One benchmark: so many rows, made with this seed and kept in `rows_in`, run in this way."""

    rows: int
    rows_in: str
    algorithm: str = "bsgi"
    select: str = "bisect"
    l: int = 4
    threads: int = 2
    memory_limit: str | None = None
    #: Of 1000 values so many are redrawn; by default a number that each row has of its own.
    redrawn: int | None = None
    seed: int = 1

    @property
    def source(self) -> Path:
        drawn = f"-{self.redrawn}" if self.redrawn else ""
        return Path(self.rows_in) / f"variants-{self.rows}-{self.seed}{drawn}.parquet"

    @property
    def document(self) -> dict[str, Any]:
        """The policy without its target: of `bsgi` that of its paper, of others `distinct: l`."""
        policy = adult_policy(self.l, self.select)
        if self.algorithm != "bsgi":
            policy |= {"algorithm": {"name": self.algorithm}, "require": [{"distinct": self.l}]}
        return policy | {"source": str(self.source)}


def measure(case: Case) -> dict[str, Any]:
    """What a run took: seconds, processor_seconds, lm_mean, parts, peak_memory_mb, ...

    The rows are made if they are not there. Raises LdivError if a child fails, with what it said and its exit code.
    """
    tasks = ("run",) if case.source.exists() else ("make", "run")
    return measure_in_children("tests.benchmarks.scale", case, tasks)


#: The columns of the table for people.
COLUMNS: Columns = {
    "rows": "{rows:,}",
    "algorithm": "{algorithm}",
    "parts": lambda found: str(found["parts"] or 1),
    "seconds": "{seconds:.1f}",
    "processor s": "{processor_seconds:.1f}",
    "rows/s": "{rows_per_second:,.0f}",
    "mean LM": "{lm_mean:.4f}",
    "classes": "{classes:,}",
    "peak MB": "{peak_memory_mb:,.0f}",
}


def make(case: Case, folder: Path) -> None:
    """Make the file of rows."""
    case.source.parent.mkdir(parents=True, exist_ok=True)
    with open_database(folder / "make.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        write_rows(engine_on(connection), parse_policy(adult_policy()), case.rows, case.seed, case.source, case.redrawn)


def _run(case: Case, folder: Path) -> dict[str, Any]:
    document = case.document | {"target": {"file": str(folder / "release.parquet")}}
    settings = settings_of(case, folder)
    with watched() as memory, open_database(folder / "bench.duckdb", create=True, settings=settings) as connection:
        start = time.perf_counter()
        result = ldiv_db.run(connection, document, FIXTURES)
        seconds = time.perf_counter() - start
    return {
        "rows": case.rows,
        "l": result.l,
        "algorithm": result.algorithm,
        "parts": result.search.get("parts"),
        "seconds": seconds,
        "rows_per_second": case.rows / seconds,
        "processor_seconds": memory.processor_seconds,
        "peak_memory_mb": memory.together,
        "lm_mean": result.loss.lm_mean,
        "classes": result.loss.classes,
        "rows_suppressed": result.loss.rows_suppressed,
        "versions": result.versions,
    }


#: What child processes do.
TASKS = {"make": make, "run": _run}


def scale(
    rows: Annotated[list[int] | None, typer.Option(min=1, help="How many rows; may be repeated. A million.")] = None,
    algorithm: Annotated[str, typer.Option(help="An algorithm of a policy.")] = "bsgi",
    select: Annotated[Literal["refine", "bisect"], typer.Option(help="How `bsgi` selects classes.")] = "bisect",
    l: Annotated[int, typer.Option("--l", min=2, help="The l of the policy.")] = 4,
    threads: Threads = 2,
    memory_limit: Memory = None,
    redrawn: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Of 1000 values so many are redrawn, the same in all rows.")
    ] = None,
    rows_in: Annotated[Path, typer.Option(help="The folder where rows are kept for the next time.")] = ROWS_IN,
    json: AsJson = False,
) -> None:
    """Time a large run on rows made from Adult.

    \b
    Examples:
      python -m tests.benchmarks.scale --rows 10000000 --algorithm topdown --redrawn 100
    """
    found: list[dict[str, Any]] = []
    for count in rows or [1_000_000]:
        typer.echo(f"{count:,} rows …", err=True)
        found.append(measure(Case(count, str(rows_in), algorithm, select, l, threads, memory_limit, redrawn)))
    show("scale", json, found, COLUMNS)


app = command_of(scale)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.scale")
