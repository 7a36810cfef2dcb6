"""`python -m tests.benchmarks.published FOLDER`: what we lose where others have published what they lose.

FOLDER is a checkout of github.com/kaylode/k-anonymity: its Adult (30,162 rows, eight quasi-identifiers), its trees, and
its file `metric_result`, with the normalized certainty penalty (NCP) of its recodings under k-anonymity. NCP is the
mean over cells of a range's width in the range of its column, or of the share of its leaves that a group has: our mean
LM, but that an original value of a category costs one leaf's share there, and nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.database.connections import Settings, open_database
from ldiv_db.running.run import run
from ldiv_db.solving.improve import Name
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, show

#: The methods of theirs that recode locally under k-anonymity; the classic Mondrian takes categories as numbers.
METHODS = ("classic_mondrian", "mondrian", "topdown")
CATEGORIES = ("sex", "race", "marital-status", "education", "native-country", "workclass", "occupation")


def published_by_others(folder: Path) -> dict[int, dict[str, float]]:
    """The NCP of each of their methods on Adult, by k: lines of data set, method, k, NCP and two other measures."""
    found: dict[int, dict[str, float]] = {}
    for line in (folder / "metric_result").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) == 6 and words[0] == "adult" and words[1] in METHODS:
            found.setdefault(int(words[2]), {})[words[1]] = float(words[3])
    return found


def policy_of(k: int, effort: Name) -> dict[str, Any]:
    """The policy on their columns and trees; ages in any interval, as theirs."""
    trees = {name: {"taxonomy": {"file": f"adult_hierarchy_{name}.csv"}} for name in CATEGORIES}
    return {
        "source": "adult",
        "identifiers": ["ID"],
        "quasi_identifiers": {"age": {"numeric": True}, **trees},
        "sensitive": ["salary-class"],
        "require": [{"k": k}],
        "target": {"table": "published", "if_exists": "replace"},
        "algorithm": {"name": "auto", "effort": effort},
    }


def measure_published(folder: Path, effort: Name = "quick", threads: int = 2) -> Iterator[dict[str, Any]]:
    """One result a k of theirs: the least that a method of theirs loses, ours, and our processor seconds."""
    data = folder / "data" / "adult"
    with open_database(":memory:", create=True, settings=Settings(threads)) as connection:
        connection.execute("CREATE TABLE adult AS FROM read_csv($path, delim = ';')", {"path": str(data / "adult.csv")})
        for k, theirs in sorted(published_by_others(folder).items()):
            used = time.process_time()
            loss = run(connection, policy_of(k, effort), data / "hierarchies").loss
            method = min(theirs, key=lambda name: theirs[name])
            yield {
                "k": k,
                "method": method,
                "ncp": theirs[method],
                "lm_mean": loss.lm_mean,
                "rows_suppressed": loss.rows_suppressed,
                "processor_seconds": time.process_time() - used,
            }


_TABLE: Columns = {
    "k": "{k}",
    "their best": "{method} {ncp:.3f}",
    "ours": "{lm_mean:.4f}",
    "left out": "{rows_suppressed:,}",
    "s": "{processor_seconds:.0f}",
}


def published(
    folder: Annotated[Path, typer.Argument(help="A checkout of github.com/kaylode/k-anonymity.")],
    effort: Annotated[Name, typer.Option(help="Of auto.")] = "quick",
    threads: Threads = 2,
    json: AsJson = False,
) -> None:
    """Measure what is lost on the rows and trees on which others published their losses."""
    if not (folder / "metric_result").is_file():
        raise typer.BadParameter("has no file metric_result", param_hint="FOLDER")
    show("Adult, eight quasi-identifiers: NCP", json, list(measure_published(folder, effort, threads)), _TABLE)


app = command_of(published)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.published")
