"""The ledger of a warehouse: tables there with the columns of ours, and their rows here for the time of a run.

What the ledger says is read and written by the code of every run, on a copy in our own database; what that enters is
sent there. So a ledger of an older version, or one that is not there yet, is brought up to date by what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ldiv_db.database import migrate
from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.attach import DATABASE_FILES
from ldiv_db.database.catalog import SCHEMA, columns_of, named_table, table_exists
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import ConflictError, DatabaseError, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.publishing import ledger
from ldiv_db.publishing.history import OvertakenError, Watch
from ldiv_db.publishing.ledger import PUBLISHED, RELEASE_TABLES, RUN_TABLES, SERIES_TABLES, WRITTEN
from ldiv_db.publishing.series import name_of

#: The tables that later runs read, and what later releases of a series read besides.
READ = ("run", "run_secret", "run_report_secret", "release")
_READ_OF_SERIES = (*SERIES_TABLES, *RELEASE_TABLES[1:])
#: The other tables of a catalog, which the commands of a database that is attached look for.
OTHERS = ("taxonomy", "taxonomy_node", *SERIES_TABLES, *RELEASE_TABLES, migrate.LOCK, migrate.LEDGER)


class LedgerThere:
    """The ledger of a warehouse, in its schema `ldiv`, or in tables called `ldiv_…` where there are no schemas.

    Where rows of a table cannot be changed a run has a row for every status that it came to, of which the last holds.
    """

    def __init__(self, there: Warehouse, schema: str = SCHEMA):
        self._there = there
        if Path(schema).suffix.lower() in DATABASE_FILES:
            raise refused("catalog", f"{schema} is a file", "name the schema of the ledger's tables there")
        self._schema = named_table(schema, "catalog")

    def bring(self, engine: Engine, names: Sequence[str] = READ) -> None:
        """Copy the warehouse's ledger here, in place of what an earlier attempt copied."""
        migrate.remake(engine)
        self._copy(engine, names)

    def bring_series(self, engine: Engine, series: str) -> None:
        """Copy here what the warehouse's ledger says of a series, besides what was brought: members are many."""
        self._copy(engine, _READ_OF_SERIES, series)

    def _copy(self, engine: Engine, names: Sequence[str], series: str | None = None) -> None:
        for name in names:
            table = self.table(name)
            if self._there.exists(table):
                here = ledger.table(engine, name)
                known = {column.name.lower() for column in self._there.columns(table)}
                both = [column.name for column in columns_of(engine, here) if column.name in known]
                listed = {
                    "rows": table,
                    "columns": [*map(Identifier, both)],
                    "has_status": name == "run" and "status" in both,
                    "of_series": series is not None,
                    "series": series or "",
                }
                sql = self._there.written("publishing/warehouse/list_entered", **listed)
                engine.extend(here, self._there.fetch(engine, "brought", sql, both), *both)

    def hold(self, engine: Engine, entries: Mapping[str, Mapping[str, Any]], watch: Watch) -> None:
        """Keep other runs of the source off until the transaction ends, which is to enter what a draft says.

        Raises OvertakenError if one was faster since the ledger was brought here: it is entered by now, or the database
        refuses the lock.
        """
        with _overtaken(watch):
            self.make(engine)
            for lock in watch.locks:
                self._there.change(self.table(migrate.LOCK), {"run_id": watch.run_id}, {"name": lock})
        self._require_first(engine, entries, watch)

    def enter(self, engine: Engine, entries: Mapping[str, Mapping[str, Any]], watch: Watch) -> None:
        """Send what the ledger here has entered, as a draft says.

        Raises OvertakenError if another run of the source was faster. Where the database takes tables back nobody can
        be, as others are held off; elsewhere it is found by asking what is entered, of two at once perhaps by both.
        """
        with _overtaken(watch):
            self.make(engine)
            self._send(engine, entries)
        if not self._there.takes_back:
            self._require_first(engine, entries, watch)

    def _require_first(self, engine: Engine, entries: Mapping[str, Mapping[str, Any]], watch: Watch) -> None:
        """Raise OvertakenError if the ledger there has releases of the source, or the series, that are not known."""
        series = entries.get("release", {}).get("series")
        with open_database(MEMORY) as connection:
            others = Engine(connection)
            self.bring(others)
            watch.require_first(others)
            if series and len(ledger.releases(others, series)) >= entries["release"]["release"]:
                raise OvertakenError(watch.source)

    def _send(self, engine: Engine, entries: Mapping[str, Mapping[str, Any]]) -> None:
        if "release" in entries and "series" not in entries:  # of two nights at once the second fails at this row
            series = {"series": entries["release"]["series"]}
            self._there.change(self.table("series"), series, series)
        for name, own in entries.items():
            where = [Where(column, value) for column, value in own.items()]
            rows = engine.select(f"entered_{name}", ledger.table(engine, name), where=where)
            if engine.count(rows):
                self._there.send(engine, rows, self.table(name))
            engine.drop(rows)

    def settle(self, engine: Engine, target: str, gone: Sequence[str]) -> None:
        """Settle what is entered as written of a target: published, or if it is gone it never was."""
        for run in ledger.runs(engine):
            if (run["status"], run["target"]) == (WRITTEN, target):
                in_place = run["run_id"] not in gone
                ledger.settle_run(engine, run["run_id"], in_place)
                self.settle_run(run["run_id"], in_place)

    def settle_run(self, run_id: str, in_place: bool) -> None:
        """Settle a run there: published, or if it is not in place it never was."""
        if in_place:
            self._there.change(self.table("run"), {"status": PUBLISHED}, {"run_id": run_id})
            return
        for name in RUN_TABLES:
            self._there.change(self.table(name), None, {"run_id": run_id})

    def lacking(self) -> list[str]:
        """The tables that are not there."""
        held = {name.lower() for name in self._there.tables(self.table("run"))}
        names = (*RUN_TABLES, *(OTHERS if self._there.updates else ()))
        return [name for name in names if self.table(name).name.lower() not in held]

    def make(self, engine: Engine) -> None:
        """Make the tables that are not there, as they are here."""
        there = self._there
        there.make_schema(self.table("run"))
        for name in self.lacking():
            table, here = self.table(name), ledger.table(engine, name)
            there.make_table(table, columns_of(engine, here), withheld=name.endswith(migrate.OWNERS_ALONE))
            if name in (migrate.LEDGER, migrate.LOCK):
                there.send(engine, engine.copy("made", here), table)

    def table(self, name: str) -> Relation:
        """A table of the ledger there."""
        return Relation((f"{SCHEMA}_{name}",) if not self._there.traits.schema else (*self._schema.parts, name))


@contextmanager
def _overtaken(watch: Watch) -> Iterator[None]:
    """Within, what another session writes at the same time is another run of the source."""
    try:
        yield
    except ConflictError:
        raise OvertakenError(watch.source) from None


def bring_ledger(engine: Engine) -> None:
    """Copy the ledger here if the engine's connection counts the tables of a warehouse."""
    there = getattr(engine.connection, "there", None)
    if there is not None and not table_exists(engine, ledger.table(engine, "run")):
        LedgerThere(there).bring(engine, ("run", "run_requirement", "release"))


@contextmanager
def ledger_of(
    there: Warehouse, schema: str | None = None, besides: Sequence[str] = (), series: str | None = None
) -> Iterator[Engine]:
    """An engine that has the runs of a warehouse's ledger; what is withdrawn on it is withdrawn there.

    `besides` it has other tables, and all that is entered of a `series`.
    """
    entered = LedgerThere(there, schema or SCHEMA)
    with open_database(MEMORY) as connection, there.moment():
        engine = Engine(connection)
        entered.bring(engine, list(dict.fromkeys((*READ, *besides))))
        if series is not None:
            entered.bring_series(engine, name_of(engine, series))
        before = {run["run_id"]: run["status"] for run in ledger.runs(engine)}
        yield engine
        for run in ledger.runs(engine):
            if run["status"] != before[run["run_id"]]:
                there.change(entered.table("run"), {"status": run["status"]}, {"run_id": run["run_id"]})


def make_ledger(there: Warehouse, schema: str | None = None, only_look: bool = False) -> list[str]:
    """Make what the ledger of a warehouse lacks, unless it is `only_look`ed at; returns the names of its new tables."""
    entered = LedgerThere(there, schema or SCHEMA)
    with open_database(MEMORY) as connection, there.moment():
        engine, lacking = Engine(connection), entered.lacking()
        is_made = there.updates and migrate.LEDGER not in lacking
        if is_made and there.extent(entered.table(migrate.LEDGER), None)[0] < len(migrate.available()):
            what = f"the ledger in {there.traits.name} is of an older version"
            raise DatabaseError(f"{what}: `ldiv migrate` brings it up to date by an address that DuckDB attaches")
        if lacking and not only_look:
            migrate.remake(engine)
            entered.make(engine)
        return [str(entered.table(name)) for name in lacking]
