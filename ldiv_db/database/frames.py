"""Rows that come from outside of a connection, or go to another: frames, tables as bytes, and databases in memory.

A frame of pandas, Polars or Arrow, or a relation of the database's client, is read where it lies. What can be read only
once or is worked out anew each time (lazy frames, tables of Ibis), objects of pandas', and a relation of another
connection are brought or copied whole first: a run reads its source several times, and wants the same rows.

TEMP tables are seen by the connection alone that made them. To another database they are carried as Parquet, in which
types that it has no equal of are texts; to other connections of the same one in a database in memory.
"""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from inspect import BoundArguments, Signature
from pathlib import Path
from typing import Any

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.connections import attempt, connect, stoppable
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, refused
from ldiv_db.database.names import Identifier, Relation, literal

#: The kinds of frames that are read, for messages, and the name of a frame that has none.
KINDS, FRAME = "pandas, Polars, Arrow, Ibis, or a relation of DuckDB's", "frame"
#: The libraries of frames, and of their classes those that are read again and again.
_LIBRARIES = ("pandas", "polars", "pyarrow")
_READ_AGAIN = ("DataFrame", "Series", "Table", "RecordBatch", "Dataset", "FileSystemDataset", "InMemoryDataset")
#: Binds the arguments of a call that is given frames in place of a database: its signature, the frames, the others.
OfFrame = Callable[[Signature, Any, Sequence[Any], Mapping[str, Any]], BoundArguments]
_STREAM = "__arrow_c_stream__"
#: Types of which Arrow loses what they say.
_LOST = re.compile(r"\b(BIT|TIME WITH TIME ZONE)\b")


def is_relation(given: Any) -> bool:
    """True if it is a relation of the database's client."""
    return type(given).__name__ == "DuckDBPyRelation"


def is_frame(given: Any) -> bool:
    """True if it is a frame; its columns are not asked: they may have any name."""
    return is_relation(given) or _library_of(given) in _LIBRARIES or hasattr(type(given), _STREAM)


def _library_of(given: Any) -> str:
    return type(given).__module__.partition(".")[0]


def view_of_frame(engine: Engine, name: str, frame: Any) -> Relation:
    """The rows of a frame; they can be read until `close_scratch`. Raises DatabaseError for what is none."""
    if _library_of(frame) == "ibis":
        frame = frame.to_pyarrow()  # asked once, before a statement of ours: its connection may be this one
    library, kind = _library_of(frame), type(frame).__name__
    if library == "pandas" and kind == "DataFrame" and "object" in map(str, frame.dtypes):
        # The types of columns of any objects follow from the values.
        # After a sample, a text among numbers would fail a later statement.
        with engine.setting("pandas_analyze_sample", len(frame)):
            return engine.copy(name, engine.register(name, frame))
    if not is_relation(frame):
        view = engine.register(name, frame)
        return view if library in _LIBRARIES and kind in _READ_AGAIN else engine.copy(name, view)
    try:
        return engine.register(name, frame)
    except DatabaseError:  # it is of another connection
        return _copied(engine, name, frame)


class _Stream:
    """The rows of a relation as Arrow has them, for a connection that is not its own."""

    def __init__(self, relation: Any):
        self._relation = relation

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._relation.__arrow_c_stream__(schema)


def _copied(engine: Engine, name: str, relation: Any) -> Relation:
    """A TEMP table of the rows of another connection's relation, in its types."""
    types = [str(kind) for kind in relation.types]
    lost = [column for column, kind in zip(relation.columns, types, strict=True) if _LOST.search(kind)]
    if lost:
        what = f"is of another connection, and column {lost[0]!r} has a type that cannot be carried over"
        raise refused(name, what, "give the relation's own connection first")
    stream = engine.register(name, _Stream(relation.project("*")))  # which gives columns of one name names of their own
    arrived = columns_of(engine, stream)
    columns = ", ".join(_cast(column.name, column.type, kind) for column, kind in zip(arrived, types, strict=True))
    return engine.copy(name, engine.view_of(name, f"SELECT {columns} FROM {stream.sql()}"))


def _cast(column: str, arrived: str, kind: str) -> str:
    """The column in the type that it had: Arrow has none for UUIDs, enums and very large numbers."""
    name = Identifier(column).sql()
    return name if arrived == kind else f"CAST({name} AS {kind}) AS {name}"


@contextmanager
def open_frames(given: Any, keep: bool) -> Iterator[Any]:
    """A connection to a new database in memory with the frames of a mapping by name; closed unless it is to `keep`."""
    connection = connect(MEMORY)
    kept = False
    with ExitStack() as stack:
        stack.callback(lambda: None if kept else connection.close())
        engine = Engine(connection)
        stack.callback(engine.close_scratch)
        if isinstance(given, Mapping):
            for name, frame in given.items():
                stack.callback(_name_frame(engine, name, frame))
        with stoppable(connection):
            yield connection
        kept = keep


def _name_frame(engine: Engine, name: Any, frame: Any) -> Callable[[], object]:
    """Register a frame under its name; the function that is returned removes it."""
    if not isinstance(name, str) or not name:
        raise refused("frames", f"{name!r} is not the name of a frame", "map texts to frames")
    if not is_frame(frame):
        raise refused(name, f"{type(frame).__name__} is not a frame that the database reads", KINDS)
    view = Relation(("temp", "main", name)).sql()
    engine.execute(f"CREATE TEMP VIEW {view} AS FROM {view_of_frame(engine, name, frame).sql()}")
    return lambda: attempt(engine.connection, f"DROP VIEW IF EXISTS {view}")


def take_for_table(shape: Signature, given: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """A call whose second argument is a table: the frame in place of a database is that, and those after it follow.

    Of several frames the second argument names one, or there is but one.
    """
    second = list(shape.parameters)[1]
    if is_frame(given) and second not in kwargs:
        return shape.bind_partial(None, given, *args, **kwargs)
    bound = shape.bind_partial(None, *args, **kwargs)
    if bound.arguments.get(second) is None:
        bound.arguments[second] = only_frame(given)
    return bound


def only_frame(given: Any) -> Any:
    """The frame itself, or of a mapping the name of its only one; None if it has several."""
    if not isinstance(given, Mapping):
        return given
    return next(iter(given)) if len(given) == 1 else None


#: The types that Parquet gives back as they were.
_KEPT = re.compile(r"U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|VARCHAR|BLOB|DECIMAL\(.*\)")


@dataclass(frozen=True)
class Packed:
    """A table: the names and types of its columns, and its rows as a Parquet file."""

    columns: tuple[tuple[str, str], ...]
    data: bytes


def pack(engine: Engine, relations: Iterable[Relation], folder: Path | None = None) -> dict[Relation, Packed]:
    """The TEMP tables of these names, written to a private folder on the way, in `folder` if it is given."""
    packed = {}
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside, "table.parquet")
        for relation in dict.fromkeys(relations):
            columns = tuple((column.name, column.type) for column in columns_of(engine, relation))
            written = ", ".join(_written(Identifier(name).sql(), kind) for name, kind in columns)
            engine.execute(f"COPY (SELECT {written} FROM {relation.sql()}) TO {literal(str(path))} (FORMAT parquet)")
            packed[relation] = Packed(columns, path.read_bytes())
    return packed


def unpack(engine: Engine, packed: Mapping[Relation, Packed], folder: Path | None = None) -> None:
    """Make the TEMP tables in a database that has none of them; they live as long as the connection."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside, "table.parquet")
        for relation, table in packed.items():
            path.write_bytes(table.data)
            read = ", ".join(
                f"CAST({Identifier(n).sql()} AS {kind}) AS {Identifier(n).sql()}" for n, kind in table.columns
            )
            engine.execute(
                f"CREATE TEMP TABLE {relation.sql()} AS SELECT {read} FROM read_parquet({literal(str(path))})"
            )


def _written(name: str, kind: str) -> str:
    return name if _KEPT.fullmatch(kind) else f"CAST({name} AS VARCHAR) AS {name}"


def scatter(engine: Engine, rows: Relation, column: str, folder: Path) -> None:
    """Write rows into a folder of Parquet files for each value of a column, `<column>=<value>` in `folder`."""
    options = f"FORMAT parquet, COMPRESSION zstd, PARTITION_BY ({Identifier(column).sql()}), OVERWRITE_OR_IGNORE"
    engine.execute(f"COPY {rows.sql()} TO {literal(str(folder))} ({options})")


def scattered(folder: Path, column: str, value: int) -> FileRelation:
    """The rows that were written for a value; the folder's name is no pattern."""
    return FileRelation("read_parquet", str(folder / f"{column}={value}" / "*.parquet"))


@contextmanager
def shared_memory(engine: Engine) -> Iterator[Callable[[Relation], Relation]]:
    """Within, what copies a table to where every connection to the engine's database sees it."""
    name = f"ldiv_{uuid.uuid4().hex[:8]}_shared"

    def copied(table: Relation) -> Relation:
        copy = Relation((name, "main", table.name))
        engine.execute(f"CREATE TABLE {copy.sql()} AS SELECT * FROM {table.sql()}")
        return copy

    engine.execute(f"ATTACH ':memory:' AS {Identifier(name).sql()} (READ_WRITE)")
    try:
        yield copied
    finally:
        engine.attempt(f"DETACH {Identifier(name).sql()}")  # the first error is the one to report


@contextmanager
def another_connection(engine: Engine) -> Iterator[Any]:
    """Another connection to the engine's database, closed at the end; Ctrl-C stops what it does."""
    with closing(engine.connection.cursor()) as connection, stoppable(connection):
        ((path,),) = engine.execute("SELECT current_setting('search_path')")
        connection.execute(f"SET search_path = {literal(path)}")  # a cursor does not take over what USE has said
        yield connection
