"""Target of a series: tables of the source's database, or a DuckDB file of their own with those of all releases.

A release to a file that a process died over is finished or rolled back by the next command, which finds out by the
file itself what is true.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog
from ldiv_db.database.data_files import CsvForm, FileRelation, Table, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.files import abandoned, folder_of
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID, SourcePlace
from ldiv_db.policy.targets import ONLY, Target
from ldiv_db.publishing import ledger
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.destinations import Columns, destination_of, key_of
from ldiv_db.publishing.in_database import InOtherDatabase, InTables
from ldiv_db.publishing.in_file import DatabaseFile, DataFile, Folder, InFile, ReleasesFolder
from ldiv_db.publishing.in_warehouse import InWarehouse
from ldiv_db.publishing.inference import Release
from ldiv_db.publishing.ledger import Entry
from ldiv_db.publishing.people_over_time import content_of
from ldiv_db.publishing.place_there import PlaceThere
from ldiv_db.publishing.refusals import check_file, refuse_catalog_schema, refuse_database_name, refuse_log
from ldiv_db.publishing.series import name_of, secret_of

_BUILDS = "a release builds on the last one"


@dataclass(frozen=True)
class ReleaseTables:
    """The tables of one release: of people, of sensitive values (perhaps the same), and perhaps of their combinations.

    `group` is the column that says which rows belong together, `count` that of counts in the table of sensitive values.
    """

    people: Table
    values: Table
    marginals: Table | None = None
    group: str = GROUP_ID
    count: str | None = None

    @property
    def plain(self) -> ReleaseTables:
        """The tables that every release has: without combinations."""
        return replace(self, marginals=None)

    @property
    def all(self) -> list[Table]:
        listed = [self.people, self.values, *([self.marginals] if self.marginals else [])]
        return list(dict.fromkeys(listed))

    def read_once(self, engine: Engine) -> ReleaseTables:
        """The same, copied from a database that is attached."""
        read = {table: catalog.read_once(engine, table) for table in self.all}
        marginals = read[self.marginals] if self.marginals else None
        return replace(self, people=read[self.people], values=read[self.values], marginals=marginals)


def sql_name_of(table: Table) -> str:
    """The table as people know it, whatever its database is attached as."""
    return ".".join(table.parts[-2:]) if isinstance(table, Relation) else table.path


def is_there(engine: Engine, table: Table) -> bool:
    """True if there is such a table, or file."""
    return catalog.table_exists(engine, table) if isinstance(table, Relation) else Path(table.path).exists()


@dataclass(frozen=True)
class SeriesTarget:
    """The target of a series by an algorithm: the prefix of its tables, and where these are.

    `name` is what the series is called: as its first release called it, if there is one. With `one_table` the prefix is
    the name of the table to which each release adds its classes, of several the first.
    """

    algorithm: str
    prefix: Table
    name: str
    destination: Destination
    targets: Mapping[str, Target]

    @property
    def first(self) -> Target:
        """The target of its only table, or of the first."""
        return next(iter(self.targets.values()))

    @property
    def is_several(self) -> bool:
        """True if it is of several tables."""
        return ONLY not in self.targets

    @property
    def one_table(self) -> bool:
        """True if releases are added to what earlier ones published, and have no tables of their own."""
        return self.first.prefix is None and self.algorithm not in DECOMPOSITIONS

    @property
    def replaces(self) -> bool:
        """True if the first release may take the place of what is there already."""
        return self.first.if_exists == "replace"

    @property
    def engine(self) -> Engine:
        return self.destination.engine

    @property
    def where(self) -> dict[str, Any]:
        """The target as a release's report has it."""
        place, more = self.destination, dict[str, Any]()
        if isinstance(place, InFile):
            more["file"] = str(file_of(place))
        if isinstance(place, DataFile | ReleasesFolder):
            more["columns"] = place.columns
        if isinstance(place, InOtherDatabase):
            more |= {"database": place.home, "prefix": self.first.begins}
        if self.is_several:
            files = place.files.items() if isinstance(place, Folder) else ()
            own = {name: str(place.path / file) for name, file in files} if isinstance(place, InFile) else {}
            more["targets"] = {
                name: {"database": one.database, "table": one.table, "file": own.get(name, more.get("file"))}
                for name, one in self.targets.items()
            }
        return {"prefix": str(self.prefix), "one_table": self.one_table, **more}

    @property
    def key(self) -> str:
        """The key of the policy that names it."""
        name, target = next(iter(self.targets.items()))
        return key_of(target, name)

    def tables(self, prefix: Table, release: int) -> ReleaseTables:
        """The tables of a release: of `published.census` `published.census_1_qid` and so on, or `published.census_1`.

        The prefix is as it is called where it is open. Whether there are combinations is not said, only what their
        table is called.
        """
        if self.one_table:
            if isinstance(prefix, FileRelation):
                prefix = replace(prefix, form=prefix.form and prefix.form.typed(CLASS_ID, "BIGINT"))
            return ReleaseTables(prefix, prefix, group=CLASS_ID)

        def named(*suffix: str) -> Table:
            if isinstance(prefix, FileRelation):
                return self._file(prefix, release, *suffix)
            return prefix.beside("_".join([prefix.name, str(release), *suffix]))

        if self.algorithm not in DECOMPOSITIONS:
            return ReleaseTables(named(), named(), group=CLASS_ID)
        people, values, *rest = (named(suffix) for suffix in DECOMPOSITIONS[self.algorithm])
        return ReleaseTables(people, values, rest[0] if rest else None, count=None if rest else COUNT)

    def _file(self, prefix: FileRelation, release: int, suffix: str) -> FileRelation:
        """The file of a table of a release."""
        path, form = Path(prefix.path), None
        if prefix.reader == "read_csv" and isinstance(self.destination, ReleasesFolder):
            columns = self.destination.columns
            form = CsvForm.exported(columns[suffix]).typed(GROUP_ID, "BIGINT")
            form = form if len(columns) > 2 else form.typed(COUNT, "BIGINT")  # the source may have such a column
        return replace(prefix, path=str(path.with_name(f"{path.stem}_{release}_{suffix}{path.suffix}")), form=form)

    def releases(self, prefix: Table, last: int, own: Table | None = None) -> list[Release]:
        """The releases of the series up to `last`, as they lie in the database of `prefix`; the last may lie at `own`.

        Of those that are one table there is the last alone, which has all classes of the others as they were.
        """
        engine, listed = self.engine, []
        ours: dict[str, Any] = {"members": ledger.table(engine, "release_member"), "series": self.name}
        for number in [last] if self.one_table else range(1, last + 1):
            found = self.tables(own if own and number == last else prefix, number)
            combined = found.marginals if found.marginals and is_there(engine, found.marginals) else None
            told: dict[str, Any] = {"count": found.count, "combinations": combined, "number": number, **ours}
            listed.append(Release(f"release {number}", found.values, (found.group,), **told))
        return listed

    @contextmanager
    def opened(self) -> Iterator[Table]:
        """A context in which the series' tables can be read; it gives their prefix."""
        with self.destination.opened() as there:
            yield there[next(iter(self.targets))]

    def check(self) -> None:
        """Raise PolicyError if releases may not or cannot go there."""
        if isinstance(self.destination, InWarehouse):
            self.destination.refuse_place()
            return
        assert isinstance(self.prefix, Relation)  # noqa: S101 - a place of one table is checked as that of a run
        refuse_catalog_schema(self.engine, self.prefix, self.key)
        if isinstance(self.destination, DatabaseFile):
            check_file(self.destination)
            refuse_log(self.destination)
            refuse_database_name(self.prefix, self.key)
            return
        self.refuse_elsewhere()

    def refuse_elsewhere(self) -> None:
        """Raise PolicyError if its tables would not be in the database that has the ledger."""
        assert isinstance(self.prefix, Relation)  # noqa: S101 - that of a file is not asked
        engine = self.engine
        home, current = catalog.catalog_of(engine, self.prefix).lower(), engine.snapshot.current.lower()
        if home != (engine.catalog or current).lower() or home != current:
            what = "tables cannot be published in one transaction with a catalog in another database"
            raise refused(self.key, what, "give `file:` as well, or leave the catalog in the database")

    def check_next(self, release: int) -> None:
        """Raise PolicyError if tables of this release are in the way, or the file of earlier ones is gone."""
        place = self.destination
        if isinstance(place, InFile):
            there, is_flat = place.is_there, isinstance(place, DataFile | Folder)
            if release == 1 and there and not (is_flat and self.replaces):
                raise refused("target.file", f"{place.name} exists, and no release made it", "name another file")
            if release > 1 and not there:
                raise refused("target.file", f"{place.name} with the last release is gone", _BUILDS)
            if release == 1 or is_flat:
                return
        if self.one_table and (release > 1 or self.replaces):
            return
        if isinstance(place, InWarehouse):
            place.refuse()
            return
        with self.opened() as prefix:
            for table in self.tables(prefix, release).all:
                if is_there(self.engine, table):
                    what = f"{sql_name_of(table)} exists, and no release made it"
                    raise refused(self.key, what, "drop it, or give another name")

    def require_earlier(self, prefix: Table, last: int) -> ReleaseTables:
        """The tables of the last release; raises PolicyError unless they are there, and what earlier ones told."""
        for number in () if self.one_table else range(1, last):
            table = self.tables(prefix, number).values
            if not is_there(self.engine, table):
                what = f"{sql_name_of(table)} of release {number} is gone"
                raise refused(self.key, what, "a release is compared with all earlier ones")
        tables = self.tables(prefix, last)
        for table in tables.plain.all:
            if not is_there(self.engine, table):
                raise refused(self.key, f"{sql_name_of(table)} of the last release is gone", _BUILDS)
        return tables


def series_target_of(
    engine: Engine,
    targets: Mapping[str, Target],
    algorithm: str,
    folder: Path,
    there: SourcePlace | None = None,
    columns: Columns = (),
) -> SeriesTarget:
    """What a policy names in `targets`, perhaps `there`; `folder` is where relative files lie.

    `columns` are those of a release.
    """
    place, (first, target) = destination_of(engine, targets, folder, columns), next(iter(targets.items()))
    path, prefix = file_of(place) if isinstance(place, InFile) else None, _prefix_of(place, first)
    name = name_of(engine, str(target) if path or target.database else str(prefix), path)
    if there and target.is_elsewhere:
        key = "target.file" if path else "target.database"
        raise refused(key, "every night of a table in a warehouse goes to a table there", "name a table")
    goes = InWarehouse(there, target) if isinstance(there, PlaceThere) else place
    return SeriesTarget(algorithm, prefix, name, goes, targets)


def _prefix_of(place: Destination, first: str) -> Table:
    """The prefix of tables in a place, or the first of these."""
    if isinstance(place, InTables | DatabaseFile):
        return place.tables[first]
    if isinstance(place, ReleasesFolder):
        return FileRelation("", str(Path(place.name) / place.files[first]))
    return FileRelation("", place.name if isinstance(place, InFile) else "")


def file_of(place: InFile) -> Path:
    """The file that a policy names, whose releases may be files of its folder."""
    return place.path / place.files[ONLY] if isinstance(place, ReleasesFolder) else place.path


def settle_crashed(engine: Engine, series: str | None = None) -> None:
    """Finish or roll back the releases that a process died over; raises PolicyError for one under way.

    Those to databases that are not attached are left as they are.
    """
    for entry in ledger.unsettled(engine, series):
        if database := entry.report.get("database"):
            if database.lower() in engine.snapshot.databases:
                settle_entry(engine, entry)
            continue
        place, run_id = target_of(engine, entry).destination, entry.report["run_id"]
        assert isinstance(place, InFile)  # noqa: S101 - tables of a database are written with their entry
        folder = folder_of(place.path.parent, place.path.name, run_id)
        left = abandoned(place.path.parent, place.path.name)
        if folder.exists() and run_id not in left:
            raise refused("series", f"release {entry.release} of {entry.series} is under way", "wait")
        settle_entry(engine, entry)
        shutil.rmtree(folder, ignore_errors=True)


def settle_entry(engine: Engine, entry: Entry) -> None:
    """Settle a release in the ledger: published if it was written and is in its place, else it never was."""
    in_place = entry.status == ledger.WRITTEN and _is_in_place(engine, entry)
    ledger.settle_release(engine, entry.series, entry.release, in_place)


def target_of(engine: Engine, entry: Entry) -> SeriesTarget:
    """The target of a series, as the ledger has it; raises PolicyError if its database is not attached."""
    report, one_table = entry.report, bool(entry.report.get("one_table"))
    database, file, named = report.get("database"), report.get("file"), report.get("prefix", entry.series)
    if database is not None and database.lower() not in engine.snapshot.databases:
        raise refused("series", f"{entry.series} is in database {database}, which is not attached", "attach it")
    target = Target(database=database, file=file, **{"table" if one_table else "prefix": named})
    targets = {name: Target(**one) for name, one in report.get("targets", {}).items()} or {ONLY: target}
    found = series_target_of(engine, targets, report["algorithm"], Path(), columns=report.get("columns", ()))
    return replace(found, name=entry.series)


def is_as_audited(engine: Engine, there: Tables, entry: Entry) -> bool:
    """True if several tables are there, as they were audited when a release was published."""
    secret, held = secret_of(engine, entry.series), entry.report[ledger.CONTENT]
    return all(is_there(engine, there[name]) and content_of(engine, there[name], secret) == held[name] for name in held)


def _is_in_place(engine: Engine, entry: Entry) -> bool:
    """True if the file of a release has its tables; of one table, which earlier releases have made, its last class."""
    target = target_of(engine, entry)
    if isinstance(target.destination, InFile) and not target.destination.is_there:
        return False
    if isinstance(target.destination, InOtherDatabase):
        return target.destination.is_renamed(entry.report["run_id"])
    if target.is_several:
        with target.destination.opened() as there:
            return is_as_audited(engine, there, entry)
    with target.opened() as prefix:
        tables = target.tables(prefix, entry.release)
        if not all(is_there(engine, table) for table in tables.plain.all):
            return False
        own = [Where("series", entry.series), Where("release", entry.release)]
        last = engine.most(ledger.table(engine, "release_group"), "group_id", *own) if target.one_table else None
        return last is None or (engine.most(tables.people, tables.group) or 0) >= last
