"""The command line: it knows the commands by name, and ends one that fails with a plain message and an exit code.

It imports nothing that takes time; a command's module is imported when the command is called.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Literal, TextIO, cast

import typer
from typer.core import TyperGroup

from ldiv_db.commands import telling
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

#: What the database says where its memory and its temp directory are full.
_NO_ROOM = ("duckdb_temp", "max_temp_directory_size", "Out of Memory")
#: So many problems are told, and so many characters of each: a name may be as long as its file.
_PROBLEMS, _LONGEST = 100, 2_000
_USAGE, _OUTPUT_CLOSED = 2, 141
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
    """Return the result of `work`; a failure ends in `error: ...` on stderr and typer.Exit with its kind's code.

    With `as_json` it also prints `{"error": {"kind", "problems": [{"code", "key", "what", "hint"}], "remedies":
    [{"change", "costs", "rows"}]}}` on stdout. A command that keeps a log has the error there in place of its lines.
    """
    try:
        with interrupts.listening():
            return work()
    except _UsageError as error:  # of the words on the command line, which typer reports itself
        _tell_error("usage", [Problem("", error.format_message())], (), as_json)
        if telling.log.get() is not None:
            raise typer.Exit(_USAGE) from error
        raise
    except (LdivError, OSError, UnicodeError, KeyboardInterrupt, RuntimeError) as error:
        code = _report(error)
        if code is None:
            raise
        if code != _OUTPUT_CLOSED:
            problems = error.problems if isinstance(error, PolicyError) else [Problem("", _message_of(error))]
            remedies = error.remedies if isinstance(error, LdivError) else ()
            _tell_error(kind_of(error), problems, remedies, as_json)
        raise typer.Exit(code) from error


def kind_of(error: BaseException) -> str:
    """What JSON, logs and events call a failure."""
    if _interrupted(error):
        return interrupts.ended()[1]
    return next((name for kind, name in _KINDS.items() if isinstance(error, kind)), "usage")


def _tell_error(kind: str, problems: Sequence[Problem], remedies: Sequence[Remedy], as_json: bool) -> None:
    told = [{"code": problem.code, **vars(problem)} for problem in problems[:_PROBLEMS]]
    error = {"kind": kind, "problems": told, "remedies": [remedy.as_dict() for remedy in remedies]}
    telling.write("error", **error)
    if as_json:
        typer.echo(telling.as_json({"error": error}))


def _report(error: BaseException) -> int | None:
    """Print what went wrong and return the exit code of its kind; None for what is no failure of a command."""
    if _interrupted(error):
        code, word = interrupts.ended()
        _echo(word)
        return code
    if isinstance(error, RecursionError):
        _echo("error: the file is nested too deeply")
        return _USAGE
    if isinstance(error, BrokenPipeError):
        _discard_output()
        return _OUTPUT_CLOSED
    if isinstance(error, RuntimeError):  # how click and typer end, or a defect
        return None
    lines = list(map(str, error.problems)) if isinstance(error, PolicyError) else [_message_of(error)]
    for line in lines[:_PROBLEMS]:
        _echo(f"error: {_shortened(line)}")
    if len(lines) > _PROBLEMS:
        _echo(f"error: and {len(lines) - _PROBLEMS:,} more of this kind")
    for line in error.ways_out if isinstance(error, LdivError) else ():
        _echo(line)
    if _is_full(error):
        _discard_output()
        return DatabaseError.exit_code
    return error.exit_code if isinstance(error, LdivError) else _USAGE


def _echo(line: str) -> None:  # the log has it as one error
    if telling.log.get() is None:
        typer.echo(line, err=True)


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ENOSPC


def _message_of(error: BaseException) -> str:
    if isinstance(error, DatabaseError) and any(word in str(error) for word in _NO_ROOM):
        return f"{error}; what does not fit into memory found no room: give another --temp-dir or --memory-limit"
    if _is_full(error):
        return "the disk is full where the output goes: it cannot be written; what was done is done"
    return error.message if isinstance(error, LdivError) else str(error)


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST or "\n" in line else f"{line[:_LONGEST]} …"


def _discard_output() -> None:
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted(error: BaseException | None) -> bool:
    """Return True for Ctrl-C or SIGTERM, raised by Python or by the database in the middle of a statement."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
        return True
    return type(error).__name__ == "InterruptException" or _interrupted(error.__cause__)


#: The commands, and how what each says of itself begins.
COMMANDS = {
    "demo": "Anonymize a real data set and audit the release.",
    "profile": "Show how identifying a table's columns are, and propose a policy; writes nothing to the database.",
    "measure": "Measure what any published table lost against its source; writes nothing.",
    "ask": "Ask a published table what its source would answer to a SELECT, with bounds that surely hold it.",
    "attack": "Attack a published table: compare what attackers gain with what the requirements promise.",
    "report": "Write a report on a release for the person who signs it; writes nothing to the database.",
    "run": "Anonymize, audit and publish under a policy: all or nothing.",
    "runs": "List the runs in the ledger, or withdraw one; `ldiv release list` lists the releases of series.",
    "plan": "Show what a run would do, from counts alone; writes nothing.",
    "explore": "Compare variants of a policy by what each would lose and reveal; publishes nothing.",
    "check": "Audit any table: do all its classes meet the requirements?",
    "migrate": "Bring the catalog up to date: the schema `ldiv` in the database, or in a file of its own.",
    "policy": "Check policies without a database, and print the JSON Schema that editors take.",
    "taxonomy": "Import, build, draft, show and check taxonomies.",
    "release": "List, compare and check releases of tables that are published again as they change.",
    "sql": "Print a plan's counts, a run's recoding or an audit as SQL for another database.",
    "doctor": "Try the smallest policies of all kinds in a database, on made-up people, and leave nothing there.",
    "mcp": "Serve what a report says of a policy to agents, by the Model Context Protocol; read-only.",
    "dbt": "Show where the dbt package is: tests, and releases as models.",
}
#: The modules of commands that share one.
_MODULES = {
    **{"attack": "published", "measure": "published", "plan": "run"},
    **{"runs": "catalog", "migrate": "catalog", "dbt": "demo"},
}
#: Where a context keeps the words of the call, which failures and logs ask before any command has read its options.
_WORDS = "ldiv.words"


def module_of(name: str) -> Any:
    """The module of the command of that name, which is imported."""
    module = f"ldiv_db.commands.{_MODULES.get(name, name)}"
    if module not in sys.modules:  # what imports make stays to the end: no collection of garbage looks through it
        gc.disable()
        import_module(module)
        gc.freeze()
        gc.enable()
    return sys.modules[module]


def command_of(name: str) -> Any:
    """The command of that name, whose module is imported."""
    module = module_of(name)
    group = getattr(module, f"{name}_app", None)
    if group is None:
        group = typer.Typer(add_completion=False, rich_markup_mode=None)
        group.command(name)(getattr(module, f"{name}_command"))
    return _taking_quiet(typer.main.get_command(group))


def _taking_quiet(command: Any) -> Any:
    """The command, or all of a group, with `--quiet`, which says nothing new where nothing is told on the way."""
    for each in getattr(command, "commands", {}).values():
        _taking_quiet(each)
    if not hasattr(command, "commands") and all("--quiet" not in one.opts for one in command.params):
        app = typer.Typer(add_completion=False)
        app.command()(_quiet)
        command.params.append(next(one for one in typer.main.get_command(app).params if one.name == "quiet"))
    return command


def _quiet(
    *,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", expose_value=False, help="Show only errors on stderr, no progress.")
    ] = False,
) -> None:
    """Never called; its option is that of commands that have no other of the name."""


class Commands(TyperGroup):
    """The commands by name: the one that is called takes the place of its stand-in."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, command_of(str(name)), rest

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        words = ctx.meta[_WORDS]
        command = next((word for word in words if word in COMMANDS), "")
        with telling.logged(command) if ctx.params["log"] == "json" else nullcontext():
            return guarded(partial(self._invoke, ctx), as_json="--json" in words)

    def _invoke(self, ctx: Any) -> Any:
        if telling.log.get() and "--show-values" in ctx.meta[_WORDS]:
            raise typer.BadParameter("a log holds no values of the data: leave out --show-values or --log")
        return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; never returns."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode gets `?`, not a traceback
    sys.stderr = cast(TextIO, _Notes(sys.stderr))
    try:
        app(prog_name="ldiv")
    except OSError as error:  # of help and versions, which no command prints
        sys.exit(_report(error))


class _Notes:
    """A stream of what is said beside results: what finds no room there is lost, and ends nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._tried(partial(self._stream.write, text)) or len(text)

    def flush(self) -> None:
        self._tried(self._stream.flush)

    def _tried(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except OSError as error:
            if not _is_full(error):
                raise
            return None


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - a third of what it takes to start

        typer.echo(f"ldiv {version('ldiv-db')} (duckdb {version('duckdb')})")
        raise typer.Exit


def _print_schema(wanted: bool) -> None:
    if wanted:
        from ldiv_db.database.templates import resource_folder  # noqa: PLC0415 - it takes long

        typer.echo((resource_folder("docs/reference") / "output.schema.json").read_text(encoding="utf-8"), nl=False)
        raise typer.Exit


@app.callback()
def ldiv(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
    json_schema: Annotated[
        bool,
        typer.Option("--json-schema", callback=_print_schema, is_eager=True, help="Print the JSON Schema of --json."),
    ] = False,
    log: Annotated[
        Literal["text", "json"],
        typer.Option(envvar="LDIV_LOG", help="Write progress and errors to stderr as text, or a JSON object a line."),
    ] = "text",
) -> None:
    """Anonymize tables where they are stored: audited releases that meet an l-diversity policy.

    \b
    Examples:
      ldiv demo
      ldiv profile warehouse.duckdb patients --sensitive disease
      ldiv plan warehouse.duckdb policy.yml
      ldiv run warehouse.duckdb policy.yml
      ldiv check warehouse.duckdb published.patients --qi age,sex --sensitive disease --require distinct:3
      ldiv report warehouse.duckdb published.patients --policy policy.yml --out report.html

    \b
    With --json every command prints one JSON object, of a failure `{"error": {"kind": …, "problems": […]}}`;
    --json-schema prints its JSON Schema.

    \b
    Exit codes: 0 good; 1 the data cannot meet the policy, or an audit failed;
    2 usage or policy error; 3 database error; 130 interrupted; 143 terminated (SIGTERM);
    141 the reader of the output went away; finished work stays.
    """


def _stand_in() -> None:
    """Never called; `Commands` puts the command in its place."""


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(_stand_in)
