"""`ldiv ask`: questions to a published table, answered between bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import ask
from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, OutputOptions, grouped
from ldiv_db.database.addresses import address_of
from ldiv_db.database.errors import DatabaseError
from ldiv_db.measuring.asking.answer import ANSWERING, AskRequest
from ldiv_db.policy.reading import Policy, read_policy

Query = Annotated[
    str,
    typer.Argument(help="The question, a SELECT of figures; its table is the published one, whatever it is called."),
]
OfRelease = Annotated[Path | None, typer.Option(help="The policy of the release: what labels stand for.")]


@grouped
def ask_command(
    *,
    database: Database,
    table: Annotated[str, typer.Argument(help="A table, a view, or a .parquet or .csv file.")],
    query: Query,
    policy: OfRelease = None,
    asked: Annotated[dict[str, Any], OptionsOf(AskRequest)],
    resources: DatabaseOptions,
    output: OutputOptions,
) -> None:
    """Ask a published table what its source would answer to a SELECT, with bounds that surely hold it.

    Figures are count(*), count(x), sum(x), avg(x) and median(x); conditions compare a column with values (=, <>, <, IN,
    BETWEEN, LIKE, IS NULL), joined by AND, OR and NOT; groups are columns, floor(x / 10) * 10, width_bucket and
    date_trunc. The source is not read: an answer says no more than the table does.

    \b
    Examples:
      ldiv ask warehouse.duckdb published.patients "SELECT sex, count(*) FROM t WHERE age < 40 GROUP BY ALL" \\
        --policy policy.yml
      ldiv ask :memory: release.csv "SELECT avg(cost) FROM t WHERE zip LIKE '80%'" --left-out 12
    """
    read, folder = of_release(policy)
    try:
        opened = resources.open(database, True, {"table": table, "policy": read})
        with opened as connection, output.progress(ANSWERING) as listener:
            found = ask(connection, table, query, read, folder=folder, **asked, listener=listener)
    except DatabaseError as error:
        kind = address_of(database).kind
        if kind.extension is None or "needs DuckDB's extension" not in error.message:
            raise
        way_out = f"`ldiv sql ask … --dialect {kind.type}` on a copy of the table prints a SELECT for that database"
        raise DatabaseError(f"{error.message}. Or {way_out}") from None
    output.show(found.as_dict(), found.text())


def of_release(policy: Path | None) -> tuple[Policy | None, Path]:
    """The policy as it is read from its file, and the folder of its relative files."""
    return (read_policy(policy), policy.parent) if policy else (None, Path())
