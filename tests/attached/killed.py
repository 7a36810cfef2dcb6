"""Runs that are killed: every one in a fork, at a moment of its own, and after it the old release is there or the new.

    python tests/attached/killed.py KIND ADDRESS FOLDER TIMES

Two sources take turns, so that the release tells which run made it, and the ledger must say the same. Every second
process kills itself before some statement; the others are killed after some time. Prints what was seen as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from homes import SQL, policy_document

import ldiv_db
from ldiv_db.database.context import Listener

SOURCES = ("patients", "others")


def work(address: str, folder: Path, source: str, dies_before: int | None, counted: Callable[[int], None]) -> None:
    """One run; before its statement of that number the process is killed."""
    numbers = iter(range(1, 1_000_000))

    def hear(_: Any) -> None:
        number = next(numbers)
        counted(number)
        if number == dies_before:
            os.kill(os.getpid(), signal.SIGKILL)

    policy = policy_document(source=source, target={"table": "released", "if_exists": "replace"})
    ldiv_db.run(address, policy, folder=folder, listener=Listener(on_statement=hear))


def forked(address: str, folder: Path, source: str, dies_before: int | None = None, after: float | None = None) -> bool:
    """Whether a run in a fork was killed; raises if it failed."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            work(address, folder, source, dies_before, lambda number: None)
            os._exit(0)
        os._exit(1)
    if after is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, f"a run of {source} failed"
    return False


def measured(address: str, folder: Path, source: str) -> tuple[int, float]:
    """How many statements a run has, and the seconds that it takes; in a fork as well."""
    read, write = os.pipe()
    start = time.perf_counter()
    child = os.fork()
    if not child:
        counts: list[int] = []
        work(address, folder, source, None, counts.append)
        os.write(write, str(counts[-1]).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return int(os.read(read, 100)), time.perf_counter() - start


def state(sql: Callable[[str], list[tuple[Any, ...]]], runs: str) -> tuple[str, int, Counter[tuple[Any, ...]]]:
    """The source of the last run of the ledger, how many there are, and what stands in the release."""
    entered = sql(f"SELECT source, status FROM {runs} ORDER BY finished_at DESC")
    assert {status for _, status in entered} == {"published"}
    return entered[0][0], len(entered), Counter(sql("SELECT class_id, age, country, disease, ward FROM released"))


def main(kind: str, address: str, folder: Path, times: int) -> None:
    draw = random.Random(times)
    sql = SQL[kind](address)
    runs = "ldiv_run" if kind == "sqlite" else "ldiv.run"
    expected = {}
    for source in SOURCES:
        statements, seconds = measured(address, folder, source)
        made, _, expected[source] = state(sql, runs)
        assert made == source
    seen: Counter[str] = Counter()
    _, before, _ = state(sql, runs)
    for number in range(times):
        source = SOURCES[number % 2]
        by_number = number % 2 if times < 4 else (number // 2) % 2
        killed = (
            forked(address, folder, source, dies_before=draw.randint(1, statements))
            if by_number
            else forked(address, folder, source, after=draw.uniform(0.02, seconds * 1.1))
        )
        made, count, rows = state(sql, runs)
        assert rows == expected[made], f"after {number + 1} kills the release is neither the old one nor the new"
        assert count - before == (made == source and count > before) and (killed or count == before + 1)
        seen["killed" if killed else "ended before"] += 1
        seen["new" if count > before else "old"] += 1
        before = count
    assert not forked(address, folder, SOURCES[0])
    assert state(sql, runs)[::2] == (SOURCES[0], expected[SOURCES[0]])
    print(json.dumps({**seen, "statements": statements}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
