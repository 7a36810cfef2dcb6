"""Databases that are opened by their address: a file, or what DuckDB attaches; and a catalog in a file of its own.

What is attached is the current database of a connection in memory, under the name that it has itself, and names are
looked up in it as it looks them up itself. No text of an address is in an error: it may hold a password.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

from ldiv_db.database.addresses import MEMORY, Address, TablePlace, address_of, is_attached
from ldiv_db.database.catalog import compare_here
from ldiv_db.database.connections import Settings, attempt, load_extension, open_database
from ldiv_db.database.counted import ON_ROWS, OfWarehouse, is_given_warehouse
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.failures import sentence_of
from ldiv_db.database.frames import OfFrame, is_frame, open_frames
from ldiv_db.database.names import Identifier, Relation, literal
from ldiv_db.database.snapshot import DUCKDB, DUCKLAKE, MYSQL, POSTGRES
from ldiv_db.database.sources import resolve_source

#: The name under which the catalog's file is attached, and the source's if its own name is taken.
CATALOG, _SOURCE = "ldiv_catalog", "ldiv_source"
#: How the name of a database file ends.
DATABASE_FILES = (".duckdb", ".db", ".ddb")
#: The names that DuckDB, or we, keep for other databases and schemas.
_TAKEN = ("memory", "temp", "system", "main", "information_schema", "pg_catalog", "ldiv", CATALOG)
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_database(
    read_only: bool, of_frame: OfFrame | None = None, of_warehouse: OfWarehouse | None = None
) -> Callable[[Function], Function]:
    """Has a function whose first argument is a connection take an address in its place, opened for the call.

    With `of_frame`, which settles the other arguments, it also takes a frame, or a mapping of names to frames: a
    database in memory is then its connection, which is kept open unless it is `read_only`, and its `catalog` may be a
    file. With `of_warehouse` it also takes a warehouse, and sees what that opens: its counted rows, or the means to
    plan a run there.
    """

    def decorate(function: Function) -> Function:
        shape = signature(function)
        first = next(iter(shape.parameters))

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = args[0] if args else kwargs.get(first)
            are_frames = isinstance(given, Mapping) or is_frame(given)
            if is_given_warehouse(given):
                if of_warehouse is None:
                    what = "does not work on a warehouse: it needs the rows"
                    raise refused(first, what, ON_ROWS)
                bound = shape.bind_partial(*args, **kwargs)
                opening = of_warehouse(given, bound.arguments)
            elif isinstance(given, str | Path):
                bound = shape.bind_partial(*args, **kwargs)
                opening = open_address(address_of(str(given)), read_only)
            elif of_frame is not None and are_frames:
                bound = of_frame(shape, given, args[1:], {name: kwargs[name] for name in kwargs if name != first})
                opening = open_frames(given, keep=not read_only)
            elif are_frames or not hasattr(given, "execute"):
                frame = "" if of_frame is None else ", a frame"
                what = f"takes a connection{frame} or an address, not {type(given).__name__}"
                raise refused(first, what)
            else:
                return function(*args, **kwargs)
            with opening as opened:
                bound.arguments[first] = opened
                catalog = Path((bound.arguments.get("catalog") if are_frames else None) or "")
                is_file = catalog.suffix.lower() in DATABASE_FILES
                if is_file:
                    bound.arguments["catalog"] = CATALOG
                with _catalog_file(opened, catalog, read_only) if is_file else nullcontext():
                    found = function(*bound.args, **bound.kwargs)
                if are_frames and isinstance(place := getattr(found, "place", None), TablePlace):
                    place.keep_open()
                return found

        return cast(Function, call)

    return decorate


@contextmanager
def _catalog_file(connection: Any, path: Path, read_only: bool) -> Iterator[None]:
    """Within, the file is `CATALOG`; it is made unless `read_only`, and removed again if nothing came to be in it."""
    if read_only and not path.is_file():
        raise DatabaseError(f"no catalog file {path}; `ldiv migrate --catalog` makes one")
    engine, is_new = Engine(connection), not path.exists()
    _attach_file(engine, path, CATALOG, read_only)
    try:
        yield
    finally:
        is_unused = is_new and _is_empty(engine)
        attempt(connection, f"DETACH DATABASE IF EXISTS {CATALOG}")
        if is_unused:
            path.unlink(missing_ok=True)


@contextmanager
def open_address(
    address: Address, read_only: bool = False, settings: Settings | None = None, catalog: Path | None = None
) -> Iterator[Any]:
    """A connection whose current database this is; with `catalog` it is read-only, and that file is `CATALOG`.

    Raises DatabaseError if a file is missing, locked or no database, PolicyError if both are the same.
    """
    if catalog is None and address.kind is DUCKDB and not address.is_data:
        with open_database(address.text, read_only, settings=settings) as connection:
            yield connection
        return
    path = address.path
    refuse_missing_source(address)
    if path is not None and catalog is not None and catalog.exists() and catalog.samefile(path):
        raise refused("--catalog", f"{catalog} is the database itself", "leave it out")
    with (
        open_database(MEMORY, settings=settings) as connection,
        nullcontext() if catalog is None else _catalog_file(connection, catalog, read_only),
    ):
        if path is not None and address.table is not None:
            _view_file(Engine(connection), path, address.table)
        elif address.kind is not DUCKDB:
            _attach_current(connection, address, catalog is not None or read_only or not address.kind.takes_back)
        elif path is not None:
            _attach_source(Engine(connection), path)
        yield connection


def refuse_missing_source(address: Address) -> None:
    """Raise DatabaseError if the address is of a file that is not there."""
    if address.path is not None and not address.path.is_file():
        raise DatabaseError(f"no database file {address.path} (`:memory:` stands for none, for sources that are files)")


def attach_address(engine: Engine, address: Address, name: str, read_only: bool = False) -> None:
    """Attach the database under the name; raises DatabaseError, without a word of its address.

    A file that is not there is refused: to attach it would make one.
    """
    refuse_missing_source(address)
    kind = address.kind
    if kind.extension is not None:
        load_extension(engine.connection, kind.extension, kind.name)
    if kind is MYSQL:
        engine.execute("SET mysql_tinyint1_as_boolean = false")  # it may hold 5, which is not what 1 is
    if kind is DUCKLAKE and is_attached(address.text):
        beneath = address_of(address.text).kind
        if beneath.extension is not None:
            load_extension(engine.connection, beneath.extension, f"DuckLake in {beneath.name}")
    options = [*([] if kind.prefix else [f"TYPE {kind.type}"]), *(["READ_ONLY"] if read_only else [])]
    how = f"AS {Identifier(name).sql()}" + (f" ({', '.join(options)})" if options else "")
    failure = engine.attempt(f"ATTACH {literal(address.waiting().attached)} {how}")
    if failure is not None and "unsupported startup parameter" in failure:  # of a pool in front of the server
        failure = engine.attempt(f"ATTACH {literal(address.attached)} {how}")
    if failure is not None:
        why = sentence_of(failure) or _plain(failure, address)
        raise DatabaseError(f"cannot open {address}: {why}")
    compare_here(engine)


@contextmanager
def named_databases(
    engine: Engine, databases: Mapping[str, str], folder: Path, written: str | None = None
) -> Iterator[None]:
    """Within, the databases are attached for reading, by the names and addresses that a policy gives them.

    The one that is `written` may be written to. Relative files lie in `folder`. Raises PolicyError for a name that is
    taken, DatabaseError for what is not there.
    """
    with ExitStack() as stack:
        for name, text in databases.items():
            key = f"databases.{name}"
            if name.lower() in (*_TAKEN, *engine.snapshot.databases):
                raise refused(key, "is the name of another database", "choose another")
            address = address_of(text, key).in_folder(folder)
            attach_address(engine, address, name, read_only=name != written or not address.kind.takes_back)
            stack.callback(engine.attempt, f"DETACH {Identifier(name).sql()}")
        yield


def _plain(failure: str, address: Address) -> str:
    """The database's own message, if it cannot hold a secret, as that of a file."""
    if address.path is None:
        return "for a reason that may quote its address, and is withheld"
    return failure.strip().splitlines()[0]


def _attach_current(connection: Any, address: Address, read_only: bool) -> None:
    """Attach the database under the name that it has itself, and look names up in it as it does."""
    engine = Engine(connection)
    attach_address(engine, address, _SOURCE, read_only)
    name, schemas = _own_names(engine, address)
    if name is not None and name.lower() not in (*engine.snapshot.databases, *_TAKEN):
        engine.execute(f"DETACH {_SOURCE}")
        attach_address(engine, address, name, read_only)
    else:
        name = _SOURCE
    if len(schemas) < 2:
        failure = engine.attempt(f"USE {Relation((name, *schemas)).sql()}")
        if failure is not None:
            raise DatabaseError(f"cannot open {address}: {sentence_of(failure) or _plain(failure, address)}")
        return
    path = ",".join(Relation((name, schema)).sql() for schema in schemas)
    engine.execute(f"SET search_path = {literal(path)}")


def _own_names(engine: Engine, address: Address) -> tuple[str | None, list[str]]:
    """The name that the database has itself, and the schemas in which it looks up names; None and none if it has none.

    A name that is one of its schemas' as well is none to use: `clinic.people` is what lies in the schema.
    """
    if address.kind is not POSTGRES:
        path = address.path
        return (path.stem if path else None), []
    ((name, schemas, is_schema),) = engine.execute(
        f"FROM postgres_query({literal(_SOURCE)}, {literal(_POSTGRES_NAMES)})"
    )
    return (None if is_schema else name), list(schemas)


#: A server may look names up in schemas that are not there, or that the user may not see: these are left out by it.
_POSTGRES_NAMES = (
    "SELECT current_database()::text AS name, current_schemas(false)::text[] AS schemas,"
    " EXISTS (SELECT FROM pg_namespace WHERE nspname = current_database()) AS is_schema"
)


def _attach_source(engine: Engine, path: Path) -> None:
    """Attach the file under the name that it has when it is opened alone, and look names up in it."""
    try:
        _attach_file(engine, path, None, read_only=True)
    except DatabaseError as error:
        if "already exists" not in str(error):
            raise
        _attach_file(engine, path, _SOURCE, read_only=True)
    (name,) = (
        found.name
        for found in engine.snapshot.databases.values()
        if found.path is not None and not found.is_internal and found.name != CATALOG
    )
    engine.execute(f"USE {Identifier(name).sql()}")


def _view_file(engine: Engine, path: Path, name: str) -> None:
    """A view of a data file; raises PolicyError if it cannot be read."""
    read = resolve_source(engine, str(path), Path(), "database")
    engine.execute(f"CREATE VIEW {Identifier(name).sql()} AS SELECT * FROM {read.sql()}")


def _attach_file(engine: Engine, path: Path, name: str | None, read_only: bool) -> None:
    alias = f" AS {Identifier(name).sql()}" if name else ""
    options = " (READ_ONLY)" if read_only else ""
    try:
        engine.execute(f"ATTACH {literal(str(path))}{alias}{options}")
    except DatabaseError as error:
        raise DatabaseError(f"cannot open {path}: {str(error).splitlines()[0]}") from error


def _is_empty(engine: Engine) -> bool:
    """True if nothing was entered in the catalog; False if the connection can no longer say so."""
    with suppress(DatabaseError):
        if engine.in_transaction():
            engine.execute("ROLLBACK")
        return not engine.execute("SELECT 1 FROM duckdb_tables() WHERE database_name = $d LIMIT 1", {"d": CATALOG})
    return False
