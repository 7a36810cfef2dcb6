"""Outliers: rows are left out of their classes where that loses less, as many as the policy has a budget for.

A row that is left out loses every cell, and its class may become narrower for all others. A round takes of each class
the row whose leaving gains most, of those without which the class still meets every requirement, judged by counts as
other candidates are; of all these, if the budget is for fewer, those that gain most. The classes that lost a row are
looked at again, until no row gains or the budget is spent. So every step lowers the loss, every class stays good, and
none is left out as a whole: its last row costs nothing.

Requirements that compare classes with all rows that are published are left alone, since each row that is left out
changes what every class is compared with; and so are those that are not kept when classes are put together, and those
on people of a population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.costs import COST_UNIT, Measure, lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.neighbours.moves import GAINS, measured_classes, rests_of
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.templates import Identifier, Relation, Value

#: Classes of so many rows keep them all: what one row of them costs the others is too little to look for.
LARGE = 4096


@dataclass(frozen=True)
class _Search:
    """What rounds look at: what rows cost, what classes must meet, and what a row costs that is left out."""

    task: Task
    checker: ClassChecker
    measures: Sequence[Measure]
    price: Value


def without_outliers(task: Task, algorithm: Algorithm, plan: Plan) -> Plan:
    """The algorithm's plan without rows whose leaving loses less, within what is left of the budget.

    `search` has the rows left out in each round, as `outliers`, where rows were looked for. A plan in parts has been
    through it part by part.
    """
    if task.suppression is None or not algorithm.spares_outliers or plan.parts > 1 or not _can_judge(task):
        return plan
    engine, none = task.engine, replace(plan, search=plan.search | {"outliers": []})
    spare = (task.most_left_out or 0) - (task.encoded.row_count - engine.count(plan.assigned))
    if spare <= 0:
        return none
    with engine.scope() as scope:
        search = _Search(task, ClassChecker(task), lm_measures(task), _price(task))
        assigned, rounds = _left_out(search, plan.assigned, spare)
        better = replace(plan, assigned=assigned, search=plan.search | {"outliers": rounds})
        if not rounds or task.loss(task.encoded, better) >= task.loss(task.encoded, plan):
            return none
        scope.keep(assigned)
    engine.drop(plan.assigned)
    return better


def told_of_outliers(search: Mapping[str, Any]) -> tuple[str, ...]:
    """That rows were left out where that loses less, in words, if any were."""
    rows = sum(search.get("outliers", ()))
    what = count_phrase(rows, "row is", "rows are")
    return (f"{what} left out of classes that lose less without them, as `suppression` allows",) if rows else ()


def _can_judge(task: Task) -> bool:
    """Whether counts of a class alone say that it is good without a row, and other classes stay as good as they are."""
    return not any(r.of_whole or r.named_population or not r.monotone for r in task.requirements)


def _price(task: Task) -> Value:
    """What a row costs that is left out: every cell, by weights relative to the largest."""
    weights = [axis.weight for axis in task.encoded.axes]
    return Value(sum(round(COST_UNIT * weight / (max(weights) or 1.0)) for weight in weights))


def _left_out(search: _Search, assigned: Relation, spare: int) -> tuple[Relation, list[int]]:
    """The assignment (row_id, class_id) after all rounds, and the rows left out in each."""
    engine, rounds = search.task.engine, list[int]()
    kept = engine.copy("assigned", assigned)
    looked_at = assigned
    while spare:
        chosen = _round(search, looked_at, spare)
        found = engine.count(chosen)
        if not found:
            break
        rounds.append(found)
        spare -= found
        engine.delete_listed(kept, Identifier("row_id"), chosen)
        remaining = engine.materialise("remaining", "local/outliers/list_remaining", assigned=kept, chosen=chosen)
        engine.drop(chosen, *([looked_at] if looked_at is not assigned else []))
        looked_at = remaining
    return kept, rounds


def _round(search: _Search, assigned: Relation, most: int) -> Relation:
    """The rows (row_id, class_id, gain) that are left out of these classes, one of each, `most` of all."""
    engine, sensitive = search.task.engine, search.task.encoded.sensitive
    with engine.scope() as scope:
        members, costs = measured_classes(search.task, search.measures, assigned, LARGE)
        rests = rests_of(search.task, search.measures, members, costs, LARGE)
        params = {"rests": rests, "sensitive": sensitive}
        outliers = engine.materialise(
            "outliers",
            "local/outliers/find_outliers",
            **params,
            costs=costs,
            measures=search.measures,
            rest=Identifier("r"),
            gains=GAINS,
            price=search.price,
        )
        counts = engine.materialise("counts", "local/outliers/count_others", outliers=outliers, **params)
        margins = search.checker.margins(counts)
        found = {"outliers": outliers, "margins": margins, "most": Value(most)}
        return scope.keep(engine.materialise("chosen", "local/outliers/choose_outliers", **found))
