"""The task of a run: its rows, or the people who have them, and what is required of their classes.

Where people publish their rows aligned they are planned as those of several tables are, of which there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.auditing.refusals import refuse_people
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Identifier
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.recoding.placing import shapes_of
from ldiv_db.recoding.stacked import stack_of_one
from ldiv_db.recoding.units import POSITION, Units, asking_each, units_of
from ldiv_db.requirements.values import Named
from ldiv_db.running.estimate import expected
from ldiv_db.running.populations import place_people
from ldiv_db.running.run_spec import resolve_requirements
from ldiv_db.solving.auto import Chooser
from ldiv_db.solving.cross_tables import crossed
from ldiv_db.solving.level_search import LevelSearch


def task_of(
    engine: Engine, listener: Listener, resolved: Resolved, algorithm: Algorithm, encoded: Encoded, secret: str
) -> tuple[Task, Sequence[Named]]:
    """The task, and the values with thresholds of their own that no row has; raises PolicyError for what people cannot
    be asked.

    A secret of the release draws which of a person's rows are published, and their order where they tie.
    """
    source, released = resolved.source, resolved.released
    counts = algorithm.traits.populations or isinstance(algorithm, Chooser)
    people = place_people(engine, resolved, encoded) if counts else None
    if source.order is None or released.position is None:
        units = units_of(engine, encoded, source.together) if source.counts_people else None
        task, absent = _task(engine, listener, resolved, encoded, units)
        return crossed(replace(task, people=people), resolved.tables_of), absent
    encoded = asking_each(encoded, resolved.required.specs)
    task, absent = _task(engine, listener, resolved, encoded, units_of(engine, encoded, together=True))
    task = replace(task, people=people)
    stack = stack_of_one(engine, encoded)
    shapes = shapes_of(engine, stack, secret, source.rows_at_most)
    search = LevelSearch(task, algorithm, stack, by_loss=source.rows_at_most is None)
    try:
        found, _, _ = search.found(shapes)
    except InfeasibleError:  # told, with what would mend it, where the levels are checked
        found = search.failed(shapes)
    units = found.units
    assert units is not None and task.units is not None  # noqa: S101 - people are planned
    numbers = {"right_columns": [POSITION.name]}
    rows = engine.join("rows", encoded.rows, units.members, "row_id", **numbers)
    kept = (*encoded.kept, Renamed(Identifier(released.position), POSITION))
    known = replace(units, rows=replace(encoded, rows=rows, kept=kept), encoded=task.units.encoded)
    return replace(task, units=known, made=found.made), absent


def _task(
    engine: Engine, listener: Listener, resolved: Resolved, encoded: Encoded, units: Units | None
) -> tuple[Task, Sequence[Named]]:
    counted = units.encoded if units else encoded
    requirements, absent = resolve_requirements(engine, resolved.required, encoded, units)
    for axis in counted.sensitive:
        if units or axis.bags:
            refuse_people(requirements[axis.column.name], resolved.suppressed)
    every = [found for own in requirements.values() for found in own]
    heard = (listener.on_progress, listener.on_search)
    task = Task(engine, counted, every, resolved.source.seed, *heard, requirements, resolved.transparent, units=units)
    cells, columns = task.cell_count, len(counted.axes)
    task = replace(
        task,
        suppression=resolved.suppression,
        stage=listener.on_stage,
        ahead=lambda stages: listener.on_expected(expected(stages, cells, columns)[1:]),
    )
    return task, absent
