"""Destinations that are files: of one table, of a database, or the folder of several tables."""

from __future__ import annotations

import os
import re
import shutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ldiv_db.database import migrate
from ldiv_db.database.addresses import FilePlace, Place
from ldiv_db.database.data_files import CsvForm, FileRelation, Tables
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.files import abandoned, flush, move, swap, undone, work_folder
from ldiv_db.database.names import Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing.destination import Destination, note_abandoned
from ldiv_db.publishing.draft import Draft
from ldiv_db.publishing.ledger import WRITTEN, settle_run
from ldiv_db.publishing.result import Result

#: The file beside a folder that is being written which has its number: it tells which of two is the new one.
_NUMBER = "number"


@dataclass(eq=False)
class InFile(Destination):
    """A file that holds what is published and nothing else; `name` is what the user calls it."""

    path: Path
    name: str
    #: What it is.
    kind: ClassVar[str] = "file"
    #: Whether what is there is copied, to be added to, and not written anew.
    is_copied: ClassVar[bool] = False

    @property
    def folder(self) -> Path | None:
        return self.path.parent

    @property
    def is_there(self) -> bool:
        """Whether anything is in its place."""
        return self.path.exists()

    def copy(self, staging_path: Path) -> None:
        """Copy what is there, to be added to."""
        shutil.copyfile(self.path, staging_path)

    @abstractmethod
    def writing(self, staging_path: Path) -> AbstractContextManager[Tables]:
        """A context in which the file at `staging_path` can be written; at its end the file is closed."""

    @abstractmethod
    def reading(self, staging_path: Path) -> AbstractContextManager[Tables]:
        """A context in which what was written to `staging_path` can be read."""

    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[Tables]:
        return self.reading(self.path)

    def before(self, where: Tables) -> Tables:
        if self.is_copied:
            return where
        with self.opened() as files:
            return files

    def flush(self, staging_path: Path) -> None:
        """Flush what was written to the disk."""
        flush(staging_path)

    def move(self, staging_path: Path) -> None:
        """Put what was written in its place, in one step."""
        move(staging_path, self.path)

    def is_moved(self, work: Path) -> bool:
        """Whether what was written in a folder of our own is in its place."""
        return not (work / self.path.name).exists()

    def publish(self, draft: Draft) -> Result:
        place = (self.path.parent, self.path.name, draft.run_id)
        try:
            with migrate.unmade_on_error(self.engine):
                draft.announce()  # before there is a folder: nobody would find one that no ledger knows
                with undone(draft.withdraw), work_folder(*place) as folder:
                    return self._publish(draft, folder / self.path.name)
        except OSError as error:
            raise DatabaseError(f"cannot write {self.name}: {error.strerror}") from error

    def _publish(self, draft: Draft, staging_path: Path) -> Result:
        draft.require_announced()
        if draft.extends and self.is_copied:
            self.copy(staging_path)
        with self.writing(staging_path) as where:
            draft.write(where)
        note_abandoned(draft, len(abandoned(self.path.parent, self.path.name)))
        with self.reading(staging_path) as where:
            outcome = draft.audit(where)
        self.flush(staging_path)
        left = abandoned(self.path.parent, self.path.name)
        moved = {run_id: self.is_moved(folder) for run_id, folder in left.items()}  # of runs that died
        with self.engine.transaction():
            if left:
                migrate.migrate(self.engine)
            for run_id, in_place in moved.items():
                settle_run(self.engine, run_id, in_place)
            draft.enter(outcome, WRITTEN)
        with undone(lambda: self.settle_draft(draft, self.is_moved(staging_path.parent))):
            if self.keeper:
                self.keeper.enter_written(draft.entries, draft.watch, moved)
            if not (draft.replaces or draft.extends) and self.is_there:
                what = f"{self.name} was made by someone else meanwhile"
                raise refused("target.file", what, f"name another {self.kind}")
            self.move(staging_path)
        self.settle_draft(draft, in_place=True)
        for folder in left.values():
            shutil.rmtree(folder, ignore_errors=True)
        return outcome


@dataclass(eq=False)
class DatabaseFile(InFile):
    """A DuckDB file with the tables of a release, or with those of all releases of a series."""

    tables: Mapping[str, Relation]
    is_copied = True

    @contextmanager
    def writing(self, staging_path: Path) -> Iterator[Mapping[str, Relation]]:
        with self.engine.attached(staging_path) as database, self.engine.transaction():
            yield self._within(database)

    @contextmanager
    def reading(self, staging_path: Path) -> Iterator[Mapping[str, Relation]]:
        with self.engine.attached(staging_path, read_only=True) as database:
            yield self._within(database)

    def _within(self, database: str) -> dict[str, Relation]:
        return {name: within(database, table) for name, table in self.tables.items()}

    @property
    def place(self) -> Place:
        return FilePlace(self.path, {name: Relation(table.parts[1:]) for name, table in self._within("").items()})


@dataclass(eq=False)
class DataFile(InFile):
    """A Parquet file, or a CSV file, which is read back by its `columns`."""

    form: str
    columns: Sequence[str]

    @property
    def place(self) -> Place:
        with self.opened() as files:
            return FilePlace(self.path, files)

    def writing(self, staging_path: Path) -> AbstractContextManager[Tables]:
        return self.reading(staging_path)

    def reading(self, staging_path: Path) -> AbstractContextManager[Tables]:
        if self.form == "parquet":
            return nullcontext({ONLY: FileRelation("read_parquet", str(staging_path))})
        return nullcontext({ONLY: FileRelation("read_csv", str(staging_path), form=CsvForm.exported(self.columns))})


@dataclass(eq=False)
class Folder(InFile):
    """A folder of one Parquet file for each of several tables, and nothing else; it is moved whole.

    `files` are what these are called, by the names of the tables.
    """

    files: Mapping[str, str]
    kind: ClassVar[str] = "folder"

    @property
    def place(self) -> Place:
        with self.opened() as files:
            return FilePlace(self.path, files)

    @property
    def is_there(self) -> bool:
        return self.path.exists() and any(self.path.iterdir())

    def writing(self, staging_path: Path) -> AbstractContextManager[Tables]:
        staging_path.mkdir(exist_ok=self.is_copied)
        (staging_path.parent / _NUMBER).write_text(str(staging_path.stat().st_ino))
        return self.reading(staging_path)

    def reading(self, staging_path: Path) -> AbstractContextManager[Tables]:
        found = {name: FileRelation.of(str(staging_path / file)) for name, file in self.files.items()}
        return nullcontext({name: file for name, file in found.items() if file})

    def flush(self, staging_path: Path) -> None:
        for path in [*staging_path.iterdir(), staging_path]:
            flush(path)

    def is_ours(self, file: str) -> bool:
        """Whether a file of that name is one of a release."""
        return file in self.files.values()

    def require_ours(self) -> None:
        """Raise PolicyError if a folder is there that holds anything else, which would go with it."""
        there = self.path.iterdir() if self.path.exists() else ()
        others = [path.name for path in there if not self.is_ours(path.name)]
        if others:
            what = f"{self.name} holds {min(others)} as well, which replace would remove"
            raise refused("target.file", what, "name a new folder")

    def move(self, staging_path: Path) -> None:
        self.require_ours()
        if not self.path.exists():
            move(staging_path, self.path)
            return
        try:
            swap(staging_path, self.path)
        except OSError as error:
            what = f"two folders cannot change places here: {error.strerror}"
            raise refused("target.file", what, "name a new folder") from None

    def is_moved(self, work: Path) -> bool:
        number = work / _NUMBER
        return number.exists() and self.path.exists() and number.read_text() == str(self.path.stat().st_ino)


@dataclass(eq=False)
class ReleasesFolder(Folder):
    """A folder of the files of all releases of a series, which are called after one that is not there.

    `columns` are those of each table of a release, by the ending of its name.
    """

    columns: Mapping[str, Sequence[str]]
    is_copied = True

    def is_ours(self, file: str) -> bool:
        stem, ending = (re.escape(part) for part in os.path.splitext(self.files[ONLY]))
        return bool(re.fullmatch(rf"{stem}_\d+_({'|'.join(self.columns)}){ending}", file))

    def copy(self, staging_path: Path) -> None:
        shutil.copytree(self.path, staging_path)


def within(database: str, table: Relation) -> Relation:
    """The table, or prefix, in an attached database."""
    return Relation((database, *(table.parts if len(table.parts) > 1 else ("main", table.name))))
