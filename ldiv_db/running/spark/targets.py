"""Targets of releases on Spark: a release is staged beside its place, and put there.

A table of Delta or Iceberg is replaced, made or appended to in one commit of its own. Any other table, and a folder, is
renamed into place; what is there is renamed aside before, so that there is a moment without one. A driver that dies in
it leaves the old one under a name that tells, and the next run puts it back.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ldiv_db.database import spark as tables
from ldiv_db.database.errors import DatabaseError, LdivError, PolicyError, Problem
from ldiv_db.database.spark import is_remote, plainly
from ldiv_db.database.templates import Relation
from ldiv_db.policy.document import Target
from ldiv_db.running.spark.resolve import place_of

_STAGED, _ASIDE = "ldiv_new", "ldiv_old"


class SparkTarget(ABC):
    """A place for a release; `name` is what the user calls it."""

    def __init__(self, session: Any, name: str, if_exists: str):
        self.session = session
        self.name = name
        self.if_exists = if_exists

    @property
    def _mark(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()[:8]

    def _beside(self, kind: str, run_id: str) -> str:
        return f"{kind}_{run_id}_{self._mark}"

    def _run_of(self, name: str, kind: str) -> str | None:
        """The run whose name that is, if it is one beside this target."""
        found = re.fullmatch(f"{kind}_([0-9a-f]{{32}})_{self._mark}", name)
        return found[1] if found else None

    @abstractmethod
    def problems(self) -> list[Problem]:
        """Why nothing may be published there."""

    @abstractmethod
    def exists(self) -> bool:
        """True if something is there."""

    @abstractmethod
    def settle(self) -> list[str]:
        """Put back or remove what dead runs left; the runs that had staged their release and not published it."""

    @abstractmethod
    def stage(self, frame: Any, run_id: str) -> None:
        """Write the frame beside the place."""

    @abstractmethod
    def staged(self, run_id: str) -> Any:
        """The staged rows, as a frame."""

    @abstractmethod
    def current(self) -> Any:
        """The rows that are there, as a frame."""

    @abstractmethod
    def commit(self, run_id: str) -> None:
        """Put what was staged into place."""

    @abstractmethod
    def discard(self, run_id: str) -> None:
        """Remove what was staged, if anything was."""


class CatalogTable(SparkTarget):
    """A table of Spark's catalog."""

    def __init__(self, session: Any, table: Relation, if_exists: str):
        super().__init__(session, str(table), if_exists)
        self.table = table

    def problems(self) -> list[Problem]:
        if self.table.parts[-2:-1] == ("ldiv",):
            return [Problem("target.table", "schema 'ldiv' is the ledger's own", "name another schema")]
        if not self.exists():
            return []
        if self.if_exists == "fail":
            hint = "set if_exists: replace or append, or name another table"
            return [Problem("target", f"{self.name} exists", hint)]
        if "VIEW" in tables.description(self.session, self.table).get("Type", ""):
            return [Problem("target", f"{self.name} is a view", "name another table")]
        return []

    def exists(self) -> bool:
        return tables.exists(self.session, self.table)

    def settle(self) -> list[str]:
        left = []
        for name in tables.names_in_schema(self.session, self.table):
            other = tables.sibling(self.table, name)
            if self._run_of(name, _ASIDE) and not self.exists():
                tables.rename(self.session, other, self.table.name)
            elif self._run_of(name, _ASIDE):
                tables.drop(self.session, other)
            elif run := self._run_of(name, _STAGED):
                tables.drop(self.session, other)
                left.append(run)
        return left

    def stage(self, frame: Any, run_id: str) -> None:
        tables.make_schema(self.session, self.table)
        staged = self._at(_STAGED, run_id)
        tables.make_empty(self.session, staged, frame.schema.fields)
        with plainly(f"write {self.name}"):
            frame.write.insertInto(tables.quoted(staged))

    def staged(self, run_id: str) -> Any:
        with plainly(f"read {self.name}"):
            return self.session.table(tables.quoted(self._at(_STAGED, run_id)))

    def current(self) -> Any:
        with plainly(f"read {self.name}"):
            return tables.read(self.session, self.table)

    def commit(self, run_id: str) -> None:
        staged, there = self._at(_STAGED, run_id), self.exists()
        if there and self.if_exists == "fail":
            raise PolicyError([Problem("target", f"{self.name} was made by someone else meanwhile", "name another")])
        if there and self.if_exists == "append":
            with plainly(f"append to {self.name}"):
                self.staged(run_id).write.insertInto(tables.quoted(self.table))
            tables.drop(self.session, staged)
        elif (provider := self._provider(there)) in tables.ATOMIC:
            with plainly(f"write {self.name}"):
                self.staged(run_id).writeTo(tables.quoted(self.table)).using(provider).createOrReplace()
            tables.drop(self.session, staged)
        else:
            self._rename(run_id, there)

    def _rename(self, run_id: str, there: bool) -> None:
        aside = self._at(_ASIDE, run_id)
        if there:
            tables.rename(self.session, self.table, aside.name)
        try:
            tables.rename(self.session, self._at(_STAGED, run_id), self.table.name)
        except LdivError:
            if there:
                with suppress(LdivError):  # the first error is the one to report
                    tables.rename(self.session, aside, self.table.name)
            raise
        if there:
            tables.drop(self.session, aside)

    def discard(self, run_id: str) -> None:
        tables.drop(self.session, self._at(_STAGED, run_id))

    def _provider(self, there: bool) -> str:
        if there:
            return tables.description(self.session, self.table).get("Provider", "").lower()
        return str(self.session.conf.get("spark.sql.sources.default", "parquet")).lower()

    def _at(self, kind: str, run_id: str) -> Relation:
        return tables.sibling(self.table, self._beside(kind, run_id))


class ParquetFolder(SparkTarget):
    """A folder of Parquet files, wherever Spark's file systems reach."""

    def __init__(self, session: Any, name: str, path: str, if_exists: str):
        super().__init__(session, name, if_exists)
        self.path = path

    def problems(self) -> list[Problem]:
        if is_remote(self.session):
            what = "a folder cannot be renamed through Spark Connect"
            return [Problem("target.file", what, "name a table of the catalog, or use a classic session")]
        if self.exists() and self.if_exists == "fail":
            return [Problem("target", f"{self.name} exists", "set if_exists: replace, or name another folder")]
        return []

    def exists(self) -> bool:
        return bool(self._system.exists(self._path(self.path)))

    def settle(self) -> list[str]:
        left, parent = [], self._path(self.path).getParent()
        if not self._system.exists(parent):
            return []
        for name in [status.getPath().getName() for status in self._system.listStatus(parent)]:
            if self._run_of(name, _ASIDE) and not self.exists():
                self._move(self._sibling(name), self.path)
            elif self._run_of(name, _ASIDE):
                self._delete(self._sibling(name))
            elif run := self._run_of(name, _STAGED):
                self._delete(self._sibling(name))
                left.append(run)
        return left

    def stage(self, frame: Any, run_id: str) -> None:
        with plainly(f"write {self.name}"):
            frame.write.parquet(self._at(_STAGED, run_id))

    def staged(self, run_id: str) -> Any:
        with plainly(f"read {self.name}"):
            return self.session.read.parquet(self._at(_STAGED, run_id))

    def current(self) -> Any:
        with plainly(f"read {self.name}"):
            return self.session.read.parquet(self.path)

    def commit(self, run_id: str) -> None:
        there, aside = self.exists(), self._at(_ASIDE, run_id)
        if there and self.if_exists == "fail":
            raise PolicyError([Problem("target", f"{self.name} was made by someone else meanwhile", "name another")])
        if there:
            self._move(self.path, aside)
        try:
            self._move(self._at(_STAGED, run_id), self.path)
        except DatabaseError:
            if there:
                with suppress(DatabaseError):  # the first error is the one to report
                    self._move(aside, self.path)
            raise
        self._delete(aside)

    def discard(self, run_id: str) -> None:
        self._delete(self._at(_STAGED, run_id))

    def _at(self, kind: str, run_id: str) -> str:
        return self._sibling(self._beside(kind, run_id))

    def _sibling(self, name: str) -> str:
        return str(self._path(self.path).getParent().toString()).rstrip("/") + f"/{name}"

    def _path(self, path: str) -> Any:
        return self.session._jvm.org.apache.hadoop.fs.Path(path)

    @property
    def _system(self) -> Any:
        return self._path(self.path).getFileSystem(self.session._jsparkSession.sessionState().newHadoopConf())

    def _move(self, source: str, target: str) -> None:
        with plainly(f"move {self.name} into place"):
            moved = self._system.rename(self._path(source), self._path(target))
        if not moved:
            raise DatabaseError(f"Spark cannot move {self.name} into place")

    def _delete(self, path: str) -> None:
        with plainly(f"remove what was left beside {self.name}"):
            self._system.delete(self._path(path), True)


def target_of(session: Any, target: Target, folder: Path) -> SparkTarget:
    """The target that a policy names; raises PolicyError for one that Spark does not write."""
    if target.prefix is not None or target.database is not None:
        raise PolicyError([Problem("target", "is no table or folder", "`table:`, or `file:` ending in .parquet")])
    if target.file is not None:
        if target.format != "parquet":
            raise PolicyError([Problem("target.file", f"Spark does not write {target.file}", "a name like r.parquet")])
        return ParquetFolder(session, target.file, place_of(target.file, folder), target.if_exists)
    return CatalogTable(session, tables.table_named(target.table or "", "target.table"), target.if_exists)


def compare_columns(types: Sequence[tuple[str, str]], fields: Sequence[Any], name: str) -> list[Problem]:
    """Why a release of columns of these types (name, Spark's type) cannot be appended to what has the fields."""
    theirs = [(field.name.lower(), field.dataType.simpleString()) for field in fields]
    ours = [(column.lower(), kind) for column, kind in types]
    wrong = [column for column, kind in ours if (column, kind) not in theirs] + [
        column for column, _ in theirs if column not in {name for name, _ in ours}
    ]
    if ours == theirs:
        return []
    what = f"{name} has other columns, of another type or order: {', '.join(dict.fromkeys(wrong)) or 'their order'}"
    return [Problem("target", what, "what is appended to has labels as text: make it by if_exists: append")]
