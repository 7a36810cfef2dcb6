"""In an executor: the rows of a part become published rows, by the very code of a run, on a database of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.database.engine import Engine, Settings, open_database
from ldiv_db.database.errors import DatabaseError, LdivError
from ldiv_db.database.places import Place
from ldiv_db.database.templates import Relation
from ldiv_db.policy.release_columns import keeps_type
from ldiv_db.publishing.destinations import Destination
from ldiv_db.publishing.draft import Draft, Outcome, RunDraft
from ldiv_db.publishing.result import versions
from ldiv_db.recoding.recode import PUBLISHED
from ldiv_db.running.choices import Choices
from ldiv_db.running.preparation import Listener
from ldiv_db.running.run import run_choices, working_engine
from ldiv_db.running.spark.resolve import SparkChoices
from ldiv_db.running.spark.told import Told, packed


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
    return partial(_solve, work)


def _solve(work: RunWork, batches: Iterable[Any]) -> Iterator[Any]:
    """What is told of the run, then its published rows in their order, as record batches."""
    import pyarrow  # noqa: PLC0415 - Spark's executors have it

    table = pyarrow.Table.from_batches([*batches])
    with tempfile.TemporaryDirectory(prefix="ldiv_") as folder:
        settings = replace(work.settings, temp_directory=folder)
        with open_database(":memory:", settings=settings) as connection, working_engine(connection) as engine:
            destination = _InExecutor(engine)
            try:
                told: Told | LdivError = _run(work, engine, destination, table)
            except LdivError as error:
                told = error
            yield _batch(work.schema, {"told": pyarrow.array([packed(told)], pyarrow.binary())}, 1)
            if destination.release is not None and isinstance(told, Told):
                for batch in engine.reader(destination.release):
                    yield _handed_on(work, batch)


def _run(work: RunWork, engine: Engine, destination: _InExecutor, table: Any) -> Told:
    """The run of one part, published nowhere; raises LdivError."""
    if work.versions != versions():
        raise DatabaseError(f"executors have other versions than the driver: {versions()}, not {work.versions}")
    choices = work.choices
    rows = engine.register("source", table.rename_columns(list(choices.names)))
    source = replace(choices.resolved.source, relation=rows)
    resolved = replace(choices.resolved, source=source)
    chosen = Choices(choices.policy, resolved, choices.algorithm, destination)

    def beside() -> Any:
        return working_engine(engine.connection)

    result = run_choices(engine, chosen, beside, Listener(), work.kl, work.show_values, workers=1)
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
        with draft.rows() as holes:
            self.release = self.engine.materialise("release", PUBLISHED, **holes)
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
