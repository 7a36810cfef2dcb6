"""`ldiv sql`: a plan's counts, a run's recoding and the audit of a table, as SQL for any database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import yaml

from ldiv_db.auditing.check import AuditRequest
from ldiv_db.auditing.statement import check_statement
from ldiv_db.commands.ask import OfRelease, of_release
from ldiv_db.commands.console import group_of_commands, open_for_command, show, split_names
from ldiv_db.commands.options import CatalogOptions, Database, Json, OptionsOf, OutputOptions, PolicyFile, grouped
from ldiv_db.commands.table_options import Judged
from ldiv_db.database.catalog import named_table
from ldiv_db.database.composer import Composer
from ldiv_db.database.context import working_engine
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.sources import resolve_source
from ldiv_db.measuring.asking.answer import AskRequest
from ldiv_db.measuring.asking.columns import policy_of_table
from ldiv_db.measuring.asking.statement import ask_statement, expand_statement
from ldiv_db.policy.reading import of_one_table, read_policy
from ldiv_db.publishing.ledger import RUN_TABLES
from ldiv_db.recoding.counting import counted_columns, counting_sql, weight_of
from ldiv_db.recoding.statement import find_run, recoding_sql
from ldiv_db.reporting.contract import contract_of

sql_app = group_of_commands("Print a plan's counts, a run's recoding or an audit as SQL for another database.")
Dialect = Literal[
    "bigquery", "clickhouse", "databricks", "duckdb", "postgres", "redshift", "snowflake", "spark", "sqlite", "trino"
]  # fmt: skip
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="A sensitive column's type in DuckDB, if not text: salary=INTEGER. May be repeated."),
]


@sql_app.command("recode")
@grouped
def recode_command(
    *,
    stored: CatalogOptions,
    run: Annotated[str, typer.Argument(help="The run's id, or how it begins.")],
    dialect: Annotated[Dialect, typer.Option(help="The SELECT's database.")] = "duckdb",
    source: Annotated[str | None, typer.Option(help="The table there, if it is not named as in the run.")] = None,
    policy: Annotated[
        Path | None, typer.Option(help="The run's policy: needed if values have thresholds of their own.")
    ] = None,
) -> None:
    """Print the recoding of a run that recodes globally, as one SELECT on its source.

    \b
    Examples:
      ldiv sql recode warehouse.duckdb 4f1d2c --dialect snowflake
      ldiv sql recode warehouse.duckdb 4f1d2c --dialect postgres --source public.patients --policy policy.yml
    """
    wanted = None if policy is None else read_policy(policy)
    with stored.ledger(read_only=True, besides=RUN_TABLES[2:]) as engine:
        found = find_run(engine, run)
        text = recoding_sql(engine, found, dialect, source, wanted)
    _show({"run_id": found.run_id, "dialect": dialect, "sql": text}, stored.json)


@sql_app.command("check")
@grouped
def check_command(
    *,
    table: Annotated[str, typer.Argument(help="The table there, e.g. analytics.patients.")],
    dialect: Annotated[Dialect, typer.Option(help="The SELECT's database.")] = "duckdb",
    types: Types = None,
    judged: Judged,
    asked: Annotated[dict[str, Any], OptionsOf(AuditRequest, without=["twice", "position"])],
    labels: Annotated[
        bool, typer.Option("--labels", help="List the quasi-identifiers of failing classes as well.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the audit of a table as one SELECT: no row comes back if the table meets all requirements.

    Each row is a class that violates one: requirement, sensitive, rows, reached, margin (negative). If reached and
    margin are NULL, `requirement` says what leaves the verdict open. Values that a requirement names stand in the
    statement. What a dialect cannot express is refused.

    \b
    Examples:
      ldiv sql check patients_public --qi age,zip --sensitive disease --require distinct:3 --dialect snowflake
      ldiv sql check public.release --policy policy.yml --dialect postgres --labels
      ldiv sql check t --qi age --sensitive salary --type salary=INTEGER --require t_closeness:0.2 --dialect spark
    """
    request = judged.request(table, split_names(judged.qi or [], set()), asked)
    question = request.question(judged.written, _table)
    with open_for_command(":memory:") as connection:
        found = _table(table, "TABLE")
        text = check_statement(Engine(connection), question, found, dialect, _types(types or []), labels)
    _show({"table": table, "dialect": dialect, "sql": text}, json)


def _table(text: str, key: str) -> Table:
    file = None if text.startswith('"') else FileRelation.of(text)
    return file or named_table(text, key)


def _types(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.rpartition("=") for text in texts]
    if wrong := [text for text, (_, equals, _) in zip(texts, pairs, strict=True) if not equals]:
        raise refused("type", f"takes a column and its type, salary=INTEGER, not {wrong[0]!r}")
    return {name: kind for name, _, kind in pairs}


@sql_app.command("counts")
def counts_command(
    policy: PolicyFile,
    dialect: Annotated[Dialect, typer.Option(help="The SELECT's database.")] = "duckdb",
    source: Annotated[str | None, typer.Option(help="The table there, if it is not named as in the policy.")] = None,
    json: Json = False,
) -> None:
    """Print the SELECT that counts equal rows, which is all that a plan needs: no row has to leave its database.

    A policy plans from the result with that as its `source`, and `weight: n`.

    \b
    Examples:
      ldiv sql counts policy.yml --dialect snowflake
      ldiv sql counts policy.yml --dialect postgres --source public.patients
    """
    wanted = read_policy(policy)
    text = counting_sql(wanted, dialect, source)
    columns, weight = counted_columns(wanted), weight_of(wanted)
    _show({"dialect": dialect, "columns": columns, "weight": weight, "sql": text}, json)


@sql_app.command("contract")
def contract_command(
    policy: PolicyFile,
    dialect: Annotated[Dialect, typer.Option(help="The SELECT's database.")] = "duckdb",
    table: Annotated[str | None, typer.Option(help="The table there, if it is not named as in the policy.")] = None,
    types: Types = None,
    json: Json = False,
) -> None:
    """Print a data contract (ODCS 3.0.2, YAML): the published columns, and a rule in SQL for each requirement.

    A rule counts the classes that violate the requirement. Values that a requirement names stand in it.

    \b
    Examples:
      ldiv sql contract policy.yml --dialect snowflake
      ldiv sql contract policy.yml --dialect postgres --table public.release
    """
    wanted = of_one_table(read_policy(policy))
    name = table or wanted.target.table
    if name is None:
        raise refused("target", "is no table", "give --table: the table that the rules are for")
    with open_for_command(":memory:") as connection:
        found = contract_of(Engine(connection), wanted, name, dialect, _types(types or []))
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120)
    _show({"table": name, "dialect": dialect, "contract": found}, json, text)


Published = Annotated[str, typer.Argument(help="The published table there: a table, a view, or a file.")]
NamedThere = Annotated[str | None, typer.Option("--as", help="The table in the other database, if named otherwise.")]


@sql_app.command("ask")
@grouped
def ask_command(
    *,
    database: Database,
    table: Published,
    query: Annotated[str, typer.Argument(help="The question, as `ldiv ask` takes it.")],
    policy: OfRelease = None,
    dialect: Annotated[Dialect, typer.Option(help="The SELECT's database.")] = "duckdb",
    named: NamedThere = None,
    asked: Annotated[dict[str, Any], OptionsOf(AskRequest)],
    output: OutputOptions,
) -> None:
    """Print the answer of `ldiv ask` as one SELECT, for a database that has the same table.

    Labels are read in DATABASE, and what they cover stands in the SELECT as rows. It returns a row a figure of a group:
    the groups (g1), each with whether it is known which that is (k1), figure (its number; 0 is how many rows the group
    has), low, estimate, high, and how many rows have a label that is `unread`, which is to be 0.

    \b
    Examples:
      ldiv sql ask copy.duckdb published.patients "SELECT sex, count(*) FROM t WHERE age < 40 GROUP BY ALL" \\
        --policy policy.yml --dialect snowflake --as analytics.patients
    """
    read, folder = of_release(policy)
    with _reading(database, output) as engine:
        relation, there = resolve_source(engine, table, Path(), "table"), named_table(named or table, "--as")
        request = AskRequest(there, query, folder=folder, **asked)
        at = Composer(dialect, [there.name])
        text = ask_statement(engine, relation, request, read and policy_of_table(read, str(relation)), at)
    _show({"table": str(there), "dialect": dialect, "sql": text}, output.json)


@contextmanager
def _reading(database: str, output: OutputOptions) -> Iterator[Engine]:
    """An engine on the database, of which labels are read."""
    with (
        open_for_command(database, True) as connection,
        output.progress("reading labels") as listener,
        working_engine(connection, listener) as engine,
    ):
        yield engine


@sql_app.command("expand")
@grouped
def expand_command(
    *,
    database: Database,
    table: Published,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="The columns to spread, by default all of labels; may be repeated."),
    ] = None,
    policy: OfRelease = None,
    dialect: Annotated[Dialect, typer.Option(help="The SELECT's database.")] = "duckdb",
    named: NamedThere = None,
    output: OutputOptions,
) -> None:
    """Print a SELECT of the published rows with all values that their labels stand for, each with its weight.

    Labels are read in DATABASE. `sum(weight)` is the estimate of `ldiv ask`. Whole numbers and days are listed, other
    numbers are the middle of their range. Each column multiplies rows: name those that you need.

    \b
    Examples:
      ldiv sql expand copy.duckdb published.patients --policy policy.yml --columns age,sex
    """
    read, folder = of_release(policy)
    with _reading(database, output) as engine:
        relation, there = resolve_source(engine, table, Path(), "table"), named_table(named or table, "--as")
        wanted, at = split_names(columns or [], set()), Composer(dialect, [there.name])
        known = read and policy_of_table(read, str(relation))
        text = expand_statement(engine, relation, wanted, known, folder, at, there)
    _show({"table": str(there), "dialect": dialect, "sql": text}, output.json)


def _show(document: dict[str, Any], as_json: bool, text: str = "") -> None:
    if as_json:
        show(document, (), as_json)
    else:
        typer.echo(text or f"{document['sql']};", nl=not text)
