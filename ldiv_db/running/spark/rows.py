"""The rows of a release, solved in executors and kept there: the driver hears what became of them, and no row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Settings
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.spark_failures import plainly
from ldiv_db.running.preparation import Listener
from ldiv_db.running.spark.resolve import SparkChoices
from ldiv_db.running.spark.solve import PartColumn, RunWork, part_columns, solver
from ldiv_db.running.spark.source import SparkSource
from ldiv_db.running.spark.told import Told, unpacked


@dataclass(frozen=True)
class Solved:
    """The published rows as a frame of Spark's, in the order in which they are published, and what is told of them."""

    rows: Any
    told: Told


@contextmanager
def solve_whole(
    session: Any, choices: SparkChoices, source: SparkSource, hear: Listener, kl: bool, show_values: bool
) -> Iterator[Solved]:
    """The release of a source that is one part, solved in one task of an executor's; kept there within the context."""
    hear.on_stage("reading the source")
    taken = source.taken(choices.names).persist()
    try:
        with plainly("read the source"):
            if taken.count() == 0:
                raise InfeasibleError(f"{choices.resolved.source.name} is empty: there is nothing to publish")
        hear.on_stage("forming classes")
        columns = part_columns(choices)
        fields = _fields(choices, source, columns)
        work = RunWork(choices, columns, _arrow(fields), _settings(session), kl, show_values)
        with _kept(taken.repartition(1).mapInArrow(solver(work), fields)) as frame:
            with plainly("solve the table in an executor"):
                told = unpacked(bytes(frame.where("told IS NOT NULL").select("told").collect()[0][0]))
            yield Solved(_release(frame.where("told IS NULL"), told, choices, columns, fields), told)
    finally:
        with suppress(Exception):  # the session itself may be gone; the first error is the one to report
            taken.unpersist()


@contextmanager
def _kept(frame: Any) -> Iterator[Any]:
    """The frame, kept by executors once it is worked out."""
    made = frame.persist()
    try:
        yield made
    finally:
        with suppress(Exception):  # the session itself may be gone; the first error is the one to report
            made.unpersist()


def _fields(choices: SparkChoices, source: SparkSource, columns: tuple[PartColumn, ...]) -> Any:
    """The schema of what is handed on: what is told, and the columns, those of text as such."""
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    own = {field.name.lower(): field.dataType for field in source.frame.schema.fields}
    bounds = {
        column.lower(): own[name.lower()]
        for name, form in choices.resolved.released.forms.items()
        if form == "bounds"
        for column in (f"{name}_min", f"{name}_max")
    }
    known = {**own, **bounds, **{name: types.LongType() for name in choices.resolved.released.class_ids}}
    return types.StructType(
        [
            types.StructField("told", types.BinaryType()),
            *(
                types.StructField(f"x{i}", types.StringType() if column.is_text else known[column.name.lower()])
                for i, column in enumerate(columns)
            ),
        ]
    )


def _arrow(fields: Any) -> Any:
    """The same schema as Arrow has it."""
    import pyarrow  # noqa: PLC0415 - comes with the extra
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415 - an extra

    return pyarrow.schema([pyarrow.field(field.name, to_arrow_type(field.dataType)) for field in fields])


def _release(frame: Any, told: Told, choices: SparkChoices, columns: tuple[PartColumn, ...], fields: Any) -> Any:
    """The columns of the release, under their names: of a quasi-identifier the one that was handed on."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    chosen: dict[str, int] = {}
    for number, column in enumerate(columns):
        if column.name not in chosen or column.name in told.typed:
            chosen[column.name] = number
    return frame.select(*(functions.col(f"x{i}").alias(name) for name, i in chosen.items()))


def _settings(session: Any) -> Settings:
    """How a database in an executor may use it, as far as the session says: its cores."""
    cores = session.conf.get("spark.executor.cores", None)
    master = str(session.conf.get("spark.master", ""))
    local = master.removeprefix("local[").partition("]")[0] if master.startswith("local[") else ""
    found = cores or local
    return Settings(threads=int(found) if found.isdecimal() else None)
