"""Context of a call: who listens to it, and its settings; and engines on the caller's connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ldiv_db.database.connections import merges_parts, parts_apart
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

    @property
    def kind(self) -> str:
        """The name without the part that it is of: stages of one kind take as long for as much work."""
        return self.name.rpartition(": ")[2]

    def of(self, part: str) -> Stage:
        """The same of a part of the work, which its name says."""
        return replace(self, name=f"{part}: {self.name}")


@dataclass(frozen=True)
class Listener:
    """Callbacks that follow a run, each of which may be left out: `on_stage` is told in a few words what begins,
    `on_progress` how much of it is done, `on_search` how a search is, `on_expected` the stages of a run, or those that
    it has still before it, with what each is expected to take."""

    on_step: Callable[[Step], None] | None = None
    on_statement: Callable[[Statement], None] | None = None
    on_progress: Callable[[int, int], None] = lambda done, total: None
    on_search: Callable[[str], None] = lambda text: None
    on_stage: Callable[[str], None] = lambda text: None
    on_expected: Callable[[Sequence[Stage]], None] = lambda stages: None


def hearing_of(part: str, listener: Listener) -> Listener:
    """Who hears of a part of the work as the listener does of all, by stages that are called by it."""
    return replace(
        listener,
        on_stage=lambda name: listener.on_stage(f"{part}: {name}"),
        on_expected=lambda stages: listener.on_expected([one.of(part) for one in stages]),
    )


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Who hears of a call, and the attached database with taxonomies and ledger, if that is not the current one."""

    listener: Listener | None = None
    catalog: str | None = None

    @property
    def heard(self) -> Listener:
        """Who hears of it, or one who does nothing."""
        return self.listener or Listener()


@dataclass(frozen=True)
class Context:
    """The listener and the settings of a run, whatever engine works for it.

    Relative files lie in `folder`. With `show_values` errors name values of the data. Up to `workers` processes solve
    parts of a table, as many as there are threads if it is None.
    """

    listener: Listener = field(default_factory=Listener)
    folder: Path = Path()
    show_values: bool = False
    workers: int | None = 1


def side_engine(engine: Engine) -> AbstractContextManager[Engine]:
    """Another engine on the connection of this one, of which nothing is left when it is closed."""
    return working_engine(engine.connection, Listener(engine.on_step, engine.on_statement), engine.catalog)


@contextmanager
def working_engine(connection: Any, listener: Listener | None = None, catalog: str | None = None) -> Iterator[Engine]:
    """An engine on the caller's connection, of which nothing is left; refuses settings that would mislead it.

    `catalog` is the attached database with taxonomies and ledger, None if that is the current one.
    """
    listener = listener or Listener()
    engine = Engine(connection, listener.on_step, listener.on_statement, catalog)
    _refuse_settings(engine)
    engine.refresh_servers()
    try:
        with parts_apart(connection), compared_by_bytes(engine):
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
    if settings["lock_configuration"] and merges_parts(settings["disabled_optimizers"]):
        what = "is locked on this connection without common_subplan, by which DuckDB before 1.6 mixes up tables"
        problems.append(Problem("disabled_optimizers", what, "SET disabled_optimizers = 'common_subplan' before"))
    refuse(problems)
