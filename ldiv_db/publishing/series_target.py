"""Target of a series: tables of the source's database, or a DuckDB file of their own with those of all releases.

A release to a file that a process died over is finished or rolled back by the next command, which finds out by the
file itself what is true.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog
from ldiv_db.database.catalog import named_table, new_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.files import abandoned, folder_of
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID, SourcePlace
from ldiv_db.policy.targets import ONLY, Target
from ldiv_db.publishing import ledger
from ldiv_db.publishing.in_database import InDatabase
from ldiv_db.publishing.in_file import DatabaseFile
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.inference import Release
from ldiv_db.publishing.ledger import Entry
from ldiv_db.publishing.refusals import check_file, refuse_catalog_schema, refuse_database_name, refuse_log
from ldiv_db.publishing.series import name_of

_BUILDS = "a release builds on the last one"


@dataclass(frozen=True)
class ReleaseTables:
    """The tables of one release: of people, of sensitive values (perhaps the same), and perhaps of their combinations.

    `group` is the column that says which rows belong together, `count` that of counts in the table of sensitive values.
    """

    people: Relation
    values: Relation
    marginals: Relation | None = None
    group: str = GROUP_ID
    count: str | None = None

    @property
    def plain(self) -> ReleaseTables:
        """The tables that every release has: without combinations."""
        return replace(self, marginals=None)

    @property
    def all(self) -> list[Relation]:
        listed = [self.people, self.values, *([self.marginals] if self.marginals else [])]
        return list(dict.fromkeys(listed))


def sql_name_of(table: Relation) -> str:
    """The table as people know it, whatever its database is attached as."""
    return ".".join(table.parts[-2:])


@dataclass(frozen=True)
class SeriesTarget:
    """The target of a series by an algorithm: the prefix of its tables, and where these are.

    `name` is what the series is called: as its first release called it, if there is one. With `one_table` the prefix is
    the name of the table to which each release adds its classes; one that is there already is replaced by the first if
    it may `replace` it.
    """

    algorithm: str
    prefix: Relation
    name: str
    destination: InDatabase | DatabaseFile | InWarehouse
    one_table: bool = False
    replaces: bool = False

    @property
    def engine(self) -> Engine:
        return self.destination.engine

    @property
    def where(self) -> dict[str, Any]:
        """The target as a release's report has it."""
        file = {"file": str(self.destination.path)} if isinstance(self.destination, DatabaseFile) else {}
        return {"prefix": str(self.prefix), "one_table": self.one_table, **file}

    @property
    def key(self) -> str:
        """The key of the policy that names it."""
        return "target.table" if self.one_table else "target.prefix"

    def tables(self, prefix: Relation, release: int) -> ReleaseTables:
        """The tables of a release: of `published.census` `published.census_1_qid` and so on, or `published.census_1`.

        The prefix is as it is called where it is open. Whether there are combinations is not said, only what their
        table is called.
        """
        if self.one_table:
            return ReleaseTables(prefix, prefix, group=CLASS_ID)

        def named(*suffix: str) -> Relation:
            return prefix.beside("_".join([prefix.name, str(release), *suffix]))

        if self.algorithm not in DECOMPOSITIONS:
            return ReleaseTables(named(), named(), group=CLASS_ID)
        people, values, *rest = (named(suffix) for suffix in DECOMPOSITIONS[self.algorithm])
        return ReleaseTables(people, values, rest[0] if rest else None, count=None if rest else COUNT)

    def releases(self, prefix: Relation, last: int) -> list[Release]:
        """The releases of the series up to `last`, as they lie in the database of `prefix`.

        Of those that are one table there is the last alone, which has all classes of the others as they were.
        """
        engine, listed = self.engine, []
        own: dict[str, Any] = {"members": ledger.table(engine, "release_member"), "series": self.name}
        for number in [last] if self.one_table else range(1, last + 1):
            found = self.tables(prefix, number)
            combined = found.marginals if found.marginals and catalog.table_exists(engine, found.marginals) else None
            told: dict[str, Any] = {"count": found.count, "combinations": combined, "number": number, **own}
            listed.append(Release(f"release {number}", found.values, (found.group,), **told))
        return listed

    @contextmanager
    def opened(self) -> Iterator[Relation]:
        """A context in which the series' tables can be read; it gives their prefix."""
        with self.destination.opened() as there:
            yield there[ONLY]

    def check(self) -> None:
        """Raise PolicyError if releases may not or cannot go there."""
        if isinstance(self.destination, InWarehouse):
            self.destination.refuse_place()
            return
        refuse_catalog_schema(self.engine, self.prefix, self.key)
        if isinstance(self.destination, DatabaseFile):
            check_file(self.destination)
            refuse_log(self.destination)
            refuse_database_name(self.prefix, self.key)
            return
        engine = self.engine
        home, current = catalog.catalog_of(engine, self.prefix).lower(), engine.snapshot.current.lower()
        if home != (engine.catalog or current).lower() or home != current:
            what = "tables cannot be published in one transaction with a catalog in another database"
            raise refused(self.key, what, "give `file:` as well, or leave the catalog in the database")

    def check_next(self, release: int) -> None:
        """Raise PolicyError if tables of this release are in the way, or the file of earlier ones is gone."""
        if isinstance(self.destination, DatabaseFile):
            name, there = self.destination.name, self.destination.path.exists()
            if release == 1 and there:
                raise refused("target.file", f"{name} exists, and no release made it", "name another file")
            if release == 1:
                return
            if not there:
                raise refused("target.file", f"{name} with the last release is gone", _BUILDS)
        if self.one_table and (release > 1 or self.replaces):
            return
        if isinstance(self.destination, InWarehouse):
            self.destination.refuse()
            return
        with self.opened() as prefix:
            for table in self.tables(prefix, release).all:
                if catalog.table_exists(self.engine, table):
                    what = f"{sql_name_of(table)} exists, and no release made it"
                    raise refused(self.key, what, "drop it, or give another name")

    def require_earlier(self, prefix: Relation, last: int) -> ReleaseTables:
        """The tables of the last release; raises PolicyError unless they are there, and what earlier ones told."""
        for number in range(1, last):
            table = self.tables(prefix, number).values
            if not catalog.table_exists(self.engine, table):
                what = f"{sql_name_of(table)} of release {number} is gone"
                raise refused("target.prefix", what, "a release is compared with all earlier ones")
        tables = self.tables(prefix, last)
        for table in tables.plain.all:
            if not catalog.table_exists(self.engine, table):
                raise refused("target.prefix", f"{sql_name_of(table)} of the last release is gone", _BUILDS)
        return tables


def series_target_of(
    engine: Engine, target: Target, algorithm: str, folder: Path, there: SourcePlace | None = None
) -> SeriesTarget:
    """The target that a policy names, perhaps `there`; `folder` is where relative files lie."""
    file, one_table = target.file, target.prefix is None
    key = "target.table" if one_table else "target.prefix"
    prefix = new_table(engine, target.prefix or target.table or "", key, file is not None)
    path = (folder / file).resolve() if file else None
    name = name_of(engine, str(target) if file else str(prefix), path)
    own = {ONLY: prefix}
    beside = there if isinstance(there, InWarehouse) else InDatabase(engine, own)
    place = DatabaseFile(engine, path, file or "", own) if path else beside
    return SeriesTarget(algorithm, prefix, name, place, one_table, target.if_exists == "replace")


def settle_crashed(engine: Engine, series: str | None = None) -> None:
    """Finish or roll back the releases to files that a process died over; raises PolicyError for one under way."""
    for entry in ledger.unsettled(engine, series):
        path, run_id = Path(entry.report["file"]), entry.report["run_id"]
        folder = folder_of(path.parent, path.name, run_id)
        left = abandoned(path.parent, path.name)
        if folder.exists() and run_id not in left:
            raise refused("series", f"release {entry.release} of {entry.series} is under way", "wait")
        settle_entry(engine, entry)
        shutil.rmtree(folder, ignore_errors=True)


def settle_entry(engine: Engine, entry: Entry) -> None:
    """Settle a release in the ledger: published if the file has its tables, else it never was."""
    ledger.settle_release(engine, entry.series, entry.release, _is_in_place(engine, entry))


def target_of(engine: Engine, entry: Entry) -> SeriesTarget:
    """The target of a series, as the ledger has it."""
    report = entry.report
    prefix, file = named_table(report.get("prefix", entry.series), "series"), report.get("file")
    own = {ONLY: prefix}
    place = InDatabase(engine, own) if file is None else DatabaseFile(engine, Path(file), file, own)
    return SeriesTarget(report["algorithm"], prefix, entry.series, place, bool(report.get("one_table")))


def _is_in_place(engine: Engine, entry: Entry) -> bool:
    """True if the file of a release has its tables; of one table, which earlier releases have made, its last class."""
    if not Path(entry.report["file"]).exists():
        return False
    target = target_of(engine, entry)
    with target.opened() as prefix:
        tables = target.tables(prefix, entry.release)
        if not all(catalog.table_exists(engine, table) for table in tables.plain.all):
            return False
        own = [Where("series", entry.series), Where("release", entry.release)]
        last = engine.most(ledger.table(engine, "release_group"), "group_id", *own) if target.one_table else None
        return last is None or (engine.most(tables.people, tables.group) or 0) >= last
