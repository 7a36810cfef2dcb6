"""The rows of a release, solved in executors and kept there: the driver hears what became of them, and no row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from ldiv_db.database.engine import Engine, Settings
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.spark_engine import SparkEngine
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.spark_types import arrow_schema
from ldiv_db.running.preparation import Listener
from ldiv_db.running.spark.counted import plans_from_counts, refuse_whole, solve_counted
from ldiv_db.running.spark.divided import Dividing, Solved, Source, solve_divided
from ldiv_db.running.spark.resolve import SparkChoices
from ldiv_db.running.spark.solve import PartColumn, RunWork, part_columns, solver
from ldiv_db.running.spark.source import SparkSource
from ldiv_db.running.spark.told import Told, unpacked
from ldiv_db.running.spark.types import own_types


@contextmanager
def solve_there(
    session: Any,
    engine: Engine,
    choices: SparkChoices,
    source: SparkSource,
    hear: Listener,
    kl: bool,
    show_values: bool,
) -> Iterator[Solved]:
    """The release of a source: solved in one task if it is one part, or cannot be divided there."""
    hear.on_stage("reading the source")
    with ExitStack() as stack:
        taken = stack.enter_context(_kept(source.taken(choices.names)))
        with plainly("read the source"):
            rows = taken.count()
        if rows == 0:
            raise InfeasibleError(f"{choices.resolved.source.name} is empty: there is nothing to publish")
        notes: tuple[str, ...] = ()
        if rows > choices.resolved.part_rows:
            spark = SparkEngine(session, hear.on_step)
            stack.callback(spark.close_scratch)
            work = Dividing(session, engine, spark, choices, hear, _settings(session, 1), show_values)
            solve = solve_counted if plans_from_counts(choices.algorithm) else solve_divided
            found = stack.enter_context(solve(work, Source(taken, source.frame.schema.fields, rows)))
            if isinstance(found, Solved):
                yield found
                return
            refuse_whole(choices.algorithm.name, rows, choices.resolved.part_rows)
            notes = (f"solved in one task of one executor: {found}",)
        hear.on_stage("forming classes")
        solved = stack.enter_context(_solve_whole(session, choices, source, taken, kl, show_values))
        result = solved.told.result
        yield replace(solved, told=replace(solved.told, result=replace(result, notes=(*result.notes, *notes))))


@contextmanager
def _solve_whole(
    session: Any, choices: SparkChoices, source: SparkSource, taken: Any, kl: bool, show_values: bool
) -> Iterator[Solved]:
    """The release of a source that is one part, solved in one task of an executor's."""
    columns = part_columns(choices)
    fields = _fields(choices, source, columns)
    schema = arrow_schema(fields, session.conf.get("spark.sql.session.timeZone"))
    work = RunWork(choices, columns, schema, _settings(session), kl, show_values)
    with _kept(taken.repartition(1).mapInArrow(solver(work), fields)) as frame:
        with plainly("solve the table in an executor"):
            told: Told = unpacked(bytes(frame.where("told IS NOT NULL").select("told").collect()[0][0]))
        yield Solved(_release(frame.where("told IS NULL"), told, columns), told)


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

    own = own_types(choices, source.frame.schema.fields)
    kinds = [types.StringType() if column.is_text else own[column.name.lower()] for column in columns]
    handed_on = [types.StructField(f"x{i}", kind) for i, kind in enumerate(kinds)]
    return types.StructType([types.StructField("told", types.BinaryType()), *handed_on])


def _release(frame: Any, told: Told, columns: tuple[PartColumn, ...]) -> Any:
    """The columns of the release, under their names: of a quasi-identifier the one that was handed on."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    chosen: dict[str, int] = {}
    for number, column in enumerate(columns):
        if column.name not in chosen or column.name in told.typed:
            chosen[column.name] = number
    return frame.select(*(functions.col(f"x{i}").alias(name) for name, i in chosen.items()))


def _settings(session: Any, threads: int | None = None) -> Settings:
    """How a database in an executor may use it: so many threads, by default as many as the session gives it cores.

    Its memory is what Spark allows a worker of Python's, if the session says so.
    """
    master = str(session.conf.get("spark.master", ""))
    local = master.removeprefix("local[").partition("]")[0] if master.startswith("local[") else ""
    found = session.conf.get("spark.executor.cores", None) or local
    cores = int(found) if found.isdecimal() else None
    return Settings(threads or cores, _memory(session.conf.get("spark.executor.pyspark.memory", None), cores or 1))


def _memory(text: str | None, cores: int) -> str | None:
    """The share of one core of a size as Spark writes it (2g, 512m), as our database takes it; None for none."""
    found = re.fullmatch(r"(\d+)([kmgt])b?", (text or "").strip().lower())
    if found is None:
        return None
    kilobytes = int(found[1]) * 1024 ** "kmgt".index(found[2]) // cores
    return f"{kilobytes}KiB"
