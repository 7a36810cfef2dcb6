"""Parts solved in this process, or by several worker processes with databases of their own.

A worker solves parts as it is told on its standard input. It hears pickled messages: first the work and how its
database may use the machine, then the nodes of parts. It answers with (how far, None), until (1.0, what came of it): a
`Done`, or the error. It ends with the process that started it, and leaves Ctrl-C to that.

Rows go as files of codes, in a private folder that is gone at the end; what a killed process left there the next run
removes. Nothing that is found depends on which worker solves what.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ldiv_db.algorithms.base import Progress, Task
from ldiv_db.database import files
from ldiv_db.database.connections import Settings
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.frames import scatter, scattered
from ldiv_db.database.names import Relation
from ldiv_db.solving.divide import Division
from ldiv_db.solving.parts import PartJob, opened, solve_part

#: How often a part is tried whose worker dies, and the seconds between two reports of how far all are.
TRIES, PAUSE = 2, 0.2
_BOOT = "import sys; sys.path[:] = {path!r}; from ldiv_db.solving.workers import main; main()"
Search = Mapping[str, Any]


@dataclass(frozen=True)
class Done:
    """The answer on a part that is solved; its classes lie in the file `classes_of` it."""

    search: Search
    last_class: int

    @classmethod
    def of(cls, engine: Engine, classes: Relation, search: Search) -> Done:
        return cls(search, int(engine.most(classes, "class_id") or 0))


#: The classes of a part, and the answer on it.
Solved = tuple[Table, Done]


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
    work, settings = told.get()
    here = Path()
    with opened(work, settings, here) as engine:
        while True:
            _answer(answers, 1.0, _outcome(work, engine, here, told.get(), answers))


def _listen(source: BinaryIO, told: queue.SimpleQueue[Any]) -> None:
    """Hand on what is told; the end of it is the end of this process, in the middle of whatever it does."""
    try:
        while True:
            told.put(pickle.load(source))  # noqa: S301 - of the process that started this one
    except (EOFError, OSError):
        os._exit(0)


def _outcome(work: PartJob, engine: Engine, folder: Path, node: int, answers: BinaryIO) -> Done | Exception:
    """Solve a part and report progress meanwhile; returns the answer or the error."""

    def progress(done: int, total: int) -> None:
        _answer(answers, done / max(total, 1), None)

    try:
        with engine.scope():
            solved, search = solve_part(work, engine, scattered(folder, "node", node), progress=progress)
            engine.export(classes_of(folder, node), "parquet", "database/list_rows", rows=solved, columns=[])
            return Done.of(engine, solved, search)
    except Exception as error:
        return error


def _answer(answers: BinaryIO, share: float, outcome: Done | Exception | None) -> None:
    answers.write(pickle.dumps((share, outcome)))
    answers.flush()


def workers_for(wanted: int | None, engine: Engine, parts: int) -> int:
    """The processes that solve so many parts: by default as many as the database has threads."""
    able = engine.snapshot.threads if sys.executable else 1
    return max(1, min(able if wanted is None else wanted, parts))


def solve_parts(work: PartJob, task: Task, division: Division, workers: int) -> tuple[Relation, list[Search]]:
    """(row_id, class_id) of all parts, and what the algorithm says of its work on each.

    Raises what solving one of them raises, and DatabaseError if a worker process dies twice.
    """
    engine, searches, last = task.engine, list[Search](), 0
    assigned = engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
    parts = _solved_by_workers(work, task, division, workers) if workers > 1 else _solved_here(work, task, division)
    with closing(parts):
        for classes, done in parts:
            engine.insert(assigned, "bsgi/residue/shift_classes", assigned=classes, last=last)
            last += done.last_class
            searches.append(done.search)
    return assigned, searches


def _solved_here(work: PartJob, task: Task, division: Division) -> Generator[Solved]:
    engine, rows_done, total = task.engine, 0, sum(rows for _, rows in division.parts)
    for node, rows in division.parts:
        task.progress(rows_done, total)
        with engine.scope():
            solved, search = solve_part(work, engine, division.rows, node, report=task.report)
            yield solved, Done.of(engine, solved, search)
        rows_done += rows
    engine.drop(division.rows)
    task.progress(total, total)


def _solved_by_workers(work: PartJob, task: Task, division: Division, workers: int) -> Generator[Solved]:
    engine = task.engine
    with _private_folder(engine) as folder:
        scatter(engine, division.rows, "node", folder)
        engine.drop(division.rows)
        memory = f"{engine.snapshot.memory_limit // workers}B"
        settings = Settings(max(1, engine.snapshot.threads // workers), memory, "spilled")
        crew = Crew(folder, pickle.dumps((work.carried(engine, folder), settings)), division.parts)
        outcomes = crew.solve(workers, task.progress)
        for node, _ in division.parts:
            yield FileRelation("read_parquet", str(classes_of(folder, node))), outcomes[node]


@contextmanager
def _private_folder(engine: Engine) -> Iterator[Path]:
    """A folder that nobody else may enter, beside the database's temp directory, or where the system has such."""
    beside = Path(engine.snapshot.temp_directory or tempfile.gettempdir()).absolute().parent
    able = os.access(beside, os.W_OK) and not set("*?[") & set(str(beside))
    with files.spill_folder(beside if able else Path(tempfile.gettempdir())) as folder:
        yield folder


@dataclass
class Crew:
    """Workers on parts (node, rows), each driven by a thread; the first error ends all."""

    folder: Path
    setup: bytes
    parts: Sequence[tuple[int, int]]
    outcomes: dict[int, Done] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._shares = dict.fromkeys((node for node, _ in self.parts), 0.0)
        self._errors: list[BaseException] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        for node, _ in sorted(self.parts, key=lambda part: (-part[1], part[0])):  # the longest first
            self._waiting.put(node)

    def solve(self, workers: int, progress: Progress) -> dict[int, Done]:
        """Solve all parts and return their answers; `progress` counts rows."""
        drivers = [threading.Thread(target=self._drive, daemon=True) for _ in range(workers)]
        total = sum(rows for _, rows in self.parts)
        try:
            for driver in drivers:
                driver.start()
            while any(driver.is_alive() for driver in drivers):
                drivers[0].join(PAUSE) if drivers[0].is_alive() else self._stopped.wait(PAUSE)
                progress(int(sum(rows * self._shares[node] for node, rows in self.parts)), total)
        finally:
            self._stop()
            for driver in drivers:
                if driver.ident is not None:  # Ctrl-C may come before all have started
                    driver.join()
        if self._errors:
            raise self._errors[0]
        return self.outcomes

    def _stop(self) -> None:
        """End all workers, whatever they do."""
        with self._lock:
            self._stopped.set()
            for worker in self._workers:
                worker.kill()
            for worker in self._workers:  # none outlives a run, whoever of the drivers is still to notice
                worker.wait()

    def _drive(self) -> None:
        """Hand parts to idle workers until none is left."""
        worker = None
        try:
            while not self._stopped.is_set():
                try:
                    node = self._waiting.get_nowait()
                except queue.Empty:
                    break
                worker, outcome = self._solved(node, worker)
                if isinstance(outcome, Exception):
                    raise outcome
                self.outcomes[node] = outcome
        except BaseException as error:
            if not self._stopped.is_set():
                self._errors.append(error)
            self._stop()
        finally:
            if worker:
                self._dismiss(worker)

    def _solved(
        self, node: int, worker: subprocess.Popen[bytes] | None
    ) -> tuple[subprocess.Popen[bytes], Done | Exception]:
        """A worker's answer on a part; another worker is asked if it dies meanwhile."""
        for _ in range(TRIES):
            worker = worker or self._start()
            try:
                return worker, self._asked(worker, node)
            except (EOFError, OSError, pickle.UnpicklingError):
                code = self._dismiss(worker)
                worker = None
                if self._stopped.is_set():
                    break
        raise DatabaseError(
            f"a worker process died with exit code {code} while it solved a part, and so did the next one: there may"
            " be too little memory for so many --workers"
        )

    def _asked(self, worker: subprocess.Popen[bytes], node: int) -> Done | Exception:
        assert worker.stdin and worker.stdout  # noqa: S101 - both are pipes
        pickle.dump(node, worker.stdin)
        worker.stdin.flush()
        while True:
            share, outcome = pickle.load(worker.stdout)  # noqa: S301 - of a process of ours
            self._shares[node] = share
            if outcome is not None:
                return outcome  # type: ignore[no-any-return]

    def _start(self) -> subprocess.Popen[bytes]:
        """Another worker, which knows the work."""
        boot = _BOOT.format(path=[path or os.getcwd() for path in sys.path])
        with self._lock:
            if self._stopped.is_set():
                raise KeyboardInterrupt
            worker = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-c", boot],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._workers.append(worker)
        assert worker.stdin  # noqa: S101 - a pipe
        worker.stdin.write(self.setup)
        worker.stdin.flush()
        return worker

    def _dismiss(self, worker: subprocess.Popen[bytes]) -> int:
        """End a worker; its exit code."""
        worker.kill() if self._stopped.is_set() else None
        with suppress(OSError):
            worker.stdin.close() if worker.stdin else None
        code = worker.wait()
        with suppress(OSError):
            worker.stdout.close() if worker.stdout else None
        return code
