"""Classes made anew by prices, for a table in arrays of codes and counts.

Prices are raised as for the bound, within so much work. Labels are opened by value at these prices, then classes move
rows as long as that gains. What comes of it is taken if it costs less than the classes that there were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.neighbours.passes import Changed, ClassState, Improving
from ldiv_db.algorithms.priced import moves
from ldiv_db.algorithms.priced.classes import Classes
from ldiv_db.algorithms.priced.opening import open_by_value
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import UNIT, Cells
from ldiv_db.measuring.least_loss.labels import Labels, list_labels, most_gained
from ldiv_db.measuring.least_loss.prices import MOST_PAIRS, Ascent
from ldiv_db.measuring.least_loss.search import Listed, list_cells, value_codes
from ldiv_db.recoding.encoded import Encoded

#: What opening a label may lose at the prices, in parts of what the fewest rows of a class lose.
_LOSING = 0.2
#: Labels are listed at prices so many times as far above, as long as there are fewer pairs of label and cell than that.
_WIDER, _ENOUGH = 4, 2_000_000


def make_classes(state: Improving, assigned: Relation, need: Need, most_work: int) -> Changed:
    """The classes of all rows that prices of so much work lead to; those that are assigned if they cost no more."""
    task, engine, before = state.task, state.task.engine, _cost(state, assigned)
    with engine.scope() as scope:
        listed = list_cells(engine, task.encoded, need.counted)
        cells = _weighted(listed.cells, task.encoded)
        total = cells.full * task.encoded.row_count
        classes = classes_by_prices(
            cells, need, most_work, lambda cost: task.report(f"classes by prices lose {cost / total:.4f}")
        )
        made = _assigned(task, need, listed, classes)
        gained = before - _cost(state, made)
        if gained > 0:
            return Changed(scope.keep(made), len(classes.open), gained, before)
    return Changed(assigned)


def _cost(state: Improving, assigned: Relation) -> int:
    with state.task.engine.scope():
        return ClassState(state.task, state.measures, assigned).cost


def _weighted(cells: Cells, encoded: Encoded) -> Cells:
    """The cells, with losses by weight; what all quasi-identifiers lose together stays as it is."""
    share = UNIT * len(encoded.axes) / sum(axis.weight for axis in encoded.axes)
    units = [round(axis.weight * share) for axis in encoded.axes]
    nodes = [replace(one, loss=one.loss * unit // UNIT) for one, unit in zip(cells.nodes, units, strict=True)]
    return replace(cells, nodes=nodes)


def classes_by_prices(cells: Cells, need: Need, most_work: int, heard: Callable[[int], None]) -> Classes:
    """All rows in classes that no move makes cheaper by much; `heard` is told what they cost meanwhile."""
    found = Ascent(cells, need, most_work).run()
    labels = _labels(found)
    classes = Classes(cells, labels, need)
    least = -int(_LOSING * need.least[0] * cells.full)
    open_by_value(classes, found.kept, most_gained(cells, labels, found.kept, need), least)
    moves.improve_classes(classes, heard)
    return classes


def _labels(found: Ascent) -> Labels:
    """The labels that could gain at higher prices, as many as are looked at in good time, and one of all cells."""
    cells, slack = found.cells, 1.0
    while (listed := list_labels(cells, found.ceiling(slack), found.need, MOST_PAIRS)) is None:
        slack /= 2
    while len(listed.cell) * _WIDER < _ENOUGH and (found.ceiling(slack) < cells.full).any():
        slack *= _WIDER
        listed = list_labels(cells, found.ceiling(slack), found.need, MOST_PAIRS) or listed
    every = np.arange(len(cells.rows))
    cost = np.append(listed.cost, cells.full)
    return Labels(np.append(listed.cell, every), np.append(listed.start, len(listed.cell)), cost)


def _assigned(task: Task, need: Need, listed: Listed, classes: Classes) -> Relation:
    """The classes of rows (row_id, class_id)."""
    columns = dict.fromkeys(("cell", "first", "last", "class_id"), "BIGINT")
    dealt = task.engine.load("dealt", columns, list(_dealt(listed, classes)))
    codes = [Identifier(name) for name in (*task.encoded.codes, *value_codes(task.encoded, need.counted))]
    params = {"rows": task.encoded.rows, "dealt": dealt, "codes": codes}
    return task.engine.materialise("assigned", "priced/assign_rows", **params)


def _dealt(listed: Listed, classes: Classes) -> Iterator[tuple[int, int, int, int]]:
    """(number of equal rows, the first and the last of them, class): those of a cell go to its classes in turn."""
    wanted: list[list[list[int]]] = [[] for _ in classes.counts]
    for number, one in enumerate(sorted(classes.open.values()), 1):
        for cell, rows in one.rows.items():
            wanted[cell].append([number, rows])
    for number, (cell, rows) in enumerate(zip(listed.cell.tolist(), listed.rows.tolist(), strict=True), 1):
        first = 1
        while first <= rows:
            taking = wanted[cell][-1]
            count = min(taking[1], rows - first + 1)
            yield number, first, first + count - 1, taking[0]
            first, taking[1] = first + count, taking[1] - count
            if not taking[1]:
                wanted[cell].pop()
