"""The benchmark of decomposition: the rows left over for every l, and the time of a first and a second release.

The source is Adult's clean training rows, or copies of them, with a key; `workclass` is the primary attribute of the
paper's table (Das & Bhattacharyya 2012, Table 7a), `occupation`, which allows many groups, that of the releases.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.database.connections import open_database
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.running.demo import PUBLIC_SEED, TRAINING_ROWS
from ldiv_db.running.run import run
from tests.benchmarks.child_processes import measure_in_children, peak_memory, settings_of
from tests.benchmarks.command import AsJson, Columns, Memory, Threads, command_of, engine_on, show

#: The paper's Table 7(a): rows left over of each value, by l.
TABLE_7A = {
    7: (22272, 2485, 2053, 1265, 1060, 929),
    6: (21329, 1542, 1110, 322, 117),
    5: (20631, 844, 412),
    4: (19661, 1),
    3: (18348,),
    2: (14410,),
    1: (),
}
_ADULT = 30_162
#: The diversity that the paper asks of the other attributes.
OTHERS = {"education": 3, "hours_per_week": 2, "relationship": 3}
_SHOWN = ["age", "fnlwgt", "marital_status", "race", "sex"]
_KEPT = ["occupation", "native_country", "workclass"]
_KEY = "id"


@dataclass(frozen=True)
class DecompositionCase:
    """One benchmark: a release of so many rows with this l, and one with `more` percent more rows if that is not 0."""

    rows: int
    l: int
    primary: str = "workclass"
    more: int = 0
    threads: int = 2
    memory_limit: str | None = None


def measure_decomposition(case: DecompositionCase) -> dict[str, Any]:
    """What the releases took: rows, l, groups, residual, noise and seconds, of the first and of the second."""
    return measure_in_children("tests.benchmarks.decomposition", case, ("make", "run"))


#: The columns of the table for people.
COLUMNS: Columns = {
    "rows": "{rows:,}",
    "primary": "{primary}",
    "l": "{l}",
    "groups": "{groups:,}",
    "rows left over by value": lambda found: "/".join(map(str, found["residual"])) or "none",
    "as paper": lambda found: {True: "yes", False: "NO", None: "-"}[found["as_paper"]],
    "seconds": "{seconds:.2f}",
    "1 % more": lambda found: "-" if found["seconds_more"] is None else f"{found['seconds_more']:.2f}",
    "MB": "{peak_memory_mb:,.0f}",
}


def policy_of(case: DecompositionCase) -> dict[str, Any]:
    """The policy of a case: the paper's, or one with another primary attribute."""
    ls = {case.primary: case.l, **{name: min(least, case.l) for name, least in OTHERS.items()}}
    trees = {"education": {"file": "taxonomies/education.csv"}}
    return {
        "source": "main.people",
        "target": {"prefix": "published.people"},
        "key": _KEY,
        "quasi_identifiers": _SHOWN,
        "sensitive": {name: {"l": ls[name], **({"taxonomy": trees[name]} if name in trees else {})} for name in ls},
        "identifiers": [name for name in _KEPT if name != case.primary],
        "algorithm": {"name": "decomposition_plus", "primary": case.primary},
        "seed": PUBLIC_SEED,
    }


def make_people(engine: Engine, rows: int, first: int = 1) -> None:
    """Add copies of Adult's rows to the table `people`, with keys from `first` on."""
    columns = [Identifier(name) for name in [*_SHOWN, *_KEPT, *OTHERS]]
    adult = engine.materialise(
        "adult",
        "running/demo/select_training",
        source=FileRelation("read_parquet", str(resource_folder("fixtures") / "adult" / "adult.parquet")),
        columns=columns,
        rows=Value(TRAINING_ROWS),
    )
    numbered = engine.materialise("originals", "number_rows", rows=adult, columns=columns)
    people = Relation(("main", "people"))
    params: dict[str, Any] = {
        "originals": numbered,
        "columns": columns,
        "key": Identifier(_KEY),
        "first": Value(first),
        "last": Value(first + rows - 1),
        "rows": Value(engine.count(adult)),
    }
    if first == 1:
        engine.create(people, "copy_rows", **params)
    else:
        engine.insert(people, "copy_rows", **params)
    engine.drop(adult, numbered)


# -- the children ------------------------------------------------------------------------------------


def _make(case: DecompositionCase, folder: Path) -> None:
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        engine = engine_on(connection)
        make_people(engine, case.rows)
        engine.close_scratch()


def _run(case: DecompositionCase, folder: Path) -> dict[str, Any]:
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection:
        first, seconds = _publish(connection, case)
        seconds_more = None
        if case.more:
            engine = engine_on(connection)
            make_people(engine, max(1, case.rows * case.more // 100), case.rows + 1)
            engine.close_scratch()
            seconds_more = _publish(connection, case)[1]
    paper = TABLE_7A.get(case.l) if (case.rows, case.primary) == (30_162, "workclass") else None
    return {
        "rows": case.rows,
        "primary": case.primary,
        "l": case.l,
        "groups": first["groups"],
        "residual": first["residual"],
        "as_paper": None if paper is None else list(paper) == first["residual"],
        "noise": first["noise"],
        "seconds": seconds,
        "seconds_more": seconds_more,
        "peak_memory_mb": peak_memory(),
        "versions": first["versions"],
    }


def _publish(connection: Any, case: DecompositionCase) -> tuple[dict[str, Any], float]:
    start = time.perf_counter()
    result = run(connection, policy_of(case), resource_folder("fixtures") / "adult")
    return result.as_dict(), time.perf_counter() - start


#: What child processes do.
TASKS = {"make": _make, "run": _run}


# -- the command line ---------------------------------------------------------------------------------


def decomposition(
    rows: Annotated[
        list[int] | None,
        typer.Option(
            min=100,
            help="A release of so many rows and one of 1 % more; may be repeated. The paper's table if not given.",
        ),
    ] = None,
    l: Annotated[int, typer.Option("--l", min=2, help="The l of the primary attribute, with --rows.")] = 7,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Time Decomposition+ on Adult with four sensitive attributes, for every l of the primary one.

    Rows left over are compared with Table 7(a) of the paper.

    \b
    Examples:
      python -m tests.benchmarks.decomposition
      python -m tests.benchmarks.decomposition --rows 300000
    """
    cases = [DecompositionCase(_ADULT, least, threads=threads, memory_limit=memory_limit) for least in TABLE_7A]
    if rows:
        cases = [DecompositionCase(n, l, "occupation", 1, threads, memory_limit) for n in rows]
    found: list[dict[str, Any]] = []
    for case in cases:
        typer.echo(f"{case.rows:,} rows, l = {case.l} …", err=True)
        found.append(measure_decomposition(case))
    show("decomposition", json, found, COLUMNS)


app = command_of(decomposition)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.decomposition")
