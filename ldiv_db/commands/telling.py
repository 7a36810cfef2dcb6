"""What commands tell programs: results as JSON of one form, and a log of lines of JSON.

The form of results is `docs/reference/output.schema.json`. The log says nothing of the data but what the messages
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


#: The name of the command that is under way and keeps a log, and what the last line tells of its result.
log: ContextVar[tuple[str, dict[str, Any]] | None] = ContextVar("log", default=None)


def write(event: str, **told: Any) -> bool:
    """Write a line of the log: `at`, `event`, `command`, and what is `told`; False if the command keeps none."""
    if not (kept := log.get()):
        return False
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, "command": kept[0], **told}
    print(json.dumps(line), file=sys.stderr, flush=True)
    return True


@contextmanager
def logged(command: str) -> Iterator[None]:
    """Within, the command keeps a log on stderr; its last line has the exit code."""
    result: dict[str, Any] = {}
    token, begun, code = log.set((command, result)), time.monotonic(), 0
    write("start")
    try:
        yield
    except BaseException as error:
        code = getattr(error, "exit_code", 1)
        raise
    finally:
        write("end", exit_code=code, seconds=round(time.monotonic() - begun, 3), **result)
        log.reset(token)


def take(document: Mapping[str, Any]) -> None:
    """Note a result for the last line of the log."""
    if kept := log.get():
        kept[1].update({key: document[key] for key in _TOLD if key in document})


def say(line: str) -> None:
    """A line for people on stderr, or in the log."""
    if not write("note", text=line):
        print(line, file=sys.stderr)
