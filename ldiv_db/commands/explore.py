"""`ldiv explore`: the risk-utility map of a policy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ldiv_db.api import Exploration, explore
from ldiv_db.commands.console import ProgressDisplay, show
from ldiv_db.commands.options import Database, DatabaseOptions, Json, PolicyFile, Quiet, ShowValues, grouped
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, PolicyError, Problem
from ldiv_db.database.interrupts import INTERRUPTED
from ldiv_db.policy.reading import load_file
from ldiv_db.reporting.exploration_page import write_page
from ldiv_db.running.exploring.explore import processors
from ldiv_db.running.exploring.variants import MOST_VARIANTS

#: More workers than this no machine of ours has processors for.
_MOST_WORKERS = 256


@dataclass(frozen=True)
class VariantOptions:
    """What is varied, and what variants are compared by."""

    l: Annotated[
        list[str] | None,
        typer.Option(
            "--l",
            help="Values of l for every requirement that has one (p of p_sensitive), as 2..7 or 2,4,8; may be"
            " repeated. 2..7 if"
            " nothing else is varied.",
        ),
    ] = None
    k: Annotated[
        list[str] | None, typer.Option("--k", help="Values of k for every requirement that has one, written like --l.")
    ] = None
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="Algorithms to compare, comma-separated or repeated; the first replaces the policy's."),
    ] = None
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="columns: leave out each quasi-identifier in turn. taxonomy: each with one level fewer, numbers in"
            " ranges"
            " of one width. Comma-separated or repeated."
        ),
    ] = None
    risk: Annotated[
        list[str] | None,
        typer.Option(
            help="Largest risks of re-identification, as 0.09 or 1/11: each in place of the policy's, to find what"
            " loses least within it. Comma-separated or repeated."
        ),
    ] = None
    by: Annotated[
        Literal["loss", "utility"],
        typer.Option(
            help="Compare variants by loss, or by the error of the `preserve` queries (without any, of counts)."
        ),
    ] = "loss"

    @property
    def asked(self) -> dict[str, Any]:
        """The same as Python callers write it; raises PolicyError for what is no number."""
        return {
            "l": _numbers("l", self.l),
            "k": _numbers("k", self.k),
            "algorithms": _names(self.algorithm),
            "vary": _names(self.vary),
            "risk": [text if "/" in text else _number(text) for text in _names(self.risk)],
            "by": self.by,
        }


@grouped
def explore_command(
    *,
    database: Database,
    policy: PolicyFile,
    varied: VariantOptions,
    out: Annotated[
        Path | None, typer.Option(help="Write the map to this HTML file, which is replaced if it exists.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST_WORKERS, help="How many variants to try at once; by default one per processor."),
    ] = None,
    json: Json = False,
    resources: DatabaseOptions,
    quiet: Quiet = False,
    show_values: ShowValues = False,
) -> None:
    """Compare variants of a policy by what each would lose and reveal; publishes nothing.

    Loss is the mean LM of a cell; a column that is not published is lost wholly. `--by utility` compares by how far the
    answers to the policy's `preserve` are off, or without it counts over two columns. Risk is the largest share of a
    class that a sensitive value has (`posterior` in `ldiv attack`), and 1 / rows of the smallest class (`prosecutor`).
    A variant is on the frontier, *, if no other is better on both. Ctrl-C keeps what is done. The map is for those who
    decide; do not publish it.

    \b
    Examples:
      ldiv explore warehouse.duckdb policy.yml
      ldiv explore warehouse.duckdb policy.yml --l 2..7 --algorithm bsgi,topdown --out map.html
      ldiv explore warehouse.duckdb policy.yml --risk 0.09 --algorithm topdown,bsgi
      ldiv explore warehouse.duckdb policy.yml --vary taxonomy,columns --json
    """
    wanted = load_file(policy)
    if out is not None and not out.parent.is_dir():
        raise PolicyError([Problem("out", f"there is no folder {out.parent}", "make it, or name another")])
    with (
        replace(resources, threads=resources.threads or _threads(workers)).open(database, read_only=True) as connection,
        ProgressDisplay(quiet) as listener,
    ):
        found = explore(
            connection,
            wanted,
            **varied.asked,
            folder=policy.parent,
            workers=workers,
            listener=listener,
            catalog=resources.catalog_name,
            show_values=show_values,
        )
    if out is not None:
        write_page(found, out)
    show(found.as_dict(), found.text(), json)
    _exit_unless_done(found)


def _threads(workers: int | None) -> int:
    """The threads of the database that leave none idle where each worker has one statement under way.

    With more of them than processors the same statements were measured to take an eighth more processor time.
    """
    return max(1, processors() // (workers or processors()))


def _exit_unless_done(found: Exploration) -> None:
    if found.interrupted:
        done = sum(outcome.status != "interrupted" for outcome in found.outcomes)
        typer.echo(f"interrupted: {done:,} of {len(found.outcomes):,} variants were tried", err=True)
        raise typer.Exit(INTERRUPTED)
    statuses = {outcome.status for outcome in found.outcomes}
    if "error" in statuses:
        raise typer.Exit(DatabaseError.exit_code)
    if "failed" in statuses:
        raise typer.Exit(AuditError.exit_code)
    if not found.done:
        raise typer.Exit(InfeasibleError.exit_code)


def _names(texts: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _numbers(option: str, texts: Sequence[str] | None) -> list[int]:
    """The whole numbers in options: `2..7`, `2,4,8`."""
    return [number for text in texts or () for part in text.split(",") for number in _range(option, part.strip())]


def _range(option: str, text: str) -> Iterator[int]:
    found = re.fullmatch(r"(\d{1,10})(?:\.\.(\d{1,10}))?", text, re.ASCII)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise PolicyError([Problem(option, f"takes whole numbers, not {text!r}", "e.g. 2..7, or 2,4,8")])
    if last - first >= MOST_VARIANTS:
        raise PolicyError([Problem(option, f"{text} are more than {MOST_VARIANTS:,} variants", "ask for fewer")])
    yield from range(first, last + 1)
