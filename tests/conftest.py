"""Shared pieces: connections, engines, tables, and the files of the fixtures folder."""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import servers
import times

from ldiv_db.database.engine import Engine

pytest.register_assert_rewrite("beds", "there_cases")
from beds import bed, bench, call, first_bed  # noqa: E402, F401 - fixtures of whoever calls the command line

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
#: The tests that are marked `heavy` because they took seconds; `slowest.py` writes it.
SLOW = Path(__file__).parent / "slow.txt"
#: What tests in parallel are told of the terminal is no business of the output that they compare.
os.environ.pop("COLUMNS", None)
#: With LDIV_TEST_SHARE=4 a quarter of all tests is run: the same ones in each pass of the same turn.
SHARE = int(os.environ.get("LDIV_TEST_SHARE", "1"))


@pytest.fixture
def con() -> Iterator[Any]:
    # One thread: faster on small tables. What threads could change is tested on connections of its own.
    connection = duckdb.connect(":memory:", config={"threads": 1})
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every run of a test makes its release anew: a second one that is compared with the first is one of its own.

    A test that is marked `again` has unchanged runs answered from the ledger, as users do.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("again") is None:
            patch.setattr("ldiv_db.running.run.published_again", lambda *given: None)
        yield


@pytest.fixture
def engine(con: Any) -> Iterator[Engine]:
    engine = Engine(con)
    yield engine
    engine.close_scratch()


@pytest.fixture
def table(con: Any) -> Callable[[str, dict[str, str], list[tuple[Any, ...]]], None]:
    """Makes a table on the test's connection: `table(name, {column: type}, rows)`."""
    from tables import fill  # noqa: PLC0415

    return lambda name, columns, rows: fill(con, name, columns, rows)


def pytest_generate_tests(metafunc: Any) -> None:
    """A test of `server` runs on each of them; in one process all of one, as each is started once in a process."""
    if "server" in metafunc.fixturenames:
        marks = {name: [pytest.mark.engines, pytest.mark.xdist_group(name)] for name in servers.SERVERS}
        for name in servers.SLOW:
            marks[name].append(pytest.mark.heavy)
        metafunc.parametrize("server", [pytest.param(name, marks=marks[name]) for name in marks], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the share that is asked for, and the heavy tests and the cases whose turn it is not.

    Tests are drawn by their names. One that is named itself (`pytest FILE::TEST`) is run; those marked `always` are of
    every share.
    """
    slow = set(SLOW.read_text(encoding="utf-8").split())
    for item in items:
        if slow & {_function(item), _file(item)}:
            item.add_marker(pytest.mark.heavy)
    few = times.FEW and not all("::" in word for word in config.args)
    heavy = times.HEAVY if SHARE == 1 else times.HEAVY_OF_SHARE
    left = [item for item in items if not _is_drawn(item, heavy if few else 1)]
    if few and SHARE == 1:
        left = [*dict.fromkeys([*left, *_cases_left(items)])]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def _function(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0]


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _cases_left(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The cases of tests whose turn it is not: one of each is run at least."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("always"):
            cases.setdefault(_function(item), []).append(item)
    for found in cases.values():
        every = min(times.CASES, len(found))
        yield from (item for number, item in enumerate(found) if (number + times.TURN) % every)


def _is_drawn(item: pytest.Item, heavy: int) -> bool:
    if SHARE > 1 and item.get_closest_marker("always"):
        return True
    # Slow tests of a file often share what makes them slow: they are drawn together.
    if item.get_closest_marker("heavy") and (zlib.crc32(_file(item).encode()) + times.TURN // SHARE) % heavy:
        return False
    return not (zlib.crc32(item.nodeid.encode()) + times.TURN) % SHARE


@pytest.fixture
def server(request: Any) -> servers.Server:
    """A database of another kind, or DuckDB; the test is skipped, saying so, where it is not installed."""
    lacks = servers.missing(request.param)
    if lacks and not servers.required(request.param):
        pytest.skip(lacks)
    return servers.started(request.param)


@pytest.fixture
def own_handler() -> Iterator[None]:
    """Python handles Ctrl-C itself, which in a process that runs tests for another it may not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return FIXTURES


def content(con: Any) -> dict[str, Any]:
    """Everything that stays in the database, table by table: what a failed run must not have changed."""
    tables = con.execute(
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() UNION ALL"
        " SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    schemas = con.execute("SELECT schema_name FROM information_schema.schemata ORDER BY ALL").fetchall()
    found: dict[str, Any] = {"schemas": schemas, "tables": tables}
    for parts in tables:
        name = ".".join('"{}"'.format(part.replace('"', '""')) for part in parts)
        # Compared as text: a NaN differs from itself, and instants ask for a module of their own.
        found[name] = sorted(map(repr, con.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {name}").fetchall()))
    return found


@pytest.fixture
def snapshot() -> Callable[[Any], dict[str, Any]]:
    """`snapshot(con)`: everything in the database, to compare before and after."""
    return content
