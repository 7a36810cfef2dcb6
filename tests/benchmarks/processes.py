"""What the processes of a run hold in memory and how long they work: its own, those that it started, and theirs.

Read from /proc, which Linux has. Resident pages that several processes share are counted in each; what a process did
after the last look at it, at most a fifth of a second, is in no figure.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
#: Seconds between two looks, which take some milliseconds each.
_PAUSE = 0.2
#: What a process is called by a part of its command line; the first that fits.
_ROLES = (
    ("org.apache.spark", "driver_jvm"),
    ("pyspark.daemon", "executor_python"),
    ("pyspark.worker", "executor_python"),
    ("ldiv_db.solving.workers", "worker"),
    ("multiprocessing", "worker"),
)


@dataclass(frozen=True)
class Held:
    """What a process holds: its role, MB now, and the most it has held; `worked` are seconds of processor time."""

    process: int
    role: str
    now: float
    most: float
    worked: float = 0.0


@dataclass
class Memory:
    """The most MB of all processes together at one look, or of one if that held more between two looks.

    `before` and `worked` are seconds of processor time by process: when the watch began, and when last looked at.
    """

    together: float = 0.0
    before: dict[int, float] = field(default_factory=dict)
    worked: dict[int, float] = field(default_factory=dict)

    def look(self, found: Sequence[Held]) -> None:
        """Take in what the processes hold at one moment."""
        self.together = max(self.together, sum(held.now for held in found), *(held.most for held in found))
        self.worked |= {held.process: held.worked for held in found}

    @property
    def processor_seconds(self) -> float:
        """What all processes worked since the watch began."""
        return sum(seconds - self.before.get(process, 0.0) for process, seconds in self.worked.items())


@contextmanager
def watched() -> Iterator[Memory]:
    """The peaks of this process and all below it, from here to the end of the block."""
    memory = Memory(before={held.process: held.worked for held in held_below(os.getpid())})
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_PAUSE):
            memory.look(held_below(os.getpid()))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        ended.set()
        thread.join()
        memory.look(held_below(os.getpid()))


def held_below(root: int) -> list[Held]:
    """What the process and its descendants hold now; those that end meanwhile are left out."""
    return [held for process in _below(root) if (held := _held(process, process == root))]


def worked_below(root: int) -> float:
    """Seconds of processor time of the process and its descendants, those that ended and were waited for included."""
    ticks = sum(sum(map(int, _fields_of(_PROC / str(process))[11:15])) for process in _below(root))
    return ticks / os.sysconf("SC_CLK_TCK")


def parent_of(process: int) -> int:
    """The process that started it."""
    return int(_fields_of(_PROC / str(process))[1])


def _below(root: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (parent := _parent(folder)) is not None:
            children[parent].append(int(folder.name))
    found = [root]
    for process in found:  # grows meanwhile
        found += children[process]
    return found


def _parent(folder: Path) -> int | None:
    fields = _fields_of(folder)
    return int(fields[1]) if fields else None


def _fields_of(folder: Path) -> list[str]:
    """What the system says of a process, from its state on; nothing if it has ended."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _held(process: int, is_root: bool) -> Held | None:
    folder = _PROC / str(process)
    fields = _fields_of(folder)
    try:
        status = (folder / "status").read_text()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    pairs = (line.partition(":") for line in status.splitlines())
    sizes = {key: float(value.split()[0]) / 2**10 for key, _, value in pairs if key in ("VmRSS", "VmHWM")}
    if len(sizes) < 2 or not fields:  # ended, and not yet taken note of
        return None
    worked = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    role = "driver_python" if is_root else role_of(command)
    return Held(process, role, sizes["VmRSS"], sizes["VmHWM"], worked)


def role_of(command: str) -> str:
    """What the process of a command line does in a run: one of the roles, or `other`."""
    return next((role for part, role in _ROLES if part in command), "other")
