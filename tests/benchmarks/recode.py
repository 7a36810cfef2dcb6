"""`python -m tests.benchmarks.recode`: random releases as one SELECT, by every database that is installed."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

TESTS = Path(__file__).resolve().parent.parent


def compare(server: Any, recoded: Any, tables: int) -> Counter[str]:
    """How many of the first random cases are alike, differ (with the seed) or cannot be met."""
    found: Counter[str] = Counter()
    for seed in range(tables):
        made = recoded(seed, server.plain_names)
        if made is None:
            found["infeasible"] += 1
            continue
        differs = made.differs(server)
        found["differ" if differs else "alike"] += 1
        if differs:
            typer.echo(f"{server.dialect}, seed {seed}: {differs}")
    return found


def main(
    tables: Annotated[int, typer.Option(help="How many random tables, for each database.")] = 100,
    dialect: Annotated[list[str] | None, typer.Option(help="A database; several times for several.")] = None,
) -> None:
    """Compare the release of random runs with what each database makes of their SELECT."""
    sys.path[:0] = [str(TESTS), str(TESTS / "recoding")]
    servers, cases = importlib.import_module("servers"), importlib.import_module("recoded")
    for name in dialect or servers.SERVERS:
        if lacks := servers.missing(name):
            typer.echo(lacks)
            continue
        server = servers.started(name)
        counts = compare(server, cases.recoded, tables)
        typer.echo(f"{server.version()}: {', '.join(f'{count} {what}' for what, count in sorted(counts.items()))}")


if __name__ == "__main__":
    typer.run(main)
