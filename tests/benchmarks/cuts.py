"""The benchmark of cuts: Adult's rows without NULL, or rows made from them, each search in a process of its own."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.database.connections import open_database
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import parse_policy
from ldiv_db.requirements import parse_requirement
from ldiv_db.running.demo import PUBLIC_SEED, load_adult
from ldiv_db.running.run import run
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.child_processes import measure_in_children, peak_memory, settings_of
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, engine_on, refuse_unknown, show

#: Every metric with the schemes that it has costs for.
COMBINATIONS = (
    *(("LM", scheme) for scheme in ("none", "vioSA", "allSA", "vioRec", "allRec")),
    *((metric, scheme) for metric in ("DM", "CM") for scheme in ("none", "vioRec", "allRec")),
)
#: Adult's rows without NULL; any other number of them is made by the variant method.
ROWS = 45_222
_ADULT = ("age", "education", "sex", "race", "marital_status", "workclass", "native_country")
#: How ages may be generalised: by a taxonomy of ranges of five years or of single years up, or into any intervals.
AGES: dict[str, dict[str, Any]] = {
    "ranges": {"taxonomy": {"ranges": [5, 10, 20, 40], "origin": 17}},
    "years": {"taxonomy": {"ranges": [1, 5, 10, 20, 40], "origin": 17}},
    "numbers": {"numeric": True},
}


@dataclass(frozen=True)
class CutCase:
    """One search by this metric and scheme: of what is required (written as for `ldiv check`), or thresholds of 1/l."""

    metric: str
    scheme: str
    l: float = 4
    require: tuple[str, ...] = ()
    threads: int = 2
    time_limit: float | None = None
    rows: int = ROWS
    memory_limit: str | None = None
    age: str = "ranges"
    others: int = len(_ADULT) - 1


def measure_cuts(case: CutCase) -> dict[str, Any]:
    """What the search of one case took and found; raises LdivError if a child process fails."""
    return measure_in_children("tests.benchmarks.cuts", case, ("make", "run"))


#: The columns of the table for people.
COLUMNS: Columns = {
    "metric": "{metric}",
    "scheme": "{scheme}",
    "required": lambda found: ", ".join(found["require"]) or f"frequency:{found['l']:g}",
    "rows": "{rows:,}",
    "others": "{others} and {age}",
    "cost": "{cost:,.2f}",
    "LM": "{lm_mean:.4f}",
    "proved": lambda found: "yes" if found["proved"] else "no",
    "gap": "{gap:.1%}",
    "visited": "{visited:,}",
    "evaluated": lambda found: format(found["evaluated"], "," if found["evaluated"] < 10**12 else ".1e"),
    "seconds": "{seconds:.1f}",
    "CPU s": "{processor_seconds:.1f}",
    "peak MB": "{peak_memory_mb:,.0f}",
}


def cuts_policy(case: CutCase) -> dict[str, Any]:
    """The policy of a case, on the trees with 356,440,500 cuts, or some; age has the same tree made of ranges."""
    keys = {name: {"taxonomy": {"file": "cuts/default.json", "tree": name}} for name in _ADULT[: case.others + 1]}
    return {
        "source": "main.adult",
        "target": "published.adult",
        "quasi_identifiers": keys | {"age": AGES[case.age]},
        "identifiers": list(_ADULT[case.others + 1 :]) if case.rows == ROWS else [],  # variants have no others
        "sensitive": ["occupation"],
        "keep": ["income"],
        "require": [_written(text) for text in case.require] or [{"frequency": case.l}],
        "algorithm": {
            "name": "cuts",
            "metric": case.metric,
            "scheme": case.scheme,
            "class": "income",
            "time_limit": case.time_limit,
            "unproved": "refuse" if case.time_limit is None else "publish",
        },
        "seed": PUBLIC_SEED,
    }


def _written(text: str) -> dict[str, Any]:
    """A requirement as a policy has it."""
    spec = parse_requirement(text)
    return {spec.name: spec.argument}


def _make(case: CutCase, folder: Path) -> None:
    """The table `adult` or, of another number of rows, `variants`."""
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        engine, policy = engine_on(connection), parse_policy(cuts_policy(case))
        if case.rows == ROWS:
            load_adult(engine, policy, rows=2**31)  # both halves
        else:
            make_rows(engine, policy, case.rows, seed=1)


def _run(case: CutCase, folder: Path) -> dict[str, Any]:
    """What the run took and found."""
    document = cuts_policy(case) | ({} if case.rows == ROWS else {"source": "main.variants"})
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection:
        start, used = time.perf_counter(), time.process_time()
        result = run(connection, document, resource_folder("fixtures") / "adult")
        seconds, processor = time.perf_counter() - start, time.process_time() - used
    return {
        **asdict(case),
        **result.search,
        "lm_mean": result.loss.lm_mean,
        "rows": result.loss.rows_published + result.loss.rows_suppressed,
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_memory_mb": peak_memory(),
        "versions": result.versions,
    }


#: What child processes do.
TASKS = {"make": _make, "run": _run}


# -- the command line ---------------------------------------------------------------------------------


def cuts(
    l: Annotated[float, typer.Option("--l", min=1, help="Thresholds are 1/l.")] = 4,
    only: Annotated[
        list[str] | None, typer.Option(help="METRIC:SCHEME, e.g. LM:vioRec; may be repeated.", show_default=False)
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(help="What is required in place of thresholds, e.g. entropy:4; all together.", show_default=False),
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(min=100, help="Rows made by the variant method; may be repeated.", show_default="Adult's 45,222"),
    ] = None,
    threads: Threads = 2,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which a search is stopped; it finds a good cut first.", show_default="none"),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="Memory the database may use, e.g. 800MB.", show_default=False)
    ] = None,
    age: Annotated[
        str,
        typer.Option(help="ranges of five years and up, of single years and up (years), or any intervals (numbers)."),
    ] = "ranges",
    others: Annotated[
        int, typer.Option(min=0, max=len(_ADULT) - 1, help="How many quasi-identifiers there are beside age.")
    ] = len(_ADULT) - 1,
    json: AsJson = False,
) -> None:
    """Time the search for the best cut on Adult's 45,222 rows without NULL, by every metric and scheme.

    \b
    Examples:
      python -m tests.benchmarks.cuts
      python -m tests.benchmarks.cuts --only LM:vioRec --only DM:allRec --l 6
      python -m tests.benchmarks.cuts --only LM:vioRec --rows 50000 --rows 1000000
      python -m tests.benchmarks.cuts --only LM:none --require recursive:c=3,l=3
      python -m tests.benchmarks.cuts --only LM:none --require distinct:4 --others 3 --age numbers
    """
    known = [f"{metric}:{scheme}" for metric, scheme in COMBINATIONS]
    refuse_unknown("--only", only or (), known)
    refuse_unknown("--age", [age], list(AGES))
    found: list[dict[str, Any]] = []
    for count, (metric, scheme) in product(rows or [ROWS], COMBINATIONS):
        if not only or f"{metric}:{scheme}" in only:
            typer.echo(f"{metric} {scheme}, {count:,} rows …", err=True)
            case = CutCase(
                metric, scheme, l, tuple(require or ()), threads, time_limit, count, memory_limit, age, others
            )
            found.append(measure_cuts(case))
    show("cuts", json, found, COLUMNS)


app = command_of(cuts)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.cuts")
