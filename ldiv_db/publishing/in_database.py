"""Destinations that are tables: of the source's database in one transaction, of another written beside and renamed."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog, migrate, postgres
from ldiv_db.database.addresses import Place, TablePlace
from ldiv_db.database.catalog import Column, columns_of, without_members
from ldiv_db.database.data_files import Table, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import ConflictError, Problem, refuse
from ldiv_db.database.files import renew_file, undone
from ldiv_db.database.names import Relation
from ldiv_db.database.snapshot import DUCKDB
from ldiv_db.database.traits_there import told_of_history
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.targets import ONLY, Target
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
class InTables(Destination):
    """Tables of one database that is open on the connection, by their names in the policy, of one table empty."""

    tables: Mapping[str, Relation]

    @property
    def home(self) -> str:
        """The database in which they are."""
        return catalog.catalog_of(self.engine, next(iter(self.tables.values())))

    @property
    def folder(self) -> Path | None:
        file = self.engine.snapshot[self.home].file
        return Path(file).parent if file else None

    @property
    def place(self) -> Place:
        return TablePlace(self.engine.connection, self.tables)

    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[Mapping[str, Relation]]:
        return nullcontext(self.tables)

    def refuse_lists(self, names: Iterable[str]) -> None:
        """Raise PolicyError for columns of lists, which were written and read in DuckDB alone."""
        kind = self.engine.snapshot.traits(self.home)
        what = f"lists go to DuckDB tables and Parquet, and the target is in {kind.name}"
        refuse(Problem(f"output.{n}", what, "leave it out, or name a .parquet file") for n in names if kind != DUCKDB)

    def _replaced(self, draft: Draft) -> list[Relation]:
        """The tables that are there and go, whose rows a file keeps."""
        goes = draft.replaces and not draft.extends
        return [table for table in self.tables.values() if goes and catalog.table_exists(self.engine, table)]

    def _remains(self, replaced: Sequence[Relation], wayout: str) -> list[str]:
        """The notes that what was replaced may still be read; none where neither a history nor a file has it."""
        file, history = self.engine.snapshot[self.home].file, self.engine.snapshot.traits(self.home).history
        if history:
            return [told_of_history(str(table), history.format(self.home)) for table in replaced]
        what = f"the bytes of {Path(file or '').name} may still hold the release that was replaced: {wayout}"
        return [what] if file and replaced else []


class InDatabase(InTables):
    """Tables of the source's database, or the prefix of a series."""

    def publish(self, draft: Draft) -> Result:
        """As every destination; in a transaction of its own it waits for others that write the same."""
        joins, end = self.engine.in_transaction(), time.monotonic() + _LONGEST_WAIT
        for note in self._remains(self._replaced(draft), "give readers a file of their own (target: file)"):
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
        is_numbered = bool(self.engine.snapshot.traits(self.home).history) and not self.engine.in_transaction()
        return {"snapshot": catalog.last_snapshot(self.engine, self.home)} if is_numbered else {}

    def _publish(self, draft: Draft, joins: bool) -> Result:
        with self.engine.transaction(joins):
            draft.announce()
            draft.write(self.tables)
            outcome = draft.audit(self.tables)
            draft.expand(self.tables)
            draft.enter(outcome, PUBLISHED)
        return outcome


@dataclass(eq=False)
class InOtherDatabase(InTables):
    """Tables of another database than the ledger's, written beside under names of their run's and renamed at once.

    The name of a table that is being written tells the run and all targets. One that a dead process left is dropped by
    the next run to these; the ledger, where it says `written`, is told whether the tables were renamed.
    """

    targets: Mapping[str, Target]

    def before(self, where: Tables) -> Tables:
        return self.tables

    def is_renamed(self, run_id: str) -> bool:
        """Whether what a run has written is in its place; if not it never will be, as it is dropped."""
        left = self._left(run_id).get(run_id, [])
        self._drop(left)
        return not left

    def publish(self, draft: Draft) -> Result:
        staged, replaced = self._staged(draft.run_id), self._replaced(draft)
        with migrate.unmade_on_error(self.engine), undone(lambda: self._drop(_relations(draft, staged))):
            outcome = self._publish(draft, staged)
        return self._renewed(draft, outcome, replaced) if replaced else outcome

    def _renewed(self, draft: Draft, outcome: Result, replaced: Sequence[Relation]) -> Result:
        """The outcome, once readers of a file no longer find the release that was replaced, or are said to."""
        if self.engine.snapshot.kind(self.home) == "duckdb" and renew_file(self.engine, self.home):
            return outcome
        wayout = "nobody could write it anew; COPY FROM DATABASE it to a new file, or publish to a file"
        for note in self._remains(replaced, wayout):
            outcome = draft.told(outcome, note)
        return outcome

    def _publish(self, draft: Draft, staged: Mapping[str, Relation]) -> Result:
        engine, places = self.engine, _relations(draft, self.tables)
        with engine.transaction():
            draft.write(staged)
        made = _relations(draft, staged)
        targets = [*self.targets.values()] if len(self.targets) == len(made) else [self.targets[ONLY]] * len(made)
        withdrawn = []
        for table, target in zip(places, targets, strict=True):
            is_there = postgres.is_in_postgres(engine, table)
            draft.note(postgres.told_of_loss(engine, table, MADE_ANEW, target.lose) if is_there else "")
            withdrawn.append(postgres.withdrawn_from(engine, table) if is_there else [])
        left = self._left()
        left.pop(draft.run_id, None)
        note_abandoned(draft, len(left))
        with engine.transaction():
            draft.announce()
            outcome = draft.audit(staged)
            migrate.migrate(engine)
            unsure = [
                run["run_id"] for run in runs(engine) if (run["status"], run["target"]) == (WRITTEN, self._target)
            ]
            moved = {run_id: run_id not in left for run_id in unsure}
            for run_id, in_place in moved.items():
                settle_run(engine, run_id, in_place)
            draft.enter(outcome, WRITTEN)
        with undone(lambda: self.settle_draft(draft, not any(catalog.table_exists(engine, one) for one in made))):
            if self.keeper:
                self.keeper.enter_written(draft.entries, draft.watch, moved)
            self._drop([table for tables in left.values() for table in tables])
            with engine.transaction():
                for written, table, target, told in zip(made, places, targets, withdrawn, strict=True):
                    replaces = draft.replaces and (draft.extends or target.if_exists == "replace")
                    engine.rename(written, table, replaces)
                    postgres.tell(engine, table, *told)
        self.settle_draft(draft, in_place=True)
        return outcome

    @property
    def _target(self) -> str:
        """What the ledger calls it."""
        return ", ".join(map(str, self.targets.values()))

    def _staged(self, run_id: str) -> dict[str, Relation]:
        numbers = ["", *(f"_{number}" for number in range(1, len(self.tables)))]
        return {
            name: table.beside(f"{_STAGED}{run_id}_{self._mark}{number}")
            for number, (name, table) in zip(numbers, self.tables.items(), strict=True)
        }

    @property
    def _mark(self) -> str:
        return hashlib.sha256(self._target.encode()).hexdigest()[:8]

    def _left(self, run_id: str = "[0-9a-f]{32}") -> dict[str, list[Relation]]:
        """The tables that were not renamed, by the ids of runs."""
        form, found = re.compile(rf"{_STAGED}({run_id})_{self._mark}(_\w+)?"), dict[str, list[Relation]]()
        for table in catalog.relations_in(self.engine, self.home):
            if match := form.fullmatch(table.name):
                found.setdefault(match[1], []).append(Relation((self.home, *table.parts)))
        return found

    def _drop(self, tables: Iterable[Relation]) -> None:
        with self.engine.transaction():
            for table in tables:
                self.engine.drop_table(table)


def _relations(draft: Draft, where: Tables) -> list[Relation]:
    return [table for table in draft.made(where).values() if isinstance(table, Relation)]


def compare_columns(engine: Engine, types: Mapping[str, str], table: Table, texts_hint: str = "") -> None:
    """Raise PolicyError unless the table has the columns of a release, which are of these `types`, and no others.

    `texts_hint` is for columns that should be text.
    """
    ours = {name.lower(): kind for name, kind in types.items()}
    columns = {column.name.lower(): column for column in columns_of(engine, table)}
    theirs = {name: column.type for name, column in columns.items()}
    label = ".".join(table.parts[-2:]) if isinstance(table, Relation) else table.path
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
