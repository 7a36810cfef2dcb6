"""`ldiv check`: the audit of any table, and what violates its requirements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

import typer

from ldiv_db.api import Audits, audit_asked
from ldiv_db.auditing.check import AUDITING, AuditRequest
from ldiv_db.auditing.violations import Violations
from ldiv_db.commands.console import split_columns
from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, OutputOptions, Released, grouped
from ldiv_db.commands.table_options import Judged
from ldiv_db.database import catalog
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.display import Part, table_of


@grouped
def check_command(
    *,
    database: Database,
    table: Released = None,
    judged: Judged,
    asked: Annotated[dict[str, Any], OptionsOf(AuditRequest)],
    violations: Annotated[bool, typer.Option("--violations", help="List the classes that fail.")] = False,
    into: Annotated[str | None, typer.Option(help="Write all classes that fail to this new table.")] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="List the quasi-identifiers of failing classes as well.")
    ] = False,
    show_values: Annotated[bool, typer.Option("--show-values", help="List their sensitive values as well.")] = False,
    most: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="How many classes to list for each requirement.")
    ] = 20,
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Audit any table: do all its classes meet the requirements?

    A class is the rows with equal quasi-identifiers, NULL being a value; of an anatomised pair, the rows of a group.
    The exit code is 1 if a requirement fails, or if a policy counts people and no column identifies the person.

    Requirements: k:5, risk:0.09, distinct:3, unique_distinct:3, entropy:3, recursive:c=2,l=3, frequency:2.5,
    threshold:0.5,HIV=0.1, alpha_k:alpha=0.5,k=3, p_sensitive:p=2,k=5, t_closeness:t=0.2,distance=equal,
    beta_likeness:beta=2,kind=basic, delta_disclosure:delta=1,log=e, distinct_alpha:l=3,alpha=1,
    entropy_alpha:l=2,alpha=2, recursive_alpha:c=2,l=2,alpha=1; of numbers and times range:k=5,e=1000,
    proximity:epsilon=500,m=3; with a --policy k_map:k=5,population=people, delta_presence:max=0.5,population=people.
    For one of several sensitive attributes: disease=distinct:3.

    With --twice the dbt package's tests judge every class again, by SQL that shares no formula with the audit; the exit
    code is 1 if they disagree. A --qi that is a column's whole name is not split at commas.

    \b
    Examples:
      ldiv check warehouse.duckdb published.patients --qi age,sex --sensitive disease --require distinct:3
      ldiv check :memory: release.parquet --qi age --qi sex --sensitive disease --require k:5 --require frequency:2
      ldiv check w.duckdb t --qi age --sensitive disease --require distinct_alpha:l=2,alpha=1 \\
        --categories '[[HIV, Cancer], [Flu]]'
      ldiv check w.duckdb t --qi age --sensitive disease --require frequency:2 --harmless disease=healthy
      ldiv check w.duckdb t --qi age --require k:5 --violations --labels
      ldiv check w.duckdb published.patients --policy policy.yml --require k_map:k=5,population=people
      ldiv check w.duckdb published.patients --policy policy.yml --twice
      ldiv check w.duckdb --policy schema.yml
      ldiv check w.duckdb qit --sensitive-table st --group group_id --sensitive disease --require frequency:3
    """
    policy = judged.written
    if into and resources.catalog:
        raise refused("into", "does not go with --catalog, by which the database is not written to")
    opened = resources.open(database, into is None, vars(judged) | asked)
    with opened as connection, output.progress(AUDITING) as listener:
        engine = Engine(connection, listener.on_step, catalog=resources.catalog_name)
        asked |= {"listener": listener, "catalog": resources.catalog_name}
        request = judged.request(table, split_columns(connection, table, judged.qi), asked)
        found = Violations(engine, labels, show_values, most, catalog.new_table(engine, into, "into") if into else None)
        found.refuse_target()
        with engine.transaction():
            audits = audit_asked(engine, request, policy, found.see if violations or into else None)
    listed = {"violations": found.rows} if violations or into else {}
    document = {
        "table": table or (policy.places if policy else ""),
        "holds": audits.holds,
        "audits": [audit.as_dict() for audit in audits],
        **listed,
    }
    output.show(document, chain(audits.text(), _violations_text(audits, found, violations)))
    raise typer.Exit(0 if audits.holds else 1)


def _violations_text(audits: Audits, found: Violations, listed: bool) -> Iterator[Part]:
    """The classes that fail, a table a requirement, if they are `listed`, and the table that has all of them."""
    figures = {name: v.requirement.reaches for a in audits for v in a.verdicts for name in v.requirement.names}
    grouped: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
    for row in found.rows if listed else ():
        grouped.setdefault((row["sensitive"], row["requirement"]), []).append(row)
    for (sensitive, requirement), rows in grouped.items():
        columns = list(rows[0])[2:]
        cells = ([row[name] for name in columns] for row in rows)
        shown = [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in cells]
        heads = [f"reached ({figures[requirement]})" if name == "reached" else name for name in columns]
        yield table_of(f"worst classes: {requirement}{f' on {sensitive}' if sensitive else ''}", heads, shown)
    if grouped and not found.labels:
        yield "class_no is the place of a class in the order of its labels: `--labels` lists these"
    if found.into is not None:
        yield f"violations written to {found.into}"
