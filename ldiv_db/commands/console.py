"""Output, databases and progress of all commands.

Data goes to stdout, everything else to stderr. A table that is too wide for the screen loses columns before words are
cut, and the screen says which.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from ldiv_db.database.addresses import Address, address_of
from ldiv_db.database.attach import open_address
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine, Settings
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.files import spill_folder
from ldiv_db.database.queries import Step
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.reading import Policy
from ldiv_db.running.estimate import Pace, about

#: The heading of what a table is looked at for; the first column and this one are dropped last.
_VERDICT = "holds"
#: Characters beside the text of each column, and of a table.
_FRAME, _EDGE = 3, 1


def fitted(table: Table, width: int) -> tuple[Table, list[str]]:
    """The table with the columns that have room on a screen of `width` characters, and the headings of the others.

    In a table without headings no column is dropped: it has names and what belongs to them. Words are cut where one
    alone is longer than there is room for.
    """
    columns = list(table.columns)
    dropped: list[str] = []
    while table.show_header and _needed(columns) > width and len(columns) > 1:
        last = _first_to_go(columns)
        dropped.insert(0, str(last.header))
        columns.remove(last)
    return _of_columns(table, columns, width), [heading for heading in dropped if heading]


def _first_to_go(columns: Sequence[Column]) -> Column:
    """The column farthest to the right, the verdict's if there is no other but the first."""
    others = [column for column in columns[1:] if column.header != _VERDICT]
    return others[-1] if others else columns[-1]


def _needed(columns: Sequence[Column]) -> int:
    """The characters that a table of these columns takes if no word is cut."""
    return sum(_longest_word(column) + _FRAME for column in columns) + _EDGE


def _longest_word(column: Column) -> int:
    return _longest([str(column.header), *map(str, column.cells)])


def _longest(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _of_columns(table: Table, columns: Sequence[Column], width: int) -> Table:
    """A table of these columns, none of which is narrower than its words if there is room for them."""
    found = Table(title=table.title, show_header=table.show_header, min_width=min(_longest([str(table.title)]), width))
    for column, own in zip(columns, _widths(columns, width - len(columns) * _FRAME - _EDGE), strict=True):
        found.add_column(column.header, overflow="fold", min_width=own, max_width=own)
    for cells in zip(*(column.cells for column in columns), strict=True):
        found.add_row(*cells)
    return found


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column: of its lines, or less, the widest first, down to that of its words; at last of any."""
    widths = [min(_longest_line(column), max(room, 1)) for column in columns]
    for least in (list(map(_longest_word, columns)), [1] * len(columns)):
        while sum(widths) > room and any(width > few for width, few in zip(widths, least, strict=True)):
            wide = max(range(len(widths)), key=lambda n: (widths[n] > least[n], widths[n]))
            widths[wide] -= 1
    return widths


def _longest_line(column: Column) -> int:
    texts = [str(column.header), *map(str, column.cells)]
    return max((cell_len(line) for text in texts for line in text.splitlines()), default=1)


#: Columns of output that is no terminal, unless COLUMNS says otherwise.
_WIDTH = 140
#: Seconds between two lines of progress where there is no terminal.
_PAUSE = 5.0
#: Seconds between two estimates on a terminal.
_SOON = 0.5


class _Output(Console):
    """A console that drops columns before it cuts words, and leaves long lines to the terminal: they can be copied.

    It leaves it to the command what becomes of a reader that went away.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        """As any console; of a table that is too wide the columns that have room, and which have none."""
        if len(objects) != 1 or not isinstance(objects[0], Table):
            super().print(*objects, **({"soft_wrap": True} if all(isinstance(o, str) for o in objects) else {}) | how)
            return
        table, dropped = fitted(objects[0], self.width)
        super().print(table, **how)
        if dropped:
            super().print(f"no room for: {', '.join(dropped)} (--json has all)", soft_wrap=True)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def printer(stderr: bool = False) -> Console:
    """A console that prints text as it is: no name or value of the user's is read as markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH
    return _Output(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


def print_json(document: dict[str, Any]) -> None:
    """The document on stdout as one JSON object."""
    typer.echo(json.dumps(document, indent=2, default=float))  # exact decimals become numbers


def split_names(texts: Sequence[str], names: set[str]) -> list[str]:
    """The column names in `texts`, each of which is one of `names` (lower case) or several with commas between."""
    parts: list[str] = []
    for text in texts:
        parts += [text] if text.lower() in names else [part.strip() for part in text.split(",")]
    return list(dict.fromkeys(parts))


def split_columns(connection: Any, table: str, texts: Sequence[str] | None) -> list[str]:
    """The column names in `texts`; one that is a whole name of the table's is not split at commas."""
    if not texts:
        return []
    engine = Engine(connection)
    columns = columns_of(engine, resolve_source(engine, table, Path(), "table"))
    return split_names(texts, {column.name.lower() for column in columns})


@contextmanager
def open_for_command(
    database: str, read_only: bool = False, settings: Settings | None = None, catalog: Path | None = None
) -> Iterator[Any]:
    """A connection to the database; with `catalog` it is read-only, and that file is attached as `CATALOG`.

    What does not fit into memory goes to a folder of our own in the temp directory of the settings, which is gone at
    the end. Raises DatabaseError if a file is not there or no database, and names the process that holds a locked one.
    """
    address = address_of(database)
    if address.path is not None and not address.path.is_file():
        raise DatabaseError(f"no database file {address.path}")
    with ExitStack() as stack:
        folder = stack.enter_context(_overflow_folder(address, settings.temp_directory if settings else None))
        settings = replace(settings or Settings(), temp_directory=str(folder))
        try:
            connection = stack.enter_context(open_address(address, read_only, settings, catalog))
        except DatabaseError as error:
            raise DatabaseError(_short_lock_message(str(error))) from None
        yield connection


def refuse_memory(database: str, wanted: Policy) -> None:
    """Raise PolicyError for a release to a table of a database in memory, which is gone when the command ends."""
    target = wanted.target
    if database == ":memory:" and target.file is None and target.database is None:
        what = "a table of a database in memory is gone when the command ends"
        raise PolicyError([Problem("target", what, "name a file: `target: {file: release.parquet}`")])


def _short_lock_message(message: str) -> str:
    """The message, in fewer words if it is that another process holds the file."""
    held = re.search(r'lock on file "(.+?)": .*? held in (.+?) \(PID (\d+)\)', message)
    if held:
        file, program, process = held.groups()
        return f"{file} is in use by another process: PID {process} ({program})"
    return message


@contextmanager
def _overflow_folder(address: Address, asked: str | None) -> Iterator[Path]:
    """A folder of our own for what does not fit into memory, where the user wants it or beside the database.

    Where none can be made beside the database it is in the system's folder for temporary files.
    """
    system = Path(tempfile.gettempdir())
    beside = address.path.resolve().parent if address.path else system
    with ExitStack() as stack:
        yield _first_writable(stack, [Path(asked)] if asked else [beside, system])


def _first_writable(stack: ExitStack, parents: Sequence[Path]) -> Path:
    """A folder for overflow in the first of `parents` where one can be made; `stack` removes it."""
    for parent in parents:
        try:
            return stack.enter_context(spill_folder(parent))
        except OSError as error:
            reason = f"cannot use the temp directory {parent}: {error.strerror}"
    raise DatabaseError(reason)


class ProgressDisplay:
    """Progress of long work on stderr, by its stages: a live line on a terminal, elsewhere a line every few seconds.

    A line has the name of the stage, the share of the work that is done and the time that is left, where that can be
    told. `quiet` shows nothing.
    """

    def __init__(self, quiet: bool = False, first_stage: str = "reading the source") -> None:
        self._console = printer(stderr=True)
        self._quiet = quiet
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._live.add_task(first_stage, total=None, left="")
        self._pace, self._found = Pace(first_stage), ""
        self._printed = time.monotonic()

    def __enter__(self) -> Listener:
        self._live.start()
        return Listener(
            on_step=self._step,
            on_progress=self._progress,
            on_search=self._search,
            on_stage=self._next_stage,
            on_expected=self._pace.expect,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _next_stage(self, text: str) -> None:
        self._pace.enter(text)
        self._found = ""
        self._show()

    def _search(self, text: str) -> None:
        self._found = f" ({text})"
        self._show()

    def _progress(self, done: int, total: int) -> None:
        self._pace.count(done, total)

    def _step(self, step: Step) -> None:
        now = time.monotonic()
        if self._quiet or now - self._printed < (_PAUSE if self._live.disable else _SOON):
            return
        self._printed = now
        if self._live.disable:
            self._console.print(f"{self._pace.stage}{self._found}: {self._pace}")
        self._show()

    def _show(self) -> None:
        """The live line as it now is: without an end as long as nothing tells of one."""
        left = self._pace.left
        told = {"total": None} if left is None else {"total": 1.0, "completed": self._pace.share}
        said = "" if left is None else f"{about(left)} left"
        self._live.update(self._task, description=self._pace.stage + self._found, left=said, **told)
