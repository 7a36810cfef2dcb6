"""Benchmarks: rows made from Adult by the variant method, and what a run on them takes.

Every size is made in one child process and run in another, so that peaks of memory are those of the
run alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.benchmarks.children import measure_in_children, peak_memory, serve, settings_of
from ldiv_db.demo import adult_policy, load_adult
from ldiv_db.engine import Engine, open_database
from ldiv_db.policy import Policy, parse_policy
from ldiv_db.run import run
from ldiv_db.templates import Identifier, Relation, Value, resource_folder

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
    l: int = 4  # noqa: E741 - the field's name for it
    select: str = "refine"
    threads: int = 2
    memory_limit: str | None = None
    seed: int = 1


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
    return measure_in_children("ldiv_db.benchmarks.bsgi", case, ("make", "run"))


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people."""
    headings = ["rows", "l", "select", "seconds", "ns/(n log n)", "rows/s", "peak MB", "mean LM", "classes"]
    rows = [
        [
            f"{found['rows']:,}",
            str(found["l"]),
            found["select"],
            f"{found['seconds']:.2f}",
            f"{found['ns_per_n_log_n']:,.0f}",
            f"{found['rows_per_second']:,.0f}",
            f"{found['peak_memory_mb']:,.0f}",
            f"{found['lm_mean']:.4f}",
            f"{found['classes']:,}",
        ]
        for found in results
    ]
    return headings, rows


def make_rows(engine: Engine, policy: Policy, count: int, seed: int) -> Relation:
    """The table `variants` of `count` rows: copies of Adult's, in each a random number of quasi-identifiers redrawn."""
    names = [Identifier(name) for _, name in policy.roles()]
    originals = engine.materialise("originals", "bench/number_rows", rows=load_adult(engine, policy), columns=names)
    variants = Relation(("main", "variants"))
    engine.create(
        variants,
        "bench/vary_rows",
        originals=originals,
        redrawn=[_redrawn(number, name) for number, name in enumerate(policy.quasi_identifiers, 1)],
        fixed=[Identifier(name) for name in (*policy.sensitive, *policy.keep)],
        count=Value(count),
        rows=Value(engine.scalar("input/count_rows", rows=originals)),
        stride=Value(_STRIDE),
        seed=Value(seed),
        prime=Value(PRIME),
    )
    engine.drop(originals)
    return variants


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
        engine = Engine(connection)
        make_rows(engine, parse_policy(adult_policy()), case.rows, case.seed)


def _run(case: Case, folder: Path) -> dict[str, Any]:
    document = {**adult_policy(case.l, case.select), "source": "main.variants", "target": "published.variants"}
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection:
        start = time.perf_counter()
        result = run(connection, document, resource_folder("fixtures") / "adult")
        seconds = time.perf_counter() - start
    return {
        "rows": case.rows,
        "l": result.l,
        "select": case.select,
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


if __name__ == "__main__":
    serve(Case, {"make": _make, "run": _run})
