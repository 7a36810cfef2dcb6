"""`ldiv explore`: variants of a policy side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.commands import telling
from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, OutputOptions, PolicyFile, grouped
from ldiv_db.database import interrupts
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, refused
from ldiv_db.policy.reading import load_file
from ldiv_db.reporting.exploration_page import write_page
from ldiv_db.running.exploring.explore import explore, processors
from ldiv_db.running.exploring.outcomes import Exploration
from ldiv_db.running.exploring.question import ExploreRequest


@grouped
def explore_command(
    *,
    database: Database,
    policy: PolicyFile,
    varied: Annotated[dict[str, Any], OptionsOf(ExploreRequest)],
    out: Annotated[
        Path | None, typer.Option(help="Write the map to this HTML file, which is replaced if it exists.")
    ] = None,
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Compare variants of a policy by what each would lose and reveal; publishes nothing.

    Loss is the mean LM of a cell, risk the largest share of a class that a sensitive value has (`posterior` in `ldiv
    attack`), and 1 / rows of the smallest class (`prosecutor`). A variant is on the frontier, *, if no other is better
    on both. Ctrl-C keeps what is done. Do not publish the map.

    \b
    Examples:
      ldiv explore warehouse.duckdb policy.yml
      ldiv explore warehouse.duckdb policy.yml --l 2..7 --algorithm bsgi,topdown --out map.html
      ldiv explore warehouse.duckdb policy.yml --risk 0.09 --algorithm topdown,bsgi
      ldiv explore warehouse.duckdb policy.yml --vary taxonomy,columns --json
    """
    wanted = load_file(policy)
    if out is not None and not out.parent.is_dir():
        raise refused("out", f"there is no folder {out.parent}", "make it, or name another")
    threads = resources.threads or _threads(varied["workers"])
    with (
        replace(resources, threads=threads).open(database, read_only=True) as connection,
        output.progress() as listener,
    ):
        found = explore(
            connection,
            wanted,
            **varied,
            folder=policy.parent,
            listener=listener,
            catalog=resources.catalog_name,
        )
    if out is not None:
        write_page(found, out)
    output.show(found.as_dict(), found.text())
    _exit_unless_done(found)


def _threads(workers: int | None) -> int:
    """The threads of the database that leave none idle where each worker has one statement under way.

    With more of them than processors the same statements were measured to take an eighth more processor time.
    """
    return max(1, processors() // (workers or processors()))


def _exit_unless_done(found: Exploration) -> None:
    if found.interrupted:
        done = sum(outcome.status != "interrupted" for outcome in found.outcomes)
        code, word = interrupts.ended()
        telling.say(f"{word}: {done:,} of {len(found.outcomes):,} variants were tried")
        raise typer.Exit(code)
    statuses = {outcome.status for outcome in found.outcomes}
    if "error" in statuses:
        raise typer.Exit(DatabaseError.exit_code)
    if "failed" in statuses:
        raise typer.Exit(AuditError.exit_code)
    if not found.done:
        raise typer.Exit(InfeasibleError.exit_code)
