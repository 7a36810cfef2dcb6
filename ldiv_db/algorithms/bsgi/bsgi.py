"""BSGI: bucketize by sensitive value, select rows of different buckets into classes, incorporate the rest.

Every class takes l rows of l different sensitive values. Of the three ways to select them `refine` loses least,
`bisect` is the fastest, and `greedy` is the paper's; the package says what each does, and in which order.

Where there are several sensitive attributes, or several rows of an individual, the rows of a class differ
on every one of these keys (Sections 5.2.2 and 5.2.3). Classes are made on the hardest sensitive attribute;
`greedy` takes no row that agrees with one of the class, the other ways are mended afterwards (`repair`).
Of the rows without a class more are made, as long as there are any. The number of classes may fall short.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task, Traits
from ldiv_db.algorithms.bsgi import bisection, selection
from ldiv_db.algorithms.bsgi.repair import repair
from ldiv_db.algorithms.bsgi.selection import incorporate
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.eligibility import LEAVES, check_counts, class_count, class_size, hardest_first, quotas
from ldiv_db.algorithms.infeasible import no_class, none_found
from ldiv_db.algorithms.neighbours.exchange import exchange_rows
from ldiv_db.algorithms.transparent import build
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.recoding.axes import among


def among_rows(task: Task, rows: Relation) -> Task:
    """The task over these rows, with the counts of their values, and the hardest key that is left first."""
    return _hardest(replace(task, encoded=among(task.engine, task.encoded, rows)))


def _hardest(task: Task) -> Task:
    encoded = task.encoded
    if not all(key.distribution.counts for key in encoded.keys):  # nothing is left
        return task
    return replace(task, encoded=replace(encoded, sensitive=tuple(hardest_first(encoded))))


def _trimmed(task: Task, l: int) -> Task:
    """The task without what is too much of any code; leaving rows out may lower what another code may have."""
    engine, rows = task.engine, None
    while len(task.encoded.keys) > 1 and (classes := class_count(task.encoded, l)):
        worst = max(task.encoded.keys, key=lambda key: key.distribution.counts[0])
        if worst.distribution.counts[0] <= classes:
            break
        others = [key for key in task.encoded.keys if key is not worst]
        params = {"rows": task.encoded.rows, "key": worst, "others": others, "most": classes, "seed": task.seed}
        fewer = engine.materialise("trimmed", "bsgi/residue/trim_codes", **params)
        if rows:
            engine.drop(rows)  # all the rows, once for every code that is too frequent
        task, rows = among_rows(task, fewer), fewer
    return task


#: How often classes are made of rows left over, where several keys count; and of how many rows greedily.
PASSES, FEW = 8, 2_000


class BsgiOptions(Options):
    """The way BSGI selects rows.

    The fate of those that no class could take, the most rounds of exchanges in `refine`.
    """

    select: Literal["bisect", "refine", "greedy"] = "refine"
    residue: Literal["incorporate", "suppress"] = "incorporate"
    exchange: int = Field(default=4, ge=0, le=100)


@dataclass
class _Made:
    """The classes made so far: `assigned` has `classes` of them, numbered up to `last`; the exchanges of all rounds."""

    assigned: Relation
    classes: int
    last: int
    exchanges: tuple[int, ...] = ()
    repairs: list[int] = field(default_factory=list)

    def add(self, task: Task, more: _Made) -> None:
        """Take in more classes, numbered after these."""
        task.engine.insert(self.assigned, "bsgi/residue/shift_classes", assigned=more.assigned, last=self.last)
        self.last += more.last
        self.classes += more.classes
        self.repairs += more.repairs


class Bsgi(Algorithm):
    """Unique distinct l-diversity with the largest number of classes."""

    name = "bsgi"
    traits = Traits(outliers=True, divides=True, suppressing={"residue": "suppress"})
    options_type = BsgiOptions
    options: BsgiOptions

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """Itself; or, where the policy has a budget of rows left out and all rows find no class, leaving rows out."""
        if task.suppression is None or task.transparent or "residue" in self.options.model_fields_set:
            return self, ""
        options = self.options.model_dump(exclude_unset=True)
        leaving = Bsgi({**options, **self.traits.suppressing})
        if _allows(self, task) or not _allows(leaving, task):
            return self, ""
        return leaving, f"algorithm bsgi: {LEAVES}, as `suppression` allows some"

    def check(self, task: Task) -> Feasibility:
        """Raises InfeasibleError if there are too few sensitive values, or one is too frequent to incorporate."""
        return check_counts(task, self.options.residue == "suppress")

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        if task.transparent:
            rounds = self.options.exchange if "exchange" in self.options.model_fields_set else None
            assigned, figures = build(task, feasible.l, rounds)
            return Plan(assigned, feasible.l, feasible.notes, {"select": "transparent", **figures})
        l, several = feasible.l, len(task.encoded.keys) > 1
        made = _select(_hardest(task), l, self.options.select, self.options.exchange)
        if several:
            _make_more(task, made, l)
        if not made.classes:
            raise InfeasibleError(none_found(task.encoded, l))
        residue = task.encoded.row_count - made.classes * l
        if residue and self.options.residue == "incorporate":
            incorporate(task, made.assigned, task.encoded.keys, made.last)
        left = task.encoded.row_count - task.engine.count(made.assigned)
        of_all = f"{left:,} of {task.encoded.row_count:,} {task.encoded.noun}"
        notes = [f"{of_all} found no class and are left out"] if left else []
        return Plan(made.assigned, l, (*feasible.notes, *(notes if several else ())), self._search(made, residue, left))

    def _search(self, made: _Made, residue: int, left: int) -> dict[str, Any]:
        return {
            "select": self.options.select,
            "residue_rows": residue,
            "residue": self.options.residue,
            "residue_suppressed": left,
            "exchange_rounds": len(made.exchanges),
            "exchanges": list(made.exchanges),
            "repairs": made.repairs,
        }


class SeriesBsgi(Bsgi):
    """BSGI of the rows of a series: those that find no class wait for a later release, however many share a value."""

    def check(self, task: Task) -> Feasibility:
        l, distinct = class_size(task), {k.column.name: k.distribution.distinct for k in task.encoded.keys}
        few = min(distinct, key=lambda name: distinct[name])
        if distinct[few] < l:
            raise InfeasibleError(no_class("classes", l, few, distinct[few], task.encoded.row_count))
        return check_counts(task, suppress=True)


def _allows(algorithm: Bsgi, task: Task) -> bool:
    try:
        algorithm.check(task)
    except (InfeasibleError, PolicyError):
        return False
    return True


def _select(task: Task, l: int, select: str, exchanges: int = 0) -> _Made:
    """Classes of the task's rows that differ on every key."""
    engine = task.engine
    with engine.scope() as scope:
        if select != "greedy":  # which takes what fits, others need counts that do
            task = _trimmed(task, l)
        keys, classes = task.encoded.keys, class_count(task.encoded, l)
        if not classes:
            made = _Made(engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, []), 0, 0)
        else:
            made = _first_classes(task, l, classes, select, exchanges)
        if made.classes and len(keys) > 1:
            made.assigned, made.repairs = repair(task, made.assigned, keys, l, made.last)
            made.classes = engine.count(made.assigned) // l
        scope.keep(made.assigned)
    return made


def _first_classes(task: Task, l: int, classes: int, select: str, exchanges: int) -> _Made:
    """Classes that differ on the first key, and by `greedy` on the others."""
    others = task.encoded.keys[1:]
    if select == "greedy":
        return _Made(selection.select(task, l, classes, others), classes, classes)
    shares = quotas(task.encoded.sensitive[0].distribution.counts, l, classes)
    if select == "bisect":
        return _Made(bisection.bisect(task, shares, l, classes, others), classes, classes)
    measures = lm_measures(task)
    assigned = bisection.split(task, measures, shares, l, classes)
    assigned, rounds = exchange_rows(task, measures, assigned, l, exchanges)
    return _Made(assigned, classes, classes, rounds)


def _make_more(task: Task, made: _Made, l: int) -> None:
    """Make classes of the rows left over, until there are none to be made.

    Halves that were in each other's way may be so for good; then, where few rows are left, one class after the
    other is tried, by a few seeds.
    """
    select = "bisect"
    for turn in range(PASSES):
        with task.engine.scope():
            free = task.engine.select_others("free", task.encoded.rows, made.assigned, "row_id")
            left = among_rows(replace(task, seed=task.seed + turn), free)
            if not class_count(left.encoded, l):
                break
            more = _select(left, l, select)
            made.add(task, more)
        if more.classes:
            continue
        select = "greedy"
        if task.encoded.row_count - made.classes * l > FEW:
            break
