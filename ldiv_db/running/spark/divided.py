"""A table of more rows than a part: encoded and divided where it lies, its parts solved in executors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Task
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.infeasible import explained
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.auditing.audit import refuse_unknown
from ldiv_db.database.context import Context, Listener
from ldiv_db.database.engine import Engine, Settings
from ldiv_db.database.spark import SparkEngine, arrow_schema, plainly
from ldiv_db.policy.sensitive import smallest_class
from ldiv_db.publishing.result import Result, versions
from ldiv_db.recoding.encoded import WEIGHT
from ldiv_db.requirements.values import Named
from ldiv_db.running.preparation import lacking_rows, make_task
from ldiv_db.running.run_spec import resolve_requirements
from ldiv_db.running.spark.columns import encode_there, in_order, kept, with_numbers, with_types
from ldiv_db.running.spark.counts import CellsThere, layout_of, started
from ldiv_db.running.spark.executors import PartTold, PartWork, Sums, Told, part_solver, summed, unpacked
from ldiv_db.running.spark.resolve import SparkChoices, release_fields
from ldiv_db.solving.divide import divide_by_classes, why_whole
from ldiv_db.solving.improve import told_of_outliers
from ldiv_db.solving.nodes import Grained, HalvedNodes, Movable, positions_of
from ldiv_db.solving.parts import work_of
from ldiv_db.solving.solve import planned_parts

#: Why `bsgi` that leaves rows out is not divided.
DRAWN = "rows that are left out are drawn among all rows"


@dataclass(frozen=True)
class Solved:
    """The published rows as a frame of Spark's, in the order in which they are published, and what is told of them."""

    rows: Any
    told: Told


@dataclass(frozen=True)
class SourceFrame:
    """The columns that a run reads (c0, c1, …), as a frame that executors keep, and all fields; how many `rows`."""

    frame: Any
    fields: Any
    rows: int


@dataclass(frozen=True)
class Dividing:
    """The division of a table: the engine that plans it, and the place of its cells."""

    session: Any
    engine: Engine
    spark: SparkEngine
    choices: SparkChoices
    listener: Listener
    settings: Settings
    show_values: bool


@contextmanager
def solve_divided(work: Dividing, source: SourceFrame) -> Iterator[Solved | str]:
    """The release of a source in parts; or why it cannot be divided, in words, where that is so."""
    if not work.choices.algorithm.traits.divides:
        yield f"{work.choices.algorithm.name} plans on all rows together"
        return
    with ExitStack() as stack:
        task, cells, absent = prepared(work, source)
        stack.callback(cells.unpersist)
        if reason := why_whole(task, work.choices.algorithm):
            yield reason
            return
        if work.choices.algorithm.chosen(task)[0] is not work.choices.algorithm:
            yield DRAWN
            return
        feasible = checked(work, task)
        divided = _divide(work, task, feasible, cells)
        if isinstance(divided, str):
            yield divided
            return
        stack.callback(divided.close)
        work.listener.on_stage("forming classes")
        frame = stack.enter_context(_kept(work.session, _solve(work, task, source, divided)))
        with plainly("solve the parts in executors"):
            told = frame.where("told IS NOT NULL").select("told").collect()
        parts: list[PartTold] = sorted((unpacked(bytes(row[0])) for row in told), key=lambda part: part.node)
        notes = [*said(work, task, absent), *feasible.notes]
        rows, kept_types = _named_rows(work, task, frame, parts)
        if kept_types or work.choices.resolved.released.has_class_ids:  # there is more to it than names
            rows = stack.enter_context(_kept(work.session, rows))
        yield _release(work, task, feasible, rows, parts, kept_types, notes)


def prepared(work: Dividing, source: SourceFrame) -> tuple[Task, Any, Sequence[Named]]:
    """The table encoded where it lies, as a task of which counts alone are known here, and its cells.

    Also the values with thresholds of their own that no row has.
    """
    resolved, algorithm, engine = work.choices.resolved, work.choices.algorithm, work.engine
    work.listener.on_stage("reading the source")
    there = encode_there(work.session, engine, resolved.source, source.frame, source.rows, work.show_values)
    wanted, absent = resolve_requirements(engine, resolved.required, there.encoded)
    task = make_task(Context(engine, work.listener), there.encoded, wanted, resolved.source.seed, resolved.transparent)
    task = replace(task, suppression=resolved.suppression)
    refuse_unknown(resolved.suppressed, task.requirements)
    algorithm.refuse_unfit(task)
    return task, there.cells, absent


def said(work: Dividing, task: Task, absent: Sequence[Named]) -> list[str]:
    """The notes on the run, as a run elsewhere has them."""
    resolved = work.choices.resolved
    rows = replace(task, encoded=replace(task.encoded, cells=None))
    planned = planned_parts(rows, work.choices.algorithm, resolved.part_rows)
    return [planned, *resolved.warnings, *lacking_rows(work.engine, resolved, task.encoded, absent)]


def checked(work: Dividing, task: Task) -> Feasibility:
    """The feasibility by counts; raises InfeasibleError if the requirements cannot be met."""
    algorithm = work.choices.algorithm
    says, takes_any = algorithm.traits.explains, algorithm.traits.any_class
    with explained(work.engine, task.encoded, task.wanted, says, takes_any, work.show_values):
        return algorithm.checked(task)


def _divide(work: Dividing, task: Task, feasible: Feasibility, cells: Any) -> CellsThere | str:
    """The cells in their parts; or why they are one part."""
    algorithm, engine = work.choices.algorithm, work.engine
    positions, numbering = positions_of(task), work_of(task, algorithm).numbering
    in_classes, l = isinstance(algorithm, Bsgi), feasible.l  # noqa: E741
    beyond = task.encoded.row_count - l * feasible.classes
    if in_classes and beyond and algorithm.options.residue == "suppress":  # type: ignore[attr-defined] # of Bsgi
        return DRAWN
    nodes = started(work.session, engine, cells, positions, feasible.classes if in_classes else None)
    movable = CellsThere(work.spark, engine, layout_of(task.encoded, numbering), nodes)
    work.listener.on_stage("dividing the table")
    if len(split_nodes(task, algorithm, feasible, movable, positions, work.choices.resolved.part_rows)) > 1:
        return movable
    movable.close()
    return "no good part can be split off"


def split_nodes(
    task: Task,
    algorithm: Algorithm,
    feasible: Feasibility,
    movable: Movable,
    positions: Sequence[Grained],
    part_rows: int,
) -> list[tuple[int, int]]:
    """The parts of rows that lie anywhere: as of rows here, whatever moves them."""
    if isinstance(algorithm, Bsgi):
        return divide_by_classes(task, movable, positions, feasible.l, feasible.classes, part_rows)
    keeps_equal = isinstance(algorithm, Mondrian) and algorithm.options.split == "strict"
    return HalvedNodes(task, movable, positions, part_rows, cuts=not keeps_equal).divide()


def _solve(work: Dividing, task: Task, source: SourceFrame, divided: CellsThere) -> Any:
    """The frame of what parts tell, and of their published rows; nothing is worked out yet."""
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    resolved, encoded = work.choices.resolved, task.encoded
    fields = [
        types.StructField("told", types.BinaryType()),
        types.StructField("part", types.LongType()),
        *(types.StructField(f"x{i}", kind) for i, (_, kind) in enumerate(release_fields(work.choices, source.fields))),
    ]
    schema = types.StructType(fields)
    zone = work.session.conf.get("spark.sql.session.timeZone")
    part = PartWork(
        work_of(replace(task, forms=resolved.released.forms), work.choices.algorithm).carried(work.engine),
        tuple(resolved.released.all),
        tuple(resolved.typed),
        resolved.released.has_class_ids,
        arrow_schema(schema, zone),
        work.settings,
        versions(),
    )
    codes = [*(axis.code.name for axis in encoded.axes), *(axis.code.name for axis in encoded.sensitive)]
    names = ["node", *codes, *(column.alias.name for column in encoded.kept), WEIGHT.name]
    return divided.by_part(names).applyInArrow(part_solver(part), schema)


def _named_rows(work: Dividing, task: Task, frame: Any, parts: list[PartTold]) -> tuple[Any, frozenset[str]]:
    """The rows of all parts under their names, and the quasi-identifiers that keep their types."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    released = work.choices.resolved.released
    named = [functions.col(f"x{i}").alias(name) for i, name in enumerate(released.all)]
    rows = frame.where("told IS NULL").select("part", *named)
    typed = frozenset[str].intersection(*(part.kept for part in parts))
    rows = with_types(work.session, work.engine, rows, [axis for axis in task.encoded.axes if axis.name in typed])
    if released.has_class_ids:
        rows = with_numbers(work.session, work.engine, rows, released, task.encoded)
    return rows.drop("part"), typed


def _release(
    work: Dividing,
    task: Task,
    feasible: Feasibility,
    rows: Any,
    parts: list[PartTold],
    typed: frozenset[str],
    notes: list[str],
) -> Solved:
    """The rows of all parts as one release, and what is told of it."""
    released = work.choices.resolved.released
    sums = summed(rows, released.identifying + released.class_ids, task.encoded, parts)
    task.refuse_left_out(sums.loss.rows_suppressed - task.encoded.left_out)
    ordered = in_order(rows, released.all, sums.loss.rows_published)
    return Solved(ordered, Told(_result(work, task, feasible, sums, notes), task.wanted, (), tuple(typed)))


def _result(work: Dividing, task: Task, feasible: Feasibility, sums: Sums, notes: list[str]) -> Result:
    """The result, but for audits and its place."""
    resolved = work.choices.resolved
    return Result(
        run_id=uuid.uuid4().hex,
        algorithm=work.choices.algorithm.name,
        source=resolved.source.name,
        target=str(resolved.target),
        l=feasible.l,
        audits=(),
        search=sums.search,
        seconds=0.0,
        seed=resolved.source.seed,
        versions=versions(),
        notes=(*notes, *told_of_outliers(sums.search), *sums.loss.notes),
        smallest_class=smallest_class(task.requirements),
        inferred=resolved.inferred,
        loss=sums.loss,
    )


@contextmanager
def _kept(session: Any, frame: Any) -> Iterator[Any]:
    """The frame, kept by executors once it is worked out."""
    made = kept(session, frame)
    try:
        yield made
    finally:
        with plainly("let go of the release"):
            made.unpersist()
