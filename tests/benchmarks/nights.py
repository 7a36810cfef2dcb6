"""`python -m tests.benchmarks.nights`: releases over time of a table that changes, in processor seconds and loss.

Each night one row of a hundred is new, one of two hundred is gone, and one of two hundred has another sensitive value.
The rows are those of `tests.benchmarks.scale` with equal rows. A series is a child process; what its nights take is
held against its first release, and what all of its classes lose against a release of the same night from scratch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.database.connections import open_database
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks.bsgi import write_rows
from tests.benchmarks.child_processes import measure_in_children, settings_of
from tests.benchmarks.command import AsJson, Columns, Memory, Threads, command_of, engine_on, show
from tests.benchmarks.processes import watched

#: Of so many rows one is new, gone or corrected in a night.
NEW, GONE, CORRECTED = 100, 200, 200


@dataclass(frozen=True)
class Case:
    """One series: the rows of its first release, how many nights follow, and what makes classes of what."""

    rows: int
    nights: int
    algorithm: str
    l: int = 4
    seed: int = 1
    threads: int = 2
    memory_limit: str | None = None

    def document(self, table: str) -> dict[str, Any]:
        """The policy of the series in `table`."""
        require = {"unique_distinct" if self.algorithm == "bsgi" else "distinct": self.l}
        own = {"source": "people", "key": "id", "target": {"table": table}, "require": [require]}
        return adult_policy(self.l) | own | {"algorithm": self.algorithm, "seed": self.seed}


def measure(case: Case) -> dict[str, Any]:
    """What the first release and the nights took (processor_seconds) and lost (lm_mean), and one from scratch.

    Raises LdivError if a child fails, with what it said and its exit code.
    """
    return measure_in_children("tests.benchmarks.nights", case, ("make", "run"))


COLUMNS: Columns = {
    "rows": "{rows:,}",
    "algorithm": "{algorithm}",
    "first s": "{first_processor_seconds:.1f}",
    "night s": "{night_processor_seconds:.1f}",
    "ratio": lambda found: f"{found['night_processor_seconds'] / found['first_processor_seconds']:.2f}",
    "LM first": "{lm_first:.4f}",
    "LM all": "{lm_all:.4f}",
    "LM anew": "{lm_anew:.4f}",
    "peak MB": "{peak_memory_mb:,.0f}",
}


# -- the children ------------------------------------------------------------------------------------


def _make(case: Case, folder: Path) -> None:
    """The rows of the first release and those that come later, numbered, and in `people` the first."""
    file, later = folder / "rows.parquet", case.nights * (case.rows // NEW)
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        engine = engine_on(connection)
        write_rows(engine, parse_policy(adult_policy()), case.rows + later, case.seed, file, 100)
        connection.execute(f"CREATE TABLE arriving AS SELECT row_number() OVER () AS id, * FROM '{file}'")
        connection.execute(f"CREATE TABLE people AS FROM arriving WHERE id <= {case.rows}")


def _change(connection: Any, case: Case, night: int) -> None:
    """One night's changes: rows come, go, and take the sensitive value of another."""
    [sensitive] = adult_policy()["sensitive"]
    last = case.rows + night * (case.rows // NEW)
    connection.execute(f"DELETE FROM people WHERE hash(id, {night}) % {GONE} = 0")
    connection.execute(
        f"UPDATE people SET {sensitive} = a.{sensitive} FROM arriving AS a"
        f" WHERE hash(people.id, -{night}) % {CORRECTED} = 0 AND a.id = people.id % 1000 + 1"
    )
    connection.execute(f"INSERT INTO people FROM arriving WHERE id <= {last} AND id > {last - case.rows // NEW}")


def _run(case: Case, folder: Path) -> dict[str, Any]:
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection, watched() as memory:
        releases = [_release(connection, case, "released")]
        for night in range(1, case.nights + 1):
            _change(connection, case, night)
            releases.append(_release(connection, case, "released"))
        peak = memory.together
        anew = _release(connection, case, "anew")
    times, nights = [found["processor_seconds"] for found in releases], releases[1:]
    published = sum(found["rows_first_published"] for found in releases)
    lost = sum(found["rows_first_published"] * found["lm_mean"] for found in releases)
    return {
        "rows": case.rows,
        "nights": case.nights,
        "algorithm": case.algorithm,
        "first_processor_seconds": times[0],
        "night_processor_seconds": mean(times[1:]),
        "processor_seconds": times,
        "lm_first": releases[0]["lm_mean"],
        "lm_nights": [found["lm_mean"] for found in nights],
        "lm_all": lost / published,
        "lm_anew": anew["lm_mean"],
        "rows_waiting": releases[-1]["rows_waiting"],
        "peak_memory_mb": peak,
        "versions": releases[0]["versions"],
    }


def _release(connection: Any, case: Case, table: str) -> dict[str, Any]:
    start = time.process_time()
    figures = ldiv_db.run(connection, case.document(table), resource_folder("fixtures") / "adult").as_dict()
    seconds, loss = time.process_time() - start, figures["loss_new"]
    return {**figures, "processor_seconds": seconds, "lm_mean": loss["lm_mean"] if loss else 0.0}


#: What child processes do.
TASKS = {"make": _make, "run": _run}


# -- the command line ---------------------------------------------------------------------------------


def nights(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the first release.")] = 1_000_000,
    nights: Annotated[int, typer.Option(min=1, help="Releases that follow it.")] = 30,
    algorithm: Annotated[list[str] | None, typer.Option(help="May be repeated. auto, topdown and bsgi.")] = None,
    l: Annotated[int, typer.Option("--l", min=2, help="The l of the policy.")] = 4,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Time nightly releases of a table of which 2 % change every night, and hold their loss against a new one's.

    \b
    Examples:
      python -m tests.benchmarks.nights --rows 30000 --nights 10
      python -m tests.benchmarks.nights --algorithm topdown --json
    """
    found: list[dict[str, Any]] = []
    for name in algorithm or ["auto", "topdown", "bsgi"]:
        typer.echo(f"{rows:,} rows, {name} …", err=True)
        found.append(measure(Case(rows, nights, name, l, threads=threads, memory_limit=memory_limit)))
    show("nights", json, found, COLUMNS)


app = command_of(nights)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.nights")
