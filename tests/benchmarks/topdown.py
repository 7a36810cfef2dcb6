"""`python -m tests.benchmarks.topdown`: the experiments of the (l,alpha) paper, Section 5, on its data.

All 45,222 rows of Adult without missing values, seven quasi-identifiers, and a made-up Health Condition: 8 values in 4
categories, drawn by a seed, weighted by sensitivity with beta = 2. Figure 4 is seconds against rows, l and the number
of quasi-identifiers, Figure 5 is DM, CAVG and KL against l; then come the rows open to the similarity attack. Entropy
and recursion count the four categories, so that they end where four categories cannot be more diverse. Four different
values are never of one category of two: the 1,570 rows that the paper found open to the attack under 4-diversity
cannot be; under 2-diversity there are some.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.running.demo import PUBLIC_SEED
from ldiv_db.running.run import run
from tests.benchmarks.bsgi import PRIME
from tests.benchmarks.command import AsJson, Threads, command_of, engine_on, refuse_unknown, show

CATEGORIES = [["HIV", "Cancer"], ["Phthisis", "Hepatitis"], ["Obesity", "Asthma"], ["Flu", "Indigestion"]]
#: In the order of Table 9.
QUASI_IDENTIFIERS = ("age", "workclass", "education", "native_country", "marital_status", "race", "sex")
ALL_ROWS, L, ALPHA, C = 45_222, 4, 2, 3
ROWS, LS = (25_000, 30_000, 35_000, 40_000, ALL_ROWS), (2, 4, 6, 8, 10)
FIGURES = ("4a", "4b", "4c", "5", "similarity")
MODELS = ("distinct", "distinct_alpha", "entropy_alpha", "recursive_alpha")


@dataclass(frozen=True)
class Point:
    """One point of a figure: the model with its l, on so many rows and quasi-identifiers."""

    figure: str
    model: str
    rows: int = ALL_ROWS
    l: float = L
    quasi_identifiers: int = len(QUASI_IDENTIFIERS)

    @property
    def require(self) -> dict[str, Any]:
        if self.model in ("distinct", "k"):
            return {self.model: self.l}
        more = {"c": C} if self.model == "recursive_alpha" else {}
        return {self.model: {"l": self.l, "alpha": ALPHA} | more}


def points(figures: Sequence[str]) -> list[Point]:
    """What the figures ask for; `5` ends with the baseline, all rows in one class."""
    found = {
        "4a": [Point("4a", model, rows=rows) for rows in ROWS for model in MODELS],
        "4b": [Point("4b", model, l=size) for size in LS for model in MODELS],
        "4c": [Point("4c", model, quasi_identifiers=n) for n in range(2, 8) for model in MODELS],
        "5": [*(Point("5", model, l=size) for size in LS for model in MODELS), Point("5", "k", l=ALL_ROWS)],
        "similarity": [
            Point("similarity", "distinct", l=2),
            Point("similarity", "distinct"),
            Point("similarity", "distinct_alpha"),
            Point("similarity", "entropy_alpha"),
            Point("similarity", "entropy_alpha", l=3.9),
        ],
    }
    return [point for figure in figures for point in found[figure]]


def measure_topdown(asked: Sequence[Point], threads: int = 2, seed: int = 1) -> Iterator[dict[str, Any]]:
    """One result a point: seconds, DM, CAVG, rows open to the similarity attack, KL in figure 5; None if infeasible."""
    made = 0
    with open_database(":memory:", create=True, settings=Settings(threads)) as connection:
        for point in asked:
            if point.rows != made:
                make_conditions(engine_on(connection), point.rows, seed)
                made = point.rows
            yield _measure(connection, point)


def make_conditions(engine: Engine, rows: int, seed: int) -> None:
    """The table `conditions`: the first so many rows of Adult with a Health Condition."""
    labels = [(number, label) for number, label in enumerate(label for group in CATEGORIES for label in group)]
    conditions = engine.load("conditions", {"number": "INTEGER", "label": "VARCHAR"}, labels)
    engine.create(
        Relation(("main", "conditions")),
        "draw_conditions",
        replace=True,
        source=FileRelation("read_parquet", str(resource_folder("fixtures") / "adult" / "adult.parquet")),
        conditions=conditions,
        columns=[Identifier(name) for name in QUASI_IDENTIFIERS],
        seed=Value(seed),
        prime=Value(PRIME),
        count=Value(len(labels)),
        rows=Value(rows),
    )
    engine.drop(conditions)


def _policy(point: Point) -> dict[str, Any]:
    names = QUASI_IDENTIFIERS[: point.quasi_identifiers]
    trees = {name: {"taxonomy": {"file": f"taxonomies/{name}.csv"}} for name in names}
    return {
        "source": "main.conditions",
        "target": {"table": "published.conditions", "if_exists": "replace"},
        "quasi_identifiers": trees,
        "identifiers": list(QUASI_IDENTIFIERS[point.quasi_identifiers :]),
        "sensitive": {"health_condition": {"categories": CATEGORIES, "weights": {"sensitivity": 2}}},
        "require": [point.require],
        "algorithm": "topdown",
        "seed": PUBLIC_SEED,
    }


def _measure(connection: Any, point: Point) -> dict[str, Any]:
    found: dict[str, Any] = vars(point) | {"seconds": None, "dm": None, "cavg": None, "kl": None, "open_rows": None}
    start = time.perf_counter()
    try:
        result = run(connection, _policy(point), resource_folder("fixtures") / "adult", kl=point.figure == "5")
    except InfeasibleError:
        return found
    return found | {
        "seconds": time.perf_counter() - start,
        "dm": result.loss.dm,
        "cavg": result.loss.cavg(point.l),
        "kl": result.loss.kl,
        "open_rows": result.similarity[0].rows_after,
    }


def topdown_as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table for people."""
    headings = ["figure", "model", "rows", "l", "QIs", "seconds", "DM", "CAVG", "KL", "open rows"]
    forms = ("", "", ",", "g", "", ".2f", ",", ".2f", ".3f", ",")
    keys = ("figure", "model", "rows", "l", "quasi_identifiers", "seconds", "dm", "cavg", "kl", "open_rows")
    rows = [
        ["-" if found[key] is None else format(found[key], form) for key, form in zip(keys, forms, strict=True)]
        for found in results
    ]
    return headings, rows


# -- the command line ---------------------------------------------------------------------------------


def topdown(
    figure: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(FIGURES)}; may be repeated. All if not given.")
    ] = None,
    threads: Threads = 2,
    seed: Annotated[int, typer.Option(help="What the health conditions are drawn by.")] = 1,
    json: AsJson = False,
) -> None:
    """Repeat the (l,alpha) paper's experiments: time, utility, and the similarity attack.

    \b
    Examples:
      python -m tests.benchmarks.topdown --figure similarity
      python -m tests.benchmarks.topdown --json
    """
    refuse_unknown("--figure", figure or (), FIGURES)
    found: list[dict[str, Any]] = []
    for result in measure_topdown(points(figure or FIGURES), threads, seed):
        typer.echo(f"{result['figure']}: {result['model']} …", err=True)
        found.append(result)
    show("topdown", json, found, topdown_as_table)


app = command_of(topdown)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.topdown")
