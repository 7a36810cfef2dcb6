"""The message of an executor to the driver besides rows: a result, or an error that is raised there again.

In an executor: the cells of a part become published rows, by the very code that solves parts elsewhere.

In an executor: the rows of a part become published rows, by the very code of a run, on a database of its own.

The loss of a release in parts, as one release: sums over its parts, and the classes that a reader can tell apart.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.addresses import Place
from ldiv_db.database.context import Context, working_engine
from ldiv_db.database.engine import Engine, Settings, open_database
from ldiv_db.database.errors import DatabaseError, LdivError
from ldiv_db.database.spark import plainly
from ldiv_db.database.templates import Relation
from ldiv_db.policy.release_columns import keeps_type
from ldiv_db.publishing.destinations import Destination
from ldiv_db.publishing.draft import Draft, Outcome, RunDraft
from ldiv_db.publishing.result import Result, versions
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.loss import Loss, measure_recoding
from ldiv_db.recoding.recode import PUBLISHED, keep_types, plan_recoding, published_rows
from ldiv_db.requirements import Requirement
from ldiv_db.running.run import publish_run
from ldiv_db.running.run_spec import RunSpec
from ldiv_db.running.spark.resolve import SparkChoices
from ldiv_db.solving.parts import PartJob, numbered, opened, part_task, solve
from ldiv_db.solving.solve import combined


@dataclass(frozen=True)
class Told:
    """The result of a run as its rows were solved, what is required of its release, and how its own audit found it.

    `typed` are the quasi-identifiers that are published in their own types.
    """

    result: Result
    wanted: Mapping[str, Sequence[Requirement]]
    audits: Sequence[Audit]
    typed: tuple[str, ...] = ()


def packed(told: Any) -> bytes:
    """The message, or an error of ours, as bytes."""
    return pickle.dumps(told)


def unpacked(data: bytes) -> Any:
    """The message; raises the error if it was one."""
    told = pickle.loads(data)  # noqa: S301 - our own executors wrote it
    if isinstance(told, LdivError):
        raise told
    return told


@dataclass(frozen=True)
class PartWork:
    """All that solving a part takes besides its cells; it can be pickled.

    `typed` are the quasi-identifiers that keep their types if no class of any part generalises them; `names` are the
    columns of the release, `schema` is Arrow's of what is handed on: what is told, the part, and these columns.
    """

    work: PartJob
    names: tuple[str, ...]
    typed: tuple[str, ...]
    class_id: bool
    schema: Any
    settings: Settings
    versions: dict[str, str]


@dataclass(frozen=True)
class PartTold:
    """The message on a part: its loss, the notes of its algorithm, and the columns that no class generalises."""

    node: int
    rows: int
    loss: Loss
    search: dict[str, Any]
    kept: frozenset[str]


def part_solver(work: PartWork) -> Callable[[Any], Any]:
    """The function that Spark applies to the cells of each part."""
    return lambda cells: _solve(work, cells)  # without annotations, by which Spark would guess what it takes


def _solve(work: PartWork, cells: Any) -> Any:
    """The message on the part, and its published rows, as one table."""
    import pyarrow  # noqa: PLC0415 - Spark's executors have it

    node = cells.column("node")[0].as_py()
    with (
        tempfile.TemporaryDirectory(prefix="ldiv_") as folder,
        opened(work.work, Settings(work.settings.threads, work.settings.memory_limit, folder)) as engine,
    ):
        try:
            told, rows = _run(work, engine, node, cells.drop_columns(["place", "node"]))
            found = engine.reader(rows).read_all()
            data = packed(told)
        except LdivError as error:
            data, found = packed(error), None
    arrays = {"told": pyarrow.array([data], pyarrow.binary()), "part": pyarrow.array([node], pyarrow.int64())}
    first = _table(work.schema, arrays, 1)
    if found is None:
        return first
    parts = pyarrow.array([node] * found.num_rows, pyarrow.int64())
    arrays = {f"x{i}": found.column(name) for i, name in enumerate(work.names)}
    return pyarrow.concat_tables([first, _table(work.schema, {"part": parts, **arrays}, found.num_rows)])


def _run(work: PartWork, engine: Engine, node: int, cells: Any) -> tuple[PartTold, Relation]:
    """The message on the part, and the table of its published rows; raises LdivError."""
    if work.versions != versions():
        raise DatabaseError(f"executors have other versions than the driver: {versions()}, not {work.versions}")
    part = work.work
    task = part_task(part, engine, numbered(part, engine, engine.register("cells", cells)))
    plan = solve(part, task)
    recoding = plan_recoding(engine, task.encoded, plan.assigned, part.forms, plan.classes, plan.blanked, plan.stars)
    loss = measure_recoding(engine, task.encoded, recoding, work.class_id)
    kept = frozenset(_valued(engine, recoding, work.typed))
    with published_rows(engine, task.encoded, recoding, work.class_id) as params:
        release = engine.materialise("release", PUBLISHED, **params)
    return PartTold(node, task.encoded.rows_in, loss, dict(plan.search), kept), release


def _valued(engine: Engine, recoding: Any, typed: Sequence[str]) -> list[str]:
    """The quasi-identifiers among `typed` that no class of the part generalises."""
    return [span.axis.name for span in keep_types(engine, recoding, typed).spans if span.form == "value"]


def _table(schema: Any, arrays: dict[str, Any], rows: int) -> Any:
    """A table of the schema; columns that are not among `arrays` are NULL."""
    import pyarrow  # noqa: PLC0415 - Spark's executors have it

    made = [
        arrays[part.name].cast(part.type) if part.name in arrays else pyarrow.nulls(rows, part.type) for part in schema
    ]
    return pyarrow.Table.from_arrays(made, schema=schema)


@dataclass(frozen=True)
class PartColumn:
    """A column of what an executor hands on: `name` in the release, whether it is there in its own `type` or as text.

    A quasi-identifier whose values may keep their type is handed on in two columns, one of which is empty.
    """

    name: str
    is_text: bool


@dataclass(frozen=True)
class RunWork:
    """All that a whole run takes besides its rows; it can be pickled."""

    choices: SparkChoices
    columns: tuple[PartColumn, ...]
    #: The schema of Arrow's in which rows are handed on: what is told, then the columns.
    schema: Any
    settings: Settings = field(default_factory=Settings)
    kl: bool = False
    show_values: bool = False
    versions: dict[str, str] = field(default_factory=versions)


def part_columns(choices: SparkChoices) -> tuple[PartColumn, ...]:
    """The columns that an executor hands on, in the order of the release."""
    resolved = choices.resolved
    labels = {name.lower() for name, form in resolved.released.forms.items() if form != "bounds"}
    types = {column.name.lower(): column for column in resolved.columns}
    found = []
    for name in resolved.released.all:
        is_label = name.lower() in labels
        found += [PartColumn(name, True)] if is_label else []
        if not is_label or keeps_type(types[name.lower()], resolved.target.format):
            found.append(PartColumn(name, False))
    return tuple(found)


def solver(work: RunWork) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function that Spark maps the only partition with."""
    return partial(_solve_solve, work)


def _solve_solve(work: RunWork, batches: Iterable[Any]) -> Iterator[Any]:
    """The message on the run, then its published rows in their order, as record batches."""
    import pyarrow  # noqa: PLC0415 - Spark's executors have it

    table = pyarrow.Table.from_batches([*batches])
    with tempfile.TemporaryDirectory(prefix="ldiv_") as folder:
        settings = replace(work.settings, temp_directory=folder)
        with open_database(":memory:", settings=settings) as connection, working_engine(connection) as engine:
            destination = _InExecutor(engine)
            try:
                told: Told | LdivError = _solve_run(work, engine, destination, table)
            except LdivError as error:
                told = error
            yield _batch(work.schema, {"told": pyarrow.array([packed(told)], pyarrow.binary())}, 1)
            if destination.release is not None and isinstance(told, Told):
                for batch in engine.reader(destination.release):
                    yield _handed_on(work, batch)


def _solve_run(work: RunWork, engine: Engine, destination: _InExecutor, table: Any) -> Told:
    """The run of one part, published nowhere; raises LdivError."""
    if work.versions != versions():
        raise DatabaseError(f"executors have other versions than the driver: {versions()}, not {work.versions}")
    choices = work.choices
    rows = engine.register("source", table.rename_columns(list(choices.names)))
    source = replace(choices.resolved.source, relation=rows)
    resolved = replace(choices.resolved, source=source)
    spec = RunSpec(resolved, choices.algorithm, destination)

    result = publish_run(Context(engine, show_values=work.show_values), spec, work.kl)
    draft = destination.draft
    assert draft is not None  # noqa: S101 - it was published
    typed = tuple(span.axis.name for span in draft.recoding.spans if span.form == "value")
    return Told(replace(result, audits=()), draft.requirements, result.audits, typed)


class _InExecutor(Destination):
    """A TEMP table, `release`: another hand publishes it."""

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self.draft: RunDraft | None = None
        self.release: Relation | None = None

    @property
    def folder(self) -> Path | None:
        return None

    @property
    def place(self) -> Place:
        raise DatabaseError("rows in an executor are read by Spark alone")

    def publish(self, draft: Draft[Outcome]) -> Outcome:
        assert isinstance(draft, RunDraft)  # noqa: S101 - nothing else is run here
        self.draft = draft
        with draft.rows() as params:
            self.release = self.engine.materialise("release", PUBLISHED, **params)
        return draft.audit(self.release)  # type: ignore[return-value] # the outcome of a RunDraft


def _handed_on(work: RunWork, batch: Any) -> Any:
    """Published rows in the columns that are handed on."""
    import pyarrow  # noqa: PLC0415 - Spark's executors have it

    arrays = {}
    for number, column in enumerate(work.columns):
        values = batch.column(batch.schema.get_field_index(column.name))
        is_text = pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type)
        twice = sum(other.name == column.name for other in work.columns) > 1
        if not twice or is_text == column.is_text:
            arrays[f"x{number}"] = values
    return _batch(work.schema, arrays, batch.num_rows)


def _batch(schema: Any, arrays: dict[str, Any], rows: int) -> Any:
    """A record batch of the schema; columns that are not among `arrays` are NULL."""
    import pyarrow  # noqa: PLC0415 - Spark's executors have it

    made = [
        arrays[part.name].cast(part.type) if part.name in arrays else pyarrow.nulls(rows, part.type) for part in schema
    ]
    return pyarrow.RecordBatch.from_arrays(made, schema=schema)


@dataclass(frozen=True)
class Sums:
    """The loss and the notes of all parts together."""

    loss: Loss
    search: dict[str, Any]


def summed(rows: Any, identifying: Sequence[str], encoded: Encoded, parts: Sequence[PartTold]) -> Sums:
    """The sums of the parts; `rows` are all that are published, in which equal `identifying` columns are a class."""
    sizes = _sizes(rows, identifying)
    losses = [part.loss for part in parts]
    published = sum(loss.rows_published for loss in losses)
    suppressed, rows_in, axes = encoded.rows_in - published, encoded.rows_in, encoded.axes
    weights = sum(axis.weight for axis in axes)
    lost = {axis.name: _lost(axis.name, parts) + encoded.left_out for axis in axes}
    lm, ncp = sum(lost.values()), sum(loss.ncp for loss in losses) + encoded.left_out * weights
    loss = Loss(
        classes=sizes["classes"],
        rows_published=published,
        rows_suppressed=suppressed,
        cells_suppressed=sum(loss.cells_suppressed for loss in losses),
        smallest_class=sizes["smallest"] or 0,
        largest_class=sizes["largest"] or 0,
        lm=lm,
        lm_mean=lm / (rows_in * len(axes)),
        ncp=ncp,
        ncp_mean=ncp / (rows_in * weights) if weights else 0.0,
        dm=int(sizes["dm"] or 0) + suppressed * rows_in,
        lm_by_column={name: value / rows_in for name, value in lost.items()},
        stars=sum(loss.stars for loss in losses),
        classes_made=sum(loss.classes_made or 0 for loss in losses),
    )
    return Sums(loss, {"parts": len(parts), **combined([part.search for part in parts])})


def _lost(name: str, parts: Sequence[PartTold]) -> float:
    """The loss of the rows of all parts in one column."""
    return sum(part.loss.lm_by_column[name] * part.rows for part in parts)


def _sizes(rows: Any, identifying: Sequence[str]) -> Any:
    """One row: the number of classes that can be told apart, their smallest and largest size, the sum of squares."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    names = [functions.col(f"`{name.replace('`', '``')}`") for name in identifying]
    size = functions.col("size")
    found = rows.groupBy(*names).agg(functions.count(functions.lit(1)).alias("size"))
    sums = {
        "classes": functions.count(functions.lit(1)),
        "smallest": functions.min(size),
        "largest": functions.max(size),
        "dm": functions.sum(size.cast("decimal(38,0)") * size),
    }
    with plainly("count classes"):
        return found.agg(*(value.alias(name) for name, value in sums.items())).collect()[0]
