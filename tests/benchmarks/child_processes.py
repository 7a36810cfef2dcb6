"""Child processes of benchmarks: each task has one of its own, so that a peak of memory is the task's alone.

The child runs this module: its argument names the benchmark's module, which has the tasks by name in `TASKS`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import ldiv_db
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.errors import LdivError
from tests.benchmarks.processes import watched

_CHECKOUT = Path(__file__).resolve().parents[2]
#: What a task leaves in the folder: on stdout the database may draw a bar of its progress.
_RESULT = "result.json"


class Case(Protocol):
    """One benchmark: a dataclass of plain values."""

    @property
    def rows(self) -> int: ...

    @property
    def threads(self) -> int: ...

    @property
    def memory_limit(self) -> str | None: ...


def measure_in_children(module: str, case: Any, tasks: Sequence[str]) -> dict[str, Any]:
    """What the last of the tasks returned; all have one folder. Raises LdivError, with its exit code, if one fails."""
    with tempfile.TemporaryDirectory(prefix="ldiv_") as folder:
        for task in tasks:
            _run_child(module, task, case, folder)
        return dict(json.loads((Path(folder) / _RESULT).read_text(encoding="utf-8")))


def _run_child(module: str, task: str, case: Any, folder: str) -> None:
    order = {"module": module, "type": type(case).__name__, "task": task, "folder": folder, "case": asdict(case)}
    call = [sys.executable, "-m", "tests.benchmarks.child_processes", json.dumps(order)]
    done = subprocess.run(call, cwd=_CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode:
        error = LdivError(f"the benchmark of {case.rows:,} rows failed: {done.stderr.strip()}")
        error.exit_code = done.returncode
        raise error


def serve() -> None:
    """The work of a child, as its argument says: one of the tasks, each of a case and the folder."""
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"])
    module = import_module(order["module"])
    try:
        result = module.TASKS[order["task"]](getattr(module, order["type"])(**order["case"]), folder)
    except LdivError as error:
        sys.stderr.write(str(error))
        sys.exit(error.exit_code)
    (folder / _RESULT).write_text(json.dumps(result, default=float), encoding="utf-8")


def run_watched(case: Any, folder: Path) -> tuple[ldiv_db.Result, dict[str, Any]]:
    """The release of the case's `document` in the folder's database, with its loss and what it took."""
    with open_database(folder / "bench.duckdb", settings=settings_of(case, folder)) as connection, watched() as memory:
        start = time.perf_counter()
        result = ldiv_db.run(connection, case.document)
        seconds = time.perf_counter() - start
    took = {"seconds": seconds, "processor_seconds": memory.processor_seconds, "peak_memory_mb": memory.together}
    return result, {"algorithm": case.algorithm, "lm_mean": result.loss.lm_mean, **took, "versions": result.versions}


def settings_of(case: Case, folder: Path) -> Settings:
    """The settings of a child's database."""
    return Settings(case.threads, case.memory_limit, str(folder / "spill"))


def peak_memory() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what `getrusage` says there includes the process that this one was forked from
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    import resource  # noqa: PLC0415 - not on every platform, and needed here alone

    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    serve()
