"""Migrations of the catalog schema: numbered SQL files, a ledger with their checksums.

All that are pending and their ledger rows are one transaction. `held` and `pending` only read.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ldiv_db.database import catalog
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import DIALECT, Identifier, Relation
from ldiv_db.database.snapshot import POSTGRES, Kind
from ldiv_db.database.templates import resource_folder

#: The file of what all migrations make of nothing, which a first run makes.
WHOLE = "whole/catalog.sql"
#: The table that says which migrations were applied.
LEDGER = "migration"
#: The table whose rows runs of one source hold, which migrations put there.
LOCK = "source_lock"
#: How the tables are called in which secrets are, that take grants of their own.
OWNERS_ALONE = "_secret"
_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


@dataclass(frozen=True)
class Migration:
    """One numbered step of the catalog schema."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def available(folder: Path | None = None) -> list[Migration]:
    """All migrations that this version ships, in order; raises DatabaseError if their numbers have a gap."""
    migrations = []
    for path in sorted((folder or resource_folder("migrations")).glob("*.sql")):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            raise DatabaseError(f"{path.name} is not the name of a migration (0001_name.sql)")
        # Read without newline translation surprises: the checksum must not depend on the platform.
        text = path.read_bytes().decode().replace("\r\n", "\n")
        migrations.append(Migration(int(match[1]), match[2], text))
    for expected, migration in enumerate(migrations, 1):
        if migration.number != expected:
            raise DatabaseError(f"migration {expected:04d} is missing, {migration.number:04d} is there")
    return migrations


def _scripts(migrations: Sequence[Migration]) -> list[str]:
    """Their statements, or those that make at once what all of ours make one by one."""
    if list(migrations) != available():
        return [migration.sql for migration in migrations]
    return [(resource_folder("migrations") / WHOLE).read_text(encoding="utf-8")]


#: The columns of a table of the catalog, by name, with their types.
_Tables = dict[str, list[tuple[str, str]]]
#: The columns that are read of the ledger of migrations.
_LEDGER_COLUMNS = [("number", "INTEGER"), ("name", "VARCHAR"), ("checksum", "VARCHAR")]


@dataclass(frozen=True)
class Held:
    """What the catalog's schema holds: its tables with their columns, and by number the migrations of its ledger."""

    tables: _Tables
    applied: dict[int, tuple[str, str]]

    def __contains__(self, name: str) -> bool:
        return name in self.tables

    def columns(self, name: str) -> list[str]:
        """The names of a table's columns; none if it is not there."""
        return [column for column, _ in self.tables.get(name, ())]


def held(engine: Engine, folder: Path | None = None) -> Held:
    """What the catalog holds; raises DatabaseError if something under a name of ours is not our table.

    A table is ours if it is no view and has the columns that the migrations in the ledger give it; where they cannot
    be told, as in a catalog of a newer version, nothing is refused here.
    """
    return engine.found((held, folder), lambda: _held(engine, folder))


def _held(engine: Engine, folder: Path | None) -> Held:
    tables = _tables(engine)
    if not tables:
        return Held({}, {})
    if LEDGER in tables and not _alike(engine, tables[LEDGER][: len(_LEDGER_COLUMNS)], _LEDGER_COLUMNS):
        raise _foreign(LEDGER)
    known, found = available(folder), Held(tables, _applied(engine) if LEDGER in tables else {})
    done = known[: len(found.applied)]
    if [(m.number, m.checksum) for m in done] != [(n, checksum) for n, (_, checksum) in found.applied.items()]:
        return found  # changed, newer, or with a gap: `pending` says so
    ours, coming = _made_by(tuple(done)), _made_by(tuple(known))
    for name, columns in tables.items():
        if (name in ours or name in coming) and not _alike(engine, columns, ours.get(name)):
            raise _foreign(name)
    lost = [name for name in ours if name not in tables]
    if found.applied and lost:
        raise DatabaseError(f"the schema {catalog.SCHEMA} of the catalog has lost its table {lost[0]}")
    return found


def _alike(engine: Engine, columns: list[tuple[str, str]], ours: list[tuple[str, str]] | None) -> bool:
    """True if the columns are ours; in databases other than DuckDB, with types of their own, names alone count."""
    if ours is None or columns == ours or engine.snapshot.kind(_home(engine)) == "duckdb":
        return columns == ours
    return [name for name, _ in columns] == [name for name, _ in ours]


def _home(engine: Engine) -> str:
    """The database that holds the catalog."""
    return catalog.catalog_of(engine, catalog.catalog_table(engine, LEDGER))


def _foreign(name: str) -> DatabaseError:
    table = f"{catalog.SCHEMA}.{name}"
    what = f"{table} is somebody else's table or view, and the catalog needs that name"
    return DatabaseError(f"{what}: rename it, or keep the catalog in a file of its own (--catalog)")


def _tables(engine: Engine) -> _Tables:
    """The tables of the catalog's schema with their columns; those of a view are none of a table's."""
    home = _home(engine)
    *_, schema, name = catalog.located(engine, catalog.catalog_table(engine, LEDGER))
    prefix = name.removesuffix(LEDGER)
    within = "lower(database_name) = lower($home) AND lower(schema_name) = $schema"
    rows = engine.execute(
        f"SELECT table_name, column_name, CASE WHEN table_name IN (SELECT view_name FROM duckdb_views() WHERE {within})"
        f" THEN 'VIEW' ELSE data_type END FROM duckdb_columns() WHERE {within}"
        " ORDER BY table_name ASC NULLS LAST, column_index ASC NULLS LAST",
        {"home": home, "schema": schema},
    )
    tables: _Tables = {}
    for table, column, kind in rows:
        if table.lower().startswith(prefix):
            tables.setdefault(table.lower().removeprefix(prefix), []).append((column, kind))
    return tables


@functools.cache
def _made_by(migrations: tuple[Migration, ...]) -> _Tables:
    """The tables that these migrations make; empty if they cannot be carried out."""
    with suppress(DatabaseError), open_database(":memory:") as connection:
        engine = Engine(connection)
        _make_ledger(engine, catalog.catalog_table(engine, LEDGER))
        for script in _scripts(migrations):
            engine.execute(script)
        return _tables(engine)
    return {}


def _make_ledger(engine: Engine, ledger: Relation) -> None:
    engine.make_schema(ledger)
    key = " PRIMARY KEY" if engine.snapshot.traits(_home(engine)).has_keys else ""
    engine.execute(
        f"CREATE TABLE IF NOT EXISTS {ledger.sql()} (number INTEGER{key}, name VARCHAR NOT NULL,"
        " checksum VARCHAR NOT NULL, applied_at TIMESTAMPTZ NOT NULL)"
    )


def _applied(engine: Engine) -> dict[int, tuple[str, str]]:
    """The migrations in the ledger: number to (name, checksum)."""
    ledger = catalog.catalog_table(engine, LEDGER)
    rows = engine.execute(f"SELECT number, name, checksum FROM {ledger.sql()} ORDER BY number ASC NULLS LAST")
    return {number: (name, checksum) for number, name, checksum in rows}


def pending(engine: Engine, folder: Path | None = None) -> list[Migration]:
    """The migrations still to be applied; raises DatabaseError for a ledger that is not ours, or of another version."""
    ledger = held(engine, folder).applied
    known = {migration.number: migration for migration in available(folder)}
    for expected, number in enumerate(ledger, 1):
        if number != expected:
            raise DatabaseError(f"the ledger of migrations lacks {expected:04d} but has {number:04d}")
        if number not in known:
            raise DatabaseError(f"the database has migration {number:04d}; this version of ldiv_db is older")
        if ledger[number][1] != known[number].checksum:
            raise DatabaseError(f"migration {number:04d}_{known[number].name} was changed after it was applied")
    return [migration for number, migration in known.items() if number not in ledger]


def migrate(engine: Engine, folder: Path | None = None) -> list[Migration]:
    """Apply all pending migrations with their ledger rows, in one transaction; returns them."""
    todo = pending(engine, folder)
    if not todo:
        return todo
    ledger, kind = catalog.catalog_table(engine, LEDGER), engine.snapshot.traits(_home(engine))
    with engine.transaction(), _in_the_catalog(engine):
        before = _tables(engine) if kind is POSTGRES else {}
        _make_ledger(engine, ledger)
        for script in _scripts(todo):
            engine.execute(_fitting(kind, script))
        entries = [(found.number, found.name, found.checksum, datetime.now(UTC)) for found in todo]
        engine.append(ledger, {**dict(_LEDGER_COLUMNS), "applied_at": "TIMESTAMPTZ"}, entries)
        if kind is POSTGRES:
            from ldiv_db.database import postgres  # noqa: PLC0415 - and the words of all databases

            made = (name for name in _tables(engine) if name not in before and name.endswith(OWNERS_ALONE))
            postgres.withhold(engine, [catalog.catalog_table(engine, name) for name in made])
    if engine.has_begun:  # the transaction goes on, and need not ask what has been made
        done = {found.number: (found.name, found.checksum) for found in available(folder)}
        engine.found((held, folder), lambda: Held(_tables(engine), done))
    return todo


def _fitting(kind: Kind, sql: str) -> str:
    """The statements of migrations as a database takes them: without keys, or schemas, where it has none."""
    if kind.has_keys and kind.has_schemas:
        return sql
    import sqlglot  # noqa: PLC0415 - few databases need it
    from sqlglot import exp  # noqa: PLC0415

    statements = [statement for statement in sqlglot.parse(sql, read=DIALECT) if statement is not None]
    for statement in statements:
        if not kind.has_keys:
            for key in [*statement.find_all(exp.PrimaryKey)]:
                key.pop()
            for constraint in [*statement.find_all(exp.PrimaryKeyColumnConstraint)]:
                assert constraint.parent is not None  # noqa: S101 - a constraint stands in its definition
                constraint.parent.pop()
        if not kind.has_schemas:
            for table in [*statement.find_all(exp.Table)]:
                table.replace(exp.to_table(f"{table.db}_{table.name}"))
    return ";\n".join(statement.sql(dialect=DIALECT, comments=False) for statement in statements)


def remake(engine: Engine) -> None:
    """Make the catalog anew, with nothing in it, in a database of our own."""
    _drop_schema(engine)
    migrate(engine)


def _drop_schema(engine: Engine) -> None:
    schema = catalog.catalog_table(engine, LEDGER).parts[:-1]
    engine.execute(f"DROP SCHEMA IF EXISTS {Relation(schema).sql()} CASCADE")


@contextmanager
def unmade_on_error(engine: Engine) -> Iterator[None]:
    """Within, an error removes the catalog again if it was made here and nothing is entered in it."""
    before = _has_catalog(engine)
    try:
        yield
    except BaseException:
        if not before:
            with suppress(DatabaseError):  # the first error is the one to report
                _drop_if_empty(engine)
        raise


def _has_catalog(engine: Engine) -> bool:
    """True if there is a schema of the catalog, or a table where there can be none."""
    home = _home(engine)
    if not engine.snapshot.traits(home).has_schemas:
        return bool(_tables(engine))
    rows = engine.execute(
        "SELECT 1 FROM duckdb_schemas() WHERE lower(schema_name) = $schema AND lower(database_name) = lower($home)",
        {"schema": catalog.SCHEMA, "home": home},
    )
    return bool(rows)


def _drop_if_empty(engine: Engine) -> None:
    """Drop the catalog's schema if it has but our own tables, with no row that migrations did not put there."""
    tables = {name: catalog.catalog_table(engine, name) for name in _tables(engine)}
    filled = [
        name
        for name, table in tables.items()
        if name not in (LEDGER, LOCK) and engine.execute(f"SELECT 1 FROM {table.sql()} LIMIT 1")
    ]
    if not tables or filled or not set(tables) <= set(_made_by(tuple(available()))):
        return
    if not engine.snapshot.traits(_home(engine)).has_schemas:
        with engine.transaction():
            for table in tables.values():
                engine.execute(f"DROP TABLE {table.sql()}")
    else:
        _drop_schema(engine)


@contextmanager
def _in_the_catalog(engine: Engine) -> Iterator[None]:
    """Names in a migration are looked up in the catalog's database."""
    if engine.catalog is None:
        yield
        return
    home = (engine.snapshot.current, engine.snapshot.schema)
    engine.execute(f"USE {Identifier(engine.catalog).sql()}")
    try:
        yield
    finally:
        engine.attempt(f"USE {Relation(home).sql()}")  # after a failed statement the first error is the one to report
