"""Every way in which templates are rendered and planned, over whatever runs: as a plugin, over a pass of tests.

`python -m pytest -p tests.sql.recording --record FOLDER tests/solving` leaves a `Recording` of each process there.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Statement
from tests.sql.plans import loops_in
from tests.sql.templates import all_templates

TEMPLATES = frozenset(all_templates())
#: What the names of working tables begin with: other in every run.
NUMBERS, NAMES = re.compile(r"\d+"), re.compile(r'"[^"]*"')


def lines_of(sql: str) -> frozenset[str]:
    """The lines of a statement, but for numbers and names and however often they are repeated, as for each column."""
    return frozenset(NUMBERS.sub("0", NAMES.sub('"x"', line.strip())) for line in sql.splitlines())


@dataclass
class Recording:
    """What was rendered and planned."""

    #: {template and lines: template and SQL}.
    ways: dict[tuple[str, frozenset[str]], tuple[str, str]] = field(default_factory=dict)
    #: {template: operators that try every pair of rows}.
    loops: dict[str, set[str]] = field(default_factory=dict)
    planned: set[tuple[str, frozenset[str]]] = field(default_factory=set)
    #: Whether every template was to be rendered.
    is_whole: bool = False

    def add(self, other: Recording) -> None:
        self.ways = other.ways | self.ways
        for template, tried in other.loops.items():
            self.loops.setdefault(template, set()).update(tried)

    def note(self, statement: Statement) -> None:
        if statement.template in TEMPLATES and not statement.parts:
            self.ways.setdefault((statement.template, lines_of(statement.sql)), (statement.template, statement.sql))

    def plan(self, connection: Any, statement: Statement) -> None:
        key = (statement.template, lines_of(statement.sql))
        if statement.template in TEMPLATES and key not in self.planned:
            self.planned.add(key)
            with suppress(duckdb.Error):  # as the statement itself will say
                if tried := loops_in(connection, statement):
                    self.loops.setdefault(statement.template, set()).update(tried)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within, all that is rendered is noted, and planned before it is run."""
        made, execute = Statement.__init__, Engine._execute

        def noted(statement: Statement, *given: Any, **more: Any) -> None:
            made(statement, *given, **more)
            self.note(statement)

        def planned(engine: Engine, statement: Statement) -> Any:
            self.plan(engine.connection, statement)
            return execute(engine, statement)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Statement, "__init__", noted)
            patch.setattr(Engine, "_execute", planned)
            yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    recording = Recording()
    with recording.listening():
        found = yield
    folder, process = session.config.getoption("--record"), os.environ.get("PYTEST_XDIST_WORKER", "main")
    (folder / f"{process}.pickle").write_bytes(pickle.dumps(recording))
    return found
