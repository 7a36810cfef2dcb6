"""BSGI's Incorporate procedure (Figure 3): rows left over join the class that loses least by it.

A residual row may join a class that differs from it on every key: on every sensitive attribute, and in the
individual. All residual rows choose at once, each the class of least IL with it. Of those that choose the
same class the first joins it; the others choose again, the class having grown. A class that no row has
joined is as it was, and one that has grown costs no less than before, so this is the paper's procedure row
by row, in some order. A row that finds no class never will, and stays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure, ncp_measures
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis

_CLASS = Identifier("class_id")


@dataclass(frozen=True)
class _GrownClasses:
    """The classes as they have grown: their rows, the keys' codes in them, their bounds, and what they cost."""

    assigned: Relation
    members: Relation
    bounds: Relation
    classes: Relation
    measures: Sequence[Measure]
    keys: Sequence[SensitiveAxis]
    modulus: Value


def incorporate(task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], classes: int) -> None:
    """Add to `assigned` (row_id, class_id), of class ids up to `classes`, the rows left over that find a class."""
    engine, rows = task.engine, task.encoded.rows
    with engine.scope():
        state = _first_state(task, assigned, keys, classes)
        residual = engine.materialise(
            "residual", "bsgi/residue/list_residual", rows=rows, assigned=assigned, measures=state.measures, keys=keys
        )
        left = engine.count(residual)
        while left:
            waiting, left = _round(task, state, residual)
            engine.drop(residual)  # all residual rows, once a round
            residual = waiting


def _first_state(task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], classes: int) -> _GrownClasses:
    engine, encoded, measures = task.engine, task.encoded, ncp_measures(task)
    bounds = engine.materialise(
        "bounds", "recoding/publish/bound_classes", rows=encoded.rows, assigned=assigned, axes=encoded.axes
    )
    traced = engine.materialise("classes", "bsgi/residue/trace_classes", bounds=bounds, measures=measures)
    members = engine.materialise(
        "members", "bsgi/residue/list_members", rows=encoded.rows, assigned=assigned, keys=keys
    )
    return _GrownClasses(assigned, members, bounds, traced, measures, keys, Value(classes + 1))


def _round(task: Task, state: _GrownClasses, residual: Relation) -> tuple[Relation, int]:
    """The residual rows that must choose again, and how many; those that are settled are in their classes."""
    engine = task.engine
    with engine.scope() as scope:
        choices = engine.materialise(
            "choices",
            "bsgi/residue/choose_classes",
            residual=residual,
            classes=state.classes,
            members=state.members,
            keys=state.keys,
            measures=state.measures,
            modulus=state.modulus,
        )
        settled = engine.materialise("settled", "bsgi/residue/settle_rows", choices=choices)
        waiting = engine.materialise(
            "residual", "bsgi/residue/keep_waiting", residual=residual, choices=choices, settled=settled
        )
        engine.extend(state.assigned, settled, "row_id", "class_id")
        left = engine.count(waiting)
        if left:
            _grow(task, state, settled)
        return scope.keep(waiting), left


def _grow(task: Task, state: _GrownClasses, settled: Relation) -> None:
    """Have the classes that settled rows join be as they are with them; only those are measured anew."""
    engine, encoded = task.engine, task.encoded
    grown = engine.materialise(
        "grown", "bsgi/residue/grow_bounds", bounds=state.bounds, settled=settled, rows=encoded.rows, axes=encoded.axes
    )
    for relation in (state.bounds, state.classes):
        engine.delete_listed(relation, _CLASS, settled)
    engine.extend(state.bounds, grown)
    engine.insert(state.classes, "bsgi/residue/trace_classes", bounds=grown, measures=state.measures)
    engine.insert(state.members, "bsgi/residue/list_members", rows=encoded.rows, assigned=settled, keys=state.keys)
