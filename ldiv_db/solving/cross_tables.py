"""Cells of cross-tables that a release answers exactly: each is good by itself, or merged with others until it is.

Every combination of values of the quasi-identifiers is a cell. All that cannot meet the policy are merged in rounds,
each with the cell with which it loses least, along the trees of the quasi-identifiers. Then cells are strata: classes
are made, and improved, of all in the same statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.local.class_checker import CLASS_ID, GOOD, ClassChecker, ClassedRows, count_classes
from ldiv_db.algorithms.neighbours.passes import ClassState
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.recoding.cross_tables import CrossTable, CrossTables
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.loss import lost_by_column
from ldiv_db.recoding.recode import label_spans, plan_recoding

#: The most cells of all tables together: every one that is merged is compared with all others.
MOST_CELLS = 4_096
_FOLDER = "solving/cells"


def crossed(task: Task, tables: Sequence[Sequence[str]]) -> Task:
    """The task with the cells of these cross-tables, each good unless the whole table is bad; raises PolicyError for
    too many of them.
    """
    if not tables:
        return task
    engine, encoded = task.engine, task.encoded
    named = {axis.name: axis for axis in encoded.axes}
    axes = tuple(dict.fromkeys(named[name] for table in tables for name in table))
    fixed = replace(encoded, axes=axes, cells=None)
    with engine.scope() as scope:
        cells = engine.number_groups("placed", encoded.rows, *fixed.codes)
        if (count := engine.most(cells, "class_id")) > MOST_CELLS:
            what = f"has {count:,} cells that occur, and may have {MOST_CELLS:,}"
            raise refused("tables_of", what, "name fewer columns, or coarser ones")
        merged = _merged(replace(task, encoded=fixed), cells)
        placed = scope.keep(engine.number_groups("placed", merged, "class_id"))
        bounds = scope.keep(fixed.bound_classes(engine, placed))
        lost = lost_by_column(engine, fixed, plan_recoding(engine, fixed, Plan(placed, 1), task.forms))
        every, *told = (_counted(engine, encoded.rows, placed, bounds, own) for own in [axes, *_axes(named, tables)])
    exact, strata = every.exact, engine.count(bounds)
    found = CrossTables(axes, placed, bounds, strata, lost, told, every.cells - exact, strata - exact)
    return replace(task, cross=found)


def _axes(named: dict[str, Axis], tables: Sequence[Sequence[str]]) -> list[tuple[Axis, ...]]:
    return [tuple(named[name] for name in table) for table in tables]


def _merged(task: Task, placed: Relation) -> Relation:
    """(row_id, class_id): the cells merged until all are good, or only one is left."""
    engine, sensitive = task.engine, task.encoded.sensitive
    checker, measures = ClassChecker(task), lm_measures(task)
    while True:
        with engine.scope() as scope:
            counts = count_classes(engine, sensitive, ClassedRows(task.encoded.rows, placed, CLASS_ID))
            margins = checker.margins(counts)
            cells = engine.count(margins)
            if cells == 1 or cells == engine.count(margins, GOOD):
                return placed
            state = ClassState(task, measures, placed, grouped=True, folder=_FOLDER)
            state.step("merges", "choose_unions", margins=margins)
            placed = scope.keep(state.step("placed", "solving/merge_classes"))


def _counted(engine: Engine, rows: Relation, placed: Relation, bounds: Relation, axes: Sequence[Axis]) -> CrossTable:
    """What the cells are to a cross-table."""
    found = engine.record(f"{_FOLDER}/count_exact", rows=rows, placed=placed, bounds=bounds, axes=axes)
    return CrossTable([axis.name for axis in axes], found["cells"], found["exact"])


def in_cells(task: Task) -> Task:
    """The task of whose rows no class may have those of two cells, by the quasi-identifiers that vary within them."""
    return replace(task, encoded=task.cross.rows_of(task.engine, task.encoded)) if task.cross else task


def of_cells(task: Task, plan: Plan) -> Plan:
    """The plan of such a task as one of the whole: each class is published under the label of its cell."""
    if task.cross is None:
        return plan
    classes = task.cross.classes(task.engine, task.encoded, plan.assigned)
    search = {**plan.search, "tables_of": task.cross.as_dict()}
    return replace(plan, classes=classes, search=search)


def told_of_cells(task: Task, show_values: bool) -> Iterator[str]:
    """How many cells of each cross-table are exact, and how many were merged; if values may be shown into which."""
    cross, engine = task.cross, task.engine
    if cross is None:
        return
    yield from cross.told
    if not (cross.merged and show_values):
        return
    bounds = [(axis.low.name, axis.high.name) for axis in cross.axes]
    with engine.scope():
        labels = list[dict[tuple[int, int], str]]()
        for axis in cross.axes:
            spans = label_spans(engine, axis, cross.bounds)
            labels.append(
                {(low, high): label for low, high, label in engine.columns(spans.relation, "low", "high", "label")}
            )
        found = engine.columns(cross.bounds, "rows", *(name for pair in bounds for name in pair))
    for rows, *codes in sorted(found, reverse=True):
        spanned = list(zip(codes[::2], codes[1::2], strict=True))
        if any(low < high for low, high in spanned):
            named = (f"{axis.name}: {of[span]}" for axis, of, span in zip(cross.axes, labels, spanned, strict=True))
            yield f"tables_of: one is {', '.join(named)}, of {rows_phrase(rows)}"
