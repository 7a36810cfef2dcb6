"""Rehearsals one after another on the caller's connection, or several at once on connections of their own.

They are threads: the database works without Python's lock, and the codes that all of them read stay in memory, where
processes would need them in files. None of them depends on another, so neither numbers nor order do.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.shared import another_connection, shared_memory
from ldiv_db.database.templates import Statement
from ldiv_db.running.exploring.jobs import Job
from ldiv_db.running.exploring.outcomes import Outcome
from ldiv_db.running.exploring.rehearsal import rehearse
from ldiv_db.running.preparation import Listener

#: Seconds between two attempts to stop a statement.
_PAUSE = 0.05


def in_turn(engine: Engine, jobs: Sequence[Job]) -> Generator[Outcome]:
    """The outcomes, each as soon as it is there."""
    for job in jobs:
        yield rehearse(job, engine.connection, Listener())


def side_by_side(engine: Engine, jobs: Sequence[Job], workers: int) -> Generator[Outcome]:
    """The same in the order in which they end; on close what is under way is stopped."""
    with ExitStack() as stack:
        move = cache(stack.enter_context(shared_memory(engine)))
        todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            todo.put(job.moved(move))
        connections = [stack.enter_context(another_connection(engine)) for _ in range(min(workers, len(jobs)))]
        team = _Team(todo)
        stack.callback(team.stop)  # before connections are closed
        for connection in connections:
            team.start(connection)
        for _ in jobs:
            yield team.next()


class _Team:
    """Threads that take jobs until there are none left, each with a connection of its own."""

    def __init__(self, todo: queue.SimpleQueue[Job]):
        self._todo = todo
        self._done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._members: list[tuple[threading.Thread, Any]] = []

    def start(self, connection: Any) -> None:
        thread = threading.Thread(target=self._work, args=[connection], daemon=True)
        self._members.append((thread, connection))
        thread.start()

    def next(self) -> Outcome:
        """The next outcome; raises what ended a thread."""
        found = self._done.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self) -> None:
        """Have all threads end, in the middle of a statement too; another Ctrl-C meanwhile asks for nothing more."""
        self._stopped.set()
        for thread, connection in self._members:
            while thread.is_alive():
                with suppress(KeyboardInterrupt):
                    connection.interrupt()
                    thread.join(_PAUSE)

    def _work(self, connection: Any) -> None:
        try:
            while not self._stopped.is_set():
                self._done.put(rehearse(self._todo.get_nowait(), connection, Listener(on_statement=self._check)))
        except queue.Empty:
            return
        except BaseException as error:
            self._done.put(error)

    def _check(self, statement: Statement) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
