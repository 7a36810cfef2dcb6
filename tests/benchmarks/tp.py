"""`python -m tests.benchmarks.tp`: the figures of TP's paper as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from ldiv_db.commands.console import show
from ldiv_db.display import table_of
from tests.benchmarks.command import AsJson, Memory, Threads, command_of
from tests.benchmarks.tp_runs import (
    FIGURES,
    Figure,
    Scales,
    exceptions,
    figure_as_table,
    measure_tp,
    plan_cases,
    unknown_algorithms,
)

_SHOWN = {"stars": "{:,.0f}", "seconds": "{:.2f}", "kl": "{:.3f}"}


def tp(
    figure: Annotated[
        list[int] | None, typer.Option(min=2, max=8, help="A figure, 2 to 8; may be repeated. All if not given.")
    ] = None,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="An algorithm in place of those of the paper; may be repeated.")
    ] = None,
    l: Annotated[list[int] | None, typer.Option("--l", min=2, help="A value of l; 2 to 7 if not given.")] = None,
    d: Annotated[
        list[int] | None, typer.Option("--d", min=1, max=7, help="Quasi-identifiers; 1 to 7 if not given.")
    ] = None,
    rows: Annotated[
        list[int] | None, typer.Option(min=100, help="Rows of figure 6; 100,000 to 600,000 if not given.")
    ] = None,
    sets: Annotated[
        int, typer.Option(min=0, help="The most sets of quasi-identifiers to average over; 0 is all of them.")
    ] = 5,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Stars, seconds and KL divergence against l, d and n, averages over sets of Adult's quasi-identifiers.

    Figures 2 to 5, 7 and 8 are on Adult's 30,162 rows, figure 6 on rows made from them.

    \b
    Examples:
      python -m tests.benchmarks.tp --figure 2 --sets 0
      python -m tests.benchmarks.tp --figure 2 --algorithm tp_plus --algorithm bsgi --l 4
    """
    default = Scales()
    scales = Scales(l or default.l, d or default.d, rows or default.rows, sets or None)
    figures = _chosen(figure or list(FIGURES), algorithm)
    runs: list[dict[str, Any]] = []
    for case in plan_cases(figures, scales, threads, memory_limit):
        typer.echo(f"{case.rows:,} rows, {len(case.jobs)} settings …", err=True)
        runs += measure_tp(case)
    tables = {one: figure_as_table(one, runs, scales) for one in figures}
    if json:
        found = [{"figure": one.number, "title": one.title, "averages": table} for one, table in tables.items()]
        show({"figures": found, "exceptions": exceptions(runs), "runs": runs}, (), as_json=True)
        return
    for one, table in tables.items():
        _print_figure(one, table)
    _print_exceptions(exceptions(runs))


def _chosen(numbers: list[int], algorithms: list[str] | None) -> list[Figure]:
    """The figures asked for, without algorithms that there are none of, which are named on stderr."""
    figures = [FIGURES[number] for number in dict.fromkeys(numbers)]
    if algorithms:
        figures = [replace(figure, algorithms=tuple(algorithms)) for figure in figures]
    missing = unknown_algorithms([name for figure in figures for name in figure.algorithms])
    for name in missing:
        typer.echo(f"no algorithm {name}: left out", err=True)
    return [
        replace(figure, algorithms=tuple(name for name in figure.algorithms if name not in missing))
        for figure in figures
    ]


def _print_figure(figure: Figure, table: list[dict[str, Any]]) -> None:
    shown = _SHOWN[figure.shows]
    rows = [
        [f"{row[figure.against]:,}"]
        + ["-" if row[name] is None else shown.format(row[name]) for name in figure.algorithms]
        for row in table
    ]
    show({}, [figure.title, table_of("", [figure.against, *figure.algorithms], rows)], as_json=False)


def _print_exceptions(found: list[dict[str, Any]]) -> None:
    """The tables on which TP+ does not win, so that the averages hide nothing."""
    for one in found:
        names = ", ".join(one["quasi_identifiers"])
        typer.echo(
            f"no fewer stars than hilbert: {names}, l = {one['l']}, {one['rows']:,} rows:"
            f" tp_plus {one['tp_plus']:,}, hilbert {one['hilbert']:,}"
        )


app = command_of(tp)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.tp")
