"""How a command ends that fails: one plain message on stderr, and the exit code of its kind.

The command line starts with this module, so it imports nothing that takes time.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import typer

from ldiv_db.database import interrupts
from ldiv_db.database.errors import (
    AuditError,
    DatabaseError,
    InfeasibleError,
    LdivError,
    PolicyError,
    Problem,
    Remedy,
    TemplateError,
)
from ldiv_db.database.interrupts import INTERRUPTED

#: What the database says where its memory and its temp directory are full.
_NO_ROOM = ("duckdb_temp", "max_temp_directory_size", "Out of Memory")
#: So many problems are told, and so many characters of each: a name may be as long as its file.
_PROBLEMS, _LONGEST = 100, 2_000
_USAGE, _UNHEARD = 2, 141
#: What failures are called in JSON; all others are of usage.
_KINDS = {
    PolicyError: "policy",
    InfeasibleError: "infeasible",
    AuditError: "audit",
    DatabaseError: "database",
    TemplateError: "database",
}
#: What typer raises for words that no command takes, which it exports only through what derives from it.
_UsageError: Any = typer.BadParameter.__mro__[1]


def guarded(work: Callable[[], Any], as_json: bool = False) -> Any:
    """What `work` returns; a failure of it ends in `error: ...` on stderr and typer.Exit with its kind's code.

    With `as_json` it also prints `{"error": {"kind", "problems": [{"key", "what", "hint"}], "remedies": [{"change",
    "costs", "rows"}]}}` on stdout.
    """
    try:
        with interrupts.listening():
            return work()
    except _UsageError as error:  # of the words on the command line, which typer reports itself
        if as_json:
            _print_error("usage", [Problem("", error.format_message())])
        raise
    except (LdivError, OSError, UnicodeError, KeyboardInterrupt, RuntimeError) as error:
        code = _report(error)
        if code is None:
            raise
        if as_json and code != _UNHEARD:
            problems = error.problems if isinstance(error, PolicyError) else [Problem("", _said(error))]
            remedies = error.remedies if isinstance(error, LdivError) else ()
            _print_error("interrupted" if code == INTERRUPTED else _kind(error), problems, remedies)
        raise typer.Exit(code) from error


def _kind(error: BaseException) -> str:
    """What a failure is called in JSON."""
    return next((name for kind, name in _KINDS.items() if isinstance(error, kind)), "usage")


def _print_error(kind: str, problems: Sequence[Problem], remedies: Sequence[Remedy] = ()) -> None:
    """The failure on stdout, as one JSON object."""
    told = [vars(problem) for problem in problems[:_PROBLEMS]]
    ways = [remedy.as_dict() for remedy in remedies]
    typer.echo(json.dumps({"error": {"kind": kind, "problems": told, "remedies": ways}}, indent=2))


def _report(error: BaseException) -> int | None:
    """Print what went wrong and return the exit code of its kind; None for what is no failure of a command."""
    if _interrupted(error):
        typer.echo("interrupted", err=True)
        return INTERRUPTED
    if isinstance(error, RecursionError):
        typer.echo("error: the file is nested too deeply", err=True)
        return _USAGE
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return _UNHEARD
    if isinstance(error, RuntimeError):  # how click and typer end, or a defect
        return None
    lines = list(map(str, error.problems)) if isinstance(error, PolicyError) else [_said(error)]
    for line in lines[:_PROBLEMS]:
        typer.echo(f"error: {_shortened(line)}", err=True)
    if len(lines) > _PROBLEMS:
        typer.echo(f"error: and {len(lines) - _PROBLEMS:,} more of this kind", err=True)
    for line in error.ways_out if isinstance(error, LdivError) else ():
        typer.echo(line, err=True)
    if _is_full(error):
        _discard_output()
        return DatabaseError.exit_code
    return error.exit_code if isinstance(error, LdivError) else _USAGE


def _is_full(error: BaseException) -> bool:
    """Whether there is no room where output or a file goes."""
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


def _said(error: BaseException) -> str:
    """The failure's message, with the way out where memory and disk are full."""
    if isinstance(error, DatabaseError) and any(word in str(error) for word in _NO_ROOM):
        return f"{error}; what does not fit into memory found no room: give another --temp-dir or --memory-limit"
    if _is_full(error):
        return "the output cannot be written, as there is no room where it goes; what was done is done"
    return error.message if isinstance(error, LdivError) else str(error)


def _shortened(line: str) -> str:
    """The line, cut where it is too long to be read; a report with SQL stays whole."""
    return line if len(line) <= _LONGEST or "\n" in line else f"{line[:_LONGEST]} …"


def _discard_output() -> None:
    """Have what is left to print go nowhere, lest it fail again at the end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C, as Python raises it or as the database does in the middle of a statement."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
        return True
    return type(error).__name__ == "InterruptException" or _interrupted(error.__cause__)
