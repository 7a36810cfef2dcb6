"""`ldiv` interrupted while it starts: `starting.py MODULE ARGUMENTS ...` sends itself Ctrl-C as MODULE is imported.

`MODULE!` has whoever imports it swallow the exception, as some libraries do.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any


class Sender:
    """Finds no module, and sends the signal where one is looked for."""

    def __init__(self, moment: str):
        self.moment = moment

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self.moment.removesuffix("!"):
            with suppress(KeyboardInterrupt if self.moment.endswith("!") else ()):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)


signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts in the background ignores it
sys.meta_path.insert(0, Sender(sys.argv.pop(1)))

from ldiv_db.__main__ import main  # noqa: E402 - the script of the entry point does the same

main()
