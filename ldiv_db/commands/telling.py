"""What commands tell programs: results as JSON of one form, and a log of lines of JSON.

The form of results is `output.schema.json`, beside this module. The log says nothing of the data but what the messages
of failures say, and no command takes `--show-values` with it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

#: Raised where a key that programs may read goes, or means something else; more keys are the same form.
SCHEMA_VERSION = 1
#: What the last line of a log takes from a result: what says which one it is, and what its readers count.
_TOLD = ("run_id", "release", "rows_published", "holds")


def as_json(document: Mapping[str, Any]) -> str:
    """A result as a command prints it; exact decimals become numbers."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, default=float)


class Log:
    """The log of one command on stderr, a line an event: `at`, `event`, `command`, and what goes with it."""

    def __init__(self, command: str):
        self._command = command
        self._begun = time.monotonic()
        self._result: dict[str, Any] = {}
        self.write("start")

    def write(self, event: str, **told: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        print(json.dumps({"at": at, "event": event, "command": self._command, **told}), file=sys.stderr, flush=True)

    def take(self, document: Mapping[str, Any]) -> None:
        """Note a result for the last line."""
        self._result = {key: document[key] for key in _TOLD if key in document}

    def end(self, code: int) -> None:
        self.write("end", exit_code=code, seconds=round(time.monotonic() - self._begun, 3), **self._result)


#: The log of the command that is under way, if it keeps one.
log: ContextVar[Log | None] = ContextVar("log", default=None)


@contextmanager
def logged(command: str, wanted: bool) -> Iterator[None]:
    """Within, the command keeps a log if one is `wanted`; its last line has the exit code."""
    if not wanted:
        yield
        return
    kept, code = Log(command), 0
    token = log.set(kept)
    try:
        yield
    except BaseException as error:
        code = getattr(error, "exit_code", 1)
        raise
    finally:
        log.reset(token)
        kept.end(code)


def say(line: str) -> None:
    """A line for people on stderr, or in the log."""
    kept = log.get()
    if kept is None:
        print(line, file=sys.stderr)
    else:
        kept.write("note", text=line)
