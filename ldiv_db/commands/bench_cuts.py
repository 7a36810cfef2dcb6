"""`ldiv bench cuts`: how long it takes to prove the best cut."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any

import typer

from ldiv_db.benchmarks.cuts import COMBINATIONS, ROWS, CutCase, cuts_as_table, measure_cuts
from ldiv_db.commands.console import print_json, printer
from ldiv_db.commands.options import MOST_THREADS
from ldiv_db.report import print_rows


def bench_cuts_command(
    l: Annotated[float, typer.Option("--l", min=1, help="Thresholds are 1/l.")] = 4,  # noqa: E741
    only: Annotated[
        list[str] | None, typer.Option(help="METRIC:SCHEME, e.g. LM:vioRec; may be repeated.", show_default=False)
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(min=100, help="Rows made by the variant method; may be repeated.", show_default="Adult's 45,222"),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use.")] = 2,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which a search is stopped; it finds a good cut first.", show_default="none"),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="Memory the database may use, e.g. 800MB.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time the search for the best cut on Adult's 45,222 rows without NULL, by every metric and scheme.

    \b
    Examples:
      ldiv bench cuts
      ldiv bench cuts --only LM:vioRec --only DM:allRec --l 6
      ldiv bench cuts --only LM:vioRec --rows 50000 --rows 1000000
    """
    known = [f"{metric}:{scheme}" for metric, scheme in COMBINATIONS]
    unknown = [name for name in only or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(known)}", param_hint="--only")
    found: list[dict[str, Any]] = []
    for count, (metric, scheme) in product(rows or [ROWS], COMBINATIONS):
        if not only or f"{metric}:{scheme}" in only:
            typer.echo(f"{metric} {scheme}, {count:,} rows …", err=True)
            found.append(measure_cuts(CutCase(metric, scheme, l, threads, time_limit, count, memory_limit)))
    if json:
        print_json({"results": found})
    else:
        print_rows(printer(), "cuts", *cuts_as_table(found))
