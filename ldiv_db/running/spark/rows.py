"""A table of more rows than a part under an algorithm that plans from counts: Spark counts, our database plans here.

The plan of every run is made on the counts of equal rows; what it publishes of each combination of codes is sent back,
and Spark joins it to the rows. Of a combination some of whose rows are left out, or are in several classes, rows are
told apart by their places in the order of content, as in every run.

The rows of a release, solved in executors and kept there: the driver hears what became of them, and no row.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Task
from ldiv_db.database.context import Context, Listener
from ldiv_db.database.engine import Engine, Settings
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.database.spark import SparkEngine, arrow_schema, plainly
from ldiv_db.database.templates import Relation
from ldiv_db.policy.sensitive import smallest_class
from ldiv_db.publishing.result import Result, versions
from ldiv_db.recoding.axes import as_numbered
from ldiv_db.recoding.encoded import WEIGHT, Encoded, Renamed
from ldiv_db.recoding.loss import Loss, measure_recoding
from ldiv_db.recoding.recode import Recoding, keep_types
from ldiv_db.recoding.rules import recoding_of
from ldiv_db.running.run import measure_similarity, work_out
from ldiv_db.running.run_spec import PreparedRun
from ldiv_db.running.spark.columns import collected, in_order, with_numbers
from ldiv_db.running.spark.counts import Publication, applied
from ldiv_db.running.spark.divided import Dividing, Solved, SourceFrame, checked, prepared, said, solve_divided
from ldiv_db.running.spark.executors import PartColumn, RunWork, Told, part_columns, solver, unpacked
from ldiv_db.running.spark.resolve import SparkChoices, SparkSource, own_types
from ldiv_db.solving.parts import row_columns

#: So many times `part_rows` are the most rows that one task solves, and the most counts that the driver plans from.
MOST_PARTS = 20


def plans_from_counts(algorithm: Algorithm) -> bool:
    """True if an algorithm plans from the counts of equal rows alone."""
    return algorithm.traits.counts and not algorithm.traits.divides


def refuse_whole(name: str, rows: int, part_rows: int) -> None:
    """Raise PolicyError for a table that is far too large for one task."""
    if rows > MOST_PARTS * part_rows:
        what = (
            f"{name} solves all {rows:,} rows in one task, which takes {MOST_PARTS * part_rows:,} at most,"
            f" {MOST_PARTS} times `part_rows`"
        )
        raise PolicyError(
            [Problem("algorithm.name", what, "choose bsgi, mondrian, topdown or peel; or raise part_rows")]
        )


@dataclass(frozen=True)
class _Planned:
    """The plan on the counts, and their publication."""

    task: Task
    feasible: Feasibility
    plan: Plan
    recoding: Recoding


@contextmanager
def solve_counted(work: Dividing, source: SourceFrame) -> Iterator[Solved]:
    """The release of a source whose equal rows are counted there, planned here by these counts, and recoded there."""
    task, cells, absent = prepared(work, source)
    try:
        notes = said(work, task, absent)
        found = _planned(work, _counted(work, task, cells))
        yield _release(work, source, found, cells, notes, task.encoded.kept)
    finally:
        cells.unpersist()


def _counted(work: Dividing, task: Task, cells: Any) -> Task:
    """The task with the counts of equal rows, without what is kept beside; raises PolicyError for too many."""
    engine, encoded = work.engine, task.encoded
    beside = tuple(_beside(work, encoded.kept))
    encoded = replace(encoded, kept=beside)
    return replace(task, encoded=counted(engine, encoded, collected(engine, "counts", _grouped(work, encoded, cells))))


def counted(engine: Engine, encoded: Encoded, counts: Relation) -> Encoded:
    """The encoded table with the counts (codes, kept columns, weight) of its equal rows in place of these."""
    numbering = as_numbered(engine, encoded.axes)
    params = {"axes": numbering, "sensitive": encoded.sensitive, "own": [], "kept": encoded.kept, "weight": WEIGHT}
    numbered = engine.materialise("cells", "solving/number_cells", cells=counts, **params)
    engine.drop(counts)
    rows = engine.view(
        "repeated", "recoding/input/repeat_rows", cells=numbered, columns=row_columns(encoded), weight=WEIGHT
    )
    return replace(encoded, rows=rows, cells=numbered, different=engine.count(numbered))


def _beside(work: Dividing, columns: Sequence[Renamed]) -> Iterator[Renamed]:
    """The class column of the algorithm, if it has one: rows are counted by it as well."""
    label = str(getattr(work.choices.algorithm.options, "label", None) or "").lower()
    return (column for column in columns if column.column.name.lower() == label)


def _grouped(work: Dividing, encoded: Encoded, cells: Any) -> Any:
    """The frame of the counts of equal rows; raises PolicyError if there are too many to plan from."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    total = functions.sum(WEIGHT.name).cast("bigint").alias(WEIGHT.name)
    counts = cells.groupBy(*(column.name for column in row_columns(encoded))).agg(total)
    with plainly("count"):
        found, most = counts.count(), MOST_PARTS * work.choices.resolved.part_rows
    if found > most:
        what = (
            f"{work.choices.algorithm.name} plans on the driver, from {found:,} counts of equal rows:"
            f" {most:,} are the most, {MOST_PARTS} times `part_rows`"
        )
        raise PolicyError([Problem("algorithm.name", what, "round or drop columns, or choose mondrian or bsgi")])
    return counts


def _planned(work: Dividing, task: Task) -> _Planned:
    """The plan on the counts; raises InfeasibleError if the requirements cannot be met."""
    engine = work.engine
    feasible = checked(work, task)
    work.listener.on_stage("forming classes")
    ready = PreparedRun(Context(engine), work.choices.resolved, work.choices.algorithm, task)
    plan, recoding = work_out(ready)
    return _Planned(task, feasible, plan, recoding)


def _release(
    work: Dividing, source: SourceFrame, found: _Planned, cells: Any, notes: list[str], columns: Sequence[Renamed]
) -> Solved:
    """The rows as the plan publishes them, and what is told of it."""
    resolved, engine = work.choices.resolved, work.engine
    encoded, released = found.task.encoded, resolved.released
    loss = measure_recoding(engine, encoded, found.recoding, released.has_class_ids)
    shown = keep_types(engine, found.recoding, resolved.typed)
    publication = Publication(published(engine, encoded, shown), encoded, shown.spans, tuple(columns))
    rows = applied(work.session, engine, publication, cells, work.choices, source.fields)
    if released.has_class_ids:
        rows = with_numbers(work.session, engine, rows, released, encoded)
    rows = in_order(rows.drop("part"), released.all, loss.rows_published)
    typed = tuple(span.axis.name for span in shown.spans if span.form == "value")
    return Solved(rows, Told(_result(work, found, loss, notes), found.task.wanted, (), typed))


def published(engine: Engine, encoded: Encoded, recoding: Recoding) -> Relation:
    """The labels of each combination of codes, of a table whose equal rows are counted (`encoded.cells`)."""
    with engine.scope() as scope:
        params = {"cells": encoded.cells, "weight": WEIGHT}
        stretches = engine.materialise(
            "stretches", "running/spark/list_stretches", assigned=recoding.assigned, **params
        )
        labels = engine.materialise(
            "labels", "recoding/publish/label_classes", classes=recoding.classes, spans=recoding.spans, many=False
        )
        found = engine.materialise(
            "published",
            "running/spark/list_published",
            stretches=stretches,
            labels=labels,
            blanked=recoding.blanked,
            axes=encoded.axes,
            sensitive=encoded.sensitive,
            beside=encoded.kept,
            shown=[shown for span in recoding.spans for shown in span.shown],
            told=encoded.told,
            **params,
        )
        return scope.keep(found)


def _result(work: Dividing, found: _Planned, loss: Loss, notes: list[str]) -> Result:
    """The result, but for audits and its place."""
    resolved, plan, engine = work.choices.resolved, found.plan, work.engine
    encoded, ids = found.task.encoded, resolved.released.has_class_ids
    known = recoding_of(engine, resolved.source, found.recoding, plan.search, found.task.requirements)
    return Result(
        run_id=uuid.uuid4().hex,
        algorithm=plan.algorithm or work.choices.algorithm.name,
        source=resolved.source.name,
        target=str(resolved.target),
        l=plan.l,
        audits=(),
        search=plan.search,
        seconds=0.0,
        seed=resolved.source.seed,
        versions=versions(),
        notes=tuple(dict.fromkeys([*notes, *plan.notes, *loss.notes])),
        smallest_class=smallest_class(found.task.requirements),
        inferred=resolved.inferred,
        loss=loss,
        similarity=measure_similarity(engine, encoded, found.recoding, resolved.required.attributes, ids),
        recoding=known if work.choices.algorithm.traits.recodes_globally else None,
    )


@contextmanager
def solve_there(
    session: Any,
    engine: Engine,
    choices: SparkChoices,
    source: SparkSource,
    listener: Listener,
    kl: bool,
    show_values: bool,
) -> Iterator[Solved]:
    """The release of a source: solved in one task if it is one part, or cannot be divided there."""
    listener.on_stage("reading the source")
    with ExitStack() as stack:
        taken = stack.enter_context(_kept(source.taken(choices.names)))
        with plainly("read the source"):
            rows = taken.count()
        if rows == 0:
            raise InfeasibleError(f"{choices.resolved.source.name} is empty: there is nothing to publish")
        notes: tuple[str, ...] = ()
        if rows > choices.resolved.part_rows:
            spark = SparkEngine(session, listener.on_step)
            stack.callback(spark.close_scratch)
            work = Dividing(session, engine, spark, choices, listener, _settings(session, 1), show_values)
            solve = solve_counted if plans_from_counts(choices.algorithm) else solve_divided
            found = stack.enter_context(solve(work, SourceFrame(taken, source.frame.schema.fields, rows)))
            if isinstance(found, Solved):
                yield found
                return
            refuse_whole(choices.algorithm.name, rows, choices.resolved.part_rows)
            notes = (f"solved in one task of one executor: {found}",)
        listener.on_stage("forming classes")
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
        yield Solved(_rows_release(frame.where("told IS NULL"), told, columns), told)


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


def _rows_release(frame: Any, told: Told, columns: tuple[PartColumn, ...]) -> Any:
    """The columns of the release, under their names: of a quasi-identifier the one that was handed on."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    chosen: dict[str, int] = {}
    for number, column in enumerate(columns):
        if column.name not in chosen or column.name in told.typed:
            chosen[column.name] = number
    return frame.select(*(functions.col(f"x{i}").alias(name) for name, i in chosen.items()))


def _settings(session: Any, threads: int | None = None) -> Settings:
    """The limits of a database in an executor: so many threads, by default as many as the session gives it cores.

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
