"""A worker: a process with a database of its own that solves parts, as it is told on its standard input.

It hears pickled messages: first a `Setup`, then the nodes of parts. It answers with (how far, None), until (1.0, what
came of it): a `Done`, or the error. It ends with the process that started it, and leaves Ctrl-C to that.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ldiv_db.database.carrying import scattered
from ldiv_db.database.engine import Engine, Settings
from ldiv_db.distributing.parts import Work, opened, solve_part


@dataclass(frozen=True)
class Setup:
    """What a worker is told first: the work, and how its database may use the machine."""

    work: Work
    settings: Settings


@dataclass(frozen=True)
class Done:
    """What is said of a part that is solved; its classes lie in the file `classes_of` it."""

    search: Mapping[str, Any]
    last_class: int


def classes_of(folder: Path, node: int) -> Path:
    """The file of the classes of a part."""
    return folder / f"classes_{node}.parquet"


def main() -> None:
    """Solve parts in the current folder until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written among the answers
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=[sys.stdin.buffer, told], daemon=True).start()
    setup: Setup = told.get()
    here = Path()
    with opened(setup.work, setup.settings, here) as engine:
        while True:
            _answer(answers, 1.0, _outcome(setup.work, engine, here, told.get(), answers))


def _listen(source: BinaryIO, told: queue.SimpleQueue[Any]) -> None:
    """Hand on what is told; the end of it is the end of this process, in the middle of whatever it does."""
    try:
        while True:
            told.put(pickle.load(source))  # noqa: S301 - of the process that started this one
    except (EOFError, OSError):
        os._exit(0)


def _outcome(work: Work, engine: Engine, folder: Path, node: int, answers: BinaryIO) -> Done | Exception:
    """What comes of a part, told while it goes on."""

    def progress(done: int, total: int) -> None:
        _answer(answers, done / max(total, 1), None)

    try:
        with engine.scope():
            solved = solve_part(work, engine, scattered(folder, "node", node), progress=progress)
            engine.export(classes_of(folder, node), "parquet", "database/list_rows", rows=solved.assigned, columns=[])
            return Done(solved.search, int(engine.most(solved.assigned, "class_id") or 0))
    except Exception as error:
        return error


def _answer(answers: BinaryIO, share: float, outcome: Done | Exception | None) -> None:
    answers.write(pickle.dumps((share, outcome)))
    answers.flush()
