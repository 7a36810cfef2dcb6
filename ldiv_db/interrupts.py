"""Ctrl-C that comes at once and is never lost, though the database's client may sit on it, or swallow its exception.

The client looks for signals between pieces of work, and a piece may be a whole sort. So a thread of ours is woken by
the signal itself, and has the database stop what it is at if Python does not get to hear of it soon.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: Seconds that Python has to hear of a signal before a statement is stopped.
_PATIENCE = 0.1
#: What stops the statements that are under way.
_stops: list[Callable[[], None]] = []
#: Python heard of a signal: for the thread, and for `check`, until its exception is known to be under way.
_heard, _pending = threading.Event(), threading.Event()


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Within, `stop` is called where Ctrl-C comes in the middle of a statement; it may be called at any time."""
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


@contextmanager
def heard() -> Iterator[None]:
    """Within, Ctrl-C stops statements and is not lost; does nothing where it is not Python's own to handle."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _woken():
        signal.signal(signal.SIGINT, _hear)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _heard.set()  # whatever came last, nobody waits for it any more
    _heard.clear()
    _pending.clear()


@contextmanager
def _woken() -> Iterator[None]:
    """Within, a thread of ours is woken by signals."""
    reader, writer = socket.socketpair()
    with reader:
        with writer:
            writer.setblocking(False)
            before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
            thread = threading.Thread(target=_watch, args=[reader], daemon=True)
            thread.start()
            try:
                yield
            finally:
                signal.set_wakeup_fd(before)
        thread.join()


def _watch(reader: socket.socket) -> None:
    """Stop what is under way for every signal that Python does not hear of soon."""
    while reader.recv(1):
        while not _heard.wait(_PATIENCE):
            for stop in list(_stops):
                with suppress(Exception):  # a connection may have been closed by now
                    stop()
        _heard.clear()


def check() -> None:
    """Raise KeyboardInterrupt if there was one and it is not being handled now, as by what cleans up after it."""
    if _pending.is_set():
        _pending.clear()
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise KeyboardInterrupt


def _hear(number: int, frame: FrameType | None) -> None:
    _heard.set()
    _pending.set()
    raise KeyboardInterrupt
