"""What all commands share: where output goes, how a failure ends, how progress shows.

Data goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperGroup

from ldiv_db.engine import Settings, Step, open_database
from ldiv_db.errors import DatabaseError, LdivError, PolicyError
from ldiv_db.files import sweep, work_folder
from ldiv_db.run import Listener

#: Columns of output that is no terminal, unless COLUMNS says otherwise.
_WIDTH = 140
#: Seconds between two lines of progress where there is no terminal.
_PAUSE = 5.0
_USAGE, _INTERRUPTED = 2, 130


def printer(stderr: bool = False) -> Console:
    """A console that prints text as it is: no name or value of the user's is read as markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


def print_json(document: dict[str, Any]) -> None:
    """The document on stdout as one JSON object."""
    typer.echo(json.dumps(document, indent=2, default=float))  # exact decimals become numbers


def split_names(texts: Sequence[str], names: set[str]) -> list[str]:
    """The column names in `texts`, each of which is one of `names` (lower case) or several with commas between."""
    parts: list[str] = []
    for text in texts:
        parts += [text] if text.lower() in names else [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(parts))


class Guarded(TyperGroup):
    """The commands, every failure of which ends in `error: ...` on stderr and the exit code of its kind."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (LdivError, OSError, UnicodeError, KeyboardInterrupt, RuntimeError) as error:
            code = _report(error)
            if code is None:
                raise
            raise typer.Exit(code) from error


def _report(error: BaseException) -> int | None:
    """Print what went wrong and return the exit code of its kind; None for what is no failure of a command."""
    if _interrupted(error):
        typer.echo("interrupted", err=True)
        return _INTERRUPTED
    if isinstance(error, RecursionError):
        typer.echo("error: the file is nested too deeply", err=True)
        return _USAGE
    if isinstance(error, RuntimeError | BrokenPipeError):  # how click and typer end, or a defect
        return None
    lines = error.problems if isinstance(error, PolicyError) else [error]
    for line in lines:
        typer.echo(f"error: {line}", err=True)
    return error.exit_code if isinstance(error, LdivError) else _USAGE


def _interrupted(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C, as Python raises it or as the database does in the middle of a statement."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
        return True
    return type(error).__name__ == "InterruptException" or _interrupted(error.__cause__)


@contextmanager
def _spill(parent: Path) -> Iterator[Path]:
    """A folder of our own in `parent` for what does not fit into memory; what crashed runs left there is removed."""
    made = not parent.exists()
    with ExitStack() as stack:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            if made:
                stack.callback(_remove_if_empty, parent)
            sweep(parent, "spill")
            folder = stack.enter_context(work_folder(parent, "spill", uuid.uuid4().hex))
        except OSError as error:
            raise DatabaseError(f"cannot use the temp directory {parent}: {error.strerror}") from error
        yield folder


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def opened(database: str, read_only: bool = False, settings: Settings | None = None) -> Iterator[Any]:
    """A connection to the database file; raises DatabaseError that says so if another process holds it."""
    with ExitStack() as stack:
        if settings and settings.temp_directory:
            settings = replace(settings, temp_directory=str(stack.enter_context(_spill(Path(settings.temp_directory)))))
        try:
            connection = stack.enter_context(open_database(database, read_only, settings=settings))
        except DatabaseError as error:
            if "lock" not in str(error):
                raise
            raise DatabaseError(f"the database is in use by another process\n{error}") from error
        yield connection


class Shown:
    """Progress of a run on stderr: a live line on a terminal, elsewhere a line every few seconds."""

    def __init__(self) -> None:
        self._console = printer(stderr=True)
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._live.add_task("reading the source", total=None)
        self._level = ""
        self._printed = time.monotonic()

    def __enter__(self) -> Listener:
        self._live.start()
        return Listener(on_step=self._step, on_progress=self._progress)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _step(self, step: Step) -> None:
        self._live.update(self._task, description=f"{step.name}: {step.rows:,} rows")
        now = time.monotonic()
        if self._live.disable and now - self._printed >= _PAUSE:
            self._printed = now
            self._console.print(f"{step.name}: {step.rows:,} rows{self._level}")

    def _progress(self, done: int, total: int) -> None:
        self._level = f" ({done:,} of {total:,})"
        self._live.update(self._task, completed=done, total=total)
