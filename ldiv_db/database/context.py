"""Context of a call: the engine on the caller's database, and the settings that every step of the work shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ldiv_db.database.attach import named_databases
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import compared_by_bytes
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.queries import Step
from ldiv_db.database.templates import Statement


@dataclass(frozen=True)
class Stage:
    """A stage of a run: its name, its work (cells, or what is counted) and its expected seconds, 0 if not known."""

    name: str
    work: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Listener:
    """Callbacks that follow a run; every member may be left out.

    `on_stage` is told in a few words what begins, `on_progress` how much of it is done, `on_search` how a search is,
    `on_expected` the stages of a run, or those that it has still before it, with what each is expected to take.
    """

    on_step: Callable[[Step], None] | None = None
    on_statement: Callable[[Statement], None] | None = None
    on_progress: Callable[[int, int], None] = lambda done, total: None
    on_search: Callable[[str], None] = lambda text: None
    on_stage: Callable[[str], None] = lambda text: None
    on_expected: Callable[[Sequence[Stage]], None] = lambda stages: None


@dataclass(frozen=True)
class Context:
    """The engine, and the settings of the call that it works for.

    Relative files lie in `folder`. With `show_values` errors name values of the data. Up to `workers` processes solve
    parts of a table, as many as there are threads if it is None.
    """

    engine: Engine
    listener: Listener = field(default_factory=Listener)
    folder: Path = Path()
    show_values: bool = False
    workers: int | None = 1

    @property
    def catalog(self) -> str | None:
        """The attached database that holds taxonomies and the ledger, None if it is the current one."""
        return self.engine.catalog

    @property
    def quiet(self) -> Context:
        """The same context for work that is tried again and again: nobody hears of its stages, of statements alone."""
        return replace(self, listener=Listener(self.listener.on_step, self.listener.on_statement))

    @contextmanager
    def side_engine(self) -> Iterator[Engine]:
        """Another engine on the same connection, of which nothing is left when it is closed."""
        with working_engine(self.engine.connection, self.listener, self.catalog) as engine:
            yield engine


@contextmanager
def open_context(
    connection: Any,
    listener: Listener | None = None,
    catalog: str | None = None,
    folder: str | Path = ".",
    show_values: bool = False,
    workers: int | None = 1,
    databases: Mapping[str, str] | None = None,
    written: str | None = None,
) -> Iterator[Context]:
    """A context on the caller's connection, of which nothing is left; within, `databases` of a policy are attached.

    The one that is `written` may be written to. Raises PolicyError for settings of the connection that would mislead
    our statements and for a name that is taken, DatabaseError for a database that is not there.
    """
    listener, where = listener or Listener(), Path(folder)
    with (
        working_engine(connection, listener, catalog) as engine,
        named_databases(engine, databases or {}, where, written),
    ):
        yield Context(engine, listener, where, show_values, workers)


@contextmanager
def working_engine(connection: Any, listener: Listener | None = None, catalog: str | None = None) -> Iterator[Engine]:
    """An engine on the caller's connection, of which nothing is left; refuses settings that would mislead it."""
    listener = listener or Listener()
    engine = Engine(connection, listener.on_step, listener.on_statement, catalog)
    _refuse_settings(engine)
    engine.refresh_servers()
    try:
        with compared_by_bytes(engine):
            yield engine
    finally:
        engine.close_scratch()


def _refuse_settings(engine: Engine) -> None:
    """Raise PolicyError for a setting of the connection that our statements, whatever they state, cannot answer."""
    problems, settings = [], engine.snapshot.settings
    if str(settings["preserve_identifier_case"]).lower() == "uppercase":
        what = "is uppercase on this connection, by which columns of a release would have other names"
        problems.append(Problem("preserve_identifier_case", what, "SET preserve_identifier_case = 'preserve_case'"))
    if settings["disable_timestamptz_casts"]:
        what = "is on for this connection; our statements ask of any value whether it is an instant"
        problems.append(Problem("disable_timestamptz_casts", what, "SET disable_timestamptz_casts = false"))
    refuse(problems)
