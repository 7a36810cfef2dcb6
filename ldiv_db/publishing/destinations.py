"""Destinations: where a draft goes, and how it gets there whole or not at all.

Tables of the source's database are made, audited and entered in the ledger in one transaction. A file is written
beside its place, closed, audited as it lies there, flushed, and moved into place; the ledger says `written` before the
move and `published` after it. A file of several releases is written as a copy of what is there, with the next one; as
it is the ledger that knows what belongs to it, it says `started` before there is a folder to write in.

Whatever moment a process dies at, the old file is there or the whole new one, and the next publication to the same
place removes what was left over and has the ledger say what is true.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ldiv_db.database import catalog, migrate, postgres
from ldiv_db.database.addresses import FilePlace, Place, TablePlace
from ldiv_db.database.catalog import new_table
from ldiv_db.database.data_files import CsvForm, FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import ConflictError, DatabaseError, count_phrase, refused
from ldiv_db.database.files import abandoned, flush, move, renew_file, work_folder
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import told_of_history
from ldiv_db.policy.resolve import Resolved, Source
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.draft import Draft, Outcome, Where, undone
from ldiv_db.publishing.history import OvertakenError, Recount, Watch, new_run
from ldiv_db.publishing.ledger import PUBLISHED, WRITTEN, runs, settle_run

#: Seconds for which a release waits for other transactions that write the same, and between two tries.
_LONGEST_WAIT, _PAUSE = 60.0, 0.2
#: How the name of a table begins that is being written beside its place.
_STAGED = "ldiv_"


@dataclass(eq=False)
class Destination(ABC):
    """A place that a draft goes to."""

    engine: Engine
    #: Whether the rows of the source lie there, and only their counts here.
    has_rows: ClassVar[bool] = False
    #: Counts the source's rows where they lie.
    recount: Recount | None = field(default=None, init=False)
    #: The id of the run that publishes there, and what is open while it reads there, and closed before it plans.
    run_id: str = field(default_factory=new_run, init=False)
    held: ExitStack = field(default_factory=ExitStack, init=False)

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """The folder in which what is published takes up room, None if that is memory."""

    @property
    def place(self) -> Place | None:
        """The place where what was published can be read afterwards; None if that is not from here."""
        return None

    def kept_warnings(self, source: Source) -> Sequence[str] | None:
        """The warnings of the kept columns of a source whose rows lie there, as it counts them; None of any other."""
        return None

    @abstractmethod
    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[Where]:
        """A context in which what was published can be read, all of it by what is `resolved` of its policy."""

    @abstractmethod
    def publish(self, draft: Draft[Outcome]) -> Outcome:
        """Write the draft, audit it, publish it and enter it in the ledger, or do nothing of it."""

    def entered(self, watch: Watch) -> dict[str, Any]:
        """What else a result says of a run that the ledger has; raises OvertakenError if another was faster there."""
        return {}


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

    def _is_replaced(self, draft: Draft[Outcome]) -> bool:
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

    def publish(self, draft: Draft[Outcome]) -> Outcome:
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

    def _publish(self, draft: Draft[Outcome], joins: bool) -> Outcome:
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

    def publish(self, draft: Draft[Outcome]) -> Outcome:
        staged, is_replaced = self._staged(draft.run_id), self._is_replaced(draft)
        with migrate.unmade_on_error(self.engine), undone(lambda: self._drop([staged])):
            outcome = self._publish(draft, staged)
        return self._renewed(draft, outcome) if is_replaced else outcome

    def _renewed(self, draft: Draft[Outcome], outcome: Outcome) -> Outcome:
        """The outcome, once readers of a file no longer find the release that was replaced, or are said to."""
        home = self.table.parts[0]
        if self.engine.snapshot.kind(home) == "duckdb" and renew_file(self.engine, home):
            return outcome
        note = self._remains("nobody could write it anew; COPY FROM DATABASE it to a new file, or publish to a file")
        return draft.told(outcome, note) if note else outcome

    def _publish(self, draft: Draft[Outcome], staged: Relation) -> Outcome:
        engine = self.engine
        with engine.transaction():
            draft.write(staged)
        if postgres.is_in_postgres(engine, self.table):
            draft.note(postgres.told_of_loss(engine, self.table, "a table of another database is made anew"))
        left = self._abandoned_tables(but=staged)
        _note_abandoned(draft, len(left))
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
        draft.settle(in_place=True)
        return outcome

    def _staged(self, run_id: str) -> Relation:
        mark = hashlib.sha256(str(self.target).encode()).hexdigest()[:8]
        return Relation((*self.table.parts[:-1], f"{_STAGED}{run_id}_{mark}"))

    def _abandoned_tables(self, but: Relation) -> list[Relation]:
        form = re.compile(self._staged("[0-9a-f]{32}").name)
        there = catalog.relations_in(self.engine, self.table.parts[0])
        found = [Relation((self.table.parts[0], *table.parts)) for table in there if form.fullmatch(table.name)]
        return [table for table in found if table != but]

    def _drop(self, tables: Sequence[Relation]) -> None:
        with self.engine.transaction():
            for table in tables:
                self.engine.drop_table(table)


@dataclass(eq=False)
class InFile(Destination):
    """A file that holds what is published and nothing else; `name` is what the user calls it."""

    path: Path
    name: str

    @property
    def folder(self) -> Path | None:
        return self.path.parent

    @abstractmethod
    def writing(self, staging_path: Path) -> AbstractContextManager[Where]:
        """A context in which the file at `staging_path` can be written; at its end the file is closed."""

    @abstractmethod
    def reading(self, staging_path: Path) -> AbstractContextManager[Where]:
        """A context in which what was written to `staging_path` can be read."""

    def publish(self, draft: Draft[Outcome]) -> Outcome:
        place = (self.path.parent, self.path.name, draft.run_id)
        try:
            with migrate.unmade_on_error(self.engine):
                draft.announce()  # before there is a folder: nobody would find one that no ledger knows
                with undone(draft.withdraw), work_folder(*place) as folder:
                    return self._publish(draft, folder / self.path.name)
        except OSError as error:
            raise DatabaseError(f"cannot write {self.name}: {error.strerror}") from error

    def _publish(self, draft: Draft[Outcome], staging_path: Path) -> Outcome:
        draft.require_announced()
        if draft.extends:
            shutil.copyfile(self.path, staging_path)
        with self.writing(staging_path) as where:
            draft.write(where)
        _note_abandoned(draft, len(abandoned(self.path.parent, self.path.name)))
        with self.reading(staging_path) as where:
            outcome = draft.audit(where)
        flush(staging_path)
        left = abandoned(self.path.parent, self.path.name)
        with self.engine.transaction():
            if left:
                migrate.migrate(self.engine)
            for run_id, folder in left.items():  # of runs that died: their files are moved, or still there
                settle_run(self.engine, run_id, in_place=not (folder / self.path.name).exists())
            draft.enter(outcome, WRITTEN)
        with undone(lambda: draft.settle(not staging_path.exists())):
            if not draft.replaces and self.path.exists():
                raise refused("target.file", f"{self.name} was made by someone else meanwhile", "name another file")
            move(staging_path, self.path)
        draft.settle(in_place=True)
        for folder in left.values():
            shutil.rmtree(folder, ignore_errors=True)
        return outcome


def _note_abandoned(draft: Draft[Outcome], count: int) -> None:
    if count:
        what = f"{count_phrase(count, 'run', 'runs')} to this target did not finish"
        draft.note(f"{what}: what it left is removed, and the ledger says how far it got")


@dataclass(eq=False)
class DatabaseFile(InFile):
    """A DuckDB file with a table, or with the tables of all releases of a series."""

    table: Relation

    @contextmanager
    def writing(self, staging_path: Path) -> Iterator[Relation]:
        with self.engine.attached(staging_path) as database, self.engine.transaction():
            yield within(database, self.table)

    @contextmanager
    def reading(self, staging_path: Path) -> Iterator[Relation]:
        with self.engine.attached(staging_path, read_only=True) as database:
            yield within(database, self.table)

    @property
    def place(self) -> Place:
        return FilePlace(self.path, Relation(within("", self.table).parts[1:]))

    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[Relation]:
        return self.reading(self.path)


@dataclass(eq=False)
class DataFile(InFile):
    """A Parquet file, or a CSV file, which is read back by its `columns`."""

    form: str
    columns: list[str]

    @property
    def place(self) -> Place:
        with self.reading(self.path) as file:
            return FilePlace(self.path, file)

    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[FileRelation]:
        return self.reading(self.path)

    def writing(self, staging_path: Path) -> AbstractContextManager[FileRelation]:
        return self.reading(staging_path)

    def reading(self, staging_path: Path) -> AbstractContextManager[FileRelation]:
        if self.form == "parquet":
            return nullcontext(FileRelation("read_parquet", str(staging_path)))
        return nullcontext(FileRelation("read_csv", str(staging_path), form=CsvForm.exported(self.columns)))


def destination_of(engine: Engine, target: Target, folder: Path, columns: list[str]) -> Destination:
    """The destination of a table with these columns that a policy names; `folder` is where relative files lie.

    Raises PolicyError for what is no name of a table.
    """
    refuse_half_taken_back(engine)
    table = new_table(engine, target.table, "target.table", target.file is not None) if target.table else Relation(())
    if target.database is not None:
        there = Relation((target.database, *catalog.located_in(engine, target.database, table)))
        return InOtherDatabase(engine, there, target)
    if target.file is None:
        home = catalog.located(engine, table)
        is_beside = engine.catalog and target.if_exists != "append" and engine.snapshot.is_in_memory(home[0])
        return InOtherDatabase(engine, Relation(home), target) if is_beside else InDatabase(engine, table)
    path = (folder / target.file).resolve()
    if target.format == "duckdb":
        return DatabaseFile(engine, path, target.file, table)
    return DataFile(engine, path, target.file, target.format or "", columns)


def refuse_half_taken_back(engine: Engine) -> None:
    """Raise PolicyError where the ledger would be in a database that cannot take back a table that was made."""
    if engine.snapshot.kind(engine.catalog or engine.snapshot.current) == "mysql":
        what = "MySQL commits every table by itself, so that release and ledger would not be all or nothing"
        raise refused("database", what, "give --catalog FILE, and a target with `file:`")


def within(database: str, table: Relation) -> Relation:
    """The table, or prefix, in an attached database."""
    return Relation((database, *(table.parts if len(table.parts) > 1 else ("main", table.name))))
