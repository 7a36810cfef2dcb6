"""`ldiv report`: the evidence on a release as a page, and a report held against its table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import Report
from ldiv_db.attacking.matching import BUDGET
from ldiv_db.commands.console import ProgressDisplay, show, split_columns
from ldiv_db.commands.options import (
    Budget,
    Control,
    Database,
    DatabaseOptions,
    Json,
    Quiet,
    grouped,
)
from ldiv_db.commands.table_options import AskedTable
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.context import ReleaseContext, ReleaseModel, context_template
from ldiv_db.policy.parts import LARGEST_SEED
from ldiv_db.reporting.release_facts import find_run
from ldiv_db.reporting.report import make_report, read_report, refuse_ending, verify_report
from ldiv_db.reporting.request import QUERIES, WORLDS, ReportRequest, context_of
from ldiv_db.reporting.verification import Verification
from ldiv_db.requirements.parameters import LARGEST

#: Where the page goes if nothing is said.
_OUT = Path("report.html")
_STAGE = "looking the release up"


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report besides the columns, and the texts people add to it, by the names of `ReportRequest`."""

    individual: Annotated[
        str | None, typer.Option(help="The column of the release that identifies the person: count people, not rows.")
    ] = None
    source: Annotated[str | None, typer.Option(help="The source table or file; by default the policy's.")] = None
    known: Annotated[
        str | None,
        typer.Option(help="A table or file of people whose quasi-identifiers are known; by default the source."),
    ] = None
    population: Annotated[
        str | None,
        typer.Option(help="A table or file of everybody who could be in the release; by default the source."),
    ] = None
    control: Control = None
    threshold: Annotated[
        str | None,
        typer.Option(help="A risk above this (0 to 1) is high; by default that of the requirement `risk`, else 0.2."),
    ] = None
    queries: Annotated[int, typer.Option(min=0, max=100_000, help="Random COUNT queries to answer.")] = QUERIES
    tries: Annotated[int, typer.Option(min=1, max=100_000, help="How many people to try attacks on.")] = 2_000
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="The seed of random draws.")] = 0
    budget: Budget = BUDGET
    worlds: Annotated[
        int,
        typer.Option(min=0, max=LARGEST, help="How many worlds a replay tries, each by a run; fewer for large tables."),
    ] = WORLDS
    final: Annotated[
        bool, typer.Option("--final", help="Refuse the report while keys of the context are blank, and name them.")
    ] = False


def _asked_for(key: str) -> Any:
    """The option for a text of the context."""
    return typer.Option(help=ReleaseContext.asks(key))


@dataclass(frozen=True)
class ContextTexts:
    """Single texts of the context, in place of those of the file and of the policy."""

    recipient: Annotated[str | None, _asked_for("recipient")] = None
    purpose: Annotated[str | None, _asked_for("purpose")] = None
    release_model: Annotated[ReleaseModel | None, _asked_for("release_model")] = None
    why: Annotated[str | None, _asked_for("why")] = None
    review: Annotated[str | None, _asked_for("review")] = None


def _print_template(wanted: bool) -> None:
    if wanted:
        typer.echo(context_template())
        raise typer.Exit


@grouped
def report_command(
    *,
    database: Database,
    release: Annotated[str, typer.Argument(help="A table, a view, a .parquet or .csv file, or the id of a run.")],
    table: AskedTable,
    context: Annotated[
        Path | None,
        typer.Option(help="A YAML file with the context; overrides the policy's `context:`. See --context-template."),
    ] = None,
    texts: ContextTexts,
    told: ReportOptions,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out what the release itself does not reveal.")
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file that ends in .html, .json or .pdf; repeated. By default report.html, with --json none."
        ),
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Recompute the numbers of a report (its JSON) and compare; writes no report.")
    ] = None,
    template: Annotated[
        bool,
        typer.Option("--context-template", is_eager=True, callback=_print_template, help="Print a blank --context."),
    ] = False,
    resources: DatabaseOptions,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a report on a release for the person who signs it; writes nothing to the database.

    The page is one file that requests nothing from a network. It is for people who may read the source; with --public
    for all who may read the release. Values of the data stand in it only if the policy names them. PDF needs chromium
    or weasyprint.

    --verify recomputes every number of a report from the table, and many of them a second way. The exit code is 1 if
    the release does not meet its requirements or cannot be judged by them, an attack gains more than is promised, or a
    report is not of this table.

    \b
    Examples:
      ldiv report warehouse.duckdb published.patients --policy policy.yml --recipient "University hospital"
      ldiv report warehouse.duckdb 639e4bc7c7404ba6a93c61d4f3acd987 --policy policy.yml --out r.html --out r.json
      ldiv report warehouse.duckdb published.patients --policy policy.yml --public --out public.html
      ldiv report :memory: release.parquet --qi age,sex --sensitive disease --require distinct:3
      ldiv report warehouse.duckdb published.patients --verify r.json --policy policy.yml
    """
    files = _files(out, json, verify)
    policy = table.written
    beside = table.policy or verify  # where files that a policy names lie; a report quotes its policy
    asked = ReportRequest(
        policy,
        [],
        table.sensitive or [],
        table.require or [],
        table.class_column,
        audience="public" if public else "internal",
        context=context_of(policy, context, vars(texts)),
        folder=beside.parent if beside else Path(),
        **vars(told),
    )
    reported = None if verify is None else read_report(verify)
    with (
        resources.open(database, True, vars(asked) | {"qi": table.qi}) as connection,
        ProgressDisplay(quiet, _STAGE) as listener,
    ):
        if table.qi:
            released = find_run(Engine(connection), release).table
            asked = replace(asked, qi=split_columns(connection, released, table.qi))
        how = (asked, listener, resources.catalog_name)
        found: Report | Verification = (
            make_report(connection, release, *how)
            if reported is None
            else verify_report(connection, reported, release, *how)
        )
    if isinstance(found, Report):
        for file in files:
            found.save(file)
        text = found.text(files=files)
    else:
        text = found.text(table=release)
    show(found.as_dict(), text, json)
    raise typer.Exit(0 if found.holds else 1)


def _files(out: list[Path] | None, json: bool, verify: Path | None) -> list[Path]:
    """The files that are to be written; raises PolicyError for those that cannot be."""
    if verify is not None:
        if out:
            raise PolicyError([Problem("out", "does not go with --verify, which writes no report")])
        return []
    files = out or ([] if json else [_OUT])
    for file in files:
        refuse_ending(file)
    return files
