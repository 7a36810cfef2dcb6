"""Trials: candidates are run, what each would publish is measured, and what loses least is kept.

Budgets are of counted work, never of time: the same table gives the same release on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.auto.candidates import Candidate, Checked
from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.local.candidate_classes import ClassChecker
from ldiv_db.algorithms.neighbours.moves import trade
from ldiv_db.database.errors import InfeasibleError

#: Those whose classes have been through the exchanges of `neighbours.moves`, or are known not to gain by them.
POLISHED = ("peel",)


@dataclass(frozen=True)
class Trial:
    """What came of a candidate: its plan and what that would lose, or why there is none.

    `loss` is the mean LM of a cell by weights, `left_out` are the rows that the plan has no class for.
    """

    candidate: Candidate
    plan: Plan | None = None
    loss: float = 0.0
    left_out: int = 0
    failed: str = ""

    def as_dict(self) -> dict[str, Any]:
        """What the result says of it."""
        found: dict[str, Any] = {"algorithm": self.candidate.name}
        if self.plan is None:
            return found | {"failed": self.failed}
        return found | {"loss": self.loss, "rows_left_out": self.left_out}

    def __str__(self) -> str:
        out = f", {self.left_out:,} rows left out" if self.left_out else ""
        return f"{self.candidate.name} ({f'{self.loss:.4f}{out}' if self.plan else 'infeasible'})"


def within(candidates: Sequence[Checked], budget: int) -> tuple[list[Checked], list[Checked]]:
    """The first candidate and those whose work besides the budget covers, in their order; and the others."""
    taken, left = list(candidates[:1]), list[Checked]()
    for found in candidates[1:]:
        fits = found.candidate.work <= budget
        (taken if fits else left).append(found)
        budget -= found.candidate.work if fits else 0
    return taken, left


def try_all(task: Task, candidates: Sequence[Checked], budget: int, suppress: bool) -> tuple[Trial, list[Trial]]:
    """The best trial and all of them; raises InfeasibleError if no candidate comes to anything.

    Beyond the budget candidates are tried until one has published all rows, or may leave them out (`suppress`).
    """
    best: Trial | None = None
    trials: list[Trial] = []
    taken, left = within(candidates, budget)
    for number, found in enumerate([*taken, *left]):
        if number >= len(taken) and best and (suppress or not best.left_out):
            break
        task.report(f"trying {found.candidate.name}")
        trial = attempt(task, found.candidate)
        trials.append(trial)
        if trial.plan and (best is None or _is_better(trial, best, suppress)):
            best, trial = trial, best or Trial(found.candidate)
        if trial.plan:
            drop(task, trial.plan)
    if best is None:
        raise InfeasibleError("\n".join(dict.fromkeys(trial.failed for trial in trials)))
    return best, trials


def attempt(task: Task, candidate: Candidate) -> Trial:
    """The candidate run; nothing but its plan is left of it."""
    engine = task.engine
    with engine.scope() as scope:
        try:
            plan = candidate.algorithm.run(task)
        except InfeasibleError as error:
            return Trial(candidate, failed=str(error))
        for relation in _tables(plan):
            scope.keep(relation)
        left_out = task.encoded.row_count - engine.count(plan.assigned)
        return Trial(candidate, plan, task.loss(plan), left_out)


def polished(task: Task, trial: Trial) -> Trial:
    """The trial after exchanges between neighbouring classes, if that loses less as it is published."""
    plan, engine = trial.plan, task.engine
    if plan is None or trial.candidate.name in POLISHED:
        return trial
    with engine.scope() as scope:
        copied = engine.copy("assigned", plan.assigned)
        assigned, trades = trade(task, ClassChecker(task), lm_measures(task), copied)
        better = replace(plan, assigned=assigned, search=plan.search | {"polish": trades})
        loss = task.loss(better)
        if loss >= trial.loss:
            return trial
        scope.keep(assigned)
    engine.drop(plan.assigned)
    return replace(trial, plan=better, loss=loss)


def drop(task: Task, plan: Plan) -> None:
    """Drop the tables of a plan that is not taken."""
    task.engine.drop(*_tables(plan))


def _tables(plan: Plan) -> Iterator[Any]:
    return (relation for relation in (plan.assigned, plan.classes, plan.blanked) if relation is not None)


def _is_better(one: Trial, other: Trial, suppress: bool) -> bool:
    """Whether it loses less; unless rows may be left out, it is first of all better to leave out fewer."""
    if suppress:
        return one.loss < other.loss
    return (one.left_out, one.loss) < (other.left_out, other.loss)
