"""BSGI: bucketize by sensitive value, select rows of different buckets into classes, incorporate the rest.

Every class takes l rows of l different sensitive values. Of the three ways to select them `refine` loses least,
`bisect` is the fastest, and `greedy` is the paper's; the package says what each does, and in which order.

Where there are several sensitive attributes, or several rows of an individual, the rows of a class differ
on every one of these keys (Sections 5.2.2 and 5.2.3). Classes are made on the hardest sensitive attribute;
`greedy` takes no row that agrees with one of the class, the other ways are mended afterwards (`repair`).
Of the rows without a class more are made, as long as there are any, each time as a `Subtask`: a task over those rows,
with the counts of their values. The number of classes may fall short.
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
from ldiv_db.algorithms.eligibility import check_counts, hardest_first, quotas
from ldiv_db.algorithms.infeasible import none_found
from ldiv_db.algorithms.neighbours.exchange import exchange_rows
from ldiv_db.algorithms.transparent import build
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.database.names import Relation
from ldiv_db.recoding.axes import among
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements.guarantees import most_classes


@dataclass(frozen=True)
class Subtask:
    """A task over some rows, and the most classes there can be of them."""

    task: Task
    classes: int

    @property
    def others(self) -> tuple[SensitiveAxis, ...]:
        """The keys besides the one that classes are made on."""
        return self.task.encoded.keys[1:]


def whole_subtask(task: Task, l: int) -> Subtask:
    """All rows."""
    encoded = task.encoded
    classes = min(most_classes(key.distribution.counts, l) for key in encoded.keys)
    if all(key.distribution.counts for key in encoded.keys):  # else nothing is left
        task = replace(task, encoded=replace(encoded, sensitive=tuple(hardest_first(encoded))))
    return Subtask(task, classes)


def trimmed(subtask: Subtask, l: int) -> Subtask:
    """The subtask without what is too much of any code; leaving rows out may lower what another code may have."""
    engine, rows = subtask.task.engine, None
    while subtask.classes:
        encoded = subtask.task.encoded
        worst = max(encoded.keys, key=lambda key: key.distribution.counts[0])
        if len(encoded.keys) == 1 or worst.distribution.counts[0] <= subtask.classes:
            break
        fewer = engine.materialise(
            "trimmed",
            "bsgi/residue/trim_codes",
            rows=encoded.rows,
            key=worst,
            others=[key for key in encoded.keys if key is not worst],
            most=subtask.classes,
            seed=subtask.task.seed,
        )
        if rows:
            engine.drop(rows)  # all the rows, once for every code that is too frequent
        subtask, rows = subtask_of(subtask.task, fewer, l), fewer
    return subtask


def subtask_of(task: Task, rows: Relation, l: int) -> Subtask:
    """These rows, with the counts of their values."""
    return whole_subtask(replace(task, encoded=among(task.engine, task.encoded, rows)), l)


#: How often classes are made of rows left over, where several keys count; and of how many rows greedily.
PASSES, FEW = 8, 2_000
#: What it does with `residue: suppress`, in words.
LEAVES = "it leaves out the rows of values that are too frequent"


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
            assigned, figures = build(task, feasible.l, self._rounds)
            return Plan(assigned, feasible.l, feasible.notes, {"select": "transparent", **figures})
        l, several = feasible.l, len(task.encoded.keys) > 1
        made = self._make(task, l)
        if not made.classes:
            raise InfeasibleError(none_found(task.encoded, l))
        residue = task.encoded.row_count - made.classes * l
        if residue and self.options.residue == "incorporate":
            incorporate(task, made.assigned, task.encoded.keys, made.last)
        left = task.encoded.row_count - task.engine.count(made.assigned)
        notes = [f"{left:,} of {task.encoded.row_count:,} rows found no class and are left out"] if left else []
        return Plan(made.assigned, l, (*feasible.notes, *(notes if several else ())), self._search(made, residue, left))

    @property
    def _rounds(self) -> int | None:
        """The most rounds of exchanges of a transparent release, None if the policy does not say."""
        return self.options.exchange if "exchange" in self.options.model_fields_set else None

    def _make(self, task: Task, l: int) -> _Made:
        """All classes that can be found, the first of them in the way that the policy asks for."""
        made = _select(whole_subtask(task, l), l, self.options.select, self.options.exchange)
        if len(task.encoded.keys) > 1:
            _make_more(task, made, l)
        return made

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


def _allows(algorithm: Bsgi, task: Task) -> bool:
    """True if counts allow the task, however many rows are left out."""
    try:
        algorithm.check(task)
    except (InfeasibleError, PolicyError):
        return False
    return True


def _select(subtask: Subtask, l: int, select: str, exchanges: int = 0) -> _Made:
    """Classes of the subtask's rows that differ on every key."""
    engine = subtask.task.engine
    with engine.scope() as scope:
        if select != "greedy":  # which takes what fits, others need counts that do
            subtask = trimmed(subtask, l)
        if not subtask.classes:
            made = _Made(engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, []), 0, 0)
        else:
            made = _first_classes(subtask, l, select, exchanges)
        if made.classes and subtask.others:
            made.assigned, made.repairs = repair(subtask.task, made.assigned, subtask.task.encoded.keys, l, made.last)
            made.classes = engine.count(made.assigned) // l
        scope.keep(made.assigned)
    return made


def _first_classes(subtask: Subtask, l: int, select: str, exchanges: int) -> _Made:
    """Classes that differ on the first key, and by `greedy` on the others."""
    task, classes = subtask.task, subtask.classes
    if select == "greedy":
        return _Made(selection.select(task, l, classes, subtask.others), classes, classes)
    shares = quotas(task.encoded.sensitive[0].distribution.counts, l, classes)
    if select == "bisect":
        return _Made(bisection.bisect(task, shares, l, classes, subtask.others), classes, classes)
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
            left = subtask_of(replace(task, seed=task.seed + turn), free, l)
            if not left.classes:
                break
            more = _select(left, l, select)
            made.add(task, more)
        if more.classes:
            continue
        select = "greedy"
        if task.encoded.row_count - made.classes * l > FEW:
            break
