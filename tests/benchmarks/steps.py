"""`python -m tests.benchmarks.steps`: where each second of a run goes, by step.

The policy of BSGI's paper, or `distinct: l` of other algorithms than `bsgi`, on Adult's
30,162 rows or on variants of them (those of `tests.benchmarks.bsgi`). The run is repeated in one process, so that all
is warm, and the last is shown. A step's seconds are the processor's, of all threads, from the end of the step before:
with what lies between two steps, the statements that have no name and Python itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.database.connections import open_database
from ldiv_db.database.queries import Step
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy, load_adult
from tests.benchmarks.bsgi import write_rows
from tests.benchmarks.child_processes import measure_in_children, settings_of
from tests.benchmarks.command import AsJson, Memory, Threads, command_of, engine_on, show

#: The rows of Adult's training half without a missing value.
ADULT_ROWS = 30_162
#: What tells steps of different columns apart.
_OF_COLUMN = re.compile(r"_[qs]\d+$")
#: Steps of less than this share of all seconds are shown together.
_SHOWN = 0.02


@dataclass(frozen=True)
class Case:
    """One benchmark: so many rows, run in this way so many times, of which the last counts."""

    algorithm: str
    rows: int = ADULT_ROWS
    l: int = 4
    times: int = 3
    threads: int = 2
    memory_limit: str | None = None
    seed: int = 1

    @property
    def document(self) -> dict[str, Any]:
        """The policy without its source and target."""
        policy = adult_policy(self.l, "refine")
        if self.algorithm == "bsgi":
            return policy
        return policy | {"algorithm": self.algorithm, "require": [{"distinct": self.l}]}


class Steps:
    """What hears of a run: the seconds of each step of each stage, and how many steps of that name there were."""

    def __init__(self) -> None:
        self._stage, self._before = "resolving the policy", _clocks()
        self.found: dict[tuple[str, str], list[float]] = {}

    def on_stage(self, stage: str) -> None:
        self._take("the rest", 0)
        self._stage = stage

    def on_step(self, step: Step) -> None:
        self._take(_OF_COLUMN.sub("", step.name), 1)

    def end(self) -> list[dict[str, Any]]:
        """All steps: stage, step, count, processor_seconds, seconds."""
        self._take("the rest", 0)
        return [
            {"stage": stage, "step": step, "count": int(count), "processor_seconds": cpu, "seconds": wall}
            for (stage, step), (count, cpu, wall) in self.found.items()
        ]

    def _take(self, step: str, count: int) -> None:
        now = _clocks()
        found = self.found.setdefault((self._stage, step), [0, 0.0, 0.0])
        found[0] += count
        found[1] += now[0] - self._before[0]
        found[2] += now[1] - self._before[1]
        self._before = now


def _clocks() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def measure(case: Case) -> dict[str, Any]:
    """What the last run took: rows, algorithm, seconds, processor_seconds, lm_mean, steps; in a process of its own."""
    return measure_in_children("tests.benchmarks.steps", case, ["run"])


def _run(case: Case, folder: Path) -> dict[str, Any]:
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        policy = case.document | {"target": {"table": "published.adult", "if_exists": "replace"}}
        if case.rows == ADULT_ROWS:
            load_adult(engine_on(connection), parse_policy(policy))
        else:
            write_rows(engine_on(connection), parse_policy(policy), case.rows, case.seed, folder / "rows.parquet")
            policy |= {"source": str(folder / "rows.parquet")}
        for _ in range(case.times):
            connection.execute("DROP TABLE IF EXISTS published.adult")  # a release that stands is not made again
            steps, (cpu, wall) = Steps(), _clocks()
            listener = ldiv_db.Listener(on_step=steps.on_step, on_stage=steps.on_stage)
            result = ldiv_db.run(connection, policy, resource_folder("fixtures") / "adult", listener=listener)
            found, ended = steps.end(), _clocks()
    return {
        "rows": result.loss.rows_published + result.loss.rows_suppressed,
        "algorithm": case.algorithm,
        "seconds": ended[1] - wall,
        "processor_seconds": ended[0] - cpu,
        "lm_mean": result.loss.lm_mean,
        "steps": found,
    }


TASKS = {"run": _run}


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people: a run's whole, then its steps, the dearest first."""
    headings = ["rows", "algorithm", "stage", "step", "times", "processor s", "share"]
    return headings, [line for found in results for line in _lines(found)]


def _lines(found: dict[str, Any]) -> list[list[str]]:
    whole = found["processor_seconds"]
    shown = [step for step in found["steps"] if step["processor_seconds"] >= _SHOWN * whole]
    shown.sort(key=lambda step: -step["processor_seconds"])
    others = whole - sum(step["processor_seconds"] for step in shown)
    lines = [("all", f"{found['seconds']:.2f} s of wall clock", "", whole)]
    lines += [(s["stage"], s["step"], str(s["count"] or ""), s["processor_seconds"]) for s in shown]
    lines += [("all", "steps below 2 %", "", others)]
    return [
        [f"{found['rows']:,}", found["algorithm"], stage, step, times, f"{cpu:.2f}", f"{cpu / whole:.0%}"]
        for stage, step, times, cpu in lines
    ]


# -- the command line ---------------------------------------------------------------------------------


def steps(
    algorithm: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    rows: Annotated[int, typer.Option(min=100, help="Adult's 30,162 rows, or so many variants of them.")] = ADULT_ROWS,
    l: Annotated[int, typer.Option(min=2)] = 4,
    times: Annotated[int, typer.Option(min=1, help="Runs, of which the last is shown.")] = 3,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Say where each second of a run goes, by step.

    \b
    Examples:
      python -m tests.benchmarks.steps --algorithm bsgi --algorithm topdown
      python -m tests.benchmarks.steps --rows 1000000 --times 1 --json
    """
    found = []
    for name in algorithm or ["bsgi", "topdown", "mondrian", "auto"]:
        typer.echo(f"{name} …", err=True)
        found.append(measure(Case(name, rows, l, times, threads, memory_limit)))
    show("steps", json, found, as_table)


app = command_of(steps)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.steps")
