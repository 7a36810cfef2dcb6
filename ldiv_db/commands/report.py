"""`ldiv report`: the evidence on a release as a page, and a report held against its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import Report, report
from ldiv_db.commands.console import split_columns
from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, OutputOptions, grouped, of_data_file
from ldiv_db.commands.table_options import AskedTable
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.policy.context import context_template
from ldiv_db.reporting.release_facts import find_run
from ldiv_db.reporting.report import read_report, refuse_ending
from ldiv_db.reporting.request import ReportRequest
from ldiv_db.reporting.verification import Verification, question_again, verify_report

#: Where the page goes if nothing is said.
_OUT = Path("report.html")
_STAGE = "looking the release up"


def _print_template(wanted: bool) -> None:
    if wanted:
        typer.echo(context_template())
        raise typer.Exit


@dataclass(frozen=True)
class ReportOutput(OutputOptions):
    """Where the report goes, and the report that is verified in its place."""

    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file that ends in .html, .json or .pdf; repeated. By default report.html, with --json none."
        ),
    ] = None
    verify: Annotated[
        Path | None, typer.Option(help="Recompute the numbers of a report (its JSON) and compare; writes no report.")
    ] = None
    template: Annotated[
        bool,
        typer.Option("--context-template", is_eager=True, callback=_print_template, help="Print a blank --context."),
    ] = False

    def files(self) -> list[Path]:
        """The files that are to be written; raises PolicyError for those that cannot be."""
        if self.verify is not None:
            if self.out:
                raise refused("out", "does not go with --verify, which writes no report")
            return []
        files = self.out or ([] if self.json else [_OUT])
        for file in files:
            refuse_ending(file)
        return files


@grouped
def report_command(
    *,
    database: Database,
    release: Annotated[
        str | None,
        typer.Argument(
            callback=of_data_file,
            help="A table, a view, a .parquet or .csv file, or the id of a run; left out, the policy's tables or a data"
            " file as DATABASE.",
        ),
    ] = None,
    table: AskedTable,
    told: Annotated[dict[str, Any], OptionsOf(ReportRequest)],
    resources: DatabaseOptions,
    output: ReportOutput,
) -> None:
    """Write a report on a release for the person who signs it; writes nothing to the database.

    The page is for people who may read the source; with --public for all who may read the release. PDF needs chromium
    or weasyprint.

    The exit code is 1 if the release does not meet its requirements or cannot be judged by them, an attack gains more
    than is promised, or the report to --verify is not of this table.

    \b
    Examples:
      ldiv report warehouse.duckdb published.patients --policy policy.yml --recipient "University hospital"
      ldiv report warehouse.duckdb 639e4bc7c7404ba6a93c61d4f3acd987 --policy policy.yml --out r.html --out r.json
      ldiv report warehouse.duckdb published.patients --policy policy.yml --public --out public.html
      ldiv report :memory: release.parquet --qi age,sex --sensitive disease --require distinct:3
      ldiv report warehouse.duckdb published.patients --verify r.json --policy policy.yml
      ldiv report warehouse.duckdb --policy schema.yml
    """
    files, policy = output.files(), table.written
    beside = table.policy or output.verify  # where files that a policy names lie; a report quotes its policy
    folder = beside.parent if beside else Path()
    told |= {"sensitive": table.sensitive or [], "require": table.require or []}
    reported = None if output.verify is None else read_report(output.verify)
    found: Report | Verification
    with (
        resources.open(database, True, told | {"policy": policy, "qi": table.qi}) as connection,
        output.progress(_STAGE) as listener,
    ):
        catalog = resources.catalog_name
        if reported is not None:
            found = verify_report(
                connection, reported, question_again(reported, release, policy, folder), listener, catalog
            )
        else:
            if table.qi and release:
                released = find_run(Engine(connection), release).table
                told["qi"] = split_columns(connection, released, table.qi)
            found = report(connection, release, policy, **told, folder=folder, listener=listener, catalog=catalog)
    if isinstance(found, Report):
        for file in files:
            found.save(file)
        text = found.text(files=files)
    else:
        text = found.text(table=release or "the policy's tables")
    output.show(found.as_dict(), text)
    raise typer.Exit(0 if found.holds else 1)
