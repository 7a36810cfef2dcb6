"""`python -m tests.benchmarks.pace`: how long the stages of commands take, and how right what they say is left.

The policy of the demonstration with each algorithm, on Adult's 30,162 rows or on variants of them. A command's events
(stages, counted work, what is expected) are its trace. The factor is that by which the seconds that are said to be left
are wrong after a tenth, a third, a half, two thirds and three quarters of the command.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import typer
import yaml

import ldiv_db
from ldiv_db.commands import progress
from ldiv_db.commands.cli import app
from ldiv_db.database.connections import open_database
from ldiv_db.database.stages import timed
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy, load_adult
from ldiv_db.running.estimate import READING, Pace
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.child_processes import measure_in_children, settings_of
from tests.benchmarks.command import AsJson, Memory, Threads, command_of, engine_on, show
from tests.benchmarks.processes import worked_below

#: The rows of Adult's training half without a missing value.
ADULT_ROWS = 30_162
#: When the time left is looked at, in parts of the run.
MOMENTS = (0.1, 1 / 3, 0.5, 2 / 3, 0.75)
_PEOPLE = [word for key in ("known", "population", "targets") for word in (f"--{key}", "main.adult")]
#: What follows the database in the words of a command; of those that are not here, a policy.
WORDS = {
    "attack": ["published.adult", "--policy", "policy.yml", *_PEOPLE, "--counting", "--downcoding"],
    "check": ["published.adult", "--policy", "policy.yml"],
    "measure": ["published.adult", "--policy", "policy.yml"],
    "profile": ["main.adult", "--sensitive", "occupation"],
    "report": ["published.adult", "--policy", "policy.yml", "--out", "report.json"],
    "ask": ["published.adult", "SELECT sex, count(*), avg(age) FROM t GROUP BY ALL", "--policy", "policy.yml"],
}
#: An event: the seconds since the run began, what was told, and with which words or numbers.
Event = tuple[float, str, Any]


@dataclass(frozen=True)
class Case:
    """One benchmark: a command on so many rows by an algorithm, perhaps of an effort, under a requirement."""

    algorithm: str
    rows: int = ADULT_ROWS
    require: str = "frequency:3"
    threads: int = 2
    memory_limit: str | None = None
    seed: int = 1
    command: str = "run"
    #: The words of another command, of a database that is there, from this folder.
    line: str = ""
    folder: str = "."
    #: The process of a server on this machine, whose seconds count as well as those of our own processes.
    server: int = 0

    @property
    def document(self) -> dict[str, Any]:
        """The policy without its source."""
        name, _, argument = self.require.partition(":")
        algorithm, _, effort = self.algorithm.partition(":")
        found = adult_policy() | {
            "algorithm": {"name": algorithm, "effort": effort} if effort else algorithm,
            "require": [{name: float(argument) if "." in argument else int(argument)}],
            "target": {"table": "published.adult", "if_exists": "replace"},
        }
        if self.algorithm in ("cuts", "annealing", "incognito", "tds"):
            found["quasi_identifiers"]["age"] = {"taxonomy": {"file": "taxonomies/age.csv"}}
        return found


class Trace:
    """What a command shows its progress to: all events, by the processor's seconds, which other work changes little."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock, self._begun, self.events = clock, clock(), list[Event]()

    def begun(self, quiet: bool = False, first_stage: str = READING) -> AbstractContextManager[ldiv_db.Listener]:
        """In place of the display of a command."""
        self.add("stage", first_stage)
        return nullcontext(
            ldiv_db.Listener(
                on_stage=lambda name: self.add("stage", name),
                on_progress=lambda done, total: self.add("count", (done, total)),
                on_expected=lambda stages: self.add("expect", [(one.name, one.work) for one in stages]),
            )
        )

    def add(self, kind: str, what: Any) -> None:
        self.events.append((round(self._clock() - self._begun, 3), kind, what))


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
    """The trace of a command, in a process of its own: command, algorithm, rows, require, seconds, stages, factors,
    events.
    """
    return measure_in_children("tests.benchmarks.pace", case, ["run"])


def _worked(server: int) -> float:
    return worked_below(os.getpid()) + worked_below(server)


def _traced(case: Case, words: Sequence[str]) -> list[Event]:
    """The events of a command."""
    trace = Trace(partial(_worked, case.server) if case.server else time.process_time)
    with patch.object(progress, "ProgressDisplay", trace.begun):
        app([*words, "--json"], standalone_mode=False)
    trace.add("end", None)
    return trace.events


def _run(case: Case, folder: Path) -> dict[str, Any]:
    if case.line:
        os.chdir(case.folder)
        events, axes = _traced(case, shlex.split(case.line)), 0
    else:
        events, axes = _run_on_adult(case, folder)
    return {
        "command": case.line or case.command,
        "algorithm": case.algorithm,
        "rows": case.rows,
        "axes": axes,
        "require": case.require,
        "seconds": events[-1][0],
        "stages": stages_of(events),
        "factors": factors(events),
        "events": events,
    }


def _run_on_adult(case: Case, folder: Path) -> tuple[list[Event], int]:
    """The events of a command on Adult's rows or variants, and how many quasi-identifiers there are."""
    database, document = folder / "bench.duckdb", case.document
    shutil.copytree(resource_folder("fixtures") / "adult" / "taxonomies", folder / "taxonomies")
    with open_database(database, create=True, settings=settings_of(case, folder)) as connection:
        policy, engine = parse_policy(document), engine_on(connection)
        is_adult = case.rows == ADULT_ROWS
        rows = load_adult(engine, policy) if is_adult else make_rows(engine, policy, case.rows, case.seed)
        document |= {"source": str(rows)}
        (folder / "policy.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
        if case.command not in ("run", "plan", "profile", "explore"):
            ldiv_db.run(connection, document, folder)
    os.chdir(folder)
    words = [word.replace("main.adult", str(rows)) for word in WORDS.get(case.command, ["policy.yml"])]
    events = _traced(case, [case.command, str(database), *words, "--threads", str(case.threads)])
    return events, len(policy.quasi_identifiers)


TASKS = {"run": _run}


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people."""
    told = [f"factor at {moment:.0%}" for moment in MOMENTS]
    headings = ["command", "algorithm", "rows", "require", "seconds", *told, "stages"]
    rows = []
    for found in results:
        wrong = ["" if factor is None else f"{factor:.2f}" for factor in found["factors"]]
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in found["stages"].items())
        told = [found["command"], found["algorithm"], f"{found['rows']:,}", found["require"], f"{found['seconds']:.1f}"]
        rows.append([*told, *wrong, stages])
    return headings, rows


# -- the command line ---------------------------------------------------------------------------------


def pace(
    algorithm: Annotated[list[str] | None, typer.Option(help="NAME or NAME:EFFORT; may be repeated.")] = None,
    command: Annotated[list[str] | None, typer.Option(help="run, attack, report …; may be repeated.")] = None,
    rows: Annotated[list[int] | None, typer.Option(min=100, help="Adult's 30,162 rows, or so many variants.")] = None,
    require: Annotated[str, typer.Option(help="NAME:ARGUMENT")] = "frequency:3",
    line: Annotated[
        list[str] | None, typer.Option(help="The words of a command on a database that is there; may be repeated.")
    ] = None,
    server: Annotated[int, typer.Option(help="The process of a server, whose seconds count as well.")] = 0,
    traces: Annotated[Path | None, typer.Option(help="Write the traces to this file, as JSON.")] = None,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Say how long the stages of runs take, and how near the time left is that they say.

    \b
    Example:
      python -m tests.benchmarks.pace --algorithm topdown --algorithm bsgi --rows 30162 --rows 300000
      python -m tests.benchmarks.pace --line "attack clinic.duckdb --policy schema.yml"
    """
    each = [
        Case(name, size, require, threads, memory_limit, command=word, server=server)
        for size in rows or [ADULT_ROWS]
        for name, word in product(algorithm or ["topdown", "bsgi", "mondrian", "cuts", "auto"], command or ["run"])
    ]
    each = [Case("", 0, line=words, folder=str(Path.cwd()), server=server) for words in line or []] or each
    found = []
    for case in each:
        typer.echo(f"{case.line or f'{case.command}, {case.algorithm}, {case.rows:,} rows'} …", err=True)
        found.append(measure(case))
        if traces is not None:
            write_traces(traces, found)
    show("pace", json, found, as_table)


def write_traces(path: Path, found: Sequence[dict[str, Any]]) -> None:
    """The traces in a file, a line each."""
    path.write_text("".join(json.dumps(one) + "\n" for one in found), encoding="utf-8")


bench = command_of(pace)

if __name__ == "__main__":
    bench(prog_name="python -m tests.benchmarks.pace")
