"""Ctrl-C before a command is under way: nothing is open yet, so the process ends at once, and says so.

What is imported here is what Python itself starts with: the rest of the program takes long enough to be interrupted.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


def leave(number: int = 0, frame: FrameType | None = None) -> None:
    """Say that Ctrl-C came, and end the process: an exception might be lost in somebody's import."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def hear() -> None:
    """Have Ctrl-C end the process; does nothing where it is not Python's own to handle."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
