"""Ctrl-C before a command is under way: nothing is open yet, so the process ends at once, and says so.

What is imported here is what Python itself starts with: the rest of the program takes long enough to be interrupted.

Ctrl-C that comes at once and is never lost, though the database's client may sit on it, or swallow its exception.

The client looks for signals between pieces of work, and even then waits for the statement to end. So a thread of ours
is woken by the signal itself, and has the database stop the statement that is under way.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


#: Seconds between two attempts to stop a statement.
_PAUSE = 0.05
#: What stops statements.
_stops: list[Callable[[], None]] = []
#: There was a signal, and its exception is not known to have arrived.
_pending = threading.Event()


class Work:
    """What is under way: any object that stands for the statement, None between statements."""

    statement: object | None = None


#: Assigned, never called, where a signal may come: an assignment cannot be interrupted half way.
work = Work()


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Within, `stop` is called where Ctrl-C comes in the middle of a statement; it may be called at any time."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


@contextmanager
def listening() -> Iterator[None]:
    """Within, Ctrl-C stops statements and is not lost; does nothing where it is not Python's own to handle."""
    before = signal.getsignal(signal.SIGINT)
    if before not in (signal.default_int_handler, leave) or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _woken():
        signal.signal(signal.SIGINT, _hear)
        try:
            yield
        finally:
            work.statement = None
            signal.signal(signal.SIGINT, before)
            _pending.clear()


@contextmanager
def _woken() -> Iterator[None]:
    """Within, a thread of ours is woken by signals."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    thread = threading.Thread(target=_watch, args=[reader], daemon=True)
    thread.start()
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writer.close()
        thread.join()
        reader.close()


def _watch(reader: socket.socket) -> None:
    """Stop, for every signal, the statement that is under way then; what cleans up after it is let be."""
    while reader.recv(1):
        statement = work.statement
        while statement is not None and work.statement is statement:
            for stop in list(_stops):
                with suppress(Exception):  # a connection may have been closed by now
                    stop()
            time.sleep(_PAUSE)


def check() -> None:
    """Raise KeyboardInterrupt if there was one and it is not being handled now, as by what cleans up after it."""
    if _pending.is_set():
        _pending.clear()
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise KeyboardInterrupt


def settle() -> None:
    """Take a Ctrl-C whose exception was caught as heard: what follows is not stopped by it again.

    Raises KeyboardInterrupt if the signal's own exception is still on the way, as where the database ended its
    statement before Python came to it; call it again then.
    """
    time.sleep(_PAUSE)
    _pending.clear()


def _hear(number: int, frame: FrameType | None) -> None:
    _pending.set()
    raise KeyboardInterrupt
