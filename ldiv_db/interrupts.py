"""Ctrl-C that is never lost: the database's client may swallow the exception of a signal that comes while it works."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Set by a signal, unset when its exception is known to be under way.
_pending = threading.Event()


@contextmanager
def heard() -> Iterator[None]:
    """Within, `check` raises a KeyboardInterrupt that got lost; does nothing where Ctrl-C is not Python's own."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _pending.clear()


def check() -> None:
    """Raise KeyboardInterrupt if there was one and it is not being handled now, as by what cleans up after it."""
    if _pending.is_set():
        _pending.clear()
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise KeyboardInterrupt


def _hear(number: int, frame: FrameType | None) -> None:
    _pending.set()
    raise KeyboardInterrupt
