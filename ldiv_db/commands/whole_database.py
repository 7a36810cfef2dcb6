"""The tables of a database, a schema or a folder of files, for commands that take all of them where none are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ldiv_db.database import catalog
from ldiv_db.database.addresses import MEMORY, address_of, is_attached
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, refused
from ldiv_db.database.names import Relation
from ldiv_db.database.sources import every_table, written
from ldiv_db.publishing.ledger import releases, runs


def files_as_tables(database: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """The database and the tables that are meant, where files or their folder stand in place of a database."""
    if is_attached(database):
        return database, list(names)
    if Path(database).is_dir():
        return MEMORY, [database, *names]
    data = address_of(database)
    if data.is_data and all(map(FileRelation.of, names)):
        return (MEMORY, [database, *names]) if names else (database, [str(Relation((data.table or "",)))])
    return database, list(names)


def tables_meant(engine: Engine, names: Sequence[str]) -> list[str]:
    """The tables that are named: all of a schema, of a folder of several, or without any name of the database.

    Raises PolicyError where there are none. What was published there, and our own tables, are none of them.
    """
    if not names:
        return _within(engine, None) or _none("the database")
    return [table for name in names for table in _meant(engine, name)]


def _meant(engine: Engine, name: str) -> list[str]:
    folder = Path(name)
    if folder.is_dir():
        files = sorted(str(file) for file in folder.iterdir() if file.is_file() and FileRelation.of(str(file)))
        return files if _differ(engine, files) else [name]
    try:
        relation = catalog.named_table(name, "table")
    except PolicyError:
        return [name]
    if FileRelation.of(name) or catalog.looked_up(engine, relation) or not _is_schema(engine, relation):
        return [name]
    return _within(engine, relation) or _none(name)


def _none(where: str) -> list[str]:
    raise refused("table", f"{where} has no table with rows of anybody", "name tables, or files")


def _differ(engine: Engine, files: Sequence[str]) -> bool:
    """True unless files are parts of one table, or have no columns in common with it."""
    relations = [relation for file in files if (relation := FileRelation.of(file))]
    shapes = {tuple((one.name, one.type) for one in catalog.columns_of(engine, relation)) for relation in relations}
    return len(shapes) > 1


def _is_schema(engine: Engine, relation: Relation) -> bool:
    return any(_place(table) == _schema(engine, relation) for table, _ in every_table(engine))


def _schema(engine: Engine, named: Relation) -> tuple[str, str]:
    database = named.parts[0] if len(named.parts) > 1 else engine.snapshot.current
    return database.lower(), named.name.lower()


def _place(table: Relation) -> tuple[str, str]:
    database, schema, _ = table.parts
    return database.lower(), schema.lower()


def _within(engine: Engine, schema: Relation | None) -> list[str]:
    """The tables of a schema, or of the current database; its views, where it has nothing else."""
    current, published = engine.snapshot.current, set(_published(engine))
    found = [
        (table, is_view)
        for table, is_view in every_table(engine)
        if (_place(table) == _schema(engine, schema) if schema else _place(table)[0] == current.lower())
        and not catalog.is_ours(engine, table)
        and catalog.full_name(engine, table) not in published
    ]
    own = [table for table, is_view in found if not is_view] or [table for table, _ in found]
    main = (current.lower(), catalog.main_schema(engine, current).lower())
    return [written(_shortened(table, main)) for table in own]


def _published(engine: Engine) -> Iterator[tuple[str, str, str]]:
    """The full names of what runs published, as the ledger has them."""
    targets = [run["target"] for run in runs(engine)] + [entry.series for entry in releases(engine)]
    for target in (name for text in targets for name in text.split(", ")):
        with suppress(PolicyError, DatabaseError):  # of a file's path
            yield catalog.full_name(engine, catalog.named_table(target, "target"))


def _shortened(table: Relation, main: tuple[str, str]) -> Relation:
    """The name of a table without its database, and its schema, where these are the current ones."""
    if _place(table)[0] != main[0]:
        return table
    return Relation(table.parts[2:] if _place(table) == main else table.parts[1:])
