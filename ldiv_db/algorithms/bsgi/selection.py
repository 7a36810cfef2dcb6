"""BSGI's own procedures: Select (Figure 2) makes classes one after the other, Incorporate (Figure 3) adds rows to them.

In Select each row is the cheapest of its bucket. The buckets that a class draws from follow from bucket sizes alone, so
the whole schedule is known beforehand, and a batch of classes can be grown side by side: a statement ranks the free
rows of every class's next bucket, and the classes then choose in turn, each the best row that no earlier one holds. A
batch is accepted up to the first class that lost a row to an earlier one's later step, or found all of its ranked rows
taken. What is accepted is exactly what growing one class at a time gives, because the best of all free rows stays the
best when others are taken.

Where rows of a class must differ on other keys too, only rows that agree with none of the class's are candidates. A
class that finds none gives up: the row it began with stays out, lest the next one begin with it again, and its other
rows are free. The schedule leaves rows enough for the classes after it.

In Incorporate a residual row may join a class that differs from it on every key: on every sensitive attribute, and in
the individual. All residual rows choose at once, each the class of least IL with it. Of those that choose the same
class the first joins it; the others choose again, the class having grown. A class that no row has joined is as it was,
and one that has grown costs no less than before, so this is the paper's procedure row by row, in some order. A row that
finds no class never will, and stays out.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import ncp_measures
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.axes import counts_falling
from ldiv_db.recoding.encoded import SensitiveAxis

#: How far the order of ties is turned from one class to the next, lest all classes want the same of equal rows.
TIE_STRIDE = 7919
#: The most classes grown side by side, and rows ranked for each.
BATCH, RANKED = 64, 16
_SMALLEST_BATCH = 8
#: The keys of the rows of classes, and nothing else of them.
_MEMBERS = "neighbours/list_members"
_KEYS_ALONE: dict[str, Any] = {"measures": [], "slots": False, "grouped": False}


def schedule(counts: Sequence[int], l: int, classes: int) -> list[tuple[int, int, int]]:
    """The bucket that each class draws from: (class, step, bucket), all from 1, `counts` by bucket (Max-l).

    Each class takes one row from each of the l largest buckets, ties to the lower number.
    """
    heap = [(-count, bucket) for bucket, count in enumerate(counts, 1)]
    heapq.heapify(heap)
    plan = []
    for number in range(1, classes + 1):
        drawn = [heapq.heappop(heap) for _ in range(l)]
        for step, (count, bucket) in enumerate(drawn, 1):
            plan.append((number, step, bucket))
            heapq.heappush(heap, (count + 1, bucket))
    return plan


class _Batch:
    """The rows that the classes of one batch hold, and the first class that cannot be accepted."""

    def __init__(self, end: int):
        self.end = end
        self._holder: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._given_up: int | None = None

    def choose(self, class_id: int, ranked: Sequence[int]) -> int:
        """The best of the ranked rows that no earlier class holds; a later class that holds it cannot be accepted."""
        for row_id in ranked:
            holder = self._holder.get(row_id, class_id)
            if holder >= class_id:
                if holder > class_id:
                    self.end = min(self.end, holder)
                self._holder[row_id] = class_id
                self._first.setdefault(class_id, row_id)
                return row_id
        self.end = min(self.end, class_id)
        return ranked[0]

    def give_up(self, class_id: int) -> None:
        """The class has no candidate among all free rows; the batch ends with it, as later ones may have its rows."""
        if class_id < self.end:
            self.end, self._given_up = class_id + 1, class_id

    def held(self) -> list[tuple[int, int]]:
        """All picks as (row_id, class_id)."""
        return sorted(self._holder.items())

    def accepted(self) -> list[tuple[int, int]]:
        """The accepted picks as (row_id, class_id), and of a class that gave up the row that stays out."""
        return [
            (row_id, class_id)
            for row_id, class_id in self.held()
            if class_id < self.end and (class_id != self._given_up or row_id == self._first[class_id])
        ]


def select(task: Task, l: int, classes: int, others: Sequence[SensitiveAxis] = ()) -> Relation:
    """The assignment (row_id, class_id) of `l * classes` rows by the paper's Select.

    Fewer if rows must differ on the `others` as well: classes that gave up are left out.
    """
    engine = task.engine
    columns = {"row_id": "BIGINT", "class_id": "BIGINT"}
    with engine.scope() as scope:
        flow = _candidates(task, l, classes, others)
        picked = engine.load("picked", columns, [])
        first, size = 1, BATCH
        while first <= classes:
            task.progress(first - 1, classes)
            batch = _grow_batch(flow, first, min(first + size, classes + 1), l)
            engine.append(picked, columns, batch.accepted())
            rest = engine.select_others("free", flow["rows"], picked, "row_id")
            engine.drop(flow["rows"])  # all free rows, once a batch
            flow.know(rows=rest)
            # Where classes crowd, most of a large batch would be thrown away.
            size = max(min(BATCH, _SMALLEST_BATCH), min(BATCH, 2 * (batch.end - first)))
            first = batch.end
        task.progress(classes, classes)
        if not others:
            return scope.keep(picked)
        sizes = engine.count_groups("sizes", picked, "class_id")
        whole = engine.select("whole", sizes, "class_id", where=[Where("rows", l)])
        return scope.keep(engine.select_among("assigned", picked, whole, "class_id"))


def _candidates(task: Task, l: int, classes: int, others: Sequence[SensitiveAxis]) -> EngineFlow:
    """A flow whose `rows` are free: all, with their paths through the taxonomies and their place in the seeded order.

    `draws` is the schedule (class_id, step, bucket), buckets by the code of their sensitive value.
    """
    engine, encoded, sensitive = task.engine, task.encoded, task.encoded.sensitive[0]
    flow = EngineFlow(engine, "bsgi", rows=encoded.rows, coded=encoded.rows, sensitive=sensitive, others=others)
    flow.know(measures=ncp_measures(task), modulus=encoded.row_count + 1, stride=TIE_STRIDE, ranked=RANKED)
    flow.know(rows=flow.step("free", "list_candidates", seed=task.seed))
    buckets = counts_falling(engine, sensitive)
    plan = schedule([rows for _, rows in buckets], l, classes)
    columns = {"class_id": "BIGINT", "step": "INTEGER", "bucket": "INTEGER"}
    flow.know(draws=engine.load("draws", columns, [(c, step, buckets[bucket - 1][0]) for c, step, bucket in plan]))
    return flow


def _grow_batch(flow: EngineFlow, first: int, end: int, l: int) -> _Batch:
    """The classes from `first` on and before `end`, grown from the free rows, one row a class and step."""
    engine, batch = flow.engine, _Batch(end)
    with flow.scope():
        grown = flow.step("grown", "start_classes", first=first, end=end)
        started = sorted(engine.columns(grown, "class_id", "row_id"))
        picks = [(class_id, batch.choose(class_id, [row])) for class_id, row in started]
        for step in range(2, l + 1):
            alive = [class_id for class_id, _ in picks if class_id < batch.end]
            picks = _choose_step(flow, step, batch, alive)
            if step < l:
                chosen = engine.load("chosen", {"class_id": "BIGINT", "row_id": "BIGINT"}, picks)
                flow.step("grown", "grow_classes_by", chosen=chosen)
    return batch


def _choose_step(flow: EngineFlow, step: int, batch: _Batch, classes: Sequence[int]) -> list[tuple[int, int]]:
    """The row that each of the classes takes in this step, as (class_id, row_id); one that finds none gives up."""
    with flow.scope():
        flow.know(held=None)
        if flow["others"]:
            taken = flow.engine.load("taken", {"row_id": "BIGINT", "class_id": "BIGINT"}, batch.held())
            flow.step("held", _MEMBERS, assigned=taken, keys=flow["others"], **_KEYS_ALONE)
        ranked = flow.rows("rank_candidates", step=step, end=batch.end)  # later classes are given up already
    best = {class_id: [row[1] for row in rows] for class_id, rows in itertools.groupby(ranked, key=lambda row: row[0])}
    for class_id in classes:
        if class_id not in best:
            batch.give_up(class_id)
    return [(class_id, batch.choose(class_id, rows)) for class_id, rows in best.items()]


def incorporate(task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], classes: int) -> None:
    """Add to `assigned` (row_id, class_id), of class ids up to `classes`, the rows left over that find a class."""
    engine, encoded = task.engine, task.encoded
    with engine.scope():
        flow = EngineFlow(engine, "bsgi/residue", rows=encoded.rows, axes=encoded.axes, assigned=assigned, keys=keys)
        flow.know(measures=ncp_measures(task), modulus=classes + 1, bounds=encoded.bound_classes(engine, assigned))
        flow.step("classes", "trace_classes")
        flow.step("members", _MEMBERS, **_KEYS_ALONE)
        flow.step("residual", "list_residual")
        while engine.count(residual := flow["residual"]):
            _round(flow)
            engine.drop(residual)  # all residual rows, once a round


def _round(flow: EngineFlow) -> None:
    """Settle residual rows in their classes; those that must choose again are residual."""
    engine = flow.engine
    with flow.scope("residual"):
        choices = flow.step("choices", "choose_classes")
        settled = engine.group("settled", choices, "class_id", row_id=("min", "row_id"))
        flow.know(settled=settled)
        flow.step("residual", "keep_waiting")
        engine.extend(flow["assigned"], settled, "row_id", "class_id")
        if not engine.count(flow["residual"]):
            return
        grown = flow.step("grown", "grow_bounds")
        for relation in (flow["bounds"], flow["classes"]):  # classes that rows have joined are measured anew
            engine.delete_listed(relation, Identifier("class_id"), settled)
        engine.extend(flow["bounds"], grown)
        flow.insert("classes", "trace_classes", bounds=grown)
        flow.insert("members", _MEMBERS, assigned=settled, **_KEYS_ALONE)
