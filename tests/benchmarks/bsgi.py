"""Benchmarks: rows made from Adult by the variant method, and what a run on them takes.

Every size is made in one child process and run in another, so that peaks of memory are those of the
run alone.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ldiv_db.commands.options import Memory
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import Policy, parse_policy
from ldiv_db.running.demo import adult_policy, load_adult
from ldiv_db.running.run import run
from tests.benchmarks.child_processes import measure_in_children, peak_memory, settings_of
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, engine_on, show

#: The sizes that are timed unless others are asked for.
SIZES = (10_000, 30_162, 100_000, 300_000, 1_000_000)
#: Randomness is arithmetic modulo this prime; cubing permutes the numbers below it.
PRIME = 2_147_483_579
#: Copies go round the originals in steps of this size, a prime, so that few copies are a fair sample too.
_STRIDE = 7_919


@dataclass(frozen=True)
class Case:
    """One benchmark: so many rows, made with this seed, run in this way."""

    rows: int
    l: int = 4
    select: str = "refine"
    threads: int = 2
    memory_limit: str | None = None
    seed: int = 1
    transparent: bool = False


@dataclass(frozen=True)
class Redrawn:
    """A quasi-identifier that may be redrawn, with the names and starts of its two random sequences."""

    column: Identifier
    chance: Identifier
    pick: Identifier
    table: Identifier
    chance_start: Value
    pick_start: Value


def measure(case: Case) -> dict[str, Any]:
    """What a run on `case.rows` rows took: rows, l, seconds, ns_per_n_log_n, peak_memory_mb, lm_mean, classes, ...

    Raises LdivError if a child fails, with what it said and its exit code.
    """
    return measure_in_children("tests.benchmarks.bsgi", case, ("make", "run"))


#: The columns of the table for people.
COLUMNS: Columns = {
    "rows": "{rows:,}",
    "l": "{l}",
    "select": "{select}",
    "seconds": "{seconds:.2f}",
    "ns/(n log n)": "{ns_per_n_log_n:,.0f}",
    "rows/s": "{rows_per_second:,.0f}",
    "peak MB": "{peak_memory_mb:,.0f}",
    "mean LM": "{lm_mean:.4f}",
    "classes": "{classes:,}",
}


def make_rows(engine: Engine, policy: Policy, count: int, seed: int) -> Relation:
    """The table `variants` of `count` rows: copies of Adult's, in each a random number of quasi-identifiers redrawn.

    The engine is one of `engine_on`.
    """
    variants = Relation(("main", "variants"))
    with _varying(engine, policy, count, seed) as params:
        engine.create(variants, "vary_rows", **params)
    return variants


def write_rows(engine: Engine, policy: Policy, count: int, seed: int, path: Path, share: int | None = None) -> None:
    """The rows of `make_rows` as a Parquet file, or those of which so many values in 1000 are redrawn.

    Row by row as they are made: more than memory holds may be asked for.

    The file is written beside and moved into its place, so that one that is there is whole.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with _varying(engine, policy, count, seed, share) as params:
        engine.export(part, "parquet", "vary_rows", **params)
    part.replace(path)


@contextmanager
def _varying(
    engine: Engine, policy: Policy, count: int, seed: int, share: int | None = None
) -> Iterator[dict[str, Any]]:
    """What the template of variants takes; Adult's own rows are there meanwhile."""
    names = [Identifier(name) for _, name in policy.roles()]
    originals = engine.materialise("originals", "number_rows", rows=load_adult(engine, policy), columns=names)
    yield {
        "originals": originals,
        "redrawn": [_redrawn(number, name) for number, name in enumerate(policy.quasi_identifiers, 1)],
        "fixed": [Identifier(name) for name in (*policy.sensitive, *policy.keep)],
        "count": Value(count),
        "rows": Value(engine.count(originals)),
        "stride": Value(_STRIDE),
        "seed": Value(seed),
        "prime": Value(PRIME),
        "share": Value(share),
        "alike": share is not None,
    }
    engine.drop(originals)


def _redrawn(number: int, name: str) -> Redrawn:
    return Redrawn(
        Identifier(name),
        Identifier(f"chance_{number}"),
        Identifier(f"pick_{number}"),
        Identifier(f"t_{number}"),
        Value(number * 104_729_017),
        Value(number * 179_424_673),
    )


# -- the children ------------------------------------------------------------------------------------


def _make(case: Case, folder: Path) -> None:
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        make_rows(engine_on(connection), parse_policy(adult_policy()), case.rows, case.seed)


def _run(case: Case, folder: Path) -> dict[str, Any]:
    policy = adult_policy(case.l, None if case.transparent else case.select, case.transparent)
    document = {**policy, "source": "main.variants", "target": "published.variants"}
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection:
        start = time.perf_counter()
        result = run(connection, document, resource_folder("fixtures") / "adult")
        seconds = time.perf_counter() - start
    return {
        "rows": case.rows,
        "l": result.l,
        "select": "transparent" if case.transparent else case.select,
        "threads": case.threads,
        "seconds": seconds,
        "ns_per_n_log_n": seconds * 1e9 / (case.rows * math.log2(max(case.rows, 2))),
        "rows_per_second": case.rows / seconds,
        "peak_memory_mb": peak_memory(),
        "lm_mean": result.loss.lm_mean,
        "classes": result.loss.classes,
        "rows_suppressed": result.loss.rows_suppressed,
        "versions": result.versions,
    }


#: What child processes do.
TASKS = {"make": _make, "run": _run}


# -- the command line ---------------------------------------------------------------------------------


def bsgi(
    rows: Annotated[
        list[int] | None, typer.Option(min=1, help="How many rows; may be repeated. 10,000 to a million if not given.")
    ] = None,
    l: Annotated[int, typer.Option("--l", min=2, help="The l of the policy: the size of its classes.")] = 4,
    select: Annotated[Literal["refine", "bisect", "greedy"], typer.Option(help="How classes are selected.")] = "refine",
    transparent: Annotated[bool, typer.Option("--transparent", help="With `transparent: true`.")] = False,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Time BSGI on rows made from Adult: copies of real rows, in each a random number of QIs redrawn.

    Seconds are those of the run, the next column divides them by n log n.

    \b
    Examples:
      python -m tests.benchmarks.bsgi --rows 100000 --rows 1000000
      python -m tests.benchmarks.bsgi --rows 10000 --select greedy --json
    """
    cases = [Case(count, l, select, threads, memory_limit, transparent=transparent) for count in rows or SIZES]
    found: list[dict[str, Any]] = []
    for case in cases:
        typer.echo(f"{case.rows:,} rows …", err=True)
        found.append(measure(case))
    show("bsgi", json, found, COLUMNS)


app = command_of(bsgi)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.bsgi")
