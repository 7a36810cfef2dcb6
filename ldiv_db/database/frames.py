"""Frames of pandas, Polars and Arrow, and relations of the database's client, and databases in memory for them.

A frame is read where it lies. What can be read only once, objects of pandas', and a relation of another connection are
copied into a TEMP table first: a run reads its source several times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import BoundArguments, Signature
from typing import Any

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine, attempt, connect, stoppable
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.templates import Identifier, Relation

#: What is read as a frame, for messages, and what one is called that has no name.
KINDS, FRAME = "pandas, Polars, Arrow, or a relation of DuckDB's", "frame"
#: The libraries of frames, and of their classes those that are read again and again.
_LIBRARIES = ("pandas", "polars", "pyarrow")
_READ_AGAIN = ("DataFrame", "Series", "Table", "RecordBatch", "Dataset", "FileSystemDataset", "InMemoryDataset")
#: Binds the arguments of a call that is given frames in place of a database: its signature, the frames, the others.
OfFrame = Callable[[Signature, Any, Sequence[Any], Mapping[str, Any]], BoundArguments]
_STREAM = "__arrow_c_stream__"
#: Types of which Arrow loses what they say.
_LOST = re.compile(r"\b(BIT|TIME WITH TIME ZONE)\b")


def is_relation(given: Any) -> bool:
    """Whether it is a relation of the database's client."""
    return type(given).__name__ == "DuckDBPyRelation"


def is_frame(given: Any) -> bool:
    """Whether it is a frame; its columns are not asked, which may have any name."""
    kind = type(given)
    library = kind.__module__.partition(".")[0]
    return is_relation(given) or library in _LIBRARIES or hasattr(kind, _STREAM)


def view_of_frame(engine: Engine, name: str, frame: Any) -> Relation:
    """The rows of a frame; they can be read until `close_scratch`. Raises DatabaseError for what is none."""
    if _has_objects(frame):
        with _all_values_seen(engine, len(frame)):
            return engine.copy(name, engine.register(name, frame))
    if not is_relation(frame):
        view = engine.register(name, frame)
        return view if type(frame).__name__ in _READ_AGAIN else engine.copy(name, view)
    try:
        return engine.register(name, frame)
    except DatabaseError:  # it is of another connection
        return _copied(engine, name, frame)


def _has_objects(frame: Any) -> bool:
    """Whether it is a frame of pandas' with columns of any objects, whose types follow from the values."""
    is_pandas = type(frame).__module__.partition(".")[0] == "pandas" and type(frame).__name__ == "DataFrame"
    return is_pandas and any(str(kind) == "object" for kind in frame.dtypes)


@contextmanager
def _all_values_seen(engine: Engine, rows: int) -> Iterator[None]:
    """Have types follow from all values: by a sample, one that is a text among numbers would fail a later statement."""
    ((before, locked),) = engine.execute(
        "SELECT current_setting('pandas_analyze_sample'), current_setting('lock_configuration')"
    )
    if locked:
        yield
        return
    engine.execute(f"SET pandas_analyze_sample = {rows}")
    try:
        yield
    finally:
        attempt(engine.connection, f"SET pandas_analyze_sample = {before}")


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
        raise PolicyError([Problem(name, what, "give the relation's own connection first")])
    stream = engine.register(name, _Stream(relation))
    arrived = columns_of(engine, stream)
    columns = ", ".join(_cast(column.name, column.type, kind) for column, kind in zip(arrived, types, strict=True))
    return engine.copy(name, engine.view_of(name, f"SELECT {columns} FROM {stream.sql()}"))


def _cast(column: str, arrived: str, kind: str) -> str:
    """The column in the type that it had: Arrow has none for UUIDs, enums and very large numbers."""
    name = Identifier(column).sql()
    return name if arrived == kind else f"CAST({name} AS {kind}) AS {name}"


@contextmanager
def open_frames(given: Any, keep: bool) -> Iterator[Any]:
    """A connection to a new database in memory, on which the frames of a mapping can be read by their names.

    Afterwards they cannot, and it is closed unless it is to be kept for what was made there.
    """
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
    """Have a frame looked up by its name; what is returned takes the name away."""
    if not isinstance(name, str) or not name:
        raise PolicyError([Problem("frames", f"{name!r} is no name of a frame", "map texts to frames")])
    if not is_frame(frame):
        raise PolicyError([Problem(name, f"{type(frame).__name__} is not a frame that the database reads", KINDS)])
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
