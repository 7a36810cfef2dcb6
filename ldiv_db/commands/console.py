"""Output and databases of all commands.

Data goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from ldiv_db.commands import telling
from ldiv_db.database.addresses import Address, address_of
from ldiv_db.database.attach import open_address, refuse_missing_source
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.connections import Settings
from ldiv_db.database.counted import ON_ROWS, names_warehouse
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.files import spill_folder
from ldiv_db.database.sources import resolve_source
from ldiv_db.display import Part, printer
from ldiv_db.policy.reading import Policy, counted_there
from ldiv_db.reporting import enter_forms


def group_of_commands(said: str, **how: Any) -> typer.Typer:
    """A group of commands, and what its help says."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=said, **how)


def show(document: Mapping[str, Any], text: Iterable[Part], as_json: bool) -> None:
    """Print a result on stdout: as one JSON object, or its `text` for people."""
    telling.take(document)
    if as_json:
        typer.echo(telling.as_json(document))
        return
    enter_forms()
    screen = printer()
    for part in text:
        screen.print(part)


def split_names(texts: Sequence[str], names: set[str]) -> list[str]:
    """The column names in `texts`, each of which is one of `names` (lower case) or several with commas between."""
    parts: list[str] = []
    for text in texts:
        parts += [text] if text.lower() in names else [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(parts))


def split_columns(connection: Any, table: str | None, texts: Sequence[str] | None) -> list[str]:
    """The column names in `texts`; one that is a whole name of the table's is not split at commas."""
    if not texts or table is None:
        return list(texts or ())
    engine = Engine(connection)
    columns = columns_of(engine, resolve_source(engine, table, Path(), "table"))
    return split_names(texts, {column.name.lower() for column in columns})


@contextmanager
def open_for_command(
    database: str,
    read_only: bool = False,
    settings: Settings | None = None,
    catalog: Path | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Iterator[Any]:
    """A connection to the database; with `catalog` it is read-only, and that file is attached as `CATALOG`.

    A warehouse is opened as counts of rows, by the columns that a command has `asked` about, if counts do for it.

    What does not fit into memory goes to a folder of our own in the temp directory of the settings, which is gone at
    the end. Raises DatabaseError if a file is not there or no database, and names the process that holds a locked one.
    """
    if names_warehouse(database):
        if asked is None or catalog is not None or not read_only:
            what = f"{database} is a warehouse, of which counts of rows are read and nothing else"
            raise PolicyError([Problem("database", what, ON_ROWS)])
        with counted_there(database, asked, settings) as counted:
            yield counted
        return
    address = address_of(database)
    refuse_missing_source(address)
    with ExitStack() as stack:
        folder = _overflow_folder(stack, address, settings.temp_directory if settings else None)
        settings = replace(settings or Settings(), temp_directory=str(folder))
        try:
            connection = stack.enter_context(open_address(address, read_only, settings, catalog))
        except DatabaseError as error:
            raise DatabaseError(_short_lock_message(str(error))) from None
        yield connection


def refuse_memory(database: str, wanted: Policy) -> None:
    """Raise PolicyError for a release to a table of a database in memory, which is gone when the command ends."""
    is_lost = any(target.file is None and target.database is None for target in wanted.targets.values())
    if is_lost and address_of(database).is_memory:
        what = "a table of a database in memory is gone when the command ends"
        raise PolicyError([Problem("target", what, "name a file: `target: {file: release.parquet}`")])


def _short_lock_message(message: str) -> str:
    held = re.search(r'lock on file "(.+?)": .*? held in (.+?) \(PID (\d+)\)', message)
    if held:
        file, program, process = held.groups()
        return f"{file} is in use by another process: PID {process} ({program})"
    return message


def _overflow_folder(stack: ExitStack, address: Address, asked: str | None) -> Path:
    """A folder of our own for what does not fit into memory, where the user wants it or beside the database.

    Where none can be made beside the database it is in the system's folder for temporary files; `stack` removes it.
    """
    system = Path(tempfile.gettempdir())
    beside = address.path.resolve().parent if address.path else system
    for parent in [Path(asked)] if asked else [beside, system]:
        try:
            return stack.enter_context(spill_folder(parent))
        except OSError as error:
            reason = f"cannot use the temp directory {parent}: {error.strerror}"
    raise DatabaseError(reason)
