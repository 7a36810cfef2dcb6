"""What the scripts share that are killed on purpose: each case is a fork of a process that itself opens no database."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fork_each(run: Callable[[Path, str], None], *survives: str) -> None:
    """Run every FOLDER:MOMENT of the command line in a fork, which must be killed unless its moment `survives`."""
    for word in sys.argv[1:]:
        folder, _, moment = word.rpartition(":")
        child = os.fork()
        if not child:
            run(Path(folder), moment)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if killed == (moment in survives):
            sys.exit(f"{word} ended with {status}")
