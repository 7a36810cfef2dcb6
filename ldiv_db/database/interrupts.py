"""Ctrl-C and SIGTERM, heard from the first moment on and never lost.

Before a command is under way nothing is open yet, so the process ends at once, and says so. This module imports at its
top only what is loaded in a few milliseconds: the rest of the program takes long enough to be interrupted.

Later the database's client may sit on Ctrl-C, or swallow its exception: it looks for signals between pieces of work,
and even then waits for the statement to end. So a thread of ours is woken by the signal itself, and has the database
stop the statement that is under way. SIGTERM, which schedulers send, takes the same way in a process that is ours; what
is kept on Ctrl-C is kept, but nothing more is begun.
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

#: The word for what a signal did to a command.
WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """Say that the signal came, and end the process: an exception might be lost in somebody's import."""
    os.write(2, f"{WORDS[number]}\n".encode())
    os._exit(128 + number)


def listen_for_interrupts() -> None:
    """End the process on Ctrl-C or SIGTERM; do nothing on one that somebody else handles, or that is ignored."""
    for number, untouched in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is untouched:
            signal.signal(number, leave)


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
    #: The signal that came last.
    number: int = signal.SIGINT


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


def ended() -> tuple[int, str]:
    """The exit code of the signal that came last, and its word."""
    return 128 + work.number, WORDS[work.number]


@contextmanager
def listening() -> Iterator[None]:
    """Within, Ctrl-C, if it is Python's to handle, and SIGTERM, if it is ours, stop statements and are not lost."""
    import threading  # noqa: PLC0415 - `__main__` listens for Ctrl-C before it imports what a command needs

    before = signal.getsignal(signal.SIGINT)
    if before not in (signal.default_int_handler, leave) or threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [signal.SIGINT, *([signal.SIGTERM] if signal.getsignal(signal.SIGTERM) is leave else [])]
    with _woken():
        handlers = [(number, signal.signal(number, _hear)) for number in ours]
        try:
            yield
        finally:
            work.statement = None
            for number, handler in handlers:
                signal.signal(number, handler)
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
    """Take a Ctrl-C whose exception was caught as heard: what follows is not stopped by it again, but by SIGTERM.

    Raises KeyboardInterrupt if the signal's own exception is still on the way, as where the database ended its
    statement before Python came to it; call it again then.
    """
    time.sleep(_PAUSE)
    work.pending = work.number == signal.SIGTERM


def settle_twice() -> None:
    """As `settle`, also where the database was stopped first, and Python's own exception comes only now."""
    try:
        settle()
    except KeyboardInterrupt:
        settle()


def _hear(number: int, frame: FrameType | None) -> None:
    work.pending, work.number = True, number
    raise KeyboardInterrupt
