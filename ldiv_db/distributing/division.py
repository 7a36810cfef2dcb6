"""Which tables are divided, and into which parts: by counts, until no part has more than `part_rows` rows."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.algorithms.bsgi.bisection import fill_root
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.feasibility import quotas
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.algorithms.local.peel import Peel
from ldiv_db.algorithms.local.stratified import Stratified
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.distributing.by_classes import divide_by_classes
from ldiv_db.distributing.by_margins import HalvedNodes
from ldiv_db.distributing.movable import RowsHere
from ldiv_db.distributing.positions import Grained, positions_of

#: The algorithms whose classes are made of any rows, so that those of a part are.
_LOCAL = (Mondrian, TopDown, Peel, Stratified)


@dataclass(frozen=True)
class Division:
    """The parts (node, rows), in an order given by content, and their rows with the number of their `node`."""

    parts: list[tuple[int, int]]
    rows: Relation


def divides(algorithm: Algorithm) -> bool:
    """Whether the algorithm's work can be divided at all, whatever the task is."""
    return isinstance(algorithm, (Bsgi, *_LOCAL))


def why_whole(task: Task, algorithm: Algorithm) -> str:
    """Why a task is not divided; empty if it can be."""
    options = algorithm.options
    if isinstance(algorithm, Bsgi):
        if task.transparent:
            return "a transparent release is made of all rows together"
        if len(task.encoded.keys) > 1:
            return "rows that differ on several keys are chosen among all rows"
        return "greedy selection chooses among all rows" if algorithm.options.select == "greedy" else ""
    if not isinstance(algorithm, _LOCAL):
        return f"{algorithm.name} plans on all rows together"
    if getattr(options, "residue", "") == "suppress" and any(r.of_whole for r in task.requirements):
        return "classes are compared with all rows that are published"
    return ""


def divide(task: Task, algorithm: Algorithm, part_rows: int) -> Division:
    """The parts of a task that is divided; of `bsgi` that leaves rows out those rows are in no part."""
    with task.engine.scope() as scope:
        positions = positions_of(task)
        if isinstance(algorithm, Bsgi):
            found = _in_classes(task, algorithm, positions, part_rows)
        else:
            found = _in_halves(task, algorithm, positions, part_rows)
        scope.keep(found.rows)
        return found


def _in_halves(task: Task, algorithm: Algorithm, positions: tuple[Grained, ...], part_rows: int) -> Division:
    rows = RowsHere(task.engine, _started(task.engine, task, positions, task.encoded.rows))
    keeps_equal = isinstance(algorithm, Mondrian) and algorithm.options.split == "strict"
    parts = HalvedNodes(task, rows, positions, part_rows, cuts=not keeps_equal).divide()
    return _divided(rows, parts)


def _in_classes(task: Task, algorithm: Bsgi, positions: tuple[Grained, ...], part_rows: int) -> Division:
    feasible = algorithm.check(task)
    l, classes, rows = feasible.l, feasible.classes, task.encoded.rows  # noqa: E741
    beyond = task.encoded.row_count - l * classes
    if algorithm.options.residue == "suppress" and beyond:
        counts = task.encoded.sensitive[0].distribution.counts
        rows, beyond = fill_root(task, quotas(counts, l, classes), classes), 0
    started = _started(task.engine, task, positions, rows, classes)
    if rows is not task.encoded.rows:
        task.engine.drop(rows)
    movable = RowsHere(task.engine, started)
    parts = divide_by_classes(task, movable, positions, l, classes, part_rows)
    return _divided(movable, [(node, size * l + (beyond if _is_last(node) else 0)) for node, size in parts])


def _is_last(node: int) -> bool:
    """Whether a node is the right side of every split above it."""
    return node & (node + 1) == 0


def _started(
    engine: Engine, task: Task, positions: tuple[Grained, ...], rows: Relation, classes: int | None = None
) -> Relation:
    """The rows, all in the first node."""
    holes = {"rows": rows, "positions": positions, "sensitive": task.encoded.sensitive}
    in_classes = {"classes": Value(classes), "in_classes": classes is not None}
    return engine.materialise("node", "distributing/start_nodes", **holes, **in_classes)


def _divided(rows: RowsHere, parts: list[tuple[int, int]]) -> Division:
    rows.close()
    assert rows.parts is not None  # noqa: S101 - every division has a part
    return Division(parts, rows.parts)
