"""BSGI: bucketize by sensitive value, select rows of different buckets into classes, incorporate the rest.

Every class takes l rows of l different sensitive values, so it is unique distinct l-diverse (Ye et al.,
Definition 2); the number of classes is the largest possible (Theorem 1). Three ways to select:
`bisect` splits the table in halves that keep this possible, a few statements a level (`bisection`);
`refine` splits where values part (`boundaries`) and then exchanges rows between near classes (`exchange`),
slower and with less loss; `greedy` is the paper's procedure, one class after the other (`selection`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from ldiv_db.algorithms import bisection, boundaries, selection
from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.exchange import exchange
from ldiv_db.algorithms.measures import drop_paths, measures_of
from ldiv_db.encoded import Encoded
from ldiv_db.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.recode import plan_recoding
from ldiv_db.requirements import Distribution
from ldiv_db.templates import Relation, Value


class BsgiOptions(Options):
    """How BSGI selects, what becomes of rows that no class could take, the most rounds of exchanges in `refine`."""

    select: Literal["bisect", "refine", "greedy"] = "bisect"
    residue: Literal["incorporate", "suppress"] = "incorporate"
    exchange: int = Field(default=4, ge=0, le=100)


def most_classes(counts: Sequence[int], l: int) -> int:  # noqa: E741 - the field's name for it
    """The most classes of l rows with different values: `max{k : sum_i min(n_i, k) >= k l}` (Theorem 1)."""
    low, high = 0, sum(counts) // l
    while low < high:
        k = (low + high + 1) // 2
        if sum(min(count, k) for count in counts) >= k * l:
            low = k
        else:
            high = k - 1
    return low


def quotas(counts: Sequence[int], l: int) -> list[int]:  # noqa: E741
    """How many rows of each value are selected; `counts` fall, and the quotas sum to l times `most_classes`.

    No quota exceeds the number of classes; what is beyond (fewer than l rows) is taken off the
    largest buckets, one row each, so that residual rows differ if the table is l-eligible (Corollary 1).
    """
    classes = most_classes(counts, l)
    clipped = [min(count, classes) for count in counts]
    surplus = sum(clipped) - classes * l
    return [quota - (place < surplus) for place, quota in enumerate(clipped)]


class Bsgi(Algorithm):
    """Unique distinct l-diversity with the largest number of classes."""

    name = "bsgi"
    options_type = BsgiOptions
    options: BsgiOptions

    def check(self, task: Task) -> Feasibility:
        """Raises InfeasibleError if there are too few sensitive values, or one is too frequent to incorporate."""
        if len(task.encoded.sensitive) > 1:
            raise PolicyError([Problem("sensitive", "bsgi protects one sensitive attribute", "list one")])
        distribution = task.encoded.sensitive[0].distribution
        l = class_size(task)  # noqa: E741
        if l > distribution.distinct:
            raise InfeasibleError(_too_few_values(distribution, l))
        suppress = self.options.residue == "suppress"
        if distribution.counts[0] * l > distribution.rows and not suppress:
            raise InfeasibleError(_too_frequent(distribution, l))
        classes = most_classes(distribution.counts, l)
        residue = distribution.rows - classes * l
        notes = []
        if distribution.largest_l == 1:
            notes.append("one sensitive value holds more than half of the rows: no release can bound the risk by 1/2")
        suppressed = residue if suppress else 0
        return Feasibility(l, classes, suppressed + task.encoded.left_out, tuple(notes))

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        engine, encoded, l = task.engine, task.encoded, feasible.l  # noqa: E741
        counts = encoded.sensitive[0].distribution.counts
        rounds: tuple[int, ...] = ()
        if self.options.select == "greedy":
            assigned = selection.select(task, l, feasible.classes)
        elif self.options.select == "bisect":
            assigned = bisection.bisect(task, quotas(counts, l), l, feasible.classes)
        else:
            measures = measures_of(task)
            assigned = boundaries.split(task, measures, quotas(counts, l), l, feasible.classes)
            assigned, rounds = exchange(task, measures, assigned, l, self.options.exchange)
            drop_paths(task, measures)
        residue = encoded.row_count - feasible.classes * l
        if residue and self.options.residue == "incorporate":
            for _ in range(residue):
                grown = _incorporate_next(task, assigned)
                engine.drop(assigned)
                assigned = grown
        search: dict[str, Any] = {
            "select": self.options.select,
            "residue_rows": residue,
            "residue": self.options.residue,
        }
        search |= {"exchange_rounds": len(rounds), "exchanges": list(rounds)}
        return Plan(assigned, l, feasible.notes, search)


def class_size(task: Task) -> int:
    """The l of a task: the smallest class of different sensitive values that meets every requirement, at least 2.

    Raises PolicyError for requirements that no size promises.
    """
    sizes = {requirement: requirement.unique_class_size() for requirement in task.requirements}
    problems = [
        Problem("require", f"bsgi cannot promise {requirement.label}: different sensitive values are not enough for it")
        for requirement, size in sizes.items()
        if size is None
    ]
    if problems:
        raise PolicyError(problems)
    return max([2, *(size for size in sizes.values() if size is not None)])


def _too_few_values(distribution: Distribution, l: int) -> str:  # noqa: E741
    most = "a single value" if distribution.distinct == 1 else f"{distribution.distinct} different values"
    return (
        f"classes of {l} different sensitive values are impossible: the sensitive attribute has {most}"
        f" in {distribution.rows:,} rows. {_largest(distribution)}{_with_suppression(distribution)}"
    )


def _too_frequent(distribution: Distribution, l: int) -> str:  # noqa: E741
    return (
        f"l = {l} is infeasible without suppression: the most frequent sensitive value holds {distribution.counts[0]:,}"
        f" of {distribution.rows:,} rows, more than 1/{l}. {_largest(distribution)}, or set algorithm.residue:"
        f" suppress, which leaves out {_suppressed(distribution, l)} at l = {l}{_with_suppression(distribution, l)}"
    )


def _largest(distribution: Distribution) -> str:
    largest = distribution.largest_l
    return f"The largest feasible l is {largest}" if largest > 1 else "No l above 1 is feasible"


def _with_suppression(distribution: Distribution, asked: int = 0) -> str:
    """What suppression allows beyond the l that is feasible without it and the one `asked` for; empty if nothing."""
    most = distribution.distinct
    if most in (distribution.largest_l, asked) or most < 2:
        return ""
    if asked:
        return f" and allows up to l = {most}"
    return (
        f" without suppression, and {most} with algorithm.residue: suppress, which leaves out"
        f" {_suppressed(distribution, most)}"
    )


def _suppressed(distribution: Distribution, l: int) -> str:  # noqa: E741
    rows = distribution.rows - most_classes(distribution.counts, l) * l
    return f"{rows:,} of {distribution.rows:,} rows"


def _incorporate_next(task: Task, assigned: Relation) -> Relation:
    """The assignment with one more row: the first residual one joins a class without its value at least NCP (Figure 3).

    Such a class exists: residual rows differ in value and are fewer than l, and no class has all values
    of an l-eligible table unless it has more than l rows.
    """
    engine, encoded = task.engine, task.encoded
    row_id = engine.scalar("bsgi/find_residual_row", rows=encoded.rows, assigned=assigned)
    grown = _grown_classes(task, encoded, assigned, row_id)
    recoding = plan_recoding(engine, encoded, grown)
    chosen = engine.rows("bsgi/choose_class", classes=recoding.classes, spans=recoding.spans)
    if not chosen:
        raise InfeasibleError("a residual row finds no class without its sensitive value: set residue: suppress")
    result = engine.materialise(
        "assigned", "bsgi/add_row", assigned=assigned, row_id=Value(row_id), class_id=Value(chosen[0][0])
    )
    engine.drop(grown, recoding.classes, *(span.relation for span in recoding.spans))
    return result


def _grown_classes(task: Task, encoded: Encoded, assigned: Relation, row_id: int) -> Relation:
    """The classes that lack the row's sensitive value, each with the row in it, as (row_id, class_id)."""
    return task.engine.materialise(
        "grown",
        "bsgi/grow_classes",
        rows=encoded.rows,
        assigned=assigned,
        row_id=Value(row_id),
        sensitive=encoded.sensitive[0],
    )
