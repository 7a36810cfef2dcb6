"""Calls with something wrong in them, drawn at random: a result that holds, or clear lines and nothing written."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bad_input
import duckdb
import pytest
from beds import Bed

from tests.strategies import search, seeds

#: No call takes longer.
SECONDS = 120


class TooLong(BaseException):
    """No answer for minutes; no failure that a command may hear."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """The call, or TooLong."""

    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def state(folder: Path) -> list[Any]:
    """The tables, views and schemas of the database, and all files beside it; a device or a pipe by its name alone."""
    with duckdb.connect(str(folder / "hospital.duckdb"), config={"threads": 1}) as con:
        tables = con.execute("SELECT schema_name, table_name, sql FROM duckdb_tables() ORDER BY ALL").fetchall()
        found: list[Any] = [tables, con.execute("SELECT view_name, sql FROM duckdb_views() ORDER BY ALL").fetchall()]
        found.append(con.execute("SELECT schema_name FROM duckdb_schemas() ORDER BY ALL").fetchall())
        for schema, name, _ in tables:
            table = ".".join('"{}"'.format(part.replace('"', '""')) for part in (schema, name))
            found.append(sorted(map(repr, con.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {table}").fetchall())))
    for path in sorted(folder.rglob("*")):
        regular = path.exists() and stat.S_ISREG(path.stat().st_mode) and path.name != "hospital.duckdb"
        found.append((str(path.relative_to(folder)), path.read_bytes() if regular else None))
    return found


@search(4, seed=seeds)
def test_whatever_is_wrong_there_is_a_good_result_or_a_clear_line(
    first_bed: Path, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("bad")
    for name in ("hospital.duckdb", "country.csv"):
        (folder / name).write_bytes((first_bed / name).read_bytes())
    with contextlib.chdir(folder):
        one_call(Bed(folder), folder, seed)


def one_call(bed: Bed, folder: Path, seed: int) -> None:
    drawn = bad_input.draw_call(seed)
    words = bad_input.place(drawn, folder)
    before = state(folder)
    where = f"seed {seed}: {words} {drawn.sql}\n{drawn.policy[:2000]}"
    with within(SECONDS):
        called = bed.call(*words)
    try:
        bad_input.refuse_message(words, called.code, called.out, called.err)
        if called.code != 0 and not (called.code == 1 and words[0] in bad_input.VERDICTS and called.out):
            assert state(folder) == before, "something was written"
        assert not [name for name in os.listdir(folder) if "ldiv-" in name or name.endswith(".wal")]
        if called.code == 0 and words[0] == "run" and "rows_in" in called.out:
            result = json.loads(called.out)
            left_out = result.get("rows_suppressed", 0) + result.get("rows_waiting", 0)
            assert result["rows_in"] == result["rows_published"] + left_out
    except AssertionError as error:
        raise AssertionError(f"{error}\n{where}\n{called}") from error


def test_the_draws_end_in_every_way() -> None:
    """A generator of which every draw is refused at the first look would show nothing."""
    commands = {bad_input.draw_call(seed).words[0] for seed in range(400)}
    assert {"run", "plan", "check", "measure", "attack", "taxonomy", "release"} <= commands
