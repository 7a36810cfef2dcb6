"""BSGI: bucketize by sensitive value, select rows of different buckets into classes, incorporate the rest.

Every class takes l rows of l different sensitive values, so it is unique distinct l-diverse (Ye et al.,
Definition 2); the number of classes is the largest possible (Theorem 1). Three ways to select:
`bisect` splits the table in halves that keep this possible, a few statements a level (`bisection`);
`refine` splits where values part (`boundaries`) and then exchanges rows between near classes (`exchange`),
slower and with less loss; `greedy` is the paper's procedure, one class after the other (`selection`).

Where there are several sensitive attributes, or several rows of an individual, the rows of a class differ
on every one of these keys (Sections 5.2.2 and 5.2.3). Classes are made on the hardest sensitive attribute;
`greedy` takes no row that agrees with one of the class, the other ways are mended afterwards (`repair`).
Of the rows without a class more are made, as long as there are any. The number of classes may fall short.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from ldiv_db.algorithms import bisection, boundaries, selection
from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.exchange import exchange
from ldiv_db.algorithms.feasibility import check_counts, class_size, most_classes, quotas
from ldiv_db.algorithms.pool import Pool, left_pool, whole_pool
from ldiv_db.algorithms.repair import repair
from ldiv_db.algorithms.residue import incorporate
from ldiv_db.errors import InfeasibleError
from ldiv_db.templates import Relation, Value

__all__ = ["Bsgi", "BsgiOptions", "class_size", "most_classes", "quotas"]

#: How often classes are made of rows left over, where several keys count.
PASSES = 4
_ASSIGNED = {"row_id": "BIGINT", "class_id": "BIGINT"}


class BsgiOptions(Options):
    """How BSGI selects, what becomes of rows that no class could take, the most rounds of exchanges in `refine`."""

    select: Literal["bisect", "refine", "greedy"] = "bisect"
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


class Bsgi(Algorithm):
    """Unique distinct l-diversity with the largest number of classes."""

    name = "bsgi"
    options_type = BsgiOptions
    options: BsgiOptions

    def check(self, task: Task) -> Feasibility:
        """Raises InfeasibleError if there are too few sensitive values, or one is too frequent to incorporate."""
        return check_counts(task, self.options.residue == "suppress")

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        l, several = feasible.l, len(task.encoded.keys) > 1  # noqa: E741
        made = self._make(task, l)
        if not made.classes:
            raise InfeasibleError(f"no {l} rows were found that differ in each of {_names(task)}: lower l")
        residue = task.encoded.row_count - made.classes * l
        if residue and self.options.residue == "incorporate":
            incorporate(task, made.assigned, task.encoded.keys, made.last)
        left = task.encoded.row_count - task.engine.scalar("input/count_rows", rows=made.assigned)
        notes = [f"{left:,} of {task.encoded.row_count:,} rows found no class and are left out"] if left else []
        return Plan(made.assigned, l, (*feasible.notes, *(notes if several else ())), self._search(made, residue, left))

    def _make(self, task: Task, l: int) -> _Made:  # noqa: E741
        """All classes that can be found."""
        pool = whole_pool(task, l)
        made = self._select(pool, l)
        pool.drop()
        if len(task.encoded.keys) > 1:
            _make_more(task, made, l)
        return made

    def _select(self, pool: Pool, l: int) -> _Made:  # noqa: E741
        """The first classes, in the way that the policy asks for."""
        task, classes = pool.task, pool.classes
        rounds: tuple[int, ...] = ()
        shares = quotas(task.encoded.sensitive[0].distribution.counts, l, classes)
        if not classes:
            assigned = task.engine.load("assigned", _ASSIGNED, [])
        elif self.options.select == "greedy":
            assigned = selection.select(task, l, classes, pool.others)
        elif self.options.select == "bisect":
            assigned = bisection.bisect(task, shares, l, classes, pool.others)
        else:
            assigned = boundaries.split(task, shares, l, classes)
            assigned, rounds = exchange(task, assigned, l, self.options.exchange)
        return _mend(pool, _Made(assigned, classes, classes, rounds), l)

    def _search(self, made: _Made, residue: int, left: int) -> dict[str, Any]:
        """What the result says of the work."""
        return {
            "select": self.options.select,
            "residue_rows": residue,
            "residue": self.options.residue,
            "residue_suppressed": left,
            "exchange_rounds": len(made.exchanges),
            "exchanges": list(made.exchanges),
            "repairs": made.repairs,
        }


def _mend(pool: Pool, made: _Made, l: int) -> _Made:  # noqa: E741
    """The classes with those that agree on other keys repaired, or given up."""
    if not pool.others:
        return made
    made.assigned, made.repairs = repair(pool.task, made.assigned, pool.task.encoded.keys, l, made.last)
    made.classes = pool.task.engine.scalar("input/count_rows", rows=made.assigned) // l
    return made


def _make_more(task: Task, made: _Made, l: int) -> None:  # noqa: E741
    """Make classes of the rows left over, until there are none to be made."""
    engine = task.engine
    for _ in range(PASSES):
        pool = left_pool(task, made.assigned, l)
        if not pool.classes:
            pool.drop()
            break
        shares = quotas(pool.task.encoded.sensitive[0].distribution.counts, l, pool.classes)
        assigned = bisection.bisect(pool.task, shares, l, pool.classes, pool.others)
        more = _mend(pool, _Made(assigned, pool.classes, pool.classes), l)
        engine.insert(made.assigned, "residue/shift_classes", assigned=more.assigned, last=Value(made.last))
        made.last += more.last
        made.classes += more.classes
        made.repairs += more.repairs
        pool.drop()
        engine.drop(more.assigned)
        if not more.classes:
            break


def _names(task: Task) -> str:
    return ", ".join(key.column.name for key in task.encoded.keys)
