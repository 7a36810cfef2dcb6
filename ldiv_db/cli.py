"""The command line: parses, calls, prints. Data goes to stdout, progress and errors to stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ldiv_db import migrate, report
from ldiv_db.benchmarks import bsgi as bench
from ldiv_db.commands.attack import attack_command
from ldiv_db.commands.bench_audit import bench_audit_command
from ldiv_db.commands.bench_cuts import bench_cuts_command
from ldiv_db.commands.bench_decomposition import bench_decomposition_command
from ldiv_db.commands.bench_local import bench_topdown_command, bench_utility_command
from ldiv_db.commands.bench_tp import bench_tp_command
from ldiv_db.commands.check import check_command
from ldiv_db.commands.console import Guarded, Shown, opened, print_json, printer
from ldiv_db.commands.measure import measure_command
from ldiv_db.commands.options import (
    MOST_THREADS,
    Catalog,
    Database,
    Json,
    Memory,
    ShowValues,
    TempDir,
    Threads,
    catalog_name,
    settings,
)
from ldiv_db.commands.profile import profile_command
from ldiv_db.commands.release import publish_command, release_app
from ldiv_db.commands.sql import sql_app
from ldiv_db.commands.taxonomy import taxonomy_app
from ldiv_db.demo import demonstrate, print_demo
from ldiv_db.engine import Engine
from ldiv_db.policy import read_policy
from ldiv_db.preview import describe_plan, print_plan
from ldiv_db.run import Listener, plan, run, versions
from ldiv_db.templates import Statement

app = typer.Typer(
    cls=Guarded,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(taxonomy_app, name="taxonomy")
app.add_typer(release_app, name="release")
app.add_typer(sql_app, name="sql")
bench_app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Time runs on made-up rows.")
app.add_typer(bench_app, name="bench")

PolicyFile = Annotated[Path, typer.Argument(help="The policy, a YAML file.", show_default=False)]
Select = Annotated[Literal["refine", "bisect", "greedy"] | None, typer.Option(help="How classes are selected.")]
L = Annotated[int | None, typer.Option("--l", min=2, help="The l of the policy: the size of its classes.")]


def main() -> None:
    """Run the command line; never returns."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets `?`, not a traceback
    app(prog_name="ldiv")


def _print_version(wanted: bool) -> None:
    if wanted:
        found = versions()
        typer.echo(f"ldiv {found['ldiv_db']} (duckdb {found['duckdb']})")
        raise typer.Exit


@app.callback()
def ldiv(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Anonymize tables inside DuckDB: audited releases that meet an l-diversity policy.

    \b
    Examples:
      ldiv demo
      ldiv profile warehouse.duckdb patients --sensitive disease
      ldiv plan warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml
      ldiv check warehouse.duckdb published.patients --qi age,sex --sensitive disease --require distinct:3

    \b
    Exit codes: 0 good; 1 the data cannot meet the policy, or an audit failed;
    2 usage or policy error; 3 database error; 130 interrupted;
    141 nobody reads the output any more: what was done is done.
    """


@app.command("demo")
def demo_command(
    json: Json = False,
    l: L = None,  # noqa: E741 - the field's name for it
    select: Select = None,
    directory: Annotated[
        Path | None, typer.Option(help="Keep the database and the policy in this folder.", show_default=False)
    ] = None,
) -> None:
    """Anonymize a real data set and audit the release.

    \b
    Examples:
      ldiv demo
      ldiv demo --l 6 --select greedy
      ldiv demo --directory adult
    """
    with Shown() as listener:
        shown = demonstrate(l, select, directory, listener)
    if json:
        print_json(shown.result.as_dict())
    else:
        print_demo(printer(), shown)


app.command("profile")(profile_command)
app.command("measure")(measure_command)
app.command("attack")(attack_command)


@app.command("run")
def run_command(
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    threads: Threads = None,
    memory_limit: Memory = None,
    temp_dir: TempDir = None,
    catalog: Catalog = None,
    kl: Annotated[bool, typer.Option("--kl", help="Work out the KL divergence as well, which takes longer.")] = False,
    show_values: ShowValues = False,
) -> None:
    """Anonymize, audit and publish under a policy: all or nothing.

    \b
    Examples:
      ldiv run warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml --threads 2 --memory-limit 4GB --json
      ldiv run warehouse.duckdb policy.yml --catalog ours.duckdb
    """
    wanted = read_policy(policy)
    if wanted.is_series:
        publish_command(database, policy, json, threads, memory_limit, temp_dir, catalog)
        return
    limits = settings(threads, memory_limit, temp_dir)
    with opened(database, settings=limits, catalog=catalog) as connection, Shown() as listener:
        result = run(connection, wanted, policy.parent, listener, catalog_name(catalog), kl, show_values)
    if json:
        print_json(result.as_dict())
    else:
        report.print_result(printer(), result)


@app.command("plan")
def plan_command(
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    sql: Annotated[bool, typer.Option("--sql", help="Show the SQL of every step: the run is rehearsed.")] = False,
    threads: Threads = None,
    memory_limit: Memory = None,
    temp_dir: TempDir = None,
    catalog: Catalog = None,
    show_values: ShowValues = False,
) -> None:
    """Show what a run would do, by counts alone; writes nothing.

    With --sql all steps are carried out on temporary tables, which takes as long as a run.

    \b
    Examples:
      ldiv plan warehouse.duckdb policy.yml
      ldiv plan warehouse.duckdb policy.yml --sql
    """
    wanted = read_policy(policy)
    statements: list[Statement] = []
    limits = settings(threads, memory_limit, temp_dir)
    with opened(database, read_only=True, settings=limits, catalog=catalog) as connection:
        listener = Listener(on_statement=statements.append)
        ready = plan(connection, wanted, policy.parent, listener, catalog_name(catalog), show_values, rehearse=sql)
    document = describe_plan(ready, statements if sql else None)
    if json:
        print_json(document)
    else:
        print_plan(printer(), document)


app.command("check")(check_command)


@app.command("migrate")
def migrate_command(
    database: Database,
    pending: Annotated[bool, typer.Option("--pending", help="Only list what is to be applied.")] = False,
    json: Json = False,
    catalog: Catalog = None,
) -> None:
    """Bring the catalog, schema `ldiv` of the database or of a file of its own, up to date.

    \b
    Examples:
      ldiv migrate warehouse.duckdb
      ldiv migrate warehouse.duckdb --pending
      ldiv migrate warehouse.duckdb --catalog ours.duckdb
    """
    with opened(database, read_only=pending, catalog=catalog) as connection:
        engine = Engine(connection, catalog=catalog_name(catalog))
        applied = [] if pending else [_name(migration) for migration in migrate.migrate(engine)]
        waiting = [_name(migration) for migration in migrate.pending(engine)]
    if json:
        print_json({"applied": applied, "pending": waiting})
        return
    for verb, names in (("applied", applied), ("pending", waiting)):
        for name in names:
            typer.echo(f"{verb} {name}")
    if not applied and not waiting:
        typer.echo("the catalog is up to date")


def _name(migration: migrate.Migration) -> str:
    return f"{migration.number:04d}_{migration.name}"


@bench_app.callback()
def bench_group() -> None:
    """Time runs on made-up rows."""


bench_app.command("audit")(bench_audit_command)
bench_app.command("tp")(bench_tp_command)
bench_app.command("cuts")(bench_cuts_command)
bench_app.command("utility")(bench_utility_command)
bench_app.command("topdown")(bench_topdown_command)
bench_app.command("decomposition")(bench_decomposition_command)


@bench_app.command("bsgi")
def bench_command(
    rows: Annotated[
        list[int] | None, typer.Option(min=1, help="How many rows; may be repeated. 10,000 to a million if not given.")
    ] = None,
    l: L = 4,  # noqa: E741
    select: Select = "refine",
    threads: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Threads the database may use.")] = 2,
    memory_limit: Memory = None,
    json: Json = False,
) -> None:
    """Time BSGI on rows made from Adult: copies of real rows, in each a random number of QIs redrawn.

    Seconds are those of the run, the next column divides them by n log n.

    \b
    Examples:
      ldiv bench bsgi --rows 100000 --rows 1000000
      ldiv bench bsgi --rows 10000 --select greedy --json
    """
    cases = [bench.Case(count, l or 4, select or "refine", threads, memory_limit) for count in rows or bench.SIZES]
    found: list[dict[str, Any]] = []
    for case in cases:
        typer.echo(f"{case.rows:,} rows …", err=True)
        found.append(bench.measure(case))
    if json:
        print_json({"results": found})
    else:
        report.print_rows(printer(), "bsgi", *bench.as_table(found))
