"""`python -m tests.benchmarks.counts`: how far off releases of Adult answer random counts, by what their labels are.

The policy is that of `ldiv demo`. Each question has conditions on one to three columns, which a random row meets: ages
at most ten years below and above, and of texts its value and each other with a probability of a quarter. `ldiv ask`
answers it of each release. What noise would do to the same counts is computed, not executed: Laplace noise, and the
Gaussian noise of the DuckDB extension `pac` (github.com/cwida/pac), which counts a random half of the people twice and
adds 1 / (2 MI) times the variance of that, MI being 1/128 by default.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import duckdb
import typer

import ldiv_db
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import resource_folder
from ldiv_db.measuring.asking.answer import Bounds
from ldiv_db.measuring.utility import nine_tenths
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import TRAINING_ROWS, adult_policy, load_adult
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, show

#: What texts are published as, and how a policy says so: by which recoding, and whether they have taxonomies.
LABELS = {"values or *": ("tree", False), "nodes of trees": ("tree", True), "sets": ("set", False)}
#: How likely an answer with noise is off by a number at most, of a count.
Noise = Callable[[float, int], float]
_AGE, _YEARS, _MI = "age", 10, 1 / 128


def measure_counts(questions: int, rows: int, threads: int = 2) -> Iterator[dict[str, Any]]:
    """One result a release, and one a kind of noise: errors are by the counts of the source."""
    document, folder = adult_policy(), resource_folder("fixtures") / "adult"
    published = str(document["target"]["table"])
    with open_database(":memory:", create=True, settings=Settings(threads)) as con:
        source = load_adult(Engine(con), parse_policy(document), rows)
        texts = [f"SELECT count(*) FROM {source} WHERE {one}" for one in _drawn(con, document, questions)]
        counts = [row[0] for text in texts for row in con.execute(text).fetchall()]
        for name, (recode, has_trees) in LABELS.items():
            said = {c: how if has_trees or c == _AGE else {} for c, how in document["quasi_identifiers"].items()}
            policy = document | {"quasi_identifiers": said, "recode": recode}
            lm = ldiv_db.run(con, policy, folder=folder).loss.lm_mean
            used = time.process_time()
            answers = [ldiv_db.ask(con, published, text, policy=policy, folder=folder) for text in texts]
            seconds = (time.process_time() - used) / questions
            found = _compared([answer.groups[0][1][0] for answer in answers], counts)
            yield {"answers": name, "lm_mean": lm, **found, "processor_seconds": seconds}
    for name, noise in noises(questions).items():
        half, nine = (quantile(counts, noise, share) for share in (0.5, 0.9))
        yield {"answers": name, "half": half, "nine_in_ten": nine}


def _compared(answers: Sequence[Bounds], counts: Sequence[int]) -> dict[str, Any]:
    """How far estimates are off, how many counts are outside of their bounds, and how wide these are, by the counts."""
    both = list(zip(answers, counts, strict=True))
    errors = [abs(one.estimate - count) / count for one, count in both]
    return {
        "half": statistics.median(errors),
        "nine_in_ten": nine_tenths(errors),
        "outside": sum(not one.low <= count <= one.high for one, count in both),
        "width": statistics.median((one.high - one.low) / count for one, count in both),
    }


def noises(questions: int) -> dict[str, Noise]:
    """The kinds of noise by their names, where so many questions are asked."""
    deviation = math.sqrt(1 + 1 / (2 * _MI))  # of a count of one
    return {
        "Laplace, eps = 1 for each": lambda off, _: -math.expm1(-off),
        "Laplace, eps = 1 for all": lambda off, _: -math.expm1(-off / questions),
        "pac, MI = 1/128 for each": lambda off, count: math.erf(off / (deviation * math.sqrt(2 * count))),
    }


def quantile(counts: Sequence[int], noise: Noise, share: float) -> float:
    """The error that this share of the answers does not exceed, by halving; an error is by its count."""
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        reached = statistics.fmean(noise(middle * count, count) for count in counts) >= share
        low, high = (low, middle) if reached else (middle, high)
    return high


def _drawn(con: duckdb.DuckDBPyConnection, document: dict[str, Any], questions: int) -> Iterator[str]:
    """Conditions that some row meets, the same each time."""
    drawn, columns = random.Random(0), [*document["quasi_identifiers"], *document["sensitive"]]
    source = document["source"]
    rows = con.execute(f"SELECT {', '.join(columns)} FROM {source} ORDER BY ALL").fetchall()
    values = {name: sorted({row[place] for row in rows}) for place, name in enumerate(columns)}
    for _ in range(questions):
        row = dict(zip(columns, drawn.choice(rows), strict=True))
        yield " AND ".join(_condition(drawn, c, row[c], values[c]) for c in drawn.sample(columns, drawn.randint(1, 3)))


def _condition(drawn: random.Random, column: str, own: Any, values: Sequence[Any]) -> str:
    if column == _AGE:
        return f"{column} BETWEEN {own - drawn.randint(0, _YEARS)} AND {own + drawn.randint(0, _YEARS)}"
    taken = [f"'{value}'" for value in values if value == own or drawn.random() < 0.25]
    return f"{column} IN ({', '.join(taken)})"


_TABLE: Columns = {
    "answers": "{answers}",
    "mean LM": lambda one: _figure(one, "lm_mean", "{:.4f}"),
    "half of the errors": "{half:.2%}",
    "nine in ten": "{nine_in_ten:.1%}",
    "outside bounds": lambda one: _figure(one, "outside", "{}"),
    "width of bounds": lambda one: _figure(one, "width", "{:.1%}"),
    "processor s": lambda one: _figure(one, "processor_seconds", "{:.2f}"),
}


def _figure(one: dict[str, Any], name: str, form: str) -> str:
    return form.format(one[name]) if name in one else "-"


def counts(
    questions: Annotated[int, typer.Option(min=1, help="How many are asked.")] = 1000,
    rows: Annotated[
        int, typer.Option(min=100, help="Of Adult's first; those without missing values are taken.")
    ] = TRAINING_ROWS,
    threads: Threads = 2,
    json: AsJson = False,
) -> None:
    """Ask releases of Adult random counts, and compare their answers with the source's."""
    found = []
    for result in measure_counts(questions, rows, threads):
        typer.echo(f"{result['answers']} …", err=True)
        found.append(result)
    show("Errors of random counts", json, found, _TABLE)


app = command_of(counts)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.counts")
