"""`ldiv bench decomposition`: the paper's table of rows left over, and how long releases take."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ldiv_db.benchmarks.decomposition import TABLE_7A, DecompositionCase, as_table, measure_decomposition
from ldiv_db.commands.console import print_json, printer
from ldiv_db.commands.options import MOST_THREADS
from ldiv_db.report import print_rows

_ADULT = 30_162


def bench_decomposition_command(
    rows: Annotated[
        list[int] | None,
        typer.Option(
            min=100,
            help="A release of so many rows and one of 1 % more; may be repeated. The paper's table if not given.",
        ),
    ] = None,
    l: Annotated[int, typer.Option("--l", min=2, help="The l of the primary attribute, with --rows.")] = 7,  # noqa: E741
    threads: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use.")] = 2,
    memory_limit: Annotated[str | None, typer.Option(help="Memory the database may use, e.g. 4GB.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time Decomposition+ on Adult with four sensitive attributes, for every l of the primary one.

    Rows left over are compared with Table 7(a) of the paper.

    \b
    Examples:
      ldiv bench decomposition
      ldiv bench decomposition --rows 300000
    """
    cases = [DecompositionCase(_ADULT, least, threads=threads, memory_limit=memory_limit) for least in TABLE_7A]
    if rows:
        cases = [DecompositionCase(n, l, "occupation", 1, threads, memory_limit) for n in rows]
    found: list[dict[str, Any]] = []
    for case in cases:
        typer.echo(f"{case.rows:,} rows, l = {case.l} …", err=True)
        found.append(measure_decomposition(case))
    if json:
        print_json({"results": found})
    else:
        print_rows(printer(), "decomposition", *as_table(found))
