"""A warehouse as the place of a source: its rows are read there at one moment, and the ledger of them is kept there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.policy.sources import SourcePlace
from ldiv_db.publishing.counted_source import CountedSource
from ldiv_db.publishing.fingerprints import ReadColumn
from ldiv_db.publishing.history import ChangedError, Watch
from ldiv_db.publishing.ledger_there import LedgerThere

#: The tables of a ledger in which something is entered, each with the values that tell its rows.
Entries = Mapping[str, Mapping[str, Any]]


class PlaceThere(SourcePlace):
    """Where the rows of a run's source lie; `reading` is open while they are read, and `run_id` the run."""

    def __init__(self, engine: Engine, source: CountedSource, ledger: LedgerThere, reading: ExitStack, run_id: str):
        self.engine = engine
        self.source = source
        self.ledger = ledger
        self.run_id = run_id
        self._reading = reading

    @property
    def hashed(self) -> Sequence[str]:
        return self.source.kept

    def let_go(self) -> None:
        self._reading.close()

    def recounted(self, columns: Sequence[ReadColumn]) -> Relation:
        return self.source.recounted(self.engine, columns)

    def kept_warnings(self, kept: Sequence[Column], individual: Column | None) -> list[str]:
        return self.source.kept_warnings(kept, individual)

    def bring_series(self, series: str) -> None:
        self.ledger.bring_series(self.engine, series)

    def require_same(self, entries: Entries, watch: Watch) -> None:
        """Raise ChangedError if the source is not what was counted.

        Within a transaction other runs of the source are held off, and OvertakenError is raised if one was faster.
        """
        if not self.source.is_as_counted(self.engine):
            raise ChangedError(watch.source)
        self._hold(entries, watch)

    def _hold(self, entries: Entries, watch: Watch) -> None:
        if self.source.there.takes_back:
            self.ledger.hold(self.engine, entries, watch)

    def enter(self, entries: Entries, watch: Watch) -> None:
        self._hold(entries, watch)
        self.ledger.enter(self.engine, entries, watch)

    def enter_written(self, entries: Entries, watch: Watch, left: Mapping[str, bool]) -> None:
        with self.source.there.moment():
            self.require_same(entries, watch)
            for run_id, in_place in left.items():
                self.ledger.settle_run(run_id, in_place)
            self.ledger.enter(self.engine, entries, watch)

    def settle(self, run_id: str, in_place: bool) -> None:
        with self.source.there.moment():
            self.ledger.settle_run(run_id, in_place)
