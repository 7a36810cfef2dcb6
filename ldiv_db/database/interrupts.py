"""Ctrl-C, heard from the first moment on and never lost.

Before a command is under way nothing is open yet, so the process ends at once, and says so. This module imports at its
top only what is loaded in a few milliseconds: the rest of the program takes long enough to be interrupted.

Later the database's client may sit on Ctrl-C, or swallow its exception: it looks for signals between pieces of work,
and even then waits for the statement to end. So a thread of ours is woken by the signal itself, and has the database
stop the statement that is under way.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: As `typing` has it, which takes longer to import than all else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

INTERRUPTED = 130


def leave(number: int = 0, frame: FrameType | None = None) -> None:
    """Say that Ctrl-C came, and end the process: an exception might be lost in somebody's import."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def listen_for_interrupts() -> None:
    """End the process on Ctrl-C; do nothing where Python does not handle it itself."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


#: Seconds between two attempts to stop a statement.
_PAUSE = 0.05
#: Functions that stop statements.
_stops: list[Callable[[], None]] = []


class Work:
    """The work under way, as the handler of the signal and the thread that it wakes see it."""

    #: Any object that stands for the statement, None between statements.
    statement: object | None = None
    #: There was a signal, and its exception is not known to have arrived.
    pending: bool = False


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
    import threading  # noqa: PLC0415 - `__main__` listens for Ctrl-C before it imports what a command needs

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
            work.pending = False


@contextmanager
def _woken() -> Iterator[None]:
    import socket  # noqa: PLC0415 - as in `listening`
    import threading  # noqa: PLC0415 - as in `listening`

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
    if work.pending:
        work.pending = False
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise KeyboardInterrupt


def settle() -> None:
    """Take a Ctrl-C whose exception was caught as heard: what follows is not stopped by it again.

    Raises KeyboardInterrupt if the signal's own exception is still on the way, as where the database ended its
    statement before Python came to it; call it again then.
    """
    time.sleep(_PAUSE)
    work.pending = False


def settle_twice() -> None:
    """As `settle`, also where the database was stopped first, and Python's own exception comes only now."""
    try:
        settle()
    except KeyboardInterrupt:
        settle()


def _hear(number: int, frame: FrameType | None) -> None:
    work.pending = True
    raise KeyboardInterrupt
