"""The figures of TP's paper (Xiao, Yi, Tao, EDBT 2010, Section 6) on rows of Adult, as tables.

Stars, seconds and KL divergence of algorithms against l, the number d of quasi-identifiers and the rows n, each the
average over sets of d of Adult's seven quasi-identifiers. All runs on so many rows have one child process.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ldiv_db.algorithms import ALGORITHMS
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.templates import resource_folder
from ldiv_db.measuring.measure import MeasureRequest, measure_table
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import describe
from ldiv_db.running.demo import PUBLIC_SEED, adult_policy, load_adult
from ldiv_db.running.run import run
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.child_processes import measure_in_children, settings_of
from tests.benchmarks.command import engine_on

#: As many rows are Adult's own; any other number is made from them.
ADULT_ROWS = 30_162
#: What is fixed while the rest varies.
FIXED_D, FIXED_L = 4, 6
_SUPPRESSING, _COMPARED = ("tp", "tp_plus", "hilbert"), ("tp_plus", "tds")
_TARGET = "main.released"

#: One run of a case: d, l, the algorithm, and whether KL is measured.
Job = tuple[int, int, str, bool]


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: what it shows (a key of a run), against what, for which algorithms."""

    number: int
    shows: str
    against: str
    algorithms: tuple[str, ...]

    @property
    def title(self) -> str:
        fixed = {"l": f"d = {FIXED_D}", "d": f"l = {FIXED_L}", "rows": f"d = {FIXED_D}, l = {FIXED_L}"}
        return f"Figure {self.number}: {self.shows} against {self.against} ({fixed[self.against]})"


FIGURES = {
    number: Figure(number, *rest)
    for number, rest in {
        2: ("stars", "l", _SUPPRESSING),
        3: ("stars", "d", _SUPPRESSING),
        4: ("seconds", "l", _SUPPRESSING),
        5: ("seconds", "d", _SUPPRESSING),
        6: ("seconds", "rows", _SUPPRESSING),
        7: ("kl", "l", _COMPARED),
        8: ("kl", "d", _COMPARED),
    }.items()
}


@dataclass(frozen=True)
class Scales:
    """The values of l, d and n that are tried, and the most sets of quasi-identifiers for each d, None for all."""

    l: Sequence[int] = (2, 3, 4, 5, 6, 7)
    d: Sequence[int] = (1, 2, 3, 4, 5, 6, 7)
    rows: Sequence[int] = (100_000, 200_000, 300_000, 400_000, 500_000, 600_000)
    sets: int | None = 5


@dataclass(frozen=True)
class TpCase:
    """All runs on so many rows, each on every set of quasi-identifiers."""

    rows: int
    jobs: Sequence[Job]
    sets: int | None = None
    threads: int = 2
    memory_limit: str | None = None


def plan_cases(
    figures: Sequence[Figure], scales: Scales, threads: int = 2, memory_limit: str | None = None
) -> list[TpCase]:
    """What must be run for the figures, each job once."""
    jobs: dict[int, dict[tuple[int, int, str], bool]] = defaultdict(dict)
    for figure in figures:
        for rows, d, l in _points(figure, scales):
            for algorithm in figure.algorithms:
                key = (d, l, algorithm)
                jobs[rows][key] = jobs[rows].get(key, False) or figure.shows == "kl"
    return [
        TpCase(rows, [(*key, kl) for key, kl in sorted(of_rows.items())], scales.sets, threads, memory_limit)
        for rows, of_rows in sorted(jobs.items())
    ]


def _points(figure: Figure, scales: Scales) -> Iterator[tuple[int, int, int]]:
    """(rows, d, l) of the places on the figure's axis."""
    for value in getattr(scales, figure.against):
        at = {"rows": ADULT_ROWS, "d": FIXED_D, "l": FIXED_L, figure.against: value}
        yield at["rows"], at["d"], at["l"]


def measure_tp(case: TpCase) -> list[dict[str, Any]]:
    """One object a run: rows, d, l, algorithm, quasi_identifiers, stars, seconds, kl (None if it was not asked for).

    Raises LdivError if a child fails, with what it said and its exit code.
    """
    return list(measure_in_children("tests.benchmarks.tp_runs", case, ("make", "run"))["runs"])


# -- what is shown -----------------------------------------------------------------------------------


def figure_as_table(figure: Figure, runs: Sequence[dict[str, Any]], scales: Scales) -> list[dict[str, Any]]:
    """One object a place on the figure's axis: the place, and the average of every algorithm."""
    table: list[dict[str, Any]] = []
    for point in _points(figure, scales):
        here = [found for found in runs if (found["rows"], found["d"], found["l"]) == point]
        row: dict[str, Any] = {figure.against: getattr(scales, figure.against)[len(table)]}
        for algorithm in figure.algorithms:
            values = [found[figure.shows] for found in here if found["algorithm"] == algorithm]
            row[algorithm] = None if None in values or not values else fmean(values)
        table.append(row)
    return table


def exceptions(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tables on which `tp_plus` has no fewer stars than `hilbert`, though that has some."""
    stars: dict[tuple[Any, ...], dict[str, int]] = defaultdict(dict)
    for found in runs:
        key = (found["rows"], found["l"], tuple(found["quasi_identifiers"]))
        stars[key][found["algorithm"]] = found["stars"]
    return [
        {"rows": rows, "l": l, "quasi_identifiers": list(names), **{name: of[name] for name in ("tp_plus", "hilbert")}}
        for (rows, l, names), of in sorted(stars.items())
        if {"tp_plus", "hilbert"} <= set(of) and of["tp_plus"] >= of["hilbert"] > 0
    ]


# -- the children ------------------------------------------------------------------------------------


def sets_of(names: Sequence[str], d: int, most: int | None) -> list[tuple[str, ...]]:
    """The sets of d names, at most so many of them, from all over their list."""
    found = list(itertools.combinations(names, d))
    if most is None or most >= len(found):
        return found
    return [found[place * len(found) // most] for place in range(most)]


def bench_policy(source: str, names: Sequence[str], l: int, algorithm: str) -> dict[str, Any]:
    """The policy of one run: Adult's other quasi-identifiers are left out, age has a taxonomy as the others do."""
    document = adult_policy()
    others = [name for name in document["quasi_identifiers"] if name not in names]
    known = {**document["quasi_identifiers"], "age": {"taxonomy": {"file": "taxonomies/age.csv"}}}
    return {
        "source": source,
        "target": {"table": _TARGET, "if_exists": "replace"},
        "identifiers": others,
        "quasi_identifiers": {name: known[name] for name in names},
        "sensitive": document["sensitive"],
        "require": [{"frequency": l}],
        "algorithm": {"name": algorithm},
        "seed": PUBLIC_SEED,
    }


def _make(case: TpCase, folder: Path) -> None:
    """Adult's table, and rows made from it if another number is asked for."""
    policy = parse_policy(adult_policy())
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        if case.rows == ADULT_ROWS:
            load_adult(Engine(connection), policy)
        else:
            make_rows(engine_on(connection), policy, case.rows, seed=1)


def _run(case: TpCase, folder: Path) -> dict[str, Any]:
    document = adult_policy()
    source = document["source"] if case.rows == ADULT_ROWS else "main.variants"
    runs = []
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection:
        for d, l, algorithm, kl in case.jobs:
            for names in sets_of(list(document["quasi_identifiers"]), d, case.sets):
                found = _measure_run(connection, bench_policy(source, names, l, algorithm), kl)
                runs.append({"rows": case.rows, "d": d, "l": l, "quasi_identifiers": names, **found})
    return {"runs": runs}


def _measure_run(connection: Any, document: dict[str, Any], kl: bool) -> dict[str, Any]:
    """The seconds of a run, its stars, and its KL divergence, which is measured afterwards."""
    adult = resource_folder("fixtures") / "adult"
    start = time.perf_counter()
    result = run(connection, document, adult)
    seconds = time.perf_counter() - start
    divergence = None
    if kl:
        engine = Engine(connection)
        source, target = Relation.parse(document["source"]), Relation.parse(_TARGET)
        original = describe(engine, parse_policy(document), source, adult)
        divergence = measure_table(engine, target, original, MeasureRequest()).loss.kl
        engine.close_scratch()
    return {"algorithm": result.algorithm, "stars": result.loss.stars, "seconds": seconds, "kl": divergence}


def unknown_algorithms(names: Sequence[str]) -> list[str]:
    """Those of the names that no algorithm has."""
    return [name for name in dict.fromkeys(names) if name not in ALGORITHMS]


#: What child processes do.
TASKS = {"make": _make, "run": _run}
