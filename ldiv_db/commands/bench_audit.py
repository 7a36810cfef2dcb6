"""`ldiv bench audit`: how long the audit of every requirement takes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ldiv_db.benchmarks.audit import AuditCase, audit_as_table, measure_audit
from ldiv_db.commands.console import print_json, printer
from ldiv_db.commands.options import MOST_THREADS
from ldiv_db.report import print_rows


def bench_audit_command(
    rows: Annotated[
        list[int], typer.Option(min=100, help="How many published rows; may be repeated.", show_default=False)
    ],
    l: Annotated[int, typer.Option("--l", min=2, help="The size of the classes.")] = 4,  # noqa: E741
    threads: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use.")] = 2,
    memory_limit: Annotated[str | None, typer.Option(help="Memory the database may use, e.g. 4GB.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time the audit of every requirement on a release with 7 quasi-identifiers, made from Adult.

    \b
    Examples:
      ldiv bench audit --rows 100000 --rows 1000000
    """
    found: list[dict[str, Any]] = []
    for count in rows:
        typer.echo(f"{count:,} rows …", err=True)
        found.append(measure_audit(AuditCase(count, l, threads, memory_limit)))
    if json:
        print_json({"results": found})
    else:
        print_rows(printer(), "audit", *audit_as_table(found))
