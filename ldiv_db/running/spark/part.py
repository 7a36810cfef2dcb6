"""In an executor: the cells of a part become published rows, by the very code that solves parts elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine, Settings
from ldiv_db.database.errors import DatabaseError, LdivError
from ldiv_db.database.templates import Relation
from ldiv_db.distributing.parts import Work, numbered, opened, part_task, solve
from ldiv_db.publishing.result import versions
from ldiv_db.recoding.loss import Loss, measure_recoding
from ldiv_db.recoding.recode import PUBLISHED, keep_types, plan_recoding, published_rows
from ldiv_db.running.spark.told import packed


@dataclass(frozen=True)
class PartWork:
    """All that solving a part takes besides its cells; it can be pickled.

    `typed` are the quasi-identifiers that keep their types if no class of any part generalises them; `names` are the
    columns of the release, `schema` is Arrow's of what is handed on: what is told, the part, and these columns.
    """

    work: Work
    names: tuple[str, ...]
    typed: tuple[str, ...]
    class_id: bool
    schema: Any
    settings: Settings
    versions: dict[str, str]


@dataclass(frozen=True)
class PartTold:
    """What is told of a part: what it lost, what its algorithm says, and the columns that no class generalises."""

    node: int
    rows: int
    loss: Loss
    search: dict[str, Any]
    kept: frozenset[str]


def part_solver(work: PartWork) -> Callable[[Any], Any]:
    """The function that Spark applies to the cells of each part."""
    return lambda cells: _solve(work, cells)  # without annotations, by which Spark would guess what it takes


def _solve(work: PartWork, cells: Any) -> Any:
    """What is told of the part, and its published rows, as one table."""
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
    """What is told of the part, and the table of its published rows; raises LdivError."""
    if work.versions != versions():
        raise DatabaseError(f"executors have other versions than the driver: {versions()}, not {work.versions}")
    part = work.work
    task = part_task(part, engine, numbered(part, engine, engine.register("cells", cells)))
    plan = solve(part, task)
    recoding = plan_recoding(engine, task.encoded, plan.assigned, part.forms, plan.classes, plan.blanked, plan.stars)
    loss = measure_recoding(engine, task.encoded, recoding, work.class_id)
    kept = frozenset(_valued(engine, recoding, work.typed))
    with published_rows(engine, task.encoded, recoding, work.class_id) as holes:
        release = engine.materialise("release", PUBLISHED, **holes)
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
