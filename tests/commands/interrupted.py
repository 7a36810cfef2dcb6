"""`ldiv` interrupted: `interrupted.py MOMENT ARGUMENTS ...` runs the command and sends itself Ctrl-C at that moment.

With LDIV_TEST_SIGNAL it sends the signal of that number.

A moment is `TEMPLATE`, while the database works on it, `TEMPLATE!`, before it and lost as a client may lose it, or
`file:PATTERN`, as soon as a file of that pattern holds something.
"""

from __future__ import annotations

import glob
import os
import signal
import sys
import threading
import time
from typing import Any

from ldiv_db.commands import cli
from ldiv_db.database import interrupts
from ldiv_db.database.engine import Engine

PAUSE = 0.1
#: The signal that is sent.
SIGNAL = int(os.environ.get("LDIV_TEST_SIGNAL", signal.SIGINT))


def later(moment: str) -> None:
    """Send Ctrl-C once the file is there, or after a moment."""
    kind, _, pattern = moment.partition(":")
    if kind == "file":
        while not any(os.path.getsize(path) for path in glob.glob(pattern, include_hidden=True)):
            time.sleep(0.001)
    else:
        time.sleep(PAUSE)
    os.kill(os.getpid(), SIGNAL)


def main() -> None:
    moment, *arguments = sys.argv[1:]
    real, sent = Engine._execute, threading.Event()

    def execute(engine: Engine, statement: Any) -> Any:
        if statement.template == moment.removesuffix("!") and not sent.is_set():
            sent.set()
            if moment.endswith("!"):
                interrupts.work.pending = True
            else:
                threading.Thread(target=later, args=[moment], daemon=True).start()
        return real(engine, statement)

    Engine._execute = execute
    if moment.startswith("file:"):
        threading.Thread(target=later, args=[moment], daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts in the background ignores it
    interrupts.listen_for_interrupts()
    sys.argv[1:] = arguments
    cli.main()


main()
