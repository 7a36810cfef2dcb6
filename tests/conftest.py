"""Shared pieces: connections, engines, tables, and the files of the fixtures folder."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
import servers
import strategies

from ldiv_db.database.engine import Engine

pytest.register_assert_rewrite("beds", "there_cases")
from beds import bed, bench, call, first_bed, first_release, released  # noqa: E402, F401 - fixtures of whoever calls the command line

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
strategies.register_profiles()
#: What tests in parallel are told of the terminal is no business of the output that they compare.
os.environ.pop("COLUMNS", None)
#: Tables of tests are read by one thread, and others cost time: a test that wants more asks for them.
_connect = duckdb.connect
duckdb.connect = lambda *place, config=None, **more: _connect(*place, config={"threads": 1} | (config or {}), **more)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests stay to the end: to look through them for garbage again and again takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


#: What a test may have changed of more than its own database: settings, databases, secrets, extensions.
STATE = """
    SELECT (SELECT hash(list(row(name, value) ORDER BY name ASC)) FROM duckdb_settings()),
        (SELECT list(database_name ORDER BY database_name ASC) FROM duckdb_databases()),
        (SELECT list(name ORDER BY name ASC) FROM duckdb_secrets()),
        (SELECT list(extension_name ORDER BY extension_name ASC) FROM duckdb_extensions() WHERE loaded)
"""


@contextmanager
def instance() -> Iterator[Any]:
    """An instance of DuckDB in which tests have one database after another: to begin one takes 20 ms of processor."""
    with duckdb.connect(":memory:") as root:
        root.execute("ATTACH ':memory:' AS root; USE root; DETACH memory")
        yield root


@pytest.fixture(scope="session")
def instances() -> Iterator[Callable[[], Any]]:
    """Returns the instance that tests share; the next one begins where a test has changed what others would see."""
    with ExitStack() as stack:
        held: list[tuple[Any, Any]] = []

        def current() -> Any:
            if not held or held[0][0].execute(STATE).fetchall() != held[0][1]:
                stack.close()
                root = stack.enter_context(instance())
                held[:] = [(root, root.execute(STATE).fetchall())]
            return held[0][0]

        yield current


@pytest.fixture
def con(instances: Callable[[], Any]) -> Iterator[Any]:
    """A connection to a database in memory of its own, called `memory` as DuckDB calls it."""
    root = instances()
    root.execute("ATTACH ':memory:' AS memory")
    connection = root.cursor()
    connection.execute("USE memory")
    yield connection
    connection.close()
    with suppress(duckdb.Error):  # where another connection uses it still, the next test has another instance
        root.execute("DETACH memory")


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
def no_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run would accept, or leave out fewer rows by, is not looked for, which takes as long as several runs."""
    monkeypatch.setattr("ldiv_db.running.remedies._first_accepted", lambda *given: iter(()))
    monkeypatch.setattr("ldiv_db.running.run.fewer_left_out", lambda *given: [])


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
            marks[name].append(pytest.mark.slow)
        metafunc.parametrize("server", [pytest.param(name, marks=marks[name]) for name in marks], indirect=True)


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
