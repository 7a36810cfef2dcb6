"""What the benchmarks share: a command line of one command, its options, what it prints, and an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ldiv_db.commands import console
from ldiv_db.commands.cli import guarded
from ldiv_db.database.engine import Engine
from ldiv_db.display import table_of

#: The templates that only benchmarks use.
SQL = Path(__file__).parent / "sql"

Threads = Annotated[int, typer.Option(min=1, help="Threads the database may use.")]
Memory = Annotated[str | None, typer.Option(help="Memory the database may use, e.g. 4GB.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
#: The headings and rows of a table of results.
Tabled = tuple[list[str], list[list[str]]]
#: The columns of a table of results by their headings: how a result's values are written there.
Columns = Mapping[str, str | Callable[[dict[str, Any]], str]]


class _Guarded(TyperCommand):
    """A command every failure of which ends as one of `ldiv` does."""

    def invoke(self, ctx: Any) -> Any:
        return guarded(partial(super().invoke, ctx))


def command_of(function: Callable[..., None]) -> typer.Typer:
    """The command line that calls `function`."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command(cls=_Guarded)(function)
    return app


def engine_on(connection: Any) -> Engine:
    """An engine that knows the templates of benchmarks as well."""
    return Engine(connection, templates=[SQL])


def refuse_unknown(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Raise typer.BadParameter if the option was given what it does not know."""
    unknown = [text for text in given if text not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(known)}", param_hint=option)


def show(
    title: str, json: bool, found: list[dict[str, Any]], table: Columns | Callable[[Sequence[dict[str, Any]]], Tabled]
) -> None:
    """The results on stdout, as one JSON object or as a table."""
    headings, rows = (
        (list(table), [_cells(table, one) for one in found]) if isinstance(table, Mapping) else table(found)
    )
    console.show({"results": found}, [table_of(title, headings, rows)], json)


def _cells(columns: Columns, found: dict[str, Any]) -> list[str]:
    return [how.format(**found) if isinstance(how, str) else how(found) for how in columns.values()]
