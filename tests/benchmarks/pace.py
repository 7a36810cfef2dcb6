"""`python -m tests.benchmarks.pace`: how long the stages of runs take, and how right what they say is left.

The policy of the demonstration with each algorithm, on Adult's 30,162 rows or on variants of them. A run's events
(stages, counted work, what is expected) are its trace. The factor is that by which the seconds that are said to be left
are wrong after a tenth, a quarter, a half and three quarters of the run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.database.connections import open_database
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy, load_adult
from ldiv_db.running.estimate import READING, Pace, timed
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.child_processes import measure_in_children, settings_of
from tests.benchmarks.command import AsJson, Memory, Threads, command_of, engine_on, show

#: The rows of Adult's training half without a missing value.
ADULT_ROWS = 30_162
#: When the time left is looked at, in parts of the run.
MOMENTS = (0.1, 0.25, 0.5, 0.75)
#: An event: the seconds since the run began, what was told, and with which words or numbers.
Event = tuple[float, str, Any]


@dataclass(frozen=True)
class Case:
    """One benchmark: so many rows by an algorithm, under a requirement."""

    algorithm: str
    rows: int = ADULT_ROWS
    require: str = "frequency:3"
    threads: int = 2
    memory_limit: str | None = None
    seed: int = 1

    @property
    def document(self) -> dict[str, Any]:
        """The policy without its source."""
        name, _, argument = self.require.partition(":")
        found = adult_policy() | {
            "algorithm": self.algorithm,
            "require": [{name: float(argument) if "." in argument else int(argument)}],
            "target": {"table": "published.adult", "if_exists": "replace"},
        }
        if self.algorithm in ("cuts", "annealing", "incognito", "tds"):
            found["quasi_identifiers"]["age"] = {"taxonomy": {"file": "taxonomies/age.csv"}}
        return found


class Trace:
    """What hears of a run: all events, by the processor's seconds, which other work on the machine changes little."""

    def __init__(self) -> None:
        self._begun, self.events = time.process_time(), list[Event]()

    @property
    def listener(self) -> ldiv_db.Listener:
        return ldiv_db.Listener(
            on_stage=lambda name: self._add("stage", name),
            on_progress=lambda done, total: self._add("count", (done, total)),
            on_expected=lambda stages: self._add("expect", [(stage.name, stage.work) for stage in stages]),
        )

    def end(self) -> list[Event]:
        self._add("end", None)
        return self.events

    def _add(self, kind: str, what: Any) -> None:
        self.events.append((round(time.process_time() - self._begun, 3), kind, what))


def played(events: Sequence[Event], moments: Sequence[float] = MOMENTS) -> Iterator[tuple[float, float | None]]:
    """The seconds that are left and those that are said to be, at parts of a run that is played by its own clock."""
    now = 0.0
    pace, waiting = Pace(READING, lambda: now), list(events)
    end = events[-1][0]
    for moment in moments:
        while waiting and waiting[0][0] <= end * moment:
            now, kind, what = waiting.pop(0)
            if kind == "stage":
                pace.enter(what)
            elif kind == "count":
                pace.count(*what)
            elif kind == "expect":
                pace.expect([timed(*stage) for stage in what])
        now = end * moment
        yield end - now, pace.left


def factors(events: Sequence[Event]) -> list[float | None]:
    """By how much the time that is said to be left is wrong, at each of the moments; None where none is said."""
    return [None if not said else max(said / left, left / said) for left, said in played(events)]


def stages_of(events: Sequence[Event]) -> dict[str, float]:
    """The seconds of each stage."""
    found: dict[str, float] = {}
    begun = [(at, what) for at, kind, what in events if kind == "stage"]
    for (at, name), after in zip(begun, [*(at for at, _ in begun[1:]), events[-1][0]], strict=True):
        found[name] = round(found.get(name, 0.0) + after - at, 3)
    return found


def measure(case: Case) -> dict[str, Any]:
    """The trace of a run, in a process of its own: algorithm, rows, require, seconds, stages, factors, events."""
    return measure_in_children("tests.benchmarks.pace", case, ["run"])


def _run(case: Case, folder: Path) -> dict[str, Any]:
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        policy, engine = parse_policy(case.document), engine_on(connection)
        source = (
            load_adult(engine, policy) if case.rows == ADULT_ROWS else make_rows(engine, policy, case.rows, case.seed)
        )
        trace = Trace()
        folder = resource_folder("fixtures") / "adult"
        ldiv_db.run(connection, case.document | {"source": str(source)}, folder, listener=trace.listener)
        events = trace.end()
    return {
        "algorithm": case.algorithm,
        "rows": case.rows,
        "axes": len(policy.quasi_identifiers),
        "require": case.require,
        "seconds": events[-1][0],
        "stages": stages_of(events),
        "factors": factors(events),
        "events": events,
    }


TASKS = {"run": _run}


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people."""
    headings = ["algorithm", "rows", "require", "seconds", *(f"factor at {moment:.0%}" for moment in MOMENTS), "stages"]
    rows = []
    for found in results:
        wrong = ["" if factor is None else f"{factor:.2f}" for factor in found["factors"]]
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found["stages"].items())
        told = [found["algorithm"], f"{found['rows']:,}", found["require"], f"{found['seconds']:.1f}"]
        rows.append([*told, *wrong, stages])
    return headings, rows


# -- the command line ---------------------------------------------------------------------------------


def pace(
    algorithm: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    rows: Annotated[list[int] | None, typer.Option(min=100, help="Adult's 30,162 rows, or so many variants.")] = None,
    require: Annotated[str, typer.Option(help="NAME:ARGUMENT")] = "frequency:3",
    traces: Annotated[Path | None, typer.Option(help="Write the traces to this file, as JSON.")] = None,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Say how long the stages of runs take, and how near the time left is that they say.

    \b
    Example:
      python -m tests.benchmarks.pace --algorithm topdown --algorithm bsgi --rows 30162 --rows 300000
    """
    found = []
    for size in rows or [ADULT_ROWS]:
        for name in algorithm or ["topdown", "bsgi", "mondrian", "cuts", "auto"]:
            typer.echo(f"{name}, {size:,} rows …", err=True)
            found.append(measure(Case(name, size, require, threads, memory_limit)))
            if traces is not None:
                write_traces(traces, found)
    show("pace", json, found, as_table)


def write_traces(path: Path, found: Sequence[dict[str, Any]]) -> None:
    """The traces in a file, a line each."""
    path.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


app = command_of(pace)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.pace")
