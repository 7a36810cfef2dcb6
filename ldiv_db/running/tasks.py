"""The task of a run: its rows, or the people who have them, and what is required of their classes.

Where people publish their rows aligned, how many each of them does follows from what is required: those of a level that
cannot meet it, or lose more by all of their rows, publish a row fewer, from the highest level down to the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.auditing.refusals import refuse_people
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.policy.resolve import Resolved
from ldiv_db.publishing.fingerprints import key_of_release
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.sequences import Lengths, aligned_units, first_lengths, lowered
from ldiv_db.recoding.units import Units, asking_each, units_of, with_pseudonyms
from ldiv_db.requirements.values import Named
from ldiv_db.running.estimate import expected
from ldiv_db.running.run_spec import resolve_requirements
from ldiv_db.solving.levels import joins, with_enough


def task_of(
    engine: Engine, listener: Listener, resolved: Resolved, algorithm: Algorithm, encoded: Encoded
) -> tuple[Task, Sequence[Named]]:
    """The task, and the values with thresholds of their own that no row has; raises PolicyError for what people cannot
    be asked.
    """
    source, released = resolved.source, resolved.released
    secret = key_of_release(engine, resolved) if released.person else ""
    if released.person is not None:
        encoded = with_pseudonyms(engine, encoded, released.person, secret)
    if source.order is None or released.position is None:
        units = units_of(engine, encoded, source.together) if source.counts_people else None
        return _task(engine, listener, resolved, encoded, units)
    encoded = asking_each(encoded, resolved.required.specs)
    lengths, compares = (
        _lengths(resolved, encoded),
        any(spec.kind.compares_with_table for spec in resolved.required.specs),
    )
    aligned = partial(aligned_units, engine, encoded, secret=secret, position=released.position, compares=compares)
    losses: dict[tuple[int, int], float | None] = {}
    for rows in range(max(lengths.values()), 1, -1):
        if rows in lengths.values():
            with engine.scope():
                units = aligned(lengths, only=(rows, rows - 1))
                task, _ = _task(engine, listener, resolved, encoded, units)
                if joins(algorithm.chosen(task)[0], task, source.rows_at_most is None, losses):
                    lengths = lowered(lengths, rows)
    return _task(engine, listener, resolved, encoded, aligned(lengths))


def _lengths(resolved: Resolved, encoded: Encoded) -> Lengths:
    """How many rows people publish by counts of people alone, where what is required does not wait for their values."""
    lengths, people = first_lengths(encoded, resolved.source.rows_at_most)
    if any(spec.is_auto for spec in resolved.required.specs):
        return lengths
    wanted = [found for own in resolved.required.resolved().values() for found in own]
    return with_enough(lengths, people, wanted)


def _task(
    engine: Engine, listener: Listener, resolved: Resolved, encoded: Encoded, units: Units | None
) -> tuple[Task, Sequence[Named]]:
    counted = units.encoded if units else encoded
    requirements, absent = resolve_requirements(engine, resolved.required, encoded, counted if units else None)
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
