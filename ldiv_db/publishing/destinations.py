"""Where a release goes: a table of the source's database, or a file of its own.

A table is made, audited and entered in the ledger in one transaction. A file is written beside its place,
closed, audited as it lies there, and moved into place; the ledger says `written` before the move and
`published` after it. Whatever moment a process dies at, the old file is there or the whole new one, and the
next run to the same place removes what was left over and has the ledger say what is true.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ldiv_db.auditing.audit import Audit
from ldiv_db.database import catalog, migrate
from ldiv_db.database.catalog import columns_of, new_table, without_members
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.files import abandoned, flush, move, work_folder
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.publishing.draft import PUBLISHED, WRITTEN, Draft, record_run, settle_run
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.recode import PUBLISHED as ROWS

#: Makes the result of a run out of its audits.
Describe = Callable[[list[Audit]], Result]
#: Integers that Parquet has no type for; they would silently become floating-point numbers.
_TOO_WIDE = ("HUGEINT", "UHUGEINT")


class Place(ABC):
    """A place that a release goes to."""

    def __init__(self, engine: Engine, policy: Policy):
        self.engine = engine
        self.policy = policy

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """Where the release takes up room, None if that is memory."""

    @abstractmethod
    def check(self, source: Relation | FileRelation, types: Mapping[str, str] | None) -> None:
        """Raise PolicyError if a release of `source` may not or cannot go there.

        `types` are those of the release's columns, None if they are not known.
        """

    @abstractmethod
    def publish(self, draft: Draft, run_id: str, describe: Describe) -> Result:
        """Write, audit and publish, with a row in the ledger; raises AuditError if it fails its policy."""


def place_of(engine: Engine, policy: Policy, folder: Path) -> Place:
    """The place that the policy names; `folder` is where relative files lie.

    Raises PolicyError for what is no name of a table, DatabaseError if the ledger could not be written.
    """
    target = policy.target
    migrate.pending(engine)
    table = new_table(engine, target.table, "target.table", target.file is not None) if target.table else None
    if target.file is None:
        return TablePlace(engine, policy, table or Relation(()))
    path = (folder / target.file).resolve()
    if target.format == "duckdb":
        return DatabasePlace(engine, policy, path, table or Relation(()))
    return DataFilePlace(engine, policy, path)


class TablePlace(Place):
    """A table of the source's database."""

    def __init__(self, engine: Engine, policy: Policy, table: Relation):
        super().__init__(engine, policy)
        self.table = table

    @property
    def folder(self) -> Path | None:
        file = catalog.file_of(self.engine, catalog.catalog_of(self.engine, self.table))
        return Path(file).parent if file else None

    def check(self, source: Relation | FileRelation, types: Mapping[str, str] | None) -> None:
        engine, table = self.engine, self.table
        if isinstance(source, Relation) and catalog.same_table(engine, table, source):
            raise _refused("target", "is the source itself", "name another table")
        if [part.lower() for part in table.parts[-2:-1]] == [catalog.SCHEMA]:
            raise _refused("target", f"schema {catalog.SCHEMA!r} is the catalog's own", "name another schema")
        home = catalog.catalog_of(engine, table).lower()
        if home not in ("temp", (engine.catalog or home).lower()):
            what = "a table cannot be published in one transaction with a catalog in another database"
            raise _refused("target.table", what, "give `file:` as well, or leave the catalog in the database")
        if home not in ("temp", catalog.current_database(engine).lower()):
            what = f"{table} is in another database, one transaction writes one"
            raise _refused("target.table", what, "give `file:` as well")
        if not catalog.table_exists(engine, table):
            return
        if self.policy.target.if_exists == "fail":
            raise _refused("target", f"{table} exists", "set if_exists: replace or append, or name another table")
        if catalog.is_view(engine, table):
            raise _refused("target", f"{table} is a view", "name another table")
        if self.policy.target.if_exists == "append" and types is not None:
            compare_columns(self.engine, types, table)

    def publish(self, draft: Draft, run_id: str, describe: Describe) -> Result:
        with self.engine.transaction():
            before = self._rows_before()
            self._write(draft)
            result = describe(draft.audit(self.table, before))
            record_run(self.engine, result, PUBLISHED)
        return result

    def _rows_before(self) -> int:
        """The rows that an appended release follows."""
        if self.policy.target.if_exists != "append" or not catalog.table_exists(self.engine, self.table):
            return 0
        return self.engine.count(self.table)

    def _write(self, draft: Draft) -> None:
        how = self.policy.target.if_exists
        if how != "append" or not catalog.table_exists(self.engine, self.table):
            with draft.rows() as holes:
                self.engine.create(self.table, ROWS, replace=how == "replace", **holes)
            return
        last = 0
        if self.policy.publishes_class_id:
            last = self.engine.scalar("recoding/publish/find_last_class", published=self.table)
        with draft.rows(last) as holes:
            self.engine.insert(self.table, ROWS, **holes)


class FilePlace(Place):
    """A file that holds the release and nothing else."""

    def __init__(self, engine: Engine, policy: Policy, path: Path):
        super().__init__(engine, policy)
        self.path = path

    @property
    def folder(self) -> Path | None:
        return self.path.parent

    @abstractmethod
    def _write(self, draft: Draft, part: Path) -> None:
        """Write the release to the new file `part` and close it."""

    @abstractmethod
    def _audit(self, draft: Draft, part: Path) -> list[Audit]:
        """The audits of the file, read back."""

    def check(self, source: Relation | FileRelation, types: Mapping[str, str] | None) -> None:
        name = self.policy.target.file or ""
        check_file(self.engine, name, self.path, [source.path] if isinstance(source, FileRelation) else [])
        if not self.path.exists():
            return
        if self.policy.target.if_exists == "fail":
            raise _refused("target", f"{name} exists", "set if_exists: replace, or name another file")

    def publish(self, draft: Draft, run_id: str, describe: Describe) -> Result:
        try:
            with migrate.unmade_on_error(self.engine), work_folder(self.path.parent, self.path.name, run_id) as folder:
                part = folder / self.path.name
                self._write(draft, part)
                result = describe(self._audit(draft, part))
                flush(part)
                self._move(part, result)
        except OSError as error:
            raise DatabaseError(f"cannot write {self.policy.target.file}: {error.strerror}") from error
        return result

    def _move(self, part: Path, result: Result) -> None:
        """Move the file into place; the ledger says before and after how far it has come."""
        left = abandoned(self.path.parent, self.path.name)
        with self.engine.transaction():
            migrate.migrate(self.engine)
            for run_id, folder in left.items():
                settle_run(self.engine, run_id, in_place=not (folder / self.path.name).exists())
            record_run(self.engine, result, WRITTEN)
        try:
            if self.policy.target.if_exists == "fail" and self.path.exists():
                raise _refused("target", f"{self.policy.target.file} was made by someone else meanwhile")
            move(part, self.path)
        finally:
            settle_run(self.engine, result.run_id, in_place=not part.exists())
        for folder in left.values():
            shutil.rmtree(folder, ignore_errors=True)


class DatabasePlace(FilePlace):
    """A table in a DuckDB file of its own."""

    def __init__(self, engine: Engine, policy: Policy, path: Path, table: Relation):
        super().__init__(engine, policy, path)
        self.table = table if len(table.parts) > 1 else Relation(("main", *table.parts))

    def check(self, source: Relation | FileRelation, types: Mapping[str, str] | None) -> None:
        super().check(source, types)
        name = self.policy.target.file
        if len(self.table.parts) > 2:
            raise _refused("target.table", f"{self.table} names a database, the file is one", "leave it out")
        refuse_log(name or "", self.path)
        if self.path.exists():
            with self.engine.attached(self.path, read_only=True) as database:
                others = [r for r in catalog.relations_in(self.engine, database) if not self._is_ours(r)]
            if others:
                raise _refused("target.file", f"{name} holds other tables, which replace would drop", "name a new file")

    def _is_ours(self, relation: Relation) -> bool:
        return [part.lower() for part in relation.parts] == [part.lower() for part in self.table.parts]

    def _within(self, database: str) -> Relation:
        return Relation((database, *self.table.parts))

    def _write(self, draft: Draft, part: Path) -> None:
        with self.engine.attached(part) as database, draft.rows() as holes, self.engine.transaction():
            self.engine.create(self._within(database), ROWS, **holes)

    def _audit(self, draft: Draft, part: Path) -> list[Audit]:
        with self.engine.attached(part, read_only=True) as database:
            return draft.audit(self._within(database))


class DataFilePlace(FilePlace):
    """A Parquet or CSV file."""

    def check(self, source: Relation | FileRelation, types: Mapping[str, str] | None) -> None:
        super().check(source, types)
        if set("*?[") & set(str(self.path)):
            raise _refused("target.file", "has one of * ? [ in its path, which would be read back as a pattern")
        if self.policy.target.format != "parquet":
            return
        wide = [name for name, kind in (types or {}).items() if kind in _TOO_WIDE]
        if wide:
            raise _refused(
                "target.file", f"Parquet has no integers as wide as {', '.join(wide)}", "write CSV or DuckDB"
            )

    def _write(self, draft: Draft, part: Path) -> None:
        with draft.rows(texts=self.policy.target.format == "csv") as holes:
            self.engine.export(part, self.policy.target.format or "", ROWS, **holes)

    def _audit(self, draft: Draft, part: Path) -> list[Audit]:
        if self.policy.target.format == "parquet":
            return draft.audit(FileRelation("read_parquet", str(part)))
        return draft.audit(FileRelation("read_csv", str(part), tuple(draft.columns)))


def compare_columns(engine: Engine, types: Mapping[str, str], table: Relation) -> None:
    """Raise PolicyError unless the table has the columns of a release, which are of these `types`, and no others."""
    ours = {name.lower(): kind for name, kind in types.items()}
    theirs = {column.name.lower(): column.type for column in columns_of(engine, table)}
    label = ".".join(table.parts[-2:])
    problems = [
        Problem("target", f"{label} has column {name} as {_shown(theirs, name)}, not {_shown(ours, name)}")
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
    if problems:
        raise PolicyError(problems)


def _shown(types: Mapping[str, str], name: str) -> str:
    return without_members(types.get(name, "none"))


def check_file(engine: Engine, name: str, path: Path, sources: Sequence[str] = ()) -> None:
    """Raise PolicyError if a file there, `name` to the user, cannot be written beside and moved into place."""
    if engine.in_transaction():
        raise _refused("target.file", "a file joins no open transaction", "commit first, or publish to a table")
    if not path.parent.is_dir():
        raise _refused("target.file", f"no folder for {name}")
    if any(_same_file(path, Path(other)) for other in [*catalog.open_files(engine), *sources]):
        raise _refused("target.file", f"{name} is the source, or is open here", "name another file")
    if path.exists() and not path.is_file():
        raise _refused("target.file", f"{name} is no file")


def refuse_log(name: str, path: Path) -> None:
    """Raise PolicyError if a database file has a log beside it: who moves the file would leave changes behind."""
    if Path(f"{path}.wal").exists():
        raise _refused("target.file", f"{name} has a write-ahead log beside it", "open and close it once")


def _refused(key: str, what: str, hint: str = "") -> PolicyError:
    return PolicyError([Problem(key, what, hint)])


def _same_file(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False
