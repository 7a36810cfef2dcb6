"""The command line: parses, calls, prints. Data goes to stdout, progress and errors to stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ldiv_db import audit, bench, catalog, migrate, report
from ldiv_db.api import read_requirements
from ldiv_db.cli_attack import attack_command
from ldiv_db.cli_profile import profile_command
from ldiv_db.cli_taxonomy import taxonomy_app
from ldiv_db.console import Guarded, Shown, opened, print_json, printer, split_names
from ldiv_db.demo import demonstrate, print_demo
from ldiv_db.engine import Engine, Settings
from ldiv_db.policy import read_policy
from ldiv_db.preview import describe_plan, print_plan
from ldiv_db.run import Listener, plan, resolve_source, run, versions
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
bench_app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Time runs on made-up rows.")
app.add_typer(bench_app, name="bench")

Database = Annotated[str, typer.Argument(help="The DuckDB file.", show_default=False)]
PolicyFile = Annotated[Path, typer.Argument(help="The policy, a YAML file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads the database may use; all if not given.")]
Memory = Annotated[str | None, typer.Option(help="Memory the database may use, e.g. 4GB.")]
Select = Annotated[Literal["bisect", "refine", "greedy"] | None, typer.Option(help="How classes are selected.")]
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
    2 usage or policy error; 3 database error; 130 interrupted.
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
app.command("attack")(attack_command)


@app.command("run")
def run_command(
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    threads: Threads = None,
    memory_limit: Memory = None,
    temp_dir: Annotated[str | None, typer.Option(help="Where the database puts what does not fit.")] = None,
) -> None:
    """Anonymize, audit and publish under a policy: all or nothing.

    \b
    Examples:
      ldiv run warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml --threads 2 --memory-limit 4GB --json
    """
    wanted = read_policy(policy)
    with opened(database, settings=Settings(threads, memory_limit, temp_dir)) as connection, Shown() as listener:
        result = run(connection, wanted, policy.parent, listener)
    if json:
        print_json(result.as_dict())
    else:
        report.print_result(printer(), result)


@app.command("plan")
def plan_command(
    database: Database,
    policy: PolicyFile,
    json: Json = False,
    sql: Annotated[bool, typer.Option("--sql", help="Show the statements that were run to find out.")] = False,
) -> None:
    """Show what a run would do, by counts alone; writes nothing.

    \b
    Examples:
      ldiv plan warehouse.duckdb policy.yml
      ldiv plan warehouse.duckdb policy.yml --sql
    """
    wanted = read_policy(policy)
    statements: list[Statement] = []
    with opened(database, read_only=True) as connection:
        ready = plan(connection, wanted, policy.parent, Listener(on_statement=statements.append))
    document = describe_plan(ready, statements if sql else None)
    if json:
        print_json(document)
    else:
        print_plan(printer(), document)


@app.command("check")
def check_command(
    database: Database,
    table: Annotated[str, typer.Argument(help="A table, a view, or a .parquet or .csv file.", show_default=False)],
    qi: Annotated[
        list[str],
        typer.Option(help="Quasi-identifiers, comma-separated or repeated.", show_default=False),
    ],
    sensitive: Annotated[list[str], typer.Option(help="A sensitive attribute; may be repeated.", show_default=False)],
    require: Annotated[
        list[str], typer.Option(help="name:value, e.g. distinct:3; may be repeated.", show_default=False)
    ],
    class_column: Annotated[
        str | None, typer.Option("--class", help="A column of class ids that tells classes apart as well.")
    ] = None,
    json: Json = False,
) -> None:
    """Audit any table: do all its classes meet the requirements?

    A class is the rows with equal quasi-identifiers, NULL being a value like any other.

    Requirements: k:5, distinct:3, unique_distinct:3, frequency:2.5, threshold:0.5,HIV=0.1. The exit code
    is 1 if one fails. DATABASE may be :memory: if TABLE is a file. A --qi that is a column's whole name is
    not split at commas.

    \b
    Examples:
      ldiv check warehouse.duckdb published.patients --qi age,sex --sensitive disease --require distinct:3
      ldiv check :memory: release.parquet --qi age --qi sex --sensitive disease --require k:5 --require frequency:2
    """
    specs = read_requirements(require)
    with opened(database, read_only=True) as connection:
        engine = Engine(connection)
        relation = resolve_source(engine, table, Path(), "table")
        names = {column.name.lower() for column in catalog.columns_of(engine, relation)}
        audits = audit.check(engine, relation, split_names(qi, names), sensitive, specs, class_column)
    holds = all(found.holds for found in audits)
    if json:
        print_json({"table": table, "holds": holds, "audits": [found.as_dict() for found in audits]})
    else:
        report.print_audits(printer(), audits)
    raise typer.Exit(0 if holds else 1)


@app.command("migrate")
def migrate_command(
    database: Database,
    pending: Annotated[bool, typer.Option("--pending", help="Only list what is to be applied.")] = False,
    json: Json = False,
) -> None:
    """Bring the catalog, schema `ldiv` of the database, up to date.

    \b
    Examples:
      ldiv migrate warehouse.duckdb
      ldiv migrate warehouse.duckdb --pending
    """
    with opened(database, read_only=pending) as connection:
        engine = Engine(connection)
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


@bench_app.command("bsgi")
def bench_command(
    rows: Annotated[
        list[int] | None, typer.Option(min=1, help="How many rows; may be repeated. 10,000 to a million if not given.")
    ] = None,
    l: L = 4,  # noqa: E741
    select: Select = "bisect",
    threads: Annotated[int, typer.Option(min=1, help="Threads the database may use.")] = 2,
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
    cases = [bench.Case(count, l or 4, select or "bisect", threads, memory_limit) for count in rows or bench.SIZES]
    found: list[dict[str, Any]] = []
    for case in cases:
        typer.echo(f"{case.rows:,} rows …", err=True)
        found.append(bench.measure(case))
    if json:
        print_json({"results": found})
    else:
        report.print_rows(printer(), "bsgi", *bench.as_table(found))
