"""Destinations that are tables: of the source's database in one transaction, of another written beside and renamed."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, migrate, postgres
from ldiv_db.database.addresses import Place, TablePlace
from ldiv_db.database.catalog import Column, columns_of, without_members
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import ConflictError, Problem, refuse
from ldiv_db.database.files import renew_file, undone
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import told_of_history
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.destination import Destination, note_abandoned
from ldiv_db.publishing.draft import Draft
from ldiv_db.publishing.history import OvertakenError, Watch
from ldiv_db.publishing.ledger import PUBLISHED, WRITTEN, runs, settle_run
from ldiv_db.publishing.result import Result

#: Seconds for which a release waits for other transactions that write the same, and between two tries.
_LONGEST_WAIT, _PAUSE = 60.0, 0.2
#: Why a table of a database that is attached loses what it has beside its rows.
MADE_ANEW = "a table of another database is made anew"
#: How the name of a table begins that is being written beside its place.
_STAGED = "ldiv_"


@dataclass(eq=False)
class InTable(Destination):
    """A table of a database that is open on the connection."""

    table: Relation

    @property
    def folder(self) -> Path | None:
        file = self.engine.snapshot[catalog.catalog_of(self.engine, self.table)].file
        return Path(file).parent if file else None

    @property
    def place(self) -> Place:
        return TablePlace(self.engine.connection, self.table)

    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[Relation]:
        return nullcontext(self.table)

    def _is_replaced(self, draft: Draft) -> bool:
        """Whether a table is there that goes, whose rows a file keeps."""
        return draft.replaces and not draft.extends and catalog.table_exists(self.engine, self.table)

    def _remains(self, wayout: str) -> str:
        """A note that what was replaced may still be read; '' where neither a history nor a file has it."""
        home = catalog.catalog_of(self.engine, self.table)
        file, history = self.engine.snapshot[home].file, self.engine.snapshot.traits(home).history
        if history:
            return told_of_history(str(self.table), history.format(home))
        return f"the bytes of {Path(file).name} may still hold the release that was replaced: {wayout}" if file else ""


class InDatabase(InTable):
    """A table of the source's database, or the prefix of several."""

    def publish(self, draft: Draft) -> Result:
        """As every destination; in a transaction of its own it waits for others that write the same."""
        joins, end = self.engine.in_transaction(), time.monotonic() + _LONGEST_WAIT
        if self._is_replaced(draft) and (note := self._remains("give readers a file of their own (target: file)")):
            draft.note(note)
        while True:
            try:
                outcome = self._publish(draft, joins)
                break
            except ConflictError as error:
                if isinstance(error, OvertakenError) or joins or time.monotonic() > end:
                    raise
                time.sleep(_PAUSE)
        return draft.told(outcome, **self.entered(draft.watch))

    def entered(self, watch: Watch) -> dict[str, Any]:
        home = catalog.catalog_of(self.engine, self.table)
        is_numbered = bool(self.engine.snapshot.traits(home).history) and not self.engine.in_transaction()
        return {"snapshot": catalog.last_snapshot(self.engine, home)} if is_numbered else {}

    def _publish(self, draft: Draft, joins: bool) -> Result:
        with self.engine.transaction(joins):
            draft.announce()
            draft.write(self.table)
            outcome = draft.audit(self.table)
            draft.enter(outcome, PUBLISHED)
        return outcome


@dataclass(eq=False)
class InOtherDatabase(InTable):
    """A table of another database than the ledger's, written beside under a name of its run's and renamed.

    The name of a table that is being written tells the run and the target. One that a dead process left is dropped by
    the next run to the target; the ledger, where it says `written`, is told whether the table was renamed.
    """

    target: Target

    def publish(self, draft: Draft) -> Result:
        staged, is_replaced = self._staged(draft.run_id), self._is_replaced(draft)
        with migrate.unmade_on_error(self.engine), undone(lambda: self._drop([staged])):
            outcome = self._publish(draft, staged)
        return self._renewed(draft, outcome) if is_replaced else outcome

    def _renewed(self, draft: Draft, outcome: Result) -> Result:
        """The outcome, once readers of a file no longer find the release that was replaced, or are said to."""
        home = self.table.parts[0]
        if self.engine.snapshot.kind(home) == "duckdb" and renew_file(self.engine, home):
            return outcome
        note = self._remains("nobody could write it anew; COPY FROM DATABASE it to a new file, or publish to a file")
        return draft.told(outcome, note) if note else outcome

    def _publish(self, draft: Draft, staged: Relation) -> Result:
        engine = self.engine
        with engine.transaction():
            draft.write(staged)
        withdrawn: list[str] = []
        if postgres.is_in_postgres(engine, self.table):
            draft.note(postgres.told_of_loss(engine, self.table, MADE_ANEW, self.target.lose))
            withdrawn = postgres.withdrawn_from(engine, self.table)
        left = self._abandoned_tables(but=staged)
        note_abandoned(draft, len(left))
        outcome = draft.audit(staged)
        with engine.transaction():
            migrate.migrate(engine)
            for run in runs(engine):
                if (run["status"], run["target"]) == (WRITTEN, str(self.target)):
                    settle_run(engine, run["run_id"], in_place=self._staged(run["run_id"]) not in left)
            draft.enter(outcome, WRITTEN)
        with undone(lambda: draft.settle(not catalog.table_exists(engine, staged))):
            self._drop(left)
            with engine.transaction():
                engine.rename(staged, self.table, draft.replaces)
                postgres.tell(engine, self.table, *withdrawn)
        draft.settle(in_place=True)
        return outcome

    def _staged(self, run_id: str) -> Relation:
        mark = hashlib.sha256(str(self.target).encode()).hexdigest()[:8]
        return self.table.beside(f"{_STAGED}{run_id}_{mark}")

    def _abandoned_tables(self, but: Relation) -> list[Relation]:
        form = re.compile(self._staged("[0-9a-f]{32}").name)
        there = catalog.relations_in(self.engine, self.table.parts[0])
        found = [Relation((self.table.parts[0], *table.parts)) for table in there if form.fullmatch(table.name)]
        return [table for table in found if table != but]

    def _drop(self, tables: Sequence[Relation]) -> None:
        with self.engine.transaction():
            for table in tables:
                self.engine.drop_table(table)


def compare_columns(engine: Engine, types: Mapping[str, str], table: Relation, texts_hint: str = "") -> None:
    """Raise PolicyError unless the table has the columns of a release, which are of these `types`, and no others.

    `texts_hint` is for columns that should be text.
    """
    ours = {name.lower(): kind for name, kind in types.items()}
    columns = {column.name.lower(): column for column in columns_of(engine, table)}
    theirs = {name: column.type for name, column in columns.items()}
    label = ".".join(table.parts[-2:])
    refuse(
        Problem(
            "target",
            f"{label} has column {name} as {_shown(theirs, name)}, not {_shown(ours, name)}",
            _hint(columns.get(name), ours.get(name), texts_hint),
        )
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )


def _hint(theirs: Column | None, ours: str | None, texts_hint: str) -> str:
    if theirs is None or ours is None:
        return ""
    if theirs.published == ours:
        return f"ALTER COLUMN {theirs.name} TYPE {ours}: an enum lists values that no row need have"
    return texts_hint if ours == "VARCHAR" else ""


def _shown(types: Mapping[str, str], name: str) -> str:
    return without_members(types.get(name, "none"))
