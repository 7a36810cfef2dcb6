"""Where a series of releases goes: tables of the source's database, or tables in a file of their own.

Tables of the database and the ledger are one transaction. A file holds all releases of its series; the next one is
written into a copy beside it, which is closed, checked as it lies there, and moved into place. The ledger says
`started` before, `written` when the copy is checked, and `published` when it is in place; whatever moment a process
dies at, the next command finds out by the file itself which is true, and rolls back what is not there.
"""

from __future__ import annotations

import shutil
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from ldiv_db.database import catalog, migrate
from ldiv_db.database.catalog import new_table, qualify
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.files import abandoned, flush, folder_of, move, work_folder
from ldiv_db.database.templates import Relation
from ldiv_db.policy.document import Policy
from ldiv_db.publishing import series_ledger as ledger
from ldiv_db.publishing.destinations import check_file, refuse_log
from ldiv_db.publishing.draft import PUBLISHED, STARTED, WRITTEN
from ldiv_db.publishing.series_ledger import Entry, Series
from ldiv_db.publishing.series_tables import Tables, label_of, refused, tables_of


class Work(Protocol):
    """The next release of a series, as a place has it made; `prefix` is where its tables are."""

    @property
    def series(self) -> Series: ...

    def record(self) -> None:
        """Write its keys and groups into the ledger."""

    def write(self, prefix: Relation) -> None:
        """Make its tables."""

    def judge(self, prefix: Relation, run_id: str) -> dict[str, Any]:
        """Audit its tables, compare them with all earlier ones, and return the report."""


class Place(ABC):
    """A place that the releases of a series go to."""

    def __init__(self, engine: Engine, policy: Policy, path: Path | None = None):
        self.engine = engine
        self.policy = policy
        self.prefix = new_table(engine, policy.target.prefix or "", "target.prefix", path is not None)
        #: What the series is called: as its first release called it, if there is one.
        self.name = ledger.name_of(engine, str(policy.target) if path else str(self.prefix), path)

    @property
    def where(self) -> dict[str, str]:
        """What the report says of the place."""
        return {"prefix": str(self.prefix)}

    def tables(self, release: int) -> Tables:
        """The tables of a release, as people know them."""
        return tables_of(self.prefix, self.policy.algorithm.name, release)

    def check(self) -> None:
        """Raise PolicyError if releases may not or cannot go there."""
        if [part.lower() for part in self.prefix.parts[-2:-1]] == [catalog.SCHEMA]:
            raise refused(f"schema {catalog.SCHEMA!r} is the catalog's own", "name another schema")

    @abstractmethod
    def check_next(self, release: int) -> None:
        """Raise PolicyError if tables of this release are in the way."""

    @abstractmethod
    def opened(self) -> Any:
        """A context in which the series' tables can be read; it gives their prefix."""

    @abstractmethod
    def publish(self, work: Work) -> None:
        """Have the next release made, checked, published and entered in the ledger, or nothing of it."""


def place_of(engine: Engine, policy: Policy, folder: Path) -> Place:
    """The place that the policy names; `folder` is where relative files lie."""
    if policy.target.file is None:
        return Tabled(engine, policy)
    return Filed(engine, policy, (folder / policy.target.file).resolve())


class Tabled(Place):
    """Tables of the source's database, which has the catalog too."""

    def check(self) -> None:
        super().check()
        engine, prefix = self.engine, self.prefix
        home, current = catalog.catalog_of(engine, prefix).lower(), catalog.current_database(engine).lower()
        if home != (engine.catalog or current).lower() or home != current:
            what = "tables cannot be published in one transaction with a catalog in another database"
            raise refused(what, "give `file:` as well, or leave the catalog in the database")

    def check_next(self, release: int) -> None:
        _refuse_tables(self.engine, self.tables(release))

    @contextmanager
    def opened(self) -> Iterator[Relation]:
        yield self.prefix

    def publish(self, work: Work) -> None:
        with self.engine.transaction():
            ledger.record_series(self.engine, work.series, self.policy.algorithm.name, self.policy.source)
            work.record()
            work.write(self.prefix)
            report = work.judge(self.prefix, uuid.uuid4().hex)
            ledger.record_release(self.engine, work.series, self.policy.seed, report, PUBLISHED)


class Filed(Place):
    """A DuckDB file that holds the tables of all releases."""

    def __init__(self, engine: Engine, policy: Policy, path: Path):
        super().__init__(engine, policy, path)
        self.path = path

    @property
    def where(self) -> dict[str, str]:
        return super().where | {"file": str(self.path)}

    def check(self) -> None:
        super().check()
        name = self.policy.target.file or ""
        check_file(self.engine, name, self.path)
        refuse_log(name, self.path)
        if len(self.prefix.parts) > 2:
            raise refused(f"{self.prefix} names a database, the file is one", "leave it out")

    def check_next(self, release: int) -> None:
        name = self.policy.target.file
        if release == 1 and self.path.exists():
            raise _file_refused(f"{name} exists, and no release made it", "name another file")
        if release > 1 and not self.path.exists():
            raise _file_refused(f"{name} with the last release is gone", "a release builds on the last one")
        if release > 1:
            with self.opened() as prefix:
                _refuse_tables(self.engine, tables_of(prefix, self.policy.algorithm.name, release))

    @contextmanager
    def opened(self) -> Iterator[Relation]:
        with self.engine.attached(self.path, read_only=True) as database:
            yield within(database, self.prefix)

    def publish(self, work: Work) -> None:
        run_id, path = uuid.uuid4().hex, self.path
        try:
            with migrate.unmade_on_error(self.engine):
                self._start(work, run_id)  # before there is a folder: nobody would find one that no ledger knows
                with self._settling(work, run_id), work_folder(path.parent, path.name, run_id) as folder:
                    self._make(work, folder / path.name, run_id)
        except OSError as error:
            raise DatabaseError(f"cannot write {self.policy.target.file}: {error.strerror}") from error

    @contextmanager
    def _settling(self, work: Work, run_id: str) -> Iterator[None]:
        """Within, the next release is made; at the end the ledger says what became of it."""
        try:
            yield
        except BaseException:
            with suppress(DatabaseError):  # the first error is the one to report
                self._settle(work, run_id)
            raise
        self._settle(work, run_id)

    def _start(self, work: Work, run_id: str) -> None:
        """Have the ledger say that there is work going on, and where."""
        with self.engine.transaction():
            ledger.record_series(self.engine, work.series, self.policy.algorithm.name, self.policy.source)
            report = {"run_id": run_id, "algorithm": self.policy.algorithm.name, **self.where}
            ledger.record_release(self.engine, work.series, self.policy.seed, report, STARTED)

    def _make(self, work: Work, part: Path, run_id: str) -> None:
        """Write the file beside its place, check it as it lies there, and move it into place."""
        engine = self.engine
        if not self._is_ours(work, run_id):  # taken for a dead one, as it had no folder yet
            raise refused("another release of the series is under way", "wait")
        if work.series.releases:
            shutil.copyfile(self.path, part)
        with engine.attached(part) as database, engine.transaction():
            work.write(within(database, self.prefix))
        with engine.attached(part, read_only=True) as database, engine.transaction():
            work.record()
            report = work.judge(within(database, self.prefix), run_id)
            ledger.advance_release(engine, work.series, report, WRITTEN)
        flush(part)
        if not work.series.releases and self.path.exists():
            raise _file_refused(f"{self.policy.target.file} was made by someone else meanwhile", "name another file")
        move(part, self.path)

    def _settle(self, work: Work, run_id: str) -> None:
        if self._is_ours(work, run_id):
            in_place = _holds(self.engine, self.path, self.prefix, self.policy.algorithm.name, work.series.next)
            ledger.settle(self.engine, self.name, work.series.next, in_place)

    def _is_ours(self, work: Work, run_id: str) -> bool:
        """Whether the ledger's next release is this one."""
        found = ledger.releases(self.engine, work.series.name)
        return any(e.release == work.series.next and e.report.get("run_id") == run_id for e in found)


def within(database: str, prefix: Relation) -> Relation:
    """The prefix in an attached database."""
    return Relation((database, *(prefix.parts if len(prefix.parts) > 1 else ("main", prefix.name))))


def settle_crashed(engine: Engine, series: str | None = None) -> None:
    """Finish or roll back the releases to files that a process died over; raises PolicyError for one under way."""
    for entry in ledger.unsettled(engine, series):
        path, token = Path(entry.report["file"]), entry.report["run_id"]
        folder = folder_of(path.parent, path.name, token)
        left = abandoned(path.parent, path.name)
        if folder.exists() and token not in left:
            raise PolicyError([Problem("series", f"release {entry.release} of {entry.series} is under way", "wait")])
        ledger.settle(engine, entry.series, entry.release, _is_in_place(engine, entry, path))
        shutil.rmtree(folder, ignore_errors=True)


def _is_in_place(engine: Engine, entry: Entry, path: Path) -> bool:
    prefix = qualify(engine, entry.report["prefix"], "target.prefix")
    return _holds(engine, path, prefix, entry.report["algorithm"], entry.release)


def _holds(engine: Engine, path: Path, prefix: Relation, algorithm: str, release: int) -> bool:
    """Whether the file has the tables of a release."""
    if not path.exists():
        return False
    with engine.attached(path, read_only=True) as database:
        tables = tables_of(within(database, prefix), algorithm, release)
        return all(catalog.table_exists(engine, table) for table in tables.plain.all)


def _refuse_tables(engine: Engine, tables: Tables) -> None:
    for table in tables.all:
        if catalog.table_exists(engine, table):
            raise refused(f"{label_of(table)} exists, and no release made it", "drop it, or name another prefix")


def _file_refused(what: str, hint: str) -> PolicyError:
    return PolicyError([Problem("target.file", what, hint)])
