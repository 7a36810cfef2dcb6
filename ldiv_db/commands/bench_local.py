"""`ldiv bench utility` and `ldiv bench topdown`: losses beside those of others, and the paper's experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ldiv_db.benchmarks.topdown import measure_topdown, points, topdown_as_table
from ldiv_db.benchmarks.utility import ALGORITHMS, PEERS, measure_utility, utility_as_table
from ldiv_db.commands.console import print_json, printer
from ldiv_db.commands.options import MOST_THREADS
from ldiv_db.report import print_rows

Threads = Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
NAMES = (*ALGORITHMS, "auto")
FIGURES = ("4a", "4b", "4c", "5", "similarity")


def bench_utility_command(
    algorithm: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(NAMES)}; may be repeated. All but auto if not given.")
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(p.require for p in PEERS)}; may be repeated.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=100, help="Rows made by the variant method.", show_default="Adult's 30,162"),
    ] = None,
    threads: Threads = 2,
    json: AsJson = False,
) -> None:
    """Measure what is lost on Adult under each requirement, beside what other tools lose.

    \b
    Examples:
      ldiv bench utility --algorithm topdown --algorithm mondrian
      ldiv bench utility --require distinct:4 --json
      ldiv bench utility --rows 1000000 --algorithm topdown --require distinct:4 --json
    """
    _refuse_unknown("--algorithm", algorithm or (), NAMES)
    _refuse_unknown("--require", require or (), [peer.require for peer in PEERS])
    found: list[dict[str, Any]] = []
    for result in measure_utility(algorithm or ALGORITHMS, require or (), threads, rows):
        typer.echo(f"{result['require']} …", err=True)
        found.append(result)
    _show("mean LM per cell", json, found, utility_as_table)


def bench_topdown_command(
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
      ldiv bench topdown --figure similarity
      ldiv bench topdown --json
    """
    _refuse_unknown("--figure", figure or (), FIGURES)
    found: list[dict[str, Any]] = []
    for result in measure_topdown(points(figure or FIGURES), threads, seed):
        typer.echo(f"{result['figure']}: {result['model']} …", err=True)
        found.append(result)
    _show("topdown", json, found, topdown_as_table)


def _refuse_unknown(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [text for text in given if text not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(known)}", param_hint=option)


def _show(title: str, json: bool, found: list[dict[str, Any]], table: Any) -> None:
    if json:
        print_json({"results": found})
    else:
        print_rows(printer(), title, *table(found))
