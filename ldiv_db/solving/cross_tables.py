"""Cells of cross-tables that a release answers exactly: each is good by itself, or merged with others until it is.

Every combination of values of the quasi-identifiers is a cell. All that cannot meet the policy are merged in rounds,
each with the cell with which it loses least, along the trees of the quasi-identifiers or as sets. Then good cells
leave those that are good without them. Cells are strata: classes are made, and improved, of all in the same statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.local.class_checker import CLASS_ID, GOOD, ClassChecker, ClassedRows, count_classes
from ldiv_db.algorithms.neighbours.passes import ClassState
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused, rows_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.recoding.cross_tables import CrossTable, CrossTables
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.loss import lost_by_column
from ldiv_db.recoding.recode import plan_recoding

#: The most cells of all tables together: every one that is merged is compared with all others.
MOST_CELLS = 4_096
#: The prices, in what its rows lose if they tell nothing, at which an exact cell is merged: all are tried, and that is
#: kept which leaves most cells.
PRICES = (0, 1, 8)
#: The cells that are named of those that are merged into one.
NAMED = 12
_FOLDER = "solving/cells"


def crossed(task: Task, tables: Sequence[Sequence[str]]) -> Task:
    """The task with the cells of these cross-tables, each good unless the whole table is bad; raises PolicyError for
    too many of them.
    """
    if not tables:
        return task
    engine, encoded = task.engine, task.encoded
    named = {axis.name: axis for axis in encoded.axes}
    own = [tuple(named[name] for name in table) for table in tables]
    fixed = replace(encoded, axes=tuple(dict.fromkeys(axis for axes in own for axis in axes)), cells=None)
    with engine.scope() as scope:
        cells = engine.number_groups("placed", encoded.rows, *fixed.codes)
        if (count := engine.most(cells, "class_id")) > MOST_CELLS:
            what = f"has {count:,} cells that occur, and may have {MOST_CELLS:,}"
            raise refused("tables_of", what, "name fewer columns, or coarser ones")
        tried = [_tried(replace(task, encoded=fixed), cells, own, PRICES[0])]
        tried += [_tried(replace(task, encoded=fixed), cells, own, price) for price in PRICES[1:] if tried[0].merged]
        found = min(tried, key=lambda one: (-one.count, sum(one.lost.values())))
        scope.keep(found.placed)
        scope.keep(found.bounds)
    return replace(task, cross=found)


def _tried(task: Task, cells: Relation, tables: Sequence[Sequence[Axis]], price: int) -> CrossTables:
    """The cells of these tables, merged where exact ones have this price."""
    engine, fixed = task.engine, task.encoded
    placed = engine.number_groups("placed", _freed(task, cells, _merged(task, cells, price)), "class_id")
    bounds = fixed.bound_classes(engine, placed)
    lost = lost_by_column(engine, fixed, plan_recoding(engine, fixed, Plan(placed, 1), task.forms))
    every, *told = (_counted(engine, fixed.rows, placed, bounds, own) for own in [fixed.axes, *tables])
    strata, inexact = engine.count(bounds), every.cells - every.exact
    return CrossTables(fixed.axes, placed, bounds, strata, lost, told, inexact, strata - every.exact)


def _merged(task: Task, placed: Relation, price: int) -> Relation:
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
            state.step("merges", "choose_unions", margins=margins, price=price)
            placed = scope.keep(state.step("placed", "solving/merge_classes"))


def _freed(task: Task, cells: Relation, merged: Relation) -> Relation:
    """(row_id, class_id): the merged cells without those good ones that they need not to be good, the largest first."""
    engine, sensitive, checker = task.engine, task.encoded.sensitive, ClassChecker(task)
    owners = engine.group("owners", _owned(engine, cells, merged), ("cell", "row_id"), "class_id")
    counts = count_classes(engine, sensitive, ClassedRows(task.encoded.rows, cells, CLASS_ID))
    flow = EngineFlow(engine, _FOLDER, owners=owners, counts=counts, sensitive=sensitive, last=engine.count(owners))
    flow.know(margins=checker.margins(counts))
    while True:
        rests = checker.margins(flow.step("left", "count_rests"))
        freed = flow.step("freed", "choose_freed", rests=rests)
        if not engine.count(freed):
            break
        flow.know(owners=engine.reassign(flow["owners"], freed))
    numbers = {"left_columns": ["row_id"], "right_columns": ["class_id"]}
    return engine.join("placed", cells, flow["owners"], ("class_id", "row_id"), **numbers)


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
    return replace(plan, classes=classes, cross=task.cross, search=search)


def told_of_cells(task: Task, show_values: bool) -> Iterator[str]:
    """How many cells of each cross-table are exact, and how many were merged; with values which, into what."""
    cross, engine = task.cross, task.engine
    if cross is None:
        return
    yield from cross.told
    if not (cross.merged and show_values):
        return
    with engine.scope():
        fixed = replace(task, encoded=replace(task.encoded, axes=cross.axes, cells=None))
        cells = engine.number_groups("cells", fixed.encoded.rows, *fixed.encoded.codes)
        merged, single = (_labels(fixed, placed) for placed in (cross.placed, cells))
        owned = sorted(engine.tally(_owned(engine, cells, cross.placed), "class_id", "cell"))
    for number, found in groupby(owned, itemgetter(0)):
        of = [(cell, rows) for _, cell, rows in found]
        if len(of) > 1:
            label = ", ".join(f"{axis.name}: {own}" for axis, own in zip(cross.axes, merged[number], strict=True))
            named = ", ".join(" x ".join(single[cell]) for cell, _ in of[:NAMED])
            more = f" and {len(of) - NAMED:,} more" if len(of) > NAMED else ""
            yield f"tables_of: one is {label}, of {rows_phrase(sum(rows for _, rows in of))} of {named}{more}"


def _owned(engine: Engine, cells: Relation, placed: Relation) -> Relation:
    """(cell, class_id) of every row."""
    named = [("class_id", "cell")]
    return engine.join("owned", cells, placed, "row_id", left_columns=named, right_columns=["class_id"])


def _labels(task: Task, placed: Relation) -> dict[int, list[str]]:
    """What each quasi-identifier of a class is published as, by the number of that."""
    engine, recoding, found = task.engine, plan_recoding(task.engine, task.encoded, Plan(placed, 1), task.forms), {}
    of = {"classes": recoding.classes, "spans": recoding.spans}
    labelled = engine.materialise("labels", "recoding/publish/label_classes", **of, many=False)
    columns = [[shown.alias.name for shown in span.shown] for span in recoding.spans]
    for number, *read in engine.columns(labelled, "class_id", *(name for own in columns for name in own)):
        values = iter("NULL" if value is None else str(value) for value in read)
        found[number] = [" to ".join(islice(values, len(own))) for own in columns]
    return found
